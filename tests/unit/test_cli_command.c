/*
 * What a run says at its end, and the few decisions that the commands make themselves.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "console.h"

/* An attempt that went well, to be spoiled by a test. */
static void make_attempt(struct attempt *a, enum verdict verdict)
{
	attempt_init(a);
	snprintf(a->id, sizeof a->id, "a42");
	a->number = 1;
	a->verdict = verdict;
	a->committed = true;
	a->usage.wall_ms = 1234;
	a->usage.cpu_ms = 900;
	a->usage.memory_peak_bytes = 45 << 20;
}

static void assert_line(struct attempt *a, bool quiet, const char *expected)
{
	_cleanup_free_ char *line = view_line(a, false, quiet);

	assert_string_equal(line, expected);
	attempt_done(a);
}

static void test_success_says_what_it_used_and_left(void **state UNUSED)
{
	struct output o = {.path = (char *)"a.csv", .media_type = "text/csv"};
	struct attempt a;

	make_attempt(&a, VERDICT_SUCCEEDED);
	manifest_add(&a.manifest, &o, NULL);
	manifest_reject(&a.manifest, "link", "symbolic link", NULL);
	assert_line(
		&a, false,
		"fumehood: a42 succeeded in 1.2 s (cpu 900 ms, memory 45 MiB), 1 output committed, 1 refused: "
		"fumehood outputs a42\n");
	make_attempt(&a, VERDICT_SUCCEEDED);
	assert_line(
		&a, false,
		"fumehood: a42 succeeded in 1.2 s (cpu 900 ms, memory 45 MiB), no outputs, committed: fumehood show a42\n");
}

static void test_what_is_not_known_is_not_said(void **state UNUSED)
{
	struct attempt a;

	make_attempt(&a, VERDICT_SUCCEEDED);
	a.usage = (struct usage)USAGE_UNKNOWN;
	a.number = 2;
	assert_line(&a, false,
		    "fumehood: a42 (attempt 2) succeeded, no outputs, committed: fumehood show a42\n");
}

static void test_failure_says_why_and_where_to_look(void **state UNUSED)
{
	struct attempt a;

	make_attempt(&a, VERDICT_OUT_OF_MEMORY);
	a.reason = strdup("used 2.0 GiB of 2 GiB; 'py\x1b[2J' was killed");
	assert_line(
		&a, false,
		"fumehood: a42 out_of_memory after 1.2 s (cpu 900 ms, memory 45 MiB): used 2.0 GiB of 2 GiB; "
		"'py\\x1b[2J' was killed; fumehood logs a42\n");
	make_attempt(&a, VERDICT_FAILED);
	a.exit_code = 3;
	a.usage = (struct usage)USAGE_UNKNOWN;
	assert_line(&a, false, "fumehood: a42 failed: exit status 3; fumehood logs a42\n");
}

static void test_quiet_says_only_what_went_wrong_and_what_is_not_held(void **state UNUSED)
{
	struct attempt a;

	make_attempt(&a, VERDICT_SUCCEEDED);
	assert_line(&a, true, "");
	make_attempt(&a, VERDICT_SUCCEEDED);
	receipt_warn(&a.receipt, "memory is not limited");
	assert_line(&a, true, "fumehood: warning: memory is not limited\n");
	make_attempt(&a, VERDICT_TIMED_OUT);
	a.usage = (struct usage)USAGE_UNKNOWN;
	assert_line(&a, true, "fumehood: a42 timed_out; fumehood logs a42\n");
}

static void test_a_success_that_is_not_committed_is_no_success(void **state UNUSED)
{
	struct attempt a;

	make_attempt(&a, VERDICT_SUCCEEDED);
	a.usage = (struct usage)USAGE_UNKNOWN;
	a.committed = false;
	a.error_message = strdup("the ledger is full");
	a.pending = true;
	assert_line(
		&a, true,
		"fumehood: a42 succeeded, but is pending: the ledger is full; make room or mend that, then: fumehood gc\n");
}

static void test_an_end_without_a_verdict_is_pending(void **state UNUSED)
{
	struct attempt a;

	make_attempt(&a, VERDICT_NONE);
	a.usage = (struct usage)USAGE_UNKNOWN;
	a.committed = false;
	a.pending = true;
	a.error_message = strdup("cannot read a disk");
	assert_line(
		&a, true,
		"fumehood: a42 has ended, and is pending: cannot read a disk; make room or mend that, then: fumehood gc\n");
}

static void test_warnings_and_late_errors_have_lines_of_their_own(void **state UNUSED)
{
	struct attempt a;

	make_attempt(&a, VERDICT_SUCCEEDED);
	a.usage = (struct usage)USAGE_UNKNOWN;
	receipt_warn(&a.receipt, "memory is not limited");
	a.error_message = strdup("cannot copy to 'out'");
	assert_line(&a, false,
		    "fumehood: warning: memory is not limited\n"
		    "fumehood: a42 succeeded, no outputs, committed: fumehood show a42\n"
		    "fumehood: cannot copy to 'out'\n");
}

static void test_progress_says_what_is_known(void **state UNUSED)
{
	struct progress p = {.elapsed_ms = 12300,
			     .cpu_ms = 11900,
			     .memory_bytes = 45 << 20,
			     .disk_files = 1,
			     .stage = "running"};
	struct progress unknown = {
		.elapsed_ms = 900, .cpu_ms = -1, .memory_bytes = -1, .disk_files = -1, .stage = "collecting"};
	char line[256];

	assert_string_equal(progress_format(&p, line, sizeof line),
			    "running 12.3 s, cpu 11.9 s, memory 45 MiB, 1 file");
	assert_string_equal(progress_format(&unknown, line, sizeof line), "collecting 900 ms");
}

static void test_every_option_that_is_suggested_exists(void **state UNUSED)
{
	struct option_info o;
	size_t n = 0;

	for (; request_option_at(n, &o); n++)
		assert_true(request_option_takes_value(o.name) >= 0);
	assert_true(n > LIMIT_COUNT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_success_says_what_it_used_and_left),
		cmocka_unit_test(test_what_is_not_known_is_not_said),
		cmocka_unit_test(test_failure_says_why_and_where_to_look),
		cmocka_unit_test(test_quiet_says_only_what_went_wrong_and_what_is_not_held),
		cmocka_unit_test(test_a_success_that_is_not_committed_is_no_success),
		cmocka_unit_test(test_an_end_without_a_verdict_is_pending),
		cmocka_unit_test(test_warnings_and_late_errors_have_lines_of_their_own),
		cmocka_unit_test(test_progress_says_what_is_known),
		cmocka_unit_test(test_every_option_that_is_suggested_exists),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
