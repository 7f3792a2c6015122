/* What the steps of an attempt come to together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "attempt.h"

static struct captured text(const char *head, const char *tail, uint64_t omitted)
{
	return (struct captured){.head = strdup(head),
				 .head_size = strlen(head),
				 .tail = strdup(tail),
				 .tail_size = strlen(tail),
				 .omitted = omitted};
}

static void assert_captured(const struct captured *c, const char *head, const char *tail, uint64_t omitted)
{
	assert_int_equal(c->head_size, strlen(head));
	assert_memory_equal(c->head, head, strlen(head));
	assert_int_equal(c->tail_size, strlen(tail));
	assert_memory_equal(c->tail ? c->tail : "", tail, strlen(tail));
	assert_int_equal(c->omitted, omitted);
}

/* Head, a gap of so many bytes, tail; and the same after it. Of two gaps what lies between them is lost too. */
static void test_logs_are_joined(void **state)
{
	static const struct {
		const char *head, *tail;
		uint64_t omitted;
		const char *more_head, *more_tail;
		uint64_t more_omitted;
		const char *all_head, *all_tail;
		uint64_t all_omitted;
	} table[] = {
		{"", "", 0, "", "", 0, "", "", 0},
		{"ab", "", 0, "cd", "", 0, "abcd", "", 0},
		{"ab", "cd", 0, "ef", "gh", 0, "abcdef", "gh", 0},
		{"ab", "yz", 7, "cd", "ef", 0, "ab", "yzcdef", 7},
		{"ab", "cd", 0, "ef", "yz", 9, "abcdef", "yz", 9},
		{"ab", "yz", 7, "cd", "ef", 9, "ab", "ef", 20},
	};

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		struct captured all = text(table[i].head, table[i].tail, table[i].omitted);
		struct captured more = text(table[i].more_head, table[i].more_tail, table[i].more_omitted);

		assert_int_equal(captured_join(&all, &more, NULL), 0);
		assert_captured(&all, table[i].all_head, table[i].all_tail, table[i].all_omitted);
		captured_done(&all);
		captured_done(&more);
	}
}

static void test_usage_is_summed_and_peaks_are_maxima(void **state)
{
	struct usage a = USAGE_UNKNOWN, b = USAGE_UNKNOWN;

	(void)state;
	a.wall_ms = 3, b.wall_ms = 4;
	a.memory_peak_bytes = 9, b.memory_peak_bytes = 5;
	a.cpu_ms = 7;
	usage_add(&a, &b);
	assert_int_equal(a.wall_ms, 7);
	assert_int_equal(a.memory_peak_bytes, 9);
	assert_int_equal(a.cpu_ms, -1);
	assert_int_equal(a.pids_peak, -1);
}

static const struct layer *layer(const struct receipt *r, const char *name)
{
	for (size_t i = 0; i < r->count; i++)
		if (strcmp(r->layers[i].name, name) == 0)
			return &r->layers[i];
	fail_msg("there is no '%s'", name);
	return NULL;
}

static void step_make(struct attempt *a, enum verdict verdict, int exit_code, const char *reason)
{
	attempt_init(a);
	strcpy(a->id, "a42");
	strcpy(a->token, "00112233445566778899aabbccddeeff");
	a->number = 2;
	a->verdict = verdict;
	a->exit_code = exit_code;
	a->status = exit_code;
	a->reason = reason ? strdup(reason) : NULL;
	a->request = json_pack("{s:s}", "id", "a42");
	a->plan = json_object();
	a->usage.wall_ms = 10;
	a->started = 1794709448000000000LL;
	a->ended = a->started + 5000000000LL;
	a->logs[0] = text("said ", "", 0);
	receipt_add(&a->receipt, "seccomp", true, "all");
}

static void test_the_first_failure_decides(void **state)
{
	_cleanup_attempt_ struct attempt all;
	static const enum verdict verdicts[] = {VERDICT_SUCCEEDED, VERDICT_TIMED_OUT, VERDICT_FAILED,
						VERDICT_SUCCEEDED};

	(void)state;
	attempt_init(&all);
	for (size_t i = 0; i < sizeof verdicts / sizeof *verdicts; i++) {
		_cleanup_attempt_ struct attempt one;

		step_make(&one, verdicts[i], (int)i, i == 1 ? "it took 2s" : NULL);
		if (i == 2)
			receipt_add(&one.receipt, "limit disk", true, "1M");
		assert_int_equal(attempt_add_step(&all, &one, NULL), 0);
	}
	assert_int_equal(all.verdict, VERDICT_TIMED_OUT);
	assert_int_equal(all.exit_code, 1);
	assert_string_equal(all.reason, "it took 2s");
	assert_int_equal(all.n_steps, 4);
	assert_int_equal(all.usage.wall_ms, 40);
	assert_true(layer(&all.receipt, "seccomp")->held);
	assert_false(layer(&all.receipt, "limit disk")->held);
	assert_int_equal(attempt_join_logs(&all, NULL), 0);
	assert_captured(&all.logs[0], "said said said said ", "", 0);
}

static void test_a_layer_that_one_step_lacked_is_not_held(void **state)
{
	_cleanup_attempt_ struct attempt all, first, second;

	(void)state;
	attempt_init(&all);
	step_make(&first, VERDICT_SUCCEEDED, 0, NULL);
	step_make(&second, VERDICT_SUCCEEDED, 0, NULL);
	receipt_add(&first.receipt, "landlock", true, "ABI 7");
	receipt_add(&first.receipt, "limit memory", true, "2G");
	receipt_add(&second.receipt, "limit memory", false, "no cgroup");
	receipt_warn(&first.receipt, "once");
	receipt_warn(&second.receipt, "once");
	assert_int_equal(attempt_add_step(&all, &first, NULL), 0);
	assert_int_equal(attempt_add_step(&all, &second, NULL), 0);
	assert_false(layer(&all.receipt, "landlock")->held);
	assert_string_equal(layer(&all.receipt, "landlock")->detail, "not in every step");
	assert_false(layer(&all.receipt, "limit memory")->held);
	assert_string_equal(layer(&all.receipt, "limit memory")->detail, "no cgroup");
	assert_null(all.receipt.warnings[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_logs_are_joined),
		cmocka_unit_test(test_usage_is_summed_and_peaks_are_maxima),
		cmocka_unit_test(test_the_first_failure_decides),
		cmocka_unit_test(test_a_layer_that_one_step_lacked_is_not_held),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
