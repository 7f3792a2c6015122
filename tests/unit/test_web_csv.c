/* Two tables beside each other: what differs is told, whatever their rows are like. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "csv_differ.h"

static void read_sheet(struct csv_sheet *s, const char *text)
{
	struct error err = ERROR_INIT;

	assert_int_equal(csv_sheet_read(s, text, strlen(text), &err), 0);
}

/* The page is the caller's to be freed. */
static struct csv_differ differ(const char *a, const char *b, struct html *page)
{
	_cleanup_(csv_sheet_done) struct csv_sheet x = {0}, y = {0};

	read_sheet(&x, a);
	read_sheet(&y, b);
	return csv_differ_draw(page, "t", &x, &y);
}

static void test_rows_are_found_again_by_their_first_field(void **state UNUSED)
{
	struct html page = {0};
	struct csv_differ d = differ("gene,n\na,1\nb,2\nc,3\n", "gene,n\nnew,9\na,1\nc,4\n", &page);

	assert_int_equal(d.cells, 1);
	assert_int_equal(d.rows_a, 1);
	assert_int_equal(d.rows_b, 1);
	assert_non_null(strstr(page.out.data, "<del>3</del> <ins>4</ins>"));
	html_done(&page);
}

static void test_where_it_names_no_row_they_are_taken_in_their_order(void **state UNUSED)
{
	struct html page = {0};
	struct csv_differ d = differ("x,y\na,1\na,2\n", "x,y\na,1\na,3\na,4\n", &page);

	assert_int_equal(d.cells, 1);
	assert_int_equal(d.rows_a, 0);
	assert_int_equal(d.rows_b, 1);
	html_done(&page);
}

static void test_columns_are_found_again_by_their_names(void **state UNUSED)
{
	struct html page = {0};
	struct csv_differ d = differ("id,x,y\n1,a,b\n", "y,id,z\nb,1,c\n", &page);

	/* x is gone, z is new; y is the same. */
	assert_int_equal(d.cells, 2);
	assert_int_equal(d.rows_a + d.rows_b, 0);
	assert_non_null(strstr(page.out.data, "x (only in A)"));
	assert_non_null(strstr(page.out.data, "z (only in B)"));
	html_done(&page);
}

static void test_a_strangers_cell_is_text(void **state UNUSED)
{
	struct html page = {0};

	differ("<b>,n\n1,<script>\n", "<b>,n\n1,\"\"\"&\"\n", &page);
	assert_null(strstr(page.out.data, "<script"));
	assert_null(strstr(page.out.data, "<b>"));
	assert_non_null(strstr(page.out.data, "<del>&lt;script&gt;</del> <ins>&quot;&amp;</ins>"));
	html_done(&page);
}

static void test_what_is_behind_a_nul_is_compared_too(void **state UNUSED)
{
	_cleanup_(csv_sheet_done) struct csv_sheet a = {0}, b = {0};
	struct html page = {0};

	assert_int_equal(csv_sheet_read(&a, "x\n\0a\n", 5, NULL), 0);
	assert_int_equal(csv_sheet_read(&b, "x\n\0b\n", 5, NULL), 0);
	assert_string_not_equal(csv_cell(&a, 1, 0), csv_cell(&b, 1, 0));
	assert_int_equal(csv_differ_draw(&page, "t", &a, &b).rows_a, 1);
	html_done(&page);
}

static void test_nothing_and_too_much_are_tables_too(void **state UNUSED)
{
	_cleanup_(csv_sheet_done) struct csv_sheet none = {0}, large = {0};
	_cleanup_buffer_ struct buffer text = {0};
	struct html page = {0};

	for (int row = 0; row < 2 * SHEET_ROWS; row++) {
		for (int column = 0; column < 2 * SHEET_COLUMNS; column++)
			buffer_printf(&text, "%d,", row * column);
		buffer_puts(&text, "\n");
	}
	read_sheet(&none, "");
	read_sheet(&large, text.data);
	assert_int_equal(none.n_rows, 0);
	assert_false(none.is_cut);
	assert_int_equal(large.n_rows, SHEET_ROWS);
	assert_int_equal(large.n_columns, SHEET_COLUMNS);
	assert_true(large.is_cut);
	assert_int_equal(csv_differ_draw(&page, "t", &none, &large).rows_b, SHEET_ROWS - 1);
	assert_int_equal(csv_differ_draw(&page, "t", &large, &none).rows_a, SHEET_ROWS - 1);
	html_done(&page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows_are_found_again_by_their_first_field),
		cmocka_unit_test(test_where_it_names_no_row_they_are_taken_in_their_order),
		cmocka_unit_test(test_columns_are_found_again_by_their_names),
		cmocka_unit_test(test_a_strangers_cell_is_text),
		cmocka_unit_test(test_what_is_behind_a_nul_is_compared_too),
		cmocka_unit_test(test_nothing_and_too_much_are_tables_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
