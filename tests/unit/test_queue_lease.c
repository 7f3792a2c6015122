/* Leases: who loses one, who keeps it, and clocks that are ahead or stand still. */
#include "test_queue.h"

#include <poll.h>
#include <sqlite3.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The host's clock, which is SQLite's: ahead by so much; or it stands still at this time. Nobody can set the others. */
static int64_t clock_ahead_s;
static struct timespec clock_stands;

int clock_gettime(clockid_t id, struct timespec *ret)
{
	int r = (int)syscall(SYS_clock_gettime, id, ret);

	if (r == 0 && id == CLOCK_REALTIME && clock_stands.tv_sec)
		*ret = clock_stands;
	else if (r == 0 && id == CLOCK_REALTIME)
		ret->tv_sec += clock_ahead_s;
	return r;
}

static void test_a_worker_that_lost_its_lease_commits_nothing(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p), *other = place_open(p);
	_cleanup_job_ struct job old = {0}, young = {0};
	_cleanup_attempt_ struct attempt a;
	int seen[2] = {0, 0}, number;

	submit(l, "fenced", NULL);
	assert_true(claim_by(l, "asleep", LEASE_NS, &old));
	assert_int_equal(expire(other), 0);
	let_leases_end(p);
	assert_int_equal(expire(other), 1);
	assert_state(l, "fenced", JOB_WAITING);
	attempt_init(&a);
	OK(ledger_load(l, "fenced", 0, &a, &err));
	assert_int_equal(a.verdict, VERDICT_LOST);
	assert_string_equal(a.token, old.token);
	OK(ledger_heartbeat(l, "asleep", LEASE_NS, lease_seen, seen, &err));
	assert_int_equal(seen[0], 0);
	REFUSED(finish(l, &old, VERDICT_SUCCEEDED), "nothing was committed");
	assert_int_equal(err.kind, ERROR_LEASE);
	/* Recovery, which says the same, is right. */
	assert_int_equal(finish(l, &old, VERDICT_LOST), 1);

	let_waiting_end(p);
	assert_int_equal(expire(other), 0);
	assert_true(claim_by(other, "awake", LEASE_NS, &young));
	assert_int_equal(young.attempt, 2);
	assert_int_equal(young.tries, 1);
	REFUSED(finish(l, &old, VERDICT_SUCCEEDED), "nothing was committed");
	OK(ledger_release(l, "fenced", old.token, 0, &err));
	assert_state(l, "fenced", JOB_RUNNING);
	assert_int_equal(finish(other, &young, VERDICT_SUCCEEDED), 2);
	REFUSED(finish(l, &old, VERDICT_SUCCEEDED), "nothing was committed");
	assert_state(l, "fenced", JOB_FINISHED);
	number = look(l, "fenced").q.attempt;
	assert_int_equal(number, 2);
	ledger_close(other);
	ledger_close(l);
}

static void test_a_lease_that_is_prolonged_is_kept(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p);
	_cleanup_job_ struct job j = {0};
	int seen[2] = {0, 0};
	int64_t next = 0;

	submit(l, "long", NULL);
	OK(expire_at_once(l, NULL, &next));
	assert_true(next == 0);
	assert_true(claim_by(l, "w1", LEASE_NS, &j));
	let_leases_end(p);
	OK(ledger_heartbeat(l, "w1", LEASE_NS, lease_seen, seen, &err));
	assert_int_equal(seen[0], 1);
	assert_int_equal(expire(l), 0);
	OK(expire_at_once(l, NULL, &next));
	assert_true(next > clock_utc() + (int64_t)(LEASE_NS / 2));
	assert_int_equal(finish(l, &j, VERDICT_SUCCEEDED), 1);
	ledger_close(l);
}

static unsigned look_again(struct ledger *l, struct lease_watch *watch, int64_t *next)
{
	unsigned n = 7;

	OK(ledger_expire(l, watch, &n, next, &err));
	return n;
}

/* As often as a worker looks, until one is given up or the time is over. */
static unsigned look_for(struct ledger *l, struct lease_watch *watch, int ms)
{
	uint64_t end = clock_now() + (uint64_t)ms * NSEC_PER_MSEC;
	unsigned n = 0;

	while (n == 0 && clock_now() < end) {
		poll(NULL, 0, 10);
		n = look_again(l, watch, NULL);
	}
	return n;
}

/* After an outage every lease is over: only one that stays so for the time of a lease is given up. */
static void test_a_lease_is_given_up_after_two_looks_in_which_it_has_not_moved(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p);
	const uint64_t lease = 300 * NSEC_PER_MSEC;
	struct lease_watch watch = {.worker = "me", .lease_ns = lease};
	_cleanup_job_ struct job dead = {0}, live = {0}, mine = {0};
	int64_t next = 0;
	int seen[2] = {0, 0};

	submit(l, "dead", NULL);
	submit(l, "live", NULL);
	submit(l, "mine", NULL);
	assert_true(claim_by(l, "w1", lease, &dead));
	assert_true(claim_by(l, "w2", lease, &live));
	assert_true(claim_by(l, "me", lease, &mine));
	let_leases_end(p);
	assert_int_equal(look_again(l, &watch, &next), 0);
	assert_true(next > clock_utc() && next < clock_utc() + (int64_t)NSEC_PER_SEC);
	assert_int_equal(look_again(l, &watch, &next), 0);
	OK(ledger_heartbeat(l, "w2", LEASE_NS, lease_seen, seen, &err));
	assert_int_equal(look_for(l, &watch, 20000), 1);
	assert_state(l, "dead", JOB_WAITING);
	assert_state(l, "live", JOB_RUNNING);
	assert_state(l, "mine", JOB_RUNNING);
	/* Another time of the same lease is another lease. */
	place_sql(p, "UPDATE fumehood_queue SET lease_until = 2, lease_ms = 300 WHERE id = 'live'",
		  "UPDATE fumehood.queue SET lease_until = '2000-01-02', lease_ms = 300 WHERE id = 'live'");
	assert_int_equal(look_again(l, &watch, &next), 0);
	place_sql(p, "UPDATE fumehood_queue SET lease_until = 3 WHERE id = 'live'",
		  "UPDATE fumehood.queue SET lease_until = '2000-01-03' WHERE id = 'live'");
	poll(NULL, 0, 350);
	assert_int_equal(look_again(l, &watch, &next), 0);
	assert_int_equal(finish(l, &live, VERDICT_SUCCEEDED), 1);
	assert_int_equal(finish(l, &mine, VERDICT_SUCCEEDED), 1);
	lease_watch_done(&watch);
	ledger_close(l);
}

/* Where there is one writer at a time, he can keep all others from their heartbeats. Looked at or not meanwhile. */
static void test_while_another_writes_for_longer_than_a_lease_no_lease_ends(void **state)
{
	const struct place *p = *state;
	struct lease_watch watch = {.worker = "me", .lease_ns = 300 * NSEC_PER_MSEC};
	_cleanup_job_ struct job j = {0};
	int seen[2] = {0, 0};
	sqlite3 *writer = NULL;
	struct ledger *l;
	char path[256];

	if (p->is_postgres)
		skip();
	l = place_open(p);
	submit(l, "live", NULL);
	assert_true(claim_by(l, "w1", watch.lease_ns, &j));
	let_leases_end(p);
	snprintf(path, sizeof path, "%s/ledger.db", p->dir);
	assert_int_equal(sqlite3_open(path, &writer), SQLITE_OK);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(look_again(l, &watch, NULL), 0);
		assert_int_equal(sqlite3_exec(writer, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
		if (i == 0)
			assert_int_equal(look_for(l, &watch, 900), 0);
		else
			poll(NULL, 0, 900);
		assert_int_equal(sqlite3_exec(writer, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
		assert_int_equal(look_again(l, &watch, NULL), 0);
	}
	assert_state(l, "live", JOB_RUNNING);
	OK(ledger_heartbeat(l, "w1", LEASE_NS, lease_seen, seen, &err));
	assert_int_equal(look_for(l, &watch, 400), 0);
	assert_int_equal(finish(l, &j, VERDICT_SUCCEEDED), 1);
	sqlite3_close(writer);
	ledger_close(l);
}

/* A worker with a long lease is not heard of as often as one with a short lease expects of itself. */
static void test_a_lease_is_watched_for_as_long_as_its_holder_s_lease(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p);
	struct lease_watch watch = {.worker = "me", .lease_ns = 300 * NSEC_PER_MSEC};
	_cleanup_job_ struct job slow = {0}, quick = {0};
	int seen[2] = {0, 0};

	submit(l, "slow", NULL);
	submit(l, "quick", NULL);
	assert_true(claim_by(l, "w1", LEASE_NS, &slow));
	assert_true(claim_by(l, "w2", NSEC_PER_MSEC, &quick));
	let_leases_end(p);
	assert_int_equal(look_for(l, &watch, 20000), 1);
	assert_state(l, "quick", JOB_WAITING);
	assert_int_equal(look_for(l, &watch, 400), 0);
	assert_state(l, "slow", JOB_RUNNING);
	/* Whoever prolongs it says for how long he may be silent from now on. */
	OK(ledger_heartbeat(l, "w1", NSEC_PER_MSEC, lease_seen, seen, &err));
	assert_int_equal(look_for(l, &watch, 20000), 1);
	lease_watch_done(&watch);
	ledger_close(l);
}

/* What a worker has written whose clock was ahead by so much; then the clock is right again. In PostgreSQL it is the
 * server's: that of another host, since a failover. */
static void let_clock_have_been_ahead(const struct place *p, const char *id, int64_t seconds)
{
	char sqlite[256], postgres[256];

	snprintf(sqlite, sizeof sqlite,
		 "UPDATE fumehood_queue SET lease_until = lease_until + %lld * 1000000000, "
		 "due_at = due_at + %lld * 1000000000 WHERE id = '%s'",
		 (long long)seconds, (long long)seconds, id);
	snprintf(postgres, sizeof postgres,
		 "UPDATE fumehood.queue SET lease_until = lease_until + %lld * interval '1 second', "
		 "due_at = due_at + %lld * interval '1 second' WHERE id = '%s'",
		 (long long)seconds, (long long)seconds, id);
	place_sql(p, sqlite, postgres);
}

static void test_a_lease_of_a_clock_that_was_ahead_is_not_waited_for(void **state)
{
	const int64_t ahead[] = {2, 90, 5000, 90000};
	const struct place *p = *state;
	struct ledger *l = place_open(p);
	struct lease_watch watch = {.worker = "me", .lease_ns = 300 * NSEC_PER_MSEC};

	for (size_t i = 0; i < ARRAY_SIZE(ahead); i++) {
		_cleanup_job_ struct job j, dead = {0};
		char id[] = {'d', (char)('0' + i), 0};
		uint64_t begun;

		job_make(&j, id, "ada");
		j.retries = 0;
		OK(ledger_submit(l, &j, 1, 0, NULL, NULL, NULL, &err));
		assert_true(claim_by(l, "w1", watch.lease_ns, &dead));
		let_clock_have_been_ahead(p, id, ahead[i]);
		begun = clock_now();
		assert_int_equal(look_for(l, &watch, 20000), 1);
		assert_true(clock_now() - begun >= watch.lease_ns);
		assert_state(l, id, JOB_FINISHED);
	}
	lease_watch_done(&watch);
	ledger_close(l);
}

/* Its holder lives: whatever his clock says, forwards, backwards or always the same, he is heard of. */
static void test_whoever_lives_keeps_his_lease_whatever_his_clock_says(void **state)
{
	static const int64_t jumps[] = {5000, 90, -90, 5000, 90000, 0, -5000, 5000};
	const struct place *p = *state;
	struct ledger *l = place_open(p), *other = place_open(p);
	struct lease_watch watch = {.worker = "me", .lease_ns = 600 * NSEC_PER_MSEC};
	_cleanup_job_ struct job live = {0}, mine = {0};
	int seen[2] = {0, 0};

	submit(l, "live", NULL);
	submit(l, "mine", NULL);
	assert_true(claim_by(other, "w1", watch.lease_ns, &live));
	assert_true(claim_by(l, "me", watch.lease_ns, &mine));
	let_clock_have_been_ahead(p, "mine", 5000);
	for (size_t i = 0; i < 2 * ARRAY_SIZE(jumps); i++) {
		clock_ahead_s = jumps[i / 2];
		OK(ledger_heartbeat(other, "w1", watch.lease_ns, lease_seen, seen, &err));
		clock_ahead_s = 0;
		if (p->is_postgres)
			let_clock_have_been_ahead(p, "live", jumps[i / 2]);
		assert_int_equal(look_for(l, &watch, 200), 0);
	}
	clock_stands = (struct timespec){.tv_sec = time(NULL) + 5000};
	for (int i = 0; i < 8; i++) {
		struct timespec stands = clock_stands;

		OK(ledger_heartbeat(other, "w1", watch.lease_ns, lease_seen, seen, &err));
		clock_stands = (struct timespec){0};
		assert_int_equal(look_for(l, &watch, 200), 0);
		clock_stands = stands;
	}
	clock_stands = (struct timespec){0};
	assert_int_equal(finish(other, &live, VERDICT_SUCCEEDED), 1);
	assert_int_equal(finish(l, &mine, VERDICT_SUCCEEDED), 1);
	lease_watch_done(&watch);
	ledger_close(other);
	ledger_close(l);
}

static bool is_queued_within(struct ledger *l, struct lease_watch *watch, const char *id, int ms)
{
	uint64_t end = clock_now() + (uint64_t)ms * NSEC_PER_MSEC;

	while (look(l, id).q.state != JOB_QUEUED && clock_now() < end) {
		poll(NULL, 0, 10);
		assert_int_equal(look_again(l, watch, NULL), 0);
	}
	return look(l, id).q.state == JOB_QUEUED;
}

/* It waits for as long as it was to wait, by the clock of who looks. */
static void test_a_try_that_a_clock_ahead_has_put_off_comes_in_time(void **state)
{
	const int64_t ahead[] = {90, 5000, 90000};
	const struct place *p = *state;
	struct ledger *l = place_open(p);

	for (size_t i = 0; i < ARRAY_SIZE(ahead); i++) {
		struct lease_watch watch = {.worker = "me", .lease_ns = 300 * NSEC_PER_MSEC};
		_cleanup_job_ struct job j, k = {0};
		char id[] = {'t', (char)('0' + i), 0};
		uint64_t begun;
		int64_t next = 0;

		job_make(&j, id, "ada");
		j.retries = 2;
		j.retry_on = 1u << VERDICT_TIMED_OUT;
		OK(ledger_submit(l, &j, 1, 0, NULL, NULL, NULL, &err));
		assert_true(claim_by(l, "w1", LEASE_NS, &k));
		assert_int_equal(finish(l, &k, VERDICT_TIMED_OUT), 1);
		let_clock_have_been_ahead(p, id, ahead[i]);
		begun = clock_now();
		assert_int_equal(look_again(l, &watch, &next), 0);
		assert_true(next < clock_utc() + 3 * (int64_t)NSEC_PER_SEC);
		assert_true(is_queued_within(l, &watch, id, 20000));
		assert_true(clock_now() - begun >= job_back_off(0));
		assert_claims(l, id);
		lease_watch_done(&watch);
	}
	ledger_close(l);
}

/* An obstacle's time is a minute at most; the same time from a clock that is right is waited for. */
static void test_what_was_handed_back_by_a_clock_ahead_waits_no_longer_than_a_minute(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p);
	struct lease_watch watch = {.worker = "me", .lease_ns = 300 * NSEC_PER_MSEC};
	_cleanup_job_ struct job j = {0};
	int64_t next = 0;

	submit(l, "a", NULL);
	assert_true(claim_by(l, "w1", LEASE_NS, &j));
	OK(ledger_release(l, "a", j.token, 2 * NSEC_PER_SEC, &err));
	let_clock_have_been_ahead(p, "a", 5000);
	assert_int_equal(look_again(l, &watch, &next), 0);
	assert_true(next < clock_utc() + 61 * (int64_t)NSEC_PER_SEC);
	assert_state(l, "a", JOB_WAITING);
	lease_watch_done(&watch);
	assert_int_equal(expire(l), 0); /* nobody to be waited for */
	assert_claims(l, "a");
	ledger_close(l);
}

static void test_what_is_lost_too_often_stays_lost(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p);
	_cleanup_job_ struct job j;

	job_make(&j, "doomed", "ada");
	j.retries = 1;
	OK(ledger_submit(l, &j, 1, 0, NULL, NULL, NULL, &err));
	for (int i = 0; i < 2; i++) {
		assert_claims(l, "doomed");
		let_leases_end(p);
		assert_int_equal(expire(l), 1);
		let_waiting_end(p);
		assert_int_equal(expire(l), 0);
	}
	assert_state(l, "doomed", JOB_FINISHED);
	assert_int_equal(look(l, "doomed").q.verdict, VERDICT_LOST);
	assert_nothing(l);
	ledger_close(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROW(a_worker_that_lost_its_lease_commits_nothing),
		ROW(a_lease_that_is_prolonged_is_kept),
		ROW(a_lease_is_given_up_after_two_looks_in_which_it_has_not_moved),
		ROW(while_another_writes_for_longer_than_a_lease_no_lease_ends),
		ROW(a_lease_is_watched_for_as_long_as_its_holder_s_lease),
		ROW(a_lease_of_a_clock_that_was_ahead_is_not_waited_for),
		ROW(whoever_lives_keeps_his_lease_whatever_his_clock_says),
		ROW(a_try_that_a_clock_ahead_has_put_off_comes_in_time),
		ROW(what_was_handed_back_by_a_clock_ahead_waits_no_longer_than_a_minute),
		ROW(what_is_lost_too_often_stays_lost),
	};

	return RUN_ON_BOTH("leases of the queue", tests);
}
