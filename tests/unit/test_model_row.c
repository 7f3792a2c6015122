#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "macros.h"
#include "row.h"

static const char site[] =
	"{\"hypotheses\": [\"title\", \"score\"],"
	"\"scores\": {\"columns\": [\"gene\", \"value\"], \"fill\": {\"analysis_id\": \"{id}\","
	"\"n\": \"{attempt}\", \"fixed\": 7, \"nothing\": null},"
	"\"key\": [\"gene\", \"analysis_id\"], \"on_conflict\": \"update\"}}";

static int read_site(struct row_tables *t, const char *text, struct error *err)
{
	json_auto_t *json = json_loads(text, 0, NULL);

	assert_non_null(json);
	return row_tables_read(t, json, err);
}

static int parse(struct row_tables *t, struct row *row, const char *line, struct error *err)
{
	*err = (struct error){0};
	assert_int_equal(read_site(t, site, err), 0);
	return row_parse_line(t, line, strlen(line), row, err);
}

static void assert_refused(const char *line, const char *words)
{
	_cleanup_row_tables_ struct row_tables t = {0};
	_cleanup_row_ struct row row = {0};
	struct error err;

	if (parse(&t, &row, line, &err) == 0)
		fail_msg("taken: %s", line);
	if (!strstr(err.message, words))
		fail_msg("%s\n  has no '%s' in it: %s", line, words, err.message);
}

static void assert_site_refused(const char *text, const char *words)
{
	_cleanup_row_tables_ struct row_tables t = {0};
	struct error err = ERROR_INIT;

	if (read_site(&t, text, &err) == 0)
		fail_msg("taken: %s", text);
	if (!strstr(err.message, words))
		fail_msg("%s\n  has no '%s' in it: %s", text, words, err.message);
}

static void assert_text(const struct cell *c, enum cell_kind kind, const char *text)
{
	assert_int_equal(c->kind, kind);
	assert_int_equal(c->size, strlen(text));
	assert_memory_equal(c->text, text, c->size);
}

static void test_a_row_has_a_table_and_cells(void **state)
{
	_cleanup_row_tables_ struct row_tables t = {0};
	_cleanup_row_ struct row row = {0};
	struct error err;

	(void)state;
	assert_int_equal(
		parse(&t, &row,
		      " {\"row\" : {\"value\":-0.10, \"gene\":\"T\\u0050\\n53\"} , \"table\":\"scores\"} ",
		      &err),
		0);
	assert_string_equal(row.table->name, "scores");
	assert_text(&row.cells[0], CELL_TEXT, "TP\n53");
	assert_text(&row.cells[1], CELL_NUMBER, "-0.10");
	assert_int_equal(row.cells[2].kind, CELL_NULL);
	assert_memory_equal(row.fields, "{\"value\"", 8);
}

static void test_what_is_left_out_is_null(void **state)
{
	_cleanup_row_tables_ struct row_tables t = {0};
	_cleanup_row_ struct row row = {0};
	struct error err;

	(void)state;
	assert_int_equal(parse(&t, &row, "{\"table\":\"hypotheses\",\"row\":{}}", &err), 0);
	assert_int_equal(row.cells[0].kind, CELL_NULL);
	assert_int_equal(row.cells[1].kind, CELL_NULL);
}

static void test_only_the_sites_tables_and_columns_are_taken(void **state)
{
	(void)state;
	assert_refused("{\"table\":\"users\",\"row\":{}}", "does not allow a table 'users'");
	assert_refused("{\"table\":\"scores\",\"row\":{\"admin\":1}}", "does not allow a column 'admin'");
	assert_refused("{\"table\":\"scores\\\"; drop table scores; --\",\"row\":{}}",
		       "does not allow a table");
	assert_refused("{\"table\":\"scores\",\"row\":{\"gene\\\"; --\":1}}", "does not allow a column");
}

static void test_a_filled_column_cannot_be_supplied(void **state)
{
	(void)state;
	assert_refused("{\"table\":\"scores\",\"row\":{\"analysis_id\":\"forged\"}}", "filled in");
	assert_refused("{\"table\":\"scores\",\"row\":{\"nothing\":1}}", "filled in");
	assert_refused("{\"table\":\"scores\",\"row\":{\"\\u0061nalysis_id\":\"forged\"}}", "filled in");
}

static void test_what_is_not_strict_json_is_refused(void **state)
{
	(void)state;
	assert_refused("", "empty");
	assert_refused("   ", "empty");
	assert_refused("hello", "stderr");
	assert_refused("[1]", "stderr");
	assert_refused("{\"table\":\"scores\"", "too early");
	assert_refused("{\"table\":\"scores\",}", "nothing");
	assert_refused("{\"table\":\"scores\",\"row\":{\"gene\":01}}", "not JSON");
	assert_refused("{\"table\":\"scores\",\"row\":{\"gene\":NaN}}", "not JSON");
	assert_refused("{\"table\":\"scores\",\"row\":{\"gene\":1.}}", "number");
	assert_refused("{\"table\":\"scores\",\"row\":{\"gene\":'a'}}", "not JSON");
	assert_refused("{\"table\":\"scores\",\"row\":{\"gene\":\"\\x\"}}", "escape");
	assert_refused("{\"table\":\"scores\",\"row\":{\"gene\":\"\\u0000\"}}", "NUL");
	assert_refused("{\"table\":\"scores\",\"row\":{\"gene\":\"\\udc00\"}}", "surrogate");
	assert_refused("{\"table\":\"scores\",\"row\":{\"gene\":\"\xff\"}}", "UTF-8");
	assert_refused("{\"table\":\"scores\",\"row\":{\"gene\":\"\t\"}}", "control");
	assert_refused("{\"table\":\"scores\",\"row\":{}} {}", "more than one");
	assert_refused("{\"table\":\"scores\",\"row\":[]}", "no \"row\"");
	assert_refused("{\"table\":5,\"row\":{}}", "no \"table\"");
	assert_refused("{\"table\":\"scores\",\"row\":{},\"id\":1}", "'id'");
	assert_refused("{\"table\":\"scores\",\"table\":\"scores\",\"row\":{}}", "twice");
	assert_refused("{\"table\":\"scores\",\"row\":{\"gene\":1,\"gene\":2}}", "twice");
}

static void test_nesting_is_bounded(void **state)
{
	char line[2048];
	int n = snprintf(line, sizeof line, "{\"table\":\"scores\",\"row\":{\"gene\":");

	(void)state;
	memset(line + n, '[', 1000);
	line[n + 1000] = 0;
	assert_refused(line, "too deep");
}

static void test_filled_columns_know_their_attempt(void **state)
{
	_cleanup_row_tables_ struct row_tables t = {0};
	_cleanup_buffer_ struct buffer texts = {0};
	struct cell cells[ROW_COLUMNS_MAX];
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(read_site(&t, site, &err), 0);
	assert_int_equal(row_fill(&t.list[1], "a42", 3, cells, &texts, &err), 0);
	assert_text(&cells[2], CELL_TEXT, "a42");
	assert_text(&cells[3], CELL_TEXT, "3");
	assert_text(&cells[4], CELL_TEXT, "7");
	assert_int_equal(cells[5].kind, CELL_NULL);
	assert_true(cells[2].filled);
}

static void test_the_elements_of_an_array_come_one_by_one(void **state)
{
	static const char text[] = "[ 1 ,\"a\\n,]\" , null,[2,3] ]";
	const struct cell array = {.kind = CELL_ARRAY,
				   .text = text,
				   .size = strlen(text),
				   .json = text,
				   .json_size = strlen(text)};
	_cleanup_buffer_ struct buffer scratch = {0};
	const char *at = NULL;
	struct cell c;

	(void)state;
	assert_int_equal(cell_next(&array, &at, &c, &scratch), 1);
	assert_text(&c, CELL_NUMBER, "1");
	assert_int_equal(cell_next(&array, &at, &c, &scratch), 1);
	assert_text(&c, CELL_TEXT, "a\n,]");
	assert_int_equal(cell_next(&array, &at, &c, &scratch), 1);
	assert_int_equal(c.kind, CELL_NULL);
	assert_int_equal(cell_next(&array, &at, &c, &scratch), 1);
	assert_text(&c, CELL_ARRAY, "[2,3]");
	assert_int_equal(cell_next(&array, &at, &c, &scratch), 0);
}

static void test_a_site_that_makes_no_sense_is_told_so(void **state)
{
	(void)state;
	assert_site_refused("{\"t\": [\"a\", \"a\"]}", "two columns 'a'");
	assert_site_refused("{\"t\": {\"columns\": [\"a\"], \"fill\": {\"a\": 1}}}", "two columns 'a'");
	assert_site_refused("{\"t\": {\"columns\": [\"a\"], \"key\": [\"b\"]}}", "none of its columns: 'b'");
	assert_site_refused("{\"t\": {\"columns\": [\"a\"], \"on_conflict\": \"update\"}}", "has no key");
	assert_site_refused("{\"t\": {\"columns\": [\"a\"], \"fill\": {\"b\": \"{user}\"}}}", "neither {id}");
	assert_site_refused("{\"t\": []}", "no columns");
	assert_site_refused("{\"fumehood.attempt\": [\"a\"]}", "not a table that can be filled");
	assert_site_refused("{\"Fumehood_attempt\": [\"a\"]}", "not a table that can be filled");
	assert_site_refused("{\"sqlite_master\": [\"a\"]}", "not a table that can be filled");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_row_has_a_table_and_cells),
		cmocka_unit_test(test_what_is_left_out_is_null),
		cmocka_unit_test(test_only_the_sites_tables_and_columns_are_taken),
		cmocka_unit_test(test_a_filled_column_cannot_be_supplied),
		cmocka_unit_test(test_what_is_not_strict_json_is_refused),
		cmocka_unit_test(test_nesting_is_bounded),
		cmocka_unit_test(test_filled_columns_know_their_attempt),
		cmocka_unit_test(test_the_elements_of_an_array_come_one_by_one),
		cmocka_unit_test(test_a_site_that_makes_no_sense_is_told_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
