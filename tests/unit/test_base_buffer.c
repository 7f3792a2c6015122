/* What grows: its failure is remembered, and what it held never leaves as if it were whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "array.h"
#include "buffer.h"
#include "scarce.h"

/* Builds without a look at any append, as builders do. */
static void build(struct buffer *b)
{
	buffer_puts(b, "DELETE FROM attempts");
	for (int i = 0; i < 2000; i++)
		buffer_printf(b, " %64d", i);
	buffer_append(b, " WHERE ", 7);
	buffer_puts(b, "false");
}

static int take_built(struct error *err)
{
	_cleanup_buffer_ struct buffer b = {0};
	_cleanup_free_ char *text = NULL;
	int r;

	build(&b);
	r = buffer_check(&b, err);
	text = buffer_take(&b);
	assert_int_equal(r < 0, text == NULL);
	assert_int_equal(err->errnum, r < 0 ? ENOMEM : 0);
	assert_true(!text || strstr(text, " WHERE false"));
	return r;
}

static void test_a_failed_append_is_told_at_the_end(void **state)
{
	(void)state;
	assert_survives(take_built);
}

static void test_a_failed_buffer_holds_nothing_until_it_is_freed(void **state)
{
	struct buffer b = {0};

	(void)state;
	assert_int_equal(buffer_puts(&b, "half"), 0);
	assert_true(buffer_reserve(&b, SIZE_MAX) < 0);
	assert_null(b.data);
	assert_int_equal(b.size, 0);
	assert_true(buffer_puts(&b, " and the other half") < 0);
	assert_true(buffer_append(&b, "", 0) < 0);
	assert_int_equal(buffer_check(&b, NULL), -ENOMEM);
	assert_null(buffer_take(&b));
	assert_int_equal(buffer_check(&b, NULL), -ENOMEM);
	buffer_free(&b);
	assert_int_equal(buffer_puts(&b, "whole"), 0);
	assert_int_equal(buffer_check(&b, NULL), 0);
	assert_string_equal(b.data, "whole");
	buffer_free(&b);
}

static void test_a_list_that_cannot_grow_is_as_it_was(void **state)
{
	int *list = NULL, *added;
	size_t count = 0;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		added = ARRAY_ADD(list, count);
		assert_non_null(added);
		assert_int_equal(*added, 0);
		*added = i;
	}
	assert_null(array_grow(list, SIZE_MAX / 2, sizeof *list));
	assert_int_equal(count, 1000);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(list[i], i);
	free(list);
}

static int compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static void test_a_list_is_sorted_and_has_one_of_each(void **state)
{
	static const struct {
		int list[6];
		size_t count, left;
		int sorted[6];
	} rows[] = {
		{{0}, 0, 0, {0}},
		{{7}, 1, 1, {7}},
		{{3, 3, 3}, 3, 1, {3}},
		{{5, 1, 4}, 3, 3, {1, 4, 5}},
		{{2, 9, 2, 1, 9, 2}, 6, 3, {1, 2, 9}},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int list[6];

		memcpy(list, rows[i].list, sizeof list);
		assert_int_equal(array_sort_distinct(list, rows[i].count, sizeof list[0], compare),
				 rows[i].left);
		assert_memory_equal(list, rows[i].sorted, rows[i].left * sizeof list[0]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_failed_append_is_told_at_the_end),
		cmocka_unit_test(test_a_failed_buffer_holds_nothing_until_it_is_freed),
		cmocka_unit_test(test_a_list_that_cannot_grow_is_as_it_was),
		cmocka_unit_test(test_a_list_is_sorted_and_has_one_of_each),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
