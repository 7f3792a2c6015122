/* What is PostgreSQL's alone: connections that vanish between two calls, and locks. Runs under
 * tests/support/with-postgres. */
#include "postgres.h"
#include "store.h" /* its inline function has an err of its own */
#include "test_store.h"

#include <poll.h>

#include "queue.h"

#define LEASE_NS (60 * NSEC_PER_SEC)

static void job_make(struct job *j, const char *id)
{
	job_init(j);
	snprintf(j->id, sizeof j->id, "%s", id);
	j->submitter = strdup("ada");
	j->request = json_pack("{s:s}", "id", id);
	assert_non_null(j->request);
}

static void submit(struct ledger *l, const char *id)
{
	_cleanup_job_ struct job j;

	job_make(&j, id);
	OK(ledger_submit(l, &j, 1, 0, NULL, NULL, NULL, &err));
}

static void claim(struct ledger *l, struct job *ret)
{
	struct claim_order o = {.worker = "w", .lease_ns = LEASE_NS};
	size_t n = 0;

	OK(ledger_claim(l, &o, ret, 1, &n, NULL, &err));
	assert_int_equal(n, 1);
}

/* As a restart of the server does: every connection is gone, and nobody was told. */
static void cut(const struct place *p)
{
	place_sql(p, NULL,
		  "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
		  "WHERE pid <> pg_backend_pid() AND application_name = 'fumehood'");
}

static void count_lease(void *arg, const char *id, const char *token, bool cancelling)
{
	(void)id;
	(void)token;
	(void)cancelling;
	++*(int *)arg;
}

static void test_no_call_fails_because_the_connection_is_gone(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p);
	_cleanup_attempt_ struct attempt a;
	_cleanup_job_ struct job j = {0}, k = {0}, again = {0};
	uint64_t counts[JOB_STATES];
	int leases = 0, number = 0;
	struct lease_watch watch = {0};
	int64_t next = 0;

	cut(p);
	submit(l, "a");
	cut(p);
	claim(l, &j);
	cut(p);
	OK(ledger_heartbeat(l, "w", LEASE_NS, count_lease, &leases, &err));
	assert_int_equal(leases, 1);
	cut(p);
	OK(ledger_expire(l, &watch, NULL, &next, &err));
	assert_true(next > 0);
	cut(p);
	OK(ledger_release(l, "a", j.token, 0, &err));
	cut(p);
	OK(ledger_cancel(l, "a", NULL, &err));
	cut(p);
	OK(ledger_retry(l, "a", &err));
	cut(p);
	OK(ledger_queue_load(l, "a", &k, &err));
	cut(p);
	claim(l, &again);
	attempt_init(&a);
	memcpy(a.id, again.id, sizeof a.id);
	memcpy(a.token, again.token, sizeof a.token);
	a.verdict = VERDICT_SUCCEEDED;
	a.queued = true;
	cut(p);
	OK(ledger_commit(l, &a, NULL, NULL, &number, &err));
	cut(p);
	OK(ledger_queue_counts(l, counts, &err));
	assert_int_equal(counts[JOB_FINISHED], 1);
	lease_watch_done(&watch);
	ledger_close(l);
}

static void test_the_bell_rings_again_after_a_reconnection(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p), *other = place_open(p);
	struct pollfd fd = {.events = POLLIN};

	OK(fd.fd = ledger_bell(l, &err));
	cut(p);
	assert_int_equal(poll(&fd, 1, 60000), 1);
	REFUSED(ledger_bell_read(l, &err), "lost");
	OK(fd.fd = ledger_bell(l, &err));
	assert_int_equal(ledger_bell_read(l, &err), 0);
	submit(other, "a");
	assert_int_equal(poll(&fd, 1, 60000), 1);
	assert_int_equal(ledger_bell_read(l, &err), 1);
	ledger_close(other);
	ledger_close(l);
}

/* A connection that nobody reads must not be rung: its server would keep the news for it. */
static void test_who_waits_no_more_is_not_rung(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p), *other = place_open(p);
	uint64_t counts[JOB_STATES];

	assert_true(ledger_bell(l, &err) >= 0);
	submit(other, "a");
	OK(ledger_queue_counts(l, counts, &err)); /* which brings along what was rung */
	assert_int_equal(ledger_bell_read(l, &err), 1);
	submit(other, "b");
	ledger_bell_end(l);
	assert_int_equal(ledger_bell_read(l, &err), 0);
	submit(other, "c");
	OK(ledger_queue_counts(l, counts, &err));
	assert_int_equal(ledger_bell_read(l, &err), 0);
	assert_true(ledger_bell(l, &err) >= 0);
	submit(other, "d");
	OK(ledger_queue_counts(l, counts, &err));
	assert_int_equal(ledger_bell_read(l, &err), 1);
	cut(p);
	ledger_bell_end(l);
	OK(ledger_queue_counts(l, counts, &err)); /* connects again, and listens no more */
	submit(other, "e");
	OK(ledger_queue_counts(l, counts, &err));
	assert_int_equal(ledger_bell_read(l, &err), 0);
	ledger_close(other);
	ledger_close(l);
}

static void test_a_commit_under_way_keeps_nobody_waiting(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p), *committing = place_open(p);
	struct backend *b = committing->backend;
	_cleanup_job_ struct job j = {0};
	struct value key = value_text("a");
	struct lease_watch watch = {0};
	unsigned expired = 7;
	int leases = 0;

	submit(l, "a");
	claim(l, &j);
	place_sql(p, NULL, "UPDATE fumehood.queue SET lease_until = '2000-01-01'");
	OK(b->ops->begin(b, NULL, &err));
	OK(ledger_run(committing, SQL_QUEUE_ROW, &key, 1, NULL, NULL, &err));
	OK(ledger_heartbeat(l, "w", LEASE_NS, count_lease, &leases, &err));
	assert_int_equal(leases, 1);
	OK(ledger_expire(l, &watch, &expired, NULL, &err));
	assert_int_equal(expired, 0);
	b->ops->rollback(b);
	OK(ledger_expire(l, &watch, &expired, NULL, &err));
	assert_int_equal(expired, 1);
	lease_watch_done(&watch);
	ledger_close(committing);
	ledger_close(l);
}

static void test_what_was_seen_over_another_connection_was_not_seen(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p);
	struct lease_watch watch = {.lease_ns = 200 * NSEC_PER_MSEC};
	_cleanup_job_ struct job j = {0};
	unsigned expired = 7;

	submit(l, "a");
	claim(l, &j);
	place_sql(p, NULL, "UPDATE fumehood.queue SET lease_until = '2000-01-01', lease_ms = 200");
	for (int i = 0; i < 3; i++) {
		OK(ledger_expire(l, &watch, &expired, NULL, &err));
		assert_int_equal(expired, 0);
		poll(NULL, 0, 250);
		cut(p);
	}
	OK(ledger_expire(l, &watch, &expired, NULL, &err));
	assert_int_equal(expired, 0);
	poll(NULL, 0, 250);
	OK(ledger_expire(l, &watch, &expired, NULL, &err));
	assert_int_equal(expired, 1);
	lease_watch_done(&watch);
	ledger_close(l);
}

/* What was planned when the queue was empty is no plan for a hundred thousand. */
static void test_a_plan_is_kept_for_what_is_asked_often_and_not_for_long(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p);
	struct postgres *b = postgres_of(l->backend);
	int number;

	for (int i = 0; i < 3; i++) {
		OK(ledger_has_token(l, "none", &number, &err));
		assert_int_equal(b->plans[SQL_TOKEN].made != 0, i == 2);
	}
	for (int i = 0; i < 500; i++)
		OK(ledger_has_token(l, "none", &number, &err));
	assert_in_range(b->plans[SQL_TOKEN].uses, 1, 200);
	b->plans[SQL_TOKEN].made -= 3 * NSEC_PER_SEC;
	OK(ledger_has_token(l, "none", &number, &err));
	assert_int_equal(b->plans[SQL_TOKEN].uses, 1);
	cut(p);
	OK(ledger_has_token(l, "none", &number, &err));
	assert_int_equal(b->plans[SQL_TOKEN].made, 0);
	ledger_close(l);
}

#define ROW(name) cmocka_unit_test_setup_teardown(test_##name, place_setup, place_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROW(no_call_fails_because_the_connection_is_gone),
		ROW(a_plan_is_kept_for_what_is_asked_often_and_not_for_long),
		ROW(the_bell_rings_again_after_a_reconnection),
		ROW(who_waits_no_more_is_not_rung),
		ROW(a_commit_under_way_keeps_nobody_waiting),
		ROW(what_was_seen_over_another_connection_was_not_seen),
	};

	return cmocka_run_group_tests_name("the queue's connections", tests, NULL, NULL);
}
