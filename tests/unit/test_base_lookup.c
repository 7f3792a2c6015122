/* Names are found, and how many are looked at for that does not grow with their number. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lookup.h"

enum { NAME_SIZE = 16, MOST = 100000 };

static char list[MOST][NAME_SIZE];
static uint64_t comparisons;

static int same(const void *arg, size_t position, const char *name)
{
	(void)arg;
	comparisons++;
	return strcmp(list[position], name) == 0;
}

static uint64_t comparisons_for(size_t count)
{
	struct lookup l = {0};
	char other[NAME_SIZE];

	comparisons = 0;
	for (size_t i = 0; i < count; i++) {
		snprintf(list[i], NAME_SIZE, "f%zu", i * 7919 % count);
		assert_int_equal(lookup_find(&l, list[i], same, NULL), SIZE_MAX);
		assert_int_equal(lookup_add(&l, list[i], i), 0);
	}
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(lookup_find(&l, list[i], same, NULL), i);
		snprintf(other, sizeof other, "g%zu", i);
		assert_int_equal(lookup_find(&l, other, same, NULL), SIZE_MAX);
	}
	lookup_done(&l);
	return comparisons;
}

static void test_a_hundred_thousand_names_take_one_comparison_each(void **state)
{
	(void)state;
	for (size_t n = 1000; n <= MOST; n *= 10)
		assert_in_range(comparisons_for(n), n, n + n / 50 + 2);
}

static void test_names_of_every_length_are_told_apart(void **state)
{
	struct lookup l = {0};

	(void)state;
	memset(list, 0, sizeof list);
	for (size_t i = 0; i < NAME_SIZE; i++) {
		memset(list[i], 'x', i);
		assert_int_equal(lookup_add(&l, list[i], i), 0);
	}
	for (size_t i = 0; i < NAME_SIZE; i++)
		assert_int_equal(lookup_find(&l, list[i], same, NULL), i);
	lookup_done(&l);
	assert_int_equal(lookup_find(&l, "x", same, NULL), SIZE_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_hundred_thousand_names_take_one_comparison_each),
		cmocka_unit_test(test_names_of_every_length_are_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
