/* Which failures are of this moment and this host, and so say nothing about what was asked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "error.h"

static void test_what_passes_is_told_by_one_question(void **state)
{
	static const int passing[] = {ENOSPC, EDQUOT, EROFS,  EIO,    ENOMEM,
				      EAGAIN, EMFILE, ENFILE, ESTALE, ETIMEDOUT};
	static const int lasting[] = {EACCES, ENOENT, EINVAL, ELOOP, EPERM};
	struct error err = ERROR_INIT;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(passing); i++) {
		error_system(&err, passing[i], "cannot write");
		assert_true(error_is_passing(&err));
	}
	for (size_t i = 0; i < ARRAY_SIZE(lasting); i++) {
		error_system(&err, lasting[i], "cannot write");
		assert_false(error_is_passing(&err));
	}
	error_set(&err, ERROR_LEDGER, "the ledger is away");
	assert_true(error_is_passing(&err));
	error_set(&err, ERROR_BUSY, "another one has it");
	assert_true(error_is_passing(&err));
}

static void test_an_obstacle_of_this_host_passes_whatever_kind_it_is_of(void **state)
{
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(error_here(&err, error_set(&err, ERROR_REFUSED, "it lies in the way")), -EINVAL);
	assert_true(error_is_passing(&err));
	error_prefix(&err, 0, "cannot start");
	assert_true(error_is_passing(&err));
	/* The next message is another failure. */
	error_set(&err, ERROR_REFUSED, "no");
	assert_false(error_is_passing(&err));
	assert_int_equal(error_here(NULL, -5), -5);
}

static void test_what_the_ledger_tells_apart_is_the_ledgers_to_everybody_else(void **state)
{
	static const enum error_kind kinds[] = {ERROR_AGAIN, ERROR_LOCKED, ERROR_SWEPT, ERROR_BAD_ROW,
						ERROR_SCHEMA};
	struct error err = ERROR_INIT;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		error_set(&err, kinds[i], "no");
		assert_int_equal(error_kind_shown(err.kind), ERROR_LEDGER);
		assert_string_equal(error_kind_name(err.kind), "ledger");
		assert_true(error_is_passing(&err));
	}
}

static void test_a_kind_is_read_by_its_name(void **state)
{
	(void)state;
	for (int kind = ERROR_USAGE; kind <= ERROR_SYSTEM; kind++)
		assert_int_equal(error_kind_parse(error_kind_name((enum error_kind)kind)), kind);
	assert_int_equal(error_kind_parse("nothing"), ERROR_NONE);
	assert_int_equal(error_kind_parse(NULL), ERROR_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_passes_is_told_by_one_question),
		cmocka_unit_test(test_an_obstacle_of_this_host_passes_whatever_kind_it_is_of),
		cmocka_unit_test(test_what_the_ledger_tells_apart_is_the_ledgers_to_everybody_else),
		cmocka_unit_test(test_a_kind_is_read_by_its_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
