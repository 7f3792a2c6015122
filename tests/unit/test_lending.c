/* Many handles that share a few connections: each is as good as one with its own. For every database behind it. */
#include "test_queue.h"

#include <poll.h>
#include <pthread.h>

#include "lending.h"

static struct lending *lend(const struct place *p, int most)
{
	struct lending *l = NULL;

	OK(lending_open(p->url, most, &l, &err));
	return l;
}

static struct ledger *lent_open(struct lending *from)
{
	struct ledger *l = NULL;

	OK(ledger_open_lent(from, LEDGER_CREATE, &l, &err));
	return l;
}

/* As a restart of the server does: every connection is gone, and nobody was told. */
static void cut(const struct place *p)
{
	if (p->is_postgres)
		place_sql(p, NULL,
			  "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
			  "WHERE pid <> pg_backend_pid() AND application_name = 'fumehood'");
}

/* One analysis that has been claimed, on its way to its end in a thread of its own. */
struct ending {
	pthread_t thread;
	struct ledger *l;
	struct job job;
	const struct place *place; /* its output is 'shared' there; NULL: it has none */
	struct error err;
	int number, r;
};

static void *end_it(void *arg)
{
	struct ending *e = arg;
	_cleanup_attempt_ struct attempt a;
	struct analysis_state state;

	attempt_of(&a, &e->job, VERDICT_SUCCEEDED);
	e->r = ledger_analysis(e->l, e->job.id, &state, &e->err);
	if (e->r == 0)
		e->r = ledger_commit(e->l, &a, NULL, NULL, &e->number, &e->err);
	return NULL;
}

static void claim_all(struct ledger *l, struct lending *from, struct ending *list, int n)
{
	submit_many(l, "a", "ada", n);
	for (int i = 0; i < n; i++) {
		list[i] = (struct ending){.l = lent_open(from), .err = ERROR_INIT};
		assert_true(claim_by(l, "w1", LEASE_NS, &list[i].job));
	}
}

static void end_all(struct ending *list, int n)
{
	for (int i = 0; i < n; i++)
		assert_int_equal(pthread_create(&list[i].thread, NULL, end_it, &list[i]), 0);
	for (int i = 0; i < n; i++)
		pthread_join(list[i].thread, NULL);
}

static void forget_all(struct ending *list, int n)
{
	for (int i = 0; i < n; i++) {
		ledger_close(list[i].l);
		job_done(&list[i].job);
	}
}

static void test_more_end_at_once_than_there_are_connections(void **state)
{
	enum { N = 40 };
	const struct place *p = *state;
	struct ledger *l = place_open(p);
	struct lending *from = lend(p, 2);
	struct ending list[N];
	uint64_t counts[JOB_STATES];

	claim_all(l, from, list, N);
	end_all(list, N);
	for (int i = 0; i < N; i++)
		if (list[i].r < 0 || list[i].number != 1)
			fail_msg("%s: %s", list[i].job.id, list[i].err.message);
	OK(ledger_queue_counts(l, counts, &err));
	assert_int_equal(counts[JOB_FINISHED], N);
	forget_all(list, N);
	lending_close(from);
	ledger_close(l);
}

static void test_one_that_fails_keeps_nothing(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p);
	struct lending *from = lend(p, 1);
	struct ledger *bad = lent_open(from), *good = lent_open(from);
	_cleanup_job_ struct job first = {0}, second = {0};

	submit(l, "a", NULL);
	submit(l, "b", NULL);
	assert_true(claim_by(l, "w1", LEASE_NS, &first));
	assert_true(claim_by(l, "w1", LEASE_NS, &second));
	OK(ledger_release(l, first.id, first.token, 0, &err));
	assert_true(finish(bad, &first, VERDICT_SUCCEEDED) < 0);
	assert_int_equal(err.kind, ERROR_LEASE);
	assert_int_equal(finish(good, &second, VERDICT_SUCCEEDED), 1);
	ledger_close(bad);
	ledger_close(good);
	lending_close(from);
	ledger_close(l);
}

static void test_what_cannot_be_opened_keeps_no_place(void **state)
{
	struct ledger *l = NULL;
	struct lending *from = NULL;

	(void)state;
	OK(lending_open("sqlite:/nonexistent/directory/ledger.db", 1, &from, &err));
	for (int i = 0; i < 3; i++)
		REFUSED(ledger_open_lent(from, 0, &l, &err), "/nonexistent/directory/ledger.db");
	lending_close(from);
}

static void test_connections_that_are_gone_are_nobodys_failure(void **state)
{
	enum { N = 12 };
	const struct place *p = *state;
	struct lending *from = lend(p, 6);
	struct ledger *l = place_open(p);
	struct ending list[N];

	claim_all(l, from, list, N);
	end_all(list, N / 2); /* so that several are open */
	cut(p);
	end_all(list + N / 2, N / 2);
	for (int i = 0; i < N; i++)
		if (list[i].r < 0)
			fail_msg("%s: %s", list[i].job.id, list[i].err.message);
	forget_all(list, N);
	lending_close(from);
	ledger_close(l);
}

#define ROW(name) cmocka_unit_test_setup_teardown(test_##name, place_setup, place_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROW(more_end_at_once_than_there_are_connections),
		ROW(one_that_fails_keeps_nothing),
		ROW(what_cannot_be_opened_keeps_no_place),
		ROW(connections_that_are_gone_are_nobodys_failure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
