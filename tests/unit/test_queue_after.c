/* Who waits for whom, and what becomes of a job that is cancelled, handed back, tried again. */
#include "test_queue.h"

static void test_a_chain_starts_one_after_the_other(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p);
	struct job jobs[3];

	for (int i = 0; i < 3; i++) {
		job_make(&jobs[i], i == 0 ? "c0" : i == 1 ? "c1" : "c2", "ada");
		if (i)
			assert_int_equal(strv_append(&jobs[i].after, i == 1 ? "c0" : "c1", NULL), 0);
	}
	REFUSED(ledger_submit(l, jobs + 1, 2, 0, NULL, NULL, NULL, &err), "nobody knows");
	OK(ledger_submit(l, jobs, 3, 0, NULL, NULL, NULL, &err));
	assert_int_equal(count(l, JOB_WAITING), 2);
	run(l, "c0", VERDICT_SUCCEEDED);
	run(l, "c1", VERDICT_SUCCEEDED);
	run(l, "c2", VERDICT_SUCCEEDED);
	/* What has succeeded already is no reason to wait; what has not, is one to refuse. */
	submit(l, "late", "c0");
	run(l, "late", VERDICT_FAILED);
	assert_int_equal(quick_commit(l, p, "local", VERDICT_SUCCEEDED), 1);
	submit(l, "later", "local");
	assert_state(l, "later", JOB_QUEUED);
	strcpy(jobs[2].id, "d");
	free(jobs[2].after[0]);
	jobs[2].after[0] = strdup("late");
	REFUSED(ledger_submit(l, &jobs[2], 1, 0, NULL, NULL, NULL, &err), "which did not succeed");
	for (int i = 0; i < 3; i++)
		job_done(&jobs[i]);
	ledger_close(l);
}

static void test_one_after_two_waits_for_both(void **state)
{
	struct ledger *l = place_open(*state);
	_cleanup_job_ struct job j;

	submit(l, "x", NULL);
	submit(l, "y", NULL);
	job_make(&j, "z", "ada");
	assert_int_equal(strv_append(&j.after, "x", NULL), 0);
	assert_int_equal(strv_append(&j.after, "y", NULL), 0);
	assert_int_equal(strv_append(&j.after, "x", NULL), 0);
	OK(ledger_submit(l, &j, 1, 0, NULL, NULL, NULL, &err));
	run(l, "x", VERDICT_SUCCEEDED);
	assert_state(l, "z", JOB_WAITING);
	run(l, "y", VERDICT_SUCCEEDED);
	run(l, "z", VERDICT_SUCCEEDED);
	ledger_close(l);
}

static void test_who_waits_for_a_failure_is_cancelled_with_the_reason(void **state)
{
	struct ledger *l = place_open(*state);
	struct seen s;

	submit(l, "r", NULL);
	submit(l, "s", "r");
	submit(l, "t", "s");
	run(l, "r", VERDICT_TIMED_OUT);
	for (const char *const *id = (const char *const[]){"s", "t", NULL}; *id; id++) {
		s = look(l, *id);
		assert_int_equal(s.q.state, JOB_CANCELLED);
		assert_int_equal(s.q.verdict, VERDICT_CANCELLED);
		assert_string_equal(s.reason, "'r' did not succeed");
	}
	REFUSED(ledger_retry(l, "s", &err), "it comes after 'r', which did not succeed");
	OK(ledger_retry(l, "r", &err));
	OK(ledger_retry(l, "s", &err));
	assert_state(l, "s", JOB_WAITING);
	run(l, "r", VERDICT_SUCCEEDED);
	run(l, "s", VERDICT_SUCCEEDED);
	REFUSED(ledger_retry(l, "s", &err), "it has succeeded");
	OK(ledger_retry(l, "t", &err));
	REFUSED(ledger_retry(l, "t", &err), "it is queued");
	ledger_close(l);
}

static void test_cancelling_ends_what_waits_and_tells_who_runs(void **state)
{
	struct ledger *l = place_open(*state);
	_cleanup_job_ struct job j = {0};
	enum job_state before = JOB_STATES;
	int seen[2] = {0, 0};

	submit(l, "q", NULL);
	submit(l, "w", "q");
	OK(ledger_cancel(l, "q", &before, &err));
	assert_int_equal(before, JOB_QUEUED);
	assert_state(l, "q", JOB_CANCELLED);
	assert_string_equal(look(l, "w").reason, "'q' was cancelled");
	OK(ledger_cancel(l, "q", &before, &err));
	assert_int_equal(before, JOB_CANCELLED);
	REFUSED(ledger_cancel(l, "none", &before, &err), "not in the queue");
	assert_int_equal(err.kind, ERROR_NOT_FOUND);
	assert_nothing(l);

	OK(ledger_retry(l, "q", &err));
	assert_true(claim_by(l, "w1", LEASE_NS, &j));
	OK(ledger_cancel(l, "q", &before, &err));
	assert_int_equal(before, JOB_RUNNING);
	OK(ledger_heartbeat(l, "w1", LEASE_NS, lease_seen, seen, &err));
	assert_int_equal(seen[0], 1);
	assert_int_equal(seen[1], 1);
	assert_int_equal(finish(l, &j, VERDICT_CANCELLED), 1);
	assert_state(l, "q", JOB_FINISHED);
	assert_int_equal(look(l, "q").q.verdict, VERDICT_CANCELLED);
	ledger_close(l);
}

static void test_a_job_handed_back_while_it_is_cancelled_stays_so(void **state)
{
	struct ledger *l = place_open(*state);
	_cleanup_job_ struct job j = {0};

	submit(l, "a", NULL);
	assert_true(claim_by(l, "w1", LEASE_NS, &j));
	OK(ledger_cancel(l, "a", NULL, &err));
	OK(ledger_release(l, "a", j.token, 0, &err));
	assert_state(l, "a", JOB_CANCELLED);
	ledger_close(l);
}

static void test_what_is_handed_back_is_as_if_it_had_not_been_claimed(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p);
	struct job j = {0};

	submit(l, "a", NULL);
	submit(l, "b", NULL);
	assert_true(claim_by(l, "w1", LEASE_NS, &j));
	OK(ledger_release(l, "a", j.token, 0, &err));
	assert_int_equal(look(l, "a").q.attempt, 0);
	OK(ledger_release(l, "a", j.token, 0, &err)); /* not ours any more: nothing */
	REFUSED(finish(l, &j, VERDICT_SUCCEEDED), "nothing was committed");
	assert_int_equal(err.kind, ERROR_LEASE);
	job_done(&j);
	assert_true(claim_by(l, "w2", LEASE_NS, &j));
	assert_string_equal(j.id, "a");
	assert_int_equal(j.attempt, 1);
	assert_int_equal(j.tries, 0);
	OK(ledger_release(l, "a", j.token, 10 * NSEC_PER_SEC, &err));
	job_done(&j);
	assert_state(l, "a", JOB_WAITING);
	assert_claims(l, "b");
	assert_nothing(l);
	let_waiting_end(p);
	assert_int_equal(expire(l), 0);
	assert_claims(l, "a");
	ledger_close(l);
}

static void test_what_retrying_can_mend_is_tried_again_after_a_while(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p);
	_cleanup_job_ struct job j;
	int64_t next = 0, before;

	job_make(&j, "mend", "ada");
	j.retries = 2;
	j.retry_on = 1u << VERDICT_TIMED_OUT;
	OK(ledger_submit(l, &j, 1, 0, NULL, NULL, NULL, &err));
	submit(l, "then", "mend");
	for (int i = 0; i < 3; i++) {
		struct job k = {0};

		assert_true(claim_by(l, "w1", LEASE_NS, &k));
		assert_int_equal(k.tries, i);
		assert_int_equal(k.attempt, i + 1);
		assert_int_equal(finish(l, &k, VERDICT_TIMED_OUT), i + 1);
		job_done(&k);
		if (i == 2)
			break;
		assert_state(l, "mend", JOB_WAITING);
		assert_state(l, "then", JOB_WAITING);
		assert_nothing(l);
		before = clock_utc();
		OK(expire_at_once(l, NULL, &next));
		assert_true(next > before &&
			    next <= before + (int64_t)job_back_off(i) + (int64_t)NSEC_PER_SEC);
		let_waiting_end(p);
		assert_int_equal(expire(l), 0);
	}
	assert_state(l, "mend", JOB_FINISHED);
	assert_state(l, "then", JOB_CANCELLED);
	ledger_close(l);
}

static void test_a_wrong_script_is_not_tried_again_our_own_failure_is(void **state)
{
	struct ledger *l = place_open(*state);
	_cleanup_job_ struct job j = {0};
	_cleanup_attempt_ struct attempt a, b;
	int number;

	submit(l, "wrong", NULL);
	run(l, "wrong", VERDICT_FAILED);
	assert_state(l, "wrong", JOB_FINISHED);
	submit(l, "ours", NULL);
	assert_true(claim_by(l, "w1", LEASE_NS, &j));
	attempt_of(&a, &j, VERDICT_REFUSED);
	a.error_code = strdup("system");
	a.error_message = strdup("cannot fork: Resource temporarily unavailable");
	OK(ledger_commit(l, &a, NULL, NULL, &number, &err));
	assert_state(l, "ours", JOB_WAITING);
	assert_string_equal(look(l, "ours").reason, a.error_message);
	submit(l, "theirs", NULL);
	job_done(&j);
	assert_true(claim_by(l, "w1", LEASE_NS, &j));
	attempt_of(&b, &j, VERDICT_REFUSED);
	b.error_code = strdup("usage");
	OK(ledger_commit(l, &b, NULL, NULL, &number, &err));
	assert_state(l, "theirs", JOB_FINISHED);
	ledger_close(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROW(a_chain_starts_one_after_the_other),
		ROW(one_after_two_waits_for_both),
		ROW(who_waits_for_a_failure_is_cancelled_with_the_reason),
		ROW(cancelling_ends_what_waits_and_tells_who_runs),
		ROW(a_job_handed_back_while_it_is_cancelled_stays_so),
		ROW(what_is_handed_back_is_as_if_it_had_not_been_claimed),
		ROW(what_retrying_can_mend_is_tried_again_after_a_while),
		ROW(a_wrong_script_is_not_tried_again_our_own_failure_is),
	};

	return RUN_ON_BOTH("ends in the queue", tests);
}
