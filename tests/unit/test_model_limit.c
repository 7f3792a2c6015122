#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "limit.h"

#define SECOND 1000000000ULL

static void test_sizes_are_powers_of_1024(void **state)
{
	static const struct {
		const char *text;
		uint64_t value;
	} rows[] = {
		{"0", 0},
		{"512", 512},
		{"1K", 1024},
		{"1k", 1024},
		{"1.5K", 1536},
		{"512M", 512ULL << 20},
		{"2G", 2ULL << 30},
		{"2GiB", 2ULL << 30},
		{"1T", 1ULL << 40},
		{"0.5P", 1ULL << 49},
		{"9223372036854775807", INT64_MAX},
	};
	uint64_t value;

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		assert_int_equal(size_parse(rows[i].text, &value), 0);
		assert_int_equal(value, rows[i].value);
	}
}

static void test_durations_take_units_or_are_seconds(void **state)
{
	static const struct {
		const char *text;
		uint64_t value;
	} rows[] = {
		{"90", 90 * SECOND},
		{"90s", 90 * SECOND},
		{"10m", 600 * SECOND},
		{"2h", 7200 * SECOND},
		{"7d", 604800 * SECOND},
		{"250ms", SECOND / 4},
		{"0.25", SECOND / 4},
		{"1.5h", 5400 * SECOND},
		{"1us", 1000},
		{"1ns", 1},
		{"0", 0},
		{"0.0000000001s", 0},
	};
	uint64_t value;

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		assert_int_equal(duration_parse(rows[i].text, &value), 0);
		assert_int_equal(value, rows[i].value);
	}
}

static void test_nonsense_is_neither_a_size_nor_a_duration(void **state)
{
	const char *bad[] = {"",    " ",    "-1",  "+1",  "1 G", " 1",	"1e3",	   "nan",
			     "inf", "0x10", "1.",  ".5",  "1,5", "1GG", "GiB",	   "1B",
			     "1iB", "1KB",  "1.G", "1M ", "١",	 "1mm", "infinity"};
	uint64_t value = 77;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		assert_int_equal(size_parse(bad[i], &value), -EINVAL);
		assert_int_equal(duration_parse(bad[i], &value), -EINVAL);
	}
	assert_int_equal(value, 77);
}

static void test_overflow_is_an_error_and_not_a_small_limit(void **state)
{
	const char *bad[] = {"9223372036854775808",	   "18446744073709551616",  "16777216T", "8192P",
			     "99999999999999999999999999", "18014398509481984.999K"};
	uint64_t value;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_int_equal(size_parse(bad[i], &value), -ERANGE);
	assert_int_equal(duration_parse("9223372037", &value), -ERANGE);
	assert_int_equal(duration_parse("300000d", &value), -ERANGE);
}

static void test_a_limit_of_nothing_is_refused_where_it_makes_no_sense(void **state)
{
	static const enum limit never_zero[] = {LIMIT_WALL,   LIMIT_CPU_TIME,  LIMIT_CPUS,
						LIMIT_MEMORY, LIMIT_PIDS,      LIMIT_DISK,
						LIMIT_FILES,  LIMIT_FILE_SIZE, LIMIT_OPEN_FILES};
	uint64_t value;

	(void)state;
	for (size_t i = 0; i < sizeof never_zero / sizeof never_zero[0]; i++) {
		struct error err = ERROR_INIT;

		assert_true(limit_parse(never_zero[i], "0", &value, &err) < 0);
		assert_int_equal(err.kind, ERROR_USAGE);
		assert_non_null(strstr(err.message, limit_table[never_zero[i]].name));
	}
	assert_int_equal(limit_parse(LIMIT_GRACE, "0", &value, NULL), 0);
	assert_int_equal(limit_parse(LIMIT_LOG_MAX, "0", &value, NULL), 0);
	assert_int_equal(limit_parse(LIMIT_OUTPUT_MAX, "0", &value, NULL), 0);
	assert_true(limit_parse(LIMIT_CPUS, "0.0001", &value, NULL) < 0);
	assert_true(limit_parse(LIMIT_WALL, "0.0ms", &value, NULL) < 0);
}

static void test_none_lifts_a_limit_but_not_grace_and_log(void **state)
{
	uint64_t value = 0;

	(void)state;
	assert_int_equal(limit_parse(LIMIT_MEMORY, "none", &value, NULL), 0);
	assert_true(value == LIMIT_NONE);
	assert_true(limit_parse(LIMIT_GRACE, "none", &value, NULL) < 0);
	assert_true(limit_parse(LIMIT_LOG_MAX, "none", &value, NULL) < 0);
}

static void test_counts_are_whole_and_cpus_are_thousandths(void **state)
{
	uint64_t value;

	(void)state;
	assert_true(limit_parse(LIMIT_PIDS, "1.5", &value, NULL) < 0);
	assert_true(limit_parse(LIMIT_PIDS, "100K", &value, NULL) < 0);
	assert_true(limit_parse(LIMIT_PIDS, "99999999999999999999", &value, NULL) < 0);
	assert_int_equal(limit_parse(LIMIT_PIDS, "64", &value, NULL), 0);
	assert_int_equal(value, 64);
	assert_int_equal(limit_parse(LIMIT_CPUS, "0.5", &value, NULL), 0);
	assert_int_equal(value, 500);
	assert_true(limit_parse(LIMIT_CPUS, "2G", &value, NULL) < 0);
}

static void test_a_bad_limit_is_named_with_an_example_and_escaped(void **state)
{
	struct error err = ERROR_INIT;
	uint64_t value;

	(void)state;
	assert_true(limit_parse(LIMIT_MEMORY, "lots\x1b[2J", &value, &err) < 0);
	assert_non_null(strstr(err.message, "memory"));
	assert_non_null(strstr(err.message, "512M"));
	assert_null(strchr(err.message, 0x1b));
}

static void test_built_in_limits_are_those_of_the_manual(void **state)
{
	static const char *const texts[LIMIT_COUNT] = {
		[LIMIT_WALL] = "1h",	     [LIMIT_GRACE] = "1s",	[LIMIT_CPU_TIME] = "none",
		[LIMIT_CPUS] = "none",	     [LIMIT_MEMORY] = "2G",	[LIMIT_PIDS] = "512",
		[LIMIT_DISK] = "10G",	     [LIMIT_FILES] = "1000000", [LIMIT_OUTPUT_MAX] = "10G",
		[LIMIT_INPUT_MAX] = "1G",    [LIMIT_LOG_MAX] = "16M",	[LIMIT_FILE_SIZE] = "none",
		[LIMIT_OPEN_FILES] = "1024",
	};
	struct limits l = {0};
	char text[LIMIT_TEXT_SIZE];

	(void)state;
	limits_built_in(&l);
	for (int i = 0; i < LIMIT_COUNT; i++) {
		assert_string_equal(limit_format((enum limit)i, l.value[i], text), texts[i]);
		assert_int_equal(l.origin[i], LIMIT_BUILT_IN);
	}
}

static void test_exact_text_reads_back_as_the_same_value(void **state)
{
	static const uint64_t values[] = {
		4,	   1000,      1024, 1536, 1500000000, 3600 * SECOND, 3600 * SECOND + 1, 2147483649ULL,
		INT64_MAX, LIMIT_NONE};

	(void)state;
	for (int i = 0; i < LIMIT_COUNT; i++)
		for (size_t k = 0; k < sizeof values / sizeof values[0]; k++) {
			char text[LIMIT_TEXT_SIZE];
			uint64_t back;

			if (values[k] < limit_table[i].least ||
			    (values[k] == LIMIT_NONE && limit_table[i].always))
				continue;
			limit_format_exact((enum limit)i, values[k], text);
			if (i == LIMIT_LOG_MAX && values[k] > 64 << 20) {
				assert_true(limit_parse((enum limit)i, text, &back, NULL) < 0);
				continue;
			}
			assert_int_equal(limit_parse((enum limit)i, text, &back, NULL), 0);
			assert_true(back == values[k]);
		}
}

static void test_human_text_is_short(void **state)
{
	char text[LIMIT_TEXT_SIZE];

	(void)state;
	assert_string_equal(limit_format(LIMIT_MEMORY, 2147483649ULL, text), "2.0 GiB");
	assert_string_equal(limit_format(LIMIT_MEMORY, 1536ULL << 20, text), "1536M");
	assert_string_equal(limit_format(LIMIT_WALL, 90 * SECOND, text), "90s");
	assert_string_equal(limit_format(LIMIT_WALL, 3600 * SECOND + 1, text), "1.0h");
	assert_string_equal(limit_format(LIMIT_CPUS, 1500, text), "1.5");
	assert_string_equal(limit_format(LIMIT_CPUS, 2000, text), "2");
	assert_string_equal(limit_format(LIMIT_GRACE, 0, text), "0s");
	assert_string_equal(limit_format(LIMIT_LOG_MAX, 0, text), "0");
}

static void test_the_stronger_source_of_a_limit_wins(void **state)
{
	struct limits asked = {0}, site = {0};

	(void)state;
	asked.value[LIMIT_WALL] = 5;
	asked.origin[LIMIT_WALL] = LIMIT_ASKED;
	site.value[LIMIT_WALL] = 7;
	site.origin[LIMIT_WALL] = LIMIT_SITE;
	site.value[LIMIT_PIDS] = 9;
	site.origin[LIMIT_PIDS] = LIMIT_SITE;
	limits_inherit(&asked, &site);
	limits_built_in(&asked);
	assert_int_equal(asked.value[LIMIT_WALL], 5);
	assert_int_equal(asked.origin[LIMIT_WALL], LIMIT_ASKED);
	assert_int_equal(asked.value[LIMIT_PIDS], 9);
	assert_int_equal(asked.origin[LIMIT_PIDS], LIMIT_SITE);
	assert_int_equal(asked.origin[LIMIT_MEMORY], LIMIT_BUILT_IN);
}

static void test_the_sites_maximum_refuses_what_was_asked_and_lowers_defaults(void **state)
{
	struct limits l = {0}, maximum = {0};
	struct error err = ERROR_INIT;

	(void)state;
	maximum.value[LIMIT_MEMORY] = 1ULL << 30;
	maximum.origin[LIMIT_MEMORY] = LIMIT_SITE;
	maximum.value[LIMIT_CPU_TIME] = 60 * SECOND;
	maximum.origin[LIMIT_CPU_TIME] = LIMIT_SITE;
	limits_built_in(&l);
	assert_int_equal(limits_cap(&l, &maximum, &err), 0);
	assert_int_equal(l.value[LIMIT_MEMORY], 1ULL << 30);
	assert_int_equal(l.value[LIMIT_CPU_TIME], 60 * SECOND); /* none is above every maximum */
	assert_int_equal(l.value[LIMIT_PIDS], 512);

	l.value[LIMIT_MEMORY] = LIMIT_NONE;
	l.origin[LIMIT_MEMORY] = LIMIT_ASKED;
	assert_true(limits_cap(&l, &maximum, &err) < 0);
	assert_int_equal(err.kind, ERROR_REFUSED);
	assert_non_null(strstr(err.message, "1G"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes_are_powers_of_1024),
		cmocka_unit_test(test_durations_take_units_or_are_seconds),
		cmocka_unit_test(test_nonsense_is_neither_a_size_nor_a_duration),
		cmocka_unit_test(test_overflow_is_an_error_and_not_a_small_limit),
		cmocka_unit_test(test_a_limit_of_nothing_is_refused_where_it_makes_no_sense),
		cmocka_unit_test(test_none_lifts_a_limit_but_not_grace_and_log),
		cmocka_unit_test(test_counts_are_whole_and_cpus_are_thousandths),
		cmocka_unit_test(test_a_bad_limit_is_named_with_an_example_and_escaped),
		cmocka_unit_test(test_built_in_limits_are_those_of_the_manual),
		cmocka_unit_test(test_exact_text_reads_back_as_the_same_value),
		cmocka_unit_test(test_human_text_is_short),
		cmocka_unit_test(test_the_stronger_source_of_a_limit_wins),
		cmocka_unit_test(test_the_sites_maximum_refuses_what_was_asked_and_lowers_defaults),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
