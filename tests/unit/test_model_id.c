#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "id.h"

static void assert_refused(const char *id)
{
	struct error err = ERROR_INIT;

	assert_true(id_check(id, &err) < 0);
	assert_int_equal(err.kind, ERROR_USAGE);
	for (const char *p = err.message; *p; p++)
		assert_true((unsigned char)*p >= ' ' && *p != 0x7f);
}

static void test_ids_of_letters_digits_dot_underscore_dash_pass(void **state)
{
	const char *good[] = {"a", "A42", "0", "_x", "a.b-c_d", "a..b", "a-", "a."};

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
		assert_int_equal(id_check(good[i], NULL), 0);
}

static void test_what_could_leave_a_directory_is_no_id(void **state)
{
	const char *bad[] = {"",     "..",  ".",       ".hidden", "-rf", "a/b",	  "/",	   "a b",
			     "a\nb", "a;b", "a\x1b[m", "a\\b",	  "ä",	 "a\xff", "a\x7f", "*"};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_refused(bad[i]);
}

static void test_an_id_has_at_most_128_characters(void **state)
{
	char id[ID_ROOM + 1];

	(void)state;
	memset(id, 'x', sizeof id);
	id[ID_MAX] = 0;
	assert_int_equal(id_check(id, NULL), 0);
	id[ID_MAX] = 'x';
	id[ID_MAX + 1] = 0;
	assert_refused(id);
}

static void test_a_made_up_id_is_one_and_sorts_by_time(void **state)
{
	char a[ID_ROOM], b[ID_ROOM];

	(void)state;
	assert_int_equal(id_make(a, NULL), 0);
	assert_int_equal(id_make(b, NULL), 0);
	assert_int_equal(id_check(a, NULL), 0);
	assert_int_equal(strlen(a), strlen("20261115-023408-k7m2qx"));
	assert_true(strncmp(a, b, 15) <= 0);
	assert_string_not_equal(a, b);
}

static void test_tokens_are_128_bits_and_differ(void **state)
{
	char a[TOKEN_SIZE], b[TOKEN_SIZE];

	(void)state;
	assert_int_equal(token_make(a, NULL), 0);
	assert_int_equal(token_make(b, NULL), 0);
	assert_int_equal(strspn(a, "0123456789abcdef"), 32);
	assert_string_not_equal(a, b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ids_of_letters_digits_dot_underscore_dash_pass),
		cmocka_unit_test(test_what_could_leave_a_directory_is_no_id),
		cmocka_unit_test(test_an_id_has_at_most_128_characters),
		cmocka_unit_test(test_a_made_up_id_is_one_and_sorts_by_time),
		cmocka_unit_test(test_tokens_are_128_bits_and_differ),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
