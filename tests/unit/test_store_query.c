/* Which texts are let near a database as a query. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "query.h"

static int check(const char *sql)
{
	struct error err = ERROR_INIT;
	size_t size = 0;
	int r = query_trim(sql, &size, &err);

	return r < 0 ? r : query_check_words(sql, size, &err);
}

static void test_one_statement_is_trimmed_to_its_last_word(void **state)
{
	struct error err = ERROR_INIT;
	size_t size = 0;

	(void)state;
	assert_int_equal(query_trim("SELECT 1 ; -- that is all\n /* really */ ", &size, &err), 0);
	assert_int_equal(size, 8);
	assert_int_equal(query_trim("SELECT ';' AS \"a;b\"", &size, &err), 0);
	assert_int_equal(size, strlen("SELECT ';' AS \"a;b\""));
	assert_true(query_trim("SELECT 1; SELECT 2", &size, &err) < 0);
	assert_true(query_trim("SELECT 1;;", &size, &err) < 0);
	assert_true(query_trim("  -- nothing", &size, &err) < 0);
	assert_true(query_trim("", &size, &err) < 0);
	assert_true(query_trim("SELECT 'a", &size, &err) < 0);
	assert_true(query_trim("SELECT \"a", &size, &err) < 0);
	assert_true(query_trim("SELECT 1 /* a", &size, &err) < 0);
}

static void test_plain_queries_are_taken(void **state)
{
	static const char *const queries[] = {
		"SELECT gene, value FROM genes WHERE note = 'pg_read_file; set_config' -- pg_sleep",
		"WITH a AS (SELECT 1 AS e) SELECT e, e -1 FROM a",
		"SELECT 'it''s', \"Strange \"\"name\"\"\", 1e5, a.b FROM s.t AS a",
		"SELECT x /* lo_import */ FROM y",
	};

	(void)state;
	for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++)
		if (check(queries[i]) < 0)
			fail_msg("refused: %s", queries[i]);
}

static void test_what_could_take_back_the_role_is_refused(void **state)
{
	static const char *const queries[] = {
		"SELECT set_config('role', 'none', true)",
		"SELECT \"set_config\"('role', 'none', true)",
		"SELECT pg_catalog.SET_CONFIG('role', 'none', true)",
		"SELECT'a'set_config('role', 'none', true)",
		"SELECT 1set_config",
		"SELECT U&\"set\\005fconfig\"('role', 'none', true)",
		"SELECT U&'a'",
		"SELECT E'\\'', set_config('role', 'none', true), '\\''",
		"SELECT e'a'\n'\\'' || set_config('role', 'none', true) || ''",
		"SELECT $$'$$ || set_config('role', 'none', true) || $$'$$",
		"SELECT $a$'$a$",
		"SELECT pg_read_file('/etc/passwd')",
		"SELECT query_to_xml('x', true, true, '')",
		"SELECT lo_import('/etc/passwd')",
		"SELECT dblink('x', 'y')",
		"SELECT nextval('s')",
		"SELECT * FROM crosstab2('x')",
		"SELECT * FROM fumehood.attempt",
		"SELECT /* /* */ set_config('role', 'none', true) -- */",
		"SELECT 1 --\rset_config",
		"SELECT -- '\nset_config('role', 'none', true) -- '",
	};

	(void)state;
	for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++)
		if (check(queries[i]) == 0)
			fail_msg("taken: %s", queries[i]);
}

static void test_csv_is_quoted_where_it_must_be(void **state)
{
	_cleanup_buffer_ struct buffer b = {0};

	(void)state;
	csv_put(&b, "plain", 5);
	csv_put(&b, NULL, 0);
	csv_put(&b, "", 0);
	csv_put(&b, "a\"b,c\n", 6);
	assert_string_equal(b.data, "plain\"\"\"a\"\"b,c\n\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_statement_is_trimmed_to_its_last_word),
		cmocka_unit_test(test_plain_queries_are_taken),
		cmocka_unit_test(test_what_could_take_back_the_role_is_refused),
		cmocka_unit_test(test_csv_is_quoted_where_it_must_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
