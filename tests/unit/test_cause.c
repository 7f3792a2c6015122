/*
 * Every layer has a sentence for whatever a kernel may answer. What a host really answers is tried by tests/e2e/test_forbidden.py.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "ability.h"
#include "cause.h"

static struct probe_identity me(void)
{
	return (struct probe_identity){.userns = true, .uid = geteuid(), .gid = getegid()};
}

static void test_each_layer_has_a_cause_and_a_remedy(void **state)
{
	static const int errnums[] = {EPERM, EACCES, ENOSYS, ENOSPC, EUSERS, EINVAL, ENODEV, EOPNOTSUPP, EIO};
	struct probe_identity who = me();
	(void)state;

	for (int which = 0; which < PROBE_COUNT; which++)
		for (size_t i = 0; i < ARRAY_SIZE(errnums); i++) {
			struct cause cause = {0};

			cause_find((enum probe)which, errnums[i], &who, &cause);
			assert_true(strlen(cause.what) > 10 && strlen(cause.remedy) > 10);
			assert_true(strlen(cause.what) + 1 < sizeof cause.what);
			assert_true(strlen(cause.remedy) + 1 < sizeof cause.remedy);
			assert_null(strstr(cause.what, "{}"));
		}
}

static void test_a_call_that_is_not_there_is_an_old_kernels(void **state)
{
	struct probe_identity who = me();
	struct cause cause;
	(void)state;

	cause_find(PROBE_ROOT, ENOSYS, &who, &cause);
	assert_non_null(strstr(cause.what, "too old"));
	assert_non_null(strstr(cause.remedy, "5.12"));
	cause_find(PROBE_OVERLAY, ENODEV, &who, &cause);
	assert_non_null(strstr(cause.remedy, "modprobe overlay"));
}

static void test_what_did_not_fail_because_of_the_host_stays_as_it_is(void **state)
{
	struct probe_identity who = {!ability_is_root(), geteuid(), getegid()};
	struct error err = ERROR_INIT;
	(void)state;

	error_system(&err, ENOENT, "cannot open '%s'", "x");
	assert_int_equal(cause_explain(&who, -ENOENT, &err), -ENOENT);
	assert_string_equal(err.message, "cannot open 'x': No such file or directory");
	assert_int_equal(cause_explain(&who, -ENOENT, NULL), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_layer_has_a_cause_and_a_remedy),
		cmocka_unit_test(test_a_call_that_is_not_there_is_an_old_kernels),
		cmocka_unit_test(test_what_did_not_fail_because_of_the_host_stays_as_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
