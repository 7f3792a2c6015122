#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "denial.h"

static struct denial one(const char *operation, const char *target)
{
	return (struct denial){.layer = (char *)"mounts",
			       .operation = (char *)operation,
			       .target = (char *)target,
			       .path = (char *)"\xff/x",
			       .error = (char *)"ENOENT",
			       .at = 5,
			       .count = 1};
}

static void test_the_same_is_counted_and_others_are_added(void **state)
{
	struct denials d = DENIALS_UNKNOWN;
	struct denial a = one("read", "a"), b = one("read", "b"), c = one("write", "a");

	(void)state;
	denials_add(&d, &a);
	denials_add(&d, &b);
	denials_add(&d, &a);
	denials_add(&d, &c);
	assert_int_equal(d.n, 3);
	assert_int_equal(d.list[0].count, 2);
	assert_int_equal(d.more, 0);
	denials_done(&d);
	assert_int_equal(d.more, -1);
}

static void test_beyond_the_most_they_are_only_counted(void **state)
{
	struct denials d = DENIALS_UNKNOWN, sum = DENIALS_UNKNOWN;
	char name[16];

	(void)state;
	for (int i = 0; i < DENIALS_MAX + 7; i++) {
		struct denial n;

		snprintf(name, sizeof name, "%d", i);
		n = one("read", name);
		denials_add(&d, &n);
	}
	assert_int_equal(d.n, DENIALS_MAX);
	assert_int_equal(d.more, 7);
	denials_join(&sum, &d);
	denials_join(&sum, &d);
	assert_int_equal(sum.n, DENIALS_MAX);
	assert_int_equal(sum.more, 14);
	assert_int_equal(sum.list[3].count, 2);
	denials_done(&d);
	denials_done(&sum);
}

static void test_stored_and_read_they_are_the_same(void **state)
{
	struct denials d = DENIALS_UNKNOWN, read = DENIALS_UNKNOWN;
	struct denial a = one("read", "a\x1b"),
		      b = {.layer = (char *)"seccomp", .operation = (char *)"unshare", .count = 3};
	struct error err = ERROR_INIT;
	json_t *json, *again;

	(void)state;
	denials_add(&d, &a);
	denials_add(&d, &b);
	json = denials_to_json(&d);
	assert_int_equal(denials_from_json(&read, json, &err), 0);
	again = denials_to_json(&read);
	assert_true(json_equal(json, again));
	assert_int_equal(read.more, 0);
	assert_string_equal(read.list[0].path, "\xff/x");
	json_decref(json);
	json_decref(again);
	denials_done(&d);
	denials_done(&read);
}

static void test_what_makes_no_sense_is_refused(void **state)
{
	const char *bad[] = {"{\"list\": [{}], \"more\": 0}",
			     "{\"list\": [{\"layer\": \"x\", \"operation\": 5}]}",
			     "{\"list\": [{\"layer\": \"x\"}]}"};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct denials d = DENIALS_UNKNOWN;
		struct error err = ERROR_INIT;
		json_t *json = json_loads(bad[i], 0, NULL);

		assert_true(denials_from_json(&d, json, &err) < 0);
		denials_done(&d);
		json_decref(json);
	}
}

static void test_unknown_is_null_and_none_is_an_empty_list(void **state)
{
	struct denials d = DENIALS_UNKNOWN;
	json_t *json = denials_to_public_json(&d);

	(void)state;
	assert_true(json_is_null(json));
	d.more = 0;
	json = denials_to_public_json(&d);
	assert_true(json_is_array(json) && json_array_size(json) == 0);
	json_decref(json);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_same_is_counted_and_others_are_added),
		cmocka_unit_test(test_beyond_the_most_they_are_only_counted),
		cmocka_unit_test(test_stored_and_read_they_are_the_same),
		cmocka_unit_test(test_what_makes_no_sense_is_refused),
		cmocka_unit_test(test_unknown_is_null_and_none_is_an_empty_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
