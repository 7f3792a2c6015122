#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "verdict.h"

/* An end without a word of its own: exit_code -1 is "did not exit", counters -1 are "cannot count". */
#define RAN   .started = true, .oom_kills = -1, .pids_hits = -1, .disk_hits = -1
#define COUNT .started = true

static const struct {
	const char *story;
	struct evidence e;
	enum verdict verdict;
	int status;
} rows[] = {
	{"exits 0", {RAN, .exit_code = 0}, VERDICT_SUCCEEDED, 0},
	{"exits 3", {RAN, .exit_code = 3}, VERDICT_FAILED, 3},
	{"exits 125 by itself", {RAN, .exit_code = 125}, VERDICT_FAILED, 125},
	{"dies of SIGSEGV", {RAN, .exit_code = -1, .signal = SIGSEGV}, VERDICT_FAILED, 139},
	{"is not there", {.exec_errno = ENOENT, .exit_code = -1}, VERDICT_FAILED, 127},
	{"may not be executed", {.exec_errno = EACCES, .exit_code = -1}, VERDICT_FAILED, 126},
	{"is no program", {.exec_errno = ENOEXEC, .exit_code = 126}, VERDICT_FAILED, 126},
	{"is not there, and is cancelled",
	 {.exec_errno = ENOENT, .cancel_signal = SIGINT},
	 VERDICT_FAILED,
	 127},
	{"ends without a status", {RAN, .exit_code = -1}, VERDICT_FAILED, 137},
	{"never starts", {.exit_code = -1}, VERDICT_REFUSED, 125},
	{"is cancelled before it starts", {.exit_code = -1, .cancel_signal = SIGINT}, VERDICT_CANCELLED, 130},
	{"is out of memory before it starts",
	 {.exit_code = -1, .signal = SIGKILL, .oom_kills = 1},
	 VERDICT_OUT_OF_MEMORY,
	 137},

	{"reaches the deadline",
	 {RAN, .exit_code = -1, .signal = SIGKILL, .wall_reached = true},
	 VERDICT_TIMED_OUT,
	 124},
	{"exits 0 after the deadline's SIGTERM",
	 {RAN, .exit_code = 0, .wall_reached = true},
	 VERDICT_TIMED_OUT,
	 124},
	{"exits 7 after the deadline's SIGTERM",
	 {RAN, .exit_code = 7, .wall_reached = true},
	 VERDICT_TIMED_OUT,
	 124},
	{"uses up its cpu time",
	 {RAN, .exit_code = -1, .signal = SIGXCPU, .cpu_reached = true},
	 VERDICT_TIMED_OUT,
	 124},
	{"reaches the deadline after a child was killed for memory",
	 {COUNT, .exit_code = -1, .signal = SIGKILL, .wall_reached = true, .oom_kills = 2},
	 VERDICT_TIMED_OUT,
	 124},
	{"reaches the deadline, then Ctrl-C comes during the grace",
	 {RAN, .exit_code = -1, .signal = SIGKILL, .wall_reached = true, .cancel_signal = SIGINT},
	 VERDICT_TIMED_OUT,
	 124},

	{"is killed for memory",
	 {COUNT, .exit_code = -1, .signal = SIGKILL, .oom_kills = 1},
	 VERDICT_OUT_OF_MEMORY,
	 137},
	{"exits 1 after MemoryError in a killed child",
	 {COUNT, .exit_code = 1, .oom_kills = 1},
	 VERDICT_OUT_OF_MEMORY,
	 137},
	{"exits 0 though a child was killed for memory",
	 {COUNT, .exit_code = 0, .oom_kills = 1},
	 VERDICT_SUCCEEDED,
	 0},
	{"is killed by itself with no memory trouble",
	 {COUNT, .exit_code = -1, .signal = SIGKILL},
	 VERDICT_FAILED,
	 137},
	{"is killed where nobody can count", {RAN, .exit_code = -1, .signal = SIGKILL}, VERDICT_FAILED, 137},
	{"is killed for memory with a full disk",
	 {COUNT, .exit_code = -1, .signal = SIGKILL, .oom_kills = 1, .disk_hits = 1},
	 VERDICT_OUT_OF_MEMORY,
	 137},

	{"is killed for its disk use",
	 {RAN, .exit_code = -1, .signal = SIGKILL, .disk_killed = true},
	 VERDICT_OUT_OF_DISK,
	 137},
	{"exits 0 after it was told to end for its disk use",
	 {RAN, .exit_code = 0, .disk_killed = true},
	 VERDICT_OUT_OF_DISK,
	 137},
	{"exits 2 with a full disk", {COUNT, .exit_code = 2, .disk_hits = 1}, VERDICT_OUT_OF_DISK, 2},
	{"exits 0 with a full disk", {COUNT, .exit_code = 0, .disk_hits = 1}, VERDICT_SUCCEEDED, 0},

	{"exits 1 after forks were refused",
	 {COUNT, .exit_code = 1, .pids_hits = 4},
	 VERDICT_OUT_OF_PROCESSES,
	 1},
	{"aborts after forks were refused",
	 {COUNT, .exit_code = -1, .signal = SIGABRT, .pids_hits = 4},
	 VERDICT_OUT_OF_PROCESSES,
	 134},
	{"exits 0 after forks were refused", {COUNT, .exit_code = 0, .pids_hits = 4}, VERDICT_SUCCEEDED, 0},

	{"is cancelled by Ctrl-C",
	 {RAN, .exit_code = -1, .signal = SIGKILL, .cancel_signal = SIGINT},
	 VERDICT_CANCELLED,
	 130},
	{"is cancelled by SIGTERM", {RAN, .exit_code = 0, .cancel_signal = SIGTERM}, VERDICT_CANCELLED, 143},
	{"is cancelled by SIGHUP", {RAN, .exit_code = 5, .cancel_signal = SIGHUP}, VERDICT_CANCELLED, 129},
	{"is cancelled after a child was killed for memory",
	 {COUNT, .exit_code = -1, .signal = SIGKILL, .cancel_signal = SIGINT, .oom_kills = 1},
	 VERDICT_CANCELLED,
	 130},

	{"leaves an output missing",
	 {RAN, .exit_code = 0, .output_missing = true},
	 VERDICT_OUTPUT_MISSING,
	 122},
	{"fails, and leaves an output missing",
	 {RAN, .exit_code = 4, .output_missing = true},
	 VERDICT_FAILED,
	 4},
	{"has a post-process that fails",
	 {RAN, .exit_code = 0, .post_process_failed = true},
	 VERDICT_POST_PROCESS_FAILED,
	 123},
};

static void test_the_evidence_decides_verdict_and_exit_status(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		enum verdict v = verdict_decide(&rows[i].e);
		int status = verdict_exit_status(v, &rows[i].e);

		if (v != rows[i].verdict || status != rows[i].status)
			fail_msg("an analysis that %s: %s, %d instead of %s, %d", rows[i].story,
				 verdict_name(v), status, verdict_name(rows[i].verdict), rows[i].status);
	}
}

static void test_lost_refused_and_unknown_are_125(void **state)
{
	struct evidence e = {.exit_code = -1};

	(void)state;
	assert_int_equal(verdict_exit_status(VERDICT_LOST, &e), 125);
	assert_int_equal(verdict_exit_status(VERDICT_REFUSED, &e), 125);
	assert_int_equal(verdict_exit_status(VERDICT_NONE, &e), 125);
	assert_int_equal(verdict_exit_status(VERDICT_CANCELLED, &e), 143);
}

static void test_every_verdict_has_a_name_that_reads_back(void **state)
{
	(void)state;
	for (int i = 0; i < VERDICT_COUNT; i++) {
		enum verdict back = VERDICT_COUNT;

		assert_int_equal(verdict_parse(verdict_name((enum verdict)i), &back), 0);
		assert_int_equal(back, i);
	}
	assert_int_equal(verdict_parse("Succeeded", &(enum verdict){0}), -EINVAL);
	assert_int_equal(verdict_parse("", &(enum verdict){0}), -EINVAL);
}

/* No evidence, however strange, may say succeeded unless the command ran, exited 0 and was not ended by anybody. */
static void test_success_needs_exit_0_and_nobody_who_ended_it(void **state)
{
	(void)state;
	for (unsigned bits = 0; bits < 1U << 11; bits++) {
		struct evidence e = {
			.started = bits & 1,
			.exec_errno = bits & 2 ? ENOENT : 0,
			.exit_code = bits & 4 ? 0 : -1,
			.signal = bits & 8 ? SIGKILL : 0,
			.cancel_signal = bits & 16 ? SIGINT : 0,
			.wall_reached = bits & 32,
			.cpu_reached = bits & 64,
			.disk_killed = bits & 128,
			.oom_kills = bits & 256 ? 1 : -1,
			.output_missing = bits & 512,
			.post_process_failed = bits & 1024,
		};
		bool clean = e.started && e.exit_code == 0 && !e.signal && !e.cancel_signal &&
			     !e.wall_reached && !e.cpu_reached && !e.disk_killed && !e.output_missing &&
			     !e.post_process_failed;
		enum verdict v = verdict_decide(&e);

		assert_int_equal(v == VERDICT_SUCCEEDED, clean);
		assert_int_equal(verdict_exit_status(v, &e) == 0, clean);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_evidence_decides_verdict_and_exit_status),
		cmocka_unit_test(test_lost_refused_and_unknown_are_125),
		cmocka_unit_test(test_every_verdict_has_a_name_that_reads_back),
		cmocka_unit_test(test_success_needs_exit_0_and_nobody_who_ended_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
