/* Analyses that are handed over: who may take them, who is fenced off by that, and what becomes of those that nobody takes. */
#include "test_queue.h"

#include "handover.h"

static const char BATCH[] = "00112233445566778899aabbccddeeff", OTHER[] = "ffeeddccbbaa99887766554433221100";
static const char HANDLE[] = "{\"engine\": \"slurm\", \"job\": \"7_1\", \"state\": \"PENDING\"}";

static void jobs_done(struct job *jobs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		job_done(&jobs[i]);
}

/* The next n, for a dispatcher that hands them over as this batch. */
static void hand_over(struct ledger *l, const char *batch, struct job *jobs, size_t n)
{
	struct claim_order o = {.worker = "disp", .lease_ns = LEASE_NS, .hands_over = true};
	struct handed list[8];
	bool kept[8];
	size_t got = 0;

	OK(ledger_claim(l, &o, jobs, n, &got, NULL, &err));
	assert_int_equal(got, n);
	for (size_t i = 0; i < n; i++)
		list[i] = (struct handed){jobs[i].id, jobs[i].token};
	OK(ledger_hand_over(l, "disp", batch, list, n, kept, &err));
	for (size_t i = 0; i < n; i++)
		assert_true(kept[i]);
}

static int take_as(struct ledger *l, const char *batch, int index, const char *worker, struct job *ret,
		   struct error *why)
{
	struct take_order o = {.batch = batch, .index = index, .worker = worker, .lease_ns = LEASE_NS};
	int r = ledger_take(l, &o, ret, why, &err);

	if (r < 0)
		fail_msg("%s", err.message);
	return r;
}

static void assert_nothing_to_take(struct ledger *l, const char *batch, int index, const char *why)
{
	struct error said = ERROR_INIT;
	struct job j = {0};

	assert_int_equal(take_as(l, batch, index, "late", &j, &said), 1);
	assert_non_null(strstr(said.message, why));
}

struct roll {
	int count, taken, cancelling, without_batch;
	int index;
	char id[ID_ROOM], token[TOKEN_SIZE], handle[256];
};

static int call_roll(void *arg, const struct handed_seen *h, struct error *e)
{
	struct roll *r = arg;

	(void)e;
	r->count++;
	r->taken += h->is_taken;
	r->cancelling += h->cancelling;
	r->without_batch += !h->batch;
	r->index = h->index;
	snprintf(r->id, sizeof r->id, "%s", h->id);
	snprintf(r->token, sizeof r->token, "%s", h->token);
	snprintf(r->handle, sizeof r->handle, "%s", h->handle ? h->handle : "");
	return 0;
}

static struct roll roll(struct ledger *l)
{
	struct roll r = {0};

	OK(ledger_handed(l, "disp", call_roll, &r, &err));
	return r;
}

static void test_what_is_taken_is_of_who_took_it(void **state)
{
	struct ledger *l = place_open(*state);
	struct job jobs[2] = {0};
	_cleanup_job_ struct job taken = {0};
	int seen[2] = {0, 0};

	submit(l, "one", NULL);
	submit(l, "two", NULL);
	hand_over(l, BATCH, jobs, 2);
	assert_int_equal(roll(l).count, 2);
	assert_int_equal(roll(l).taken, 0);
	assert_int_equal(take_as(l, BATCH, 1, "node", &taken, NULL), 0);
	assert_string_equal(taken.id, "two");
	assert_int_equal(taken.attempt, 1);
	assert_string_not_equal(taken.token, jobs[1].token);
	assert_string_equal(look(l, "two").worker, "node");
	assert_int_equal(roll(l).taken, 1);
	/* The dispatcher prolongs what is its own, and commits nothing of what is not. */
	OK(ledger_heartbeat(l, "disp", LEASE_NS, lease_seen, seen, &err));
	assert_int_equal(seen[0], 1);
	REFUSED(finish(l, &jobs[1], VERDICT_SUCCEEDED), "nothing was committed");
	assert_int_equal(err.kind, ERROR_LEASE);
	assert_int_equal(finish(l, &taken, VERDICT_SUCCEEDED), 1);
	assert_state(l, "two", JOB_FINISHED);
	assert_nothing_to_take(l, BATCH, 1, "has ended");
	assert_int_equal(roll(l).count, 1);
	jobs_done(jobs, ARRAY_SIZE(jobs));
	ledger_close(l);
}

static void test_a_second_incarnation_takes_it_from_the_first(void **state)
{
	struct ledger *l = place_open(*state);
	_cleanup_job_ struct job job = {0}, first = {0}, second = {0};
	_cleanup_attempt_ struct attempt a;
	struct take_order o = {.batch = BATCH,
			       .worker = "node2",
			       .lease_ns = LEASE_NS,
			       .handle = HANDLE,
			       .lost = "Slurm started it again on node2"};
	struct error why = ERROR_INIT;
	struct handle_note note = {BATCH, 0, HANDLE};

	submit(l, "twice", NULL);
	hand_over(l, BATCH, &job, 1);
	assert_int_equal(take_as(l, BATCH, 0, "node1", &first, NULL), 0);
	OK(ledger_handles_set(l, &note, 1, &err));
	OK(ledger_take(l, &o, &second, &why, &err));
	assert_int_equal(second.attempt, 2);
	assert_int_equal(look(l, "twice").q.attempt, 2);
	attempt_init(&a);
	OK(ledger_load(l, "twice", 1, &a, &err));
	assert_int_equal(a.verdict, VERDICT_LOST);
	assert_string_equal(a.reason, "Slurm started it again on node2");
	assert_string_equal(json_string_value(json_object_get(a.engine, "job")), "7_1");
	/* The first one lives, and comes to its end. */
	REFUSED(finish(l, &first, VERDICT_SUCCEEDED), "nothing was committed");
	assert_int_equal(err.kind, ERROR_LEASE);
	assert_int_equal(finish(l, &second, VERDICT_SUCCEEDED), 2);
	REFUSED(finish(l, &first, VERDICT_SUCCEEDED), "nothing was committed");
	assert_state(l, "twice", JOB_FINISHED);
	assert_int_equal(look(l, "twice").q.verdict, VERDICT_SUCCEEDED);
	ledger_close(l);
}

static void test_what_is_started_again_too_often_stays_lost(void **state)
{
	struct ledger *l = place_open(*state);
	_cleanup_job_ struct job submitted, job = {0}, first = {0};

	job_make(&submitted, "once", "ada");
	submitted.retries = 0;
	OK(ledger_submit(l, &submitted, 1, 0, NULL, NULL, NULL, &err));
	hand_over(l, BATCH, &job, 1);
	assert_int_equal(take_as(l, BATCH, 0, "node1", &first, NULL), 0);
	assert_nothing_to_take(l, BATCH, 0, "not tried again");
	assert_state(l, "once", JOB_FINISHED);
	assert_int_equal(look(l, "once").q.verdict, VERDICT_LOST);
	REFUSED(finish(l, &first, VERDICT_SUCCEEDED), "nothing was committed");
	ledger_close(l);
}

static void test_what_nobody_takes_is_queued_again_and_has_lost_nothing(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p);
	struct job jobs[2] = {0};
	_cleanup_job_ struct job again = {0};
	struct claim_order o = {.worker = "disp", .lease_ns = LEASE_NS, .hands_over = true};
	size_t n = 0;

	submit(l, "one", NULL);
	submit(l, "two", NULL);
	hand_over(l, BATCH, jobs, 1);
	OK(ledger_claim(l, &o, &jobs[1], 1, &n, NULL, &err));
	assert_int_equal(roll(l).without_batch, 1);
	let_leases_end(p);
	assert_int_equal(expire(l), 2);
	assert_state(l, "one", JOB_QUEUED);
	assert_state(l, "two", JOB_QUEUED);
	assert_non_null(strstr(look(l, "one").reason, "dispatcher"));
	assert_int_equal(roll(l).count, 0);
	assert_nothing_to_take(l, BATCH, 0, "another way");
	assert_true(claim_by(l, "w1", LEASE_NS, &again));
	assert_int_equal(again.attempt, 1);
	assert_int_equal(again.tries, 0);
	REFUSED(finish(l, &jobs[0], VERDICT_SUCCEEDED), "nothing was committed");
	assert_int_equal(finish(l, &again, VERDICT_SUCCEEDED), 1);
	jobs_done(jobs, ARRAY_SIZE(jobs));
	ledger_close(l);
}

static void test_a_node_that_is_not_heard_of_is_lost(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p);
	_cleanup_job_ struct job job = {0}, taken = {0};
	_cleanup_attempt_ struct attempt a;
	struct handle_note note = {BATCH, 0, HANDLE};

	submit(l, "gone", NULL);
	hand_over(l, BATCH, &job, 1);
	assert_int_equal(take_as(l, BATCH, 0, "node1", &taken, NULL), 0);
	OK(ledger_handles_set(l, &note, 1, &err));
	let_leases_end(p);
	assert_int_equal(expire(l), 1);
	assert_state(l, "gone", JOB_WAITING);
	attempt_init(&a);
	OK(ledger_load(l, "gone", 0, &a, &err));
	assert_int_equal(a.verdict, VERDICT_LOST);
	assert_string_equal(json_string_value(json_object_get(a.engine, "engine")), "slurm");
	assert_nothing_to_take(l, BATCH, 0, "another way");
	ledger_close(l);
}

static void test_a_new_batch_takes_the_place_of_the_old(void **state)
{
	struct ledger *l = place_open(*state);
	_cleanup_job_ struct job job = {0}, taken = {0};
	struct handed one;
	bool kept = false;

	submit(l, "renamed", NULL);
	hand_over(l, BATCH, &job, 1);
	one = (struct handed){job.id, job.token};
	OK(ledger_hand_over(l, "disp", OTHER, &one, 1, &kept, &err));
	assert_true(kept);
	assert_nothing_to_take(l, BATCH, 0, "another way");
	assert_int_equal(take_as(l, OTHER, 0, "node1", &taken, NULL), 0);
	/* Once it is taken it is nobody's to hand over. */
	OK(ledger_hand_over(l, "disp", BATCH, &one, 1, &kept, &err));
	assert_false(kept);
	one.token = taken.token;
	OK(ledger_hand_over(l, "disp", BATCH, &one, 1, &kept, &err));
	assert_false(kept);
	ledger_close(l);
}

static void test_notes_are_kept_for_who_is_there(void **state)
{
	struct ledger *l = place_open(*state);
	struct job jobs[2] = {0};
	struct handle_note notes[] = {{BATCH, 0, "{\"job\": \"1_0\"}"},
				      {BATCH, 1, "{\"job\": \"1_1\", \"reason\": \"it's \\\"held\\\"\"}"},
				      {OTHER, 0, "{\"job\": \"2_0\"}"}};
	struct roll r;

	submit(l, "one", NULL);
	submit(l, "two", NULL);
	hand_over(l, BATCH, jobs, 2);
	assert_string_equal(roll(l).handle, "");
	OK(ledger_handles_set(l, notes, 3, &err));
	r = roll(l);
	assert_string_equal(r.id, "two");
	assert_int_equal(r.index, 1);
	assert_non_null(strstr(r.handle, "it's \\\"held\\\""));
	OK(ledger_release(l, "two", jobs[1].token, 0, &err));
	assert_state(l, "two", JOB_QUEUED);
	r = roll(l);
	assert_int_equal(r.count, 1);
	assert_non_null(strstr(r.handle, "1_0"));
	jobs_done(jobs, ARRAY_SIZE(jobs));
	ledger_close(l);
}

static void test_a_verdict_from_outside_goes_through_the_fence(void **state)
{
	struct ledger *l = place_open(*state);
	struct job jobs[3] = {0};
	_cleanup_job_ struct job taken = {0};
	_cleanup_attempt_ struct attempt a;
	struct handed_end end = {"slow", NULL, VERDICT_TIMED_OUT, "Slurm's --time of 2 min", HANDLE};
	struct roll r;

	submit(l, "slow", NULL);
	submit(l, "wrong", NULL);
	submit(l, "node", NULL);
	hand_over(l, BATCH, jobs, 3);
	assert_int_equal(take_as(l, BATCH, 0, "node1", &taken, NULL), 0);
	end.token = jobs[0].token;
	assert_int_equal(ledger_handed_end(l, &end, &err), 1);
	assert_state(l, "slow", JOB_RUNNING);
	end.token = taken.token;
	OK(ledger_handed_end(l, &end, &err));
	assert_int_equal(look(l, "slow").q.verdict, VERDICT_TIMED_OUT);
	attempt_init(&a);
	OK(ledger_load(l, "slow", 0, &a, &err));
	assert_string_equal(a.reason, end.reason);
	assert_string_equal(json_string_value(json_object_get(a.engine, "state")), "PENDING");
	assert_string_equal(json_string_value(json_object_get(a.request, "id")), "slow");
	REFUSED(finish(l, &taken, VERDICT_SUCCEEDED), "nothing was committed");
	/* Refused is the end of it, lost is not. */
	end = (struct handed_end){"wrong", jobs[1].token, VERDICT_REFUSED, "Invalid account", NULL};
	OK(ledger_handed_end(l, &end, &err));
	assert_state(l, "wrong", JOB_FINISHED);
	end = (struct handed_end){"node", jobs[2].token, VERDICT_LOST, "NODE_FAIL on node1", NULL};
	OK(ledger_handed_end(l, &end, &err));
	assert_state(l, "node", JOB_WAITING);
	r = roll(l);
	assert_int_equal(r.count, 0);
	jobs_done(jobs, ARRAY_SIZE(jobs));
	ledger_close(l);
}

static void test_what_is_cancelled_before_it_is_taken_does_not_run(void **state)
{
	struct ledger *l = place_open(*state);
	_cleanup_job_ struct job job = {0};
	enum job_state before;

	submit(l, "unwanted", NULL);
	submit(l, "next", "unwanted");
	hand_over(l, BATCH, &job, 1);
	OK(ledger_cancel(l, "unwanted", &before, &err));
	assert_int_equal(before, JOB_RUNNING);
	assert_int_equal(roll(l).cancelling, 1);
	assert_nothing_to_take(l, BATCH, 0, "it was cancelled");
	assert_state(l, "unwanted", JOB_CANCELLED);
	assert_state(l, "next", JOB_CANCELLED);
	ledger_close(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROW(what_is_taken_is_of_who_took_it),
		ROW(a_second_incarnation_takes_it_from_the_first),
		ROW(what_is_started_again_too_often_stays_lost),
		ROW(what_nobody_takes_is_queued_again_and_has_lost_nothing),
		ROW(a_node_that_is_not_heard_of_is_lost),
		ROW(a_new_batch_takes_the_place_of_the_old),
		ROW(notes_are_kept_for_who_is_there),
		ROW(a_verdict_from_outside_goes_through_the_fence),
		ROW(what_is_cancelled_before_it_is_taken_does_not_run),
	};

	return RUN_ON_BOTH("analyses that are handed over", tests);
}
