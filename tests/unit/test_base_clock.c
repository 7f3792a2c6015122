/* Instants as text, and back. */
#include "clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define SECOND INT64_C(1000000000)

static void test_what_is_written_can_be_read(void **state)
{
	static const int64_t instants[] = {SECOND, 1794785563 * SECOND, 1794785563 * SECOND + 123456000,
					   1794785563 * SECOND + 999999000};
	char text[CLOCK_TEXT_SIZE];
	int64_t again = 0;

	(void)state;
	for (size_t i = 0; i < sizeof instants / sizeof instants[0]; i++) {
		clock_format(instants[i], text);
		assert_int_equal(clock_parse(text, &again), 0);
		assert_true(again == instants[i]);
	}
}

static void test_what_is_no_instant_is_refused(void **state)
{
	static const char *const texts[] = {"",
					    "now",
					    "2026-11-31",
					    "2026-11-15T02:34.5",
					    "2026-11-15T02:34:08.",
					    "2026-11-15T02:34:08.x",
					    "2026-11-15T02:34:08.1234567890Z",
					    "2026-11-15T02:34:08.5 "};
	int64_t ignored;

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		assert_int_not_equal(clock_parse(texts[i], &ignored), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_written_can_be_read),
		cmocka_unit_test(test_what_is_no_instant_is_refused),
	};

	return cmocka_run_group_tests_name("instants", tests, NULL, NULL);
}
