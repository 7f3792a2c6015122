/*
 * What a claim costs, counted and not timed: steps of SQLite's machine, pages that PostgreSQL's server looks at. Each bad case
 * against a plain queue of a hundred. TEST_QUEUE_SIZE makes them larger.
 */
#include "store.h" /* its inline function has an err of its own */
#include "test_store.h"

#include <math.h>
#include <sqlite3.h>

#include "queue.h"
#include "sqlite_private.h"

#define LEASE_NS (60 * NSEC_PER_SEC)

enum { HOST_MEMORY = 1 << 20, CLAIMS = 60 };

static int size(void)
{
	const char *text = getenv("TEST_QUEUE_SIZE");

	return text ? atoi(text) : 3000;
}

static void submit(struct ledger *l, const char *prefix, int count, int names, uint64_t memory)
{
	struct job *jobs = calloc((size_t)count, sizeof *jobs);

	assert_non_null(jobs);
	for (int i = 0; i < count; i++) {
		job_init(&jobs[i]);
		snprintf(jobs[i].id, sizeof jobs[i].id, "%s%07d", prefix, i);
		assert_true(asprintf(&jobs[i].submitter, "name%05d", i % names) > 0);
		jobs[i].request = json_pack("{s:s}", "id", jobs[i].id);
		jobs[i].memory_bytes = memory;
	}
	OK(ledger_submit(l, jobs, (size_t)count, 0, NULL, NULL, NULL, &err));
	for (int i = 0; i < count; i++)
		job_done(&jobs[i]);
	free(jobs);
}

static bool claim(struct ledger *l, struct job *ret)
{
	struct claim_order o = {
		.worker = "w", .lease_ns = LEASE_NS, .memory_total = HOST_MEMORY, .memory_free = HOST_MEMORY};
	size_t n = 0;

	OK(ledger_claim(l, &o, ret, 1, &n, NULL, &err));
	return n == 1;
}

static void finish(struct ledger *l, const struct job *j)
{
	_cleanup_attempt_ struct attempt a;
	int number = 0;

	attempt_init(&a);
	memcpy(a.id, j->id, sizeof a.id);
	memcpy(a.token, j->token, sizeof a.token);
	a.number = j->attempt;
	a.verdict = VERDICT_SUCCEEDED;
	a.queued = true;
	OK(ledger_commit(l, &a, NULL, NULL, &number, &err));
}

static int count_step(void *arg)
{
	++*(uint64_t *)arg;
	return 0;
}

/* On average, of so many that are claimed and finished one after the other. */
static double cost(const struct place *p, struct ledger *l, int claims)
{
	uint64_t steps = 0, before = l->claim_cost.pages;
	sqlite3 *db = p->is_postgres ? NULL : ((struct sqlite *)l->backend)->db;

	for (int i = 0; i < claims; i++) {
		struct job j = {0};

		if (db)
			sqlite3_progress_handler(db, 1, count_step, &steps);
		assert_true(claim(l, &j));
		if (db)
			sqlite3_progress_handler(db, 0, NULL, NULL);
		finish(l, &j);
		job_done(&j);
	}
	if (db)
		sqlite3_progress_handler(db, 0, NULL, NULL);
	return (double)(db ? steps : l->claim_cost.pages - before) / claims;
}

static void assert_bounded(const char *what, double good, double bad)
{
	print_message("%s: %.0f, against %.0f: %.2f\n", what, bad, good, bad / good);
	assert_true(bad <= 2 * good);
}

/* The good case: a hundred queued, and nothing else but what has ended long ago. */
static double plain(const struct place *p, struct ledger *l)
{
	submit(l, "old", size(), 1, 0);
	place_sql(p, "UPDATE fumehood_queue SET state = 'finished'",
		  "UPDATE fumehood.queue SET state = 'finished'");
	if (p->is_postgres)
		place_sql(p, NULL, "VACUUM fumehood.queue");
	submit(l, "plain", 100, 1, 0);
	return cost(p, l, CLAIMS);
}

static void test_among_many_it_costs_no_more(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p);
	double good = plain(p, l);

	submit(l, "many", 10 * size(), 1, 0);
	assert_bounded("among many", good, cost(p, l, CLAIMS));
	ledger_close(l);
}

static void test_behind_many_that_do_not_fit_it_costs_no_more(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p);
	double good = plain(p, l);

	submit(l, "large", size(), 1, 2 * HOST_MEMORY);
	submit(l, "small", CLAIMS, 1, 1);
	assert_bounded("behind what does not fit", good, cost(p, l, CLAIMS));
	ledger_close(l);
}

static void test_with_many_submitters_it_costs_no_more(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p);
	double good = plain(p, l);

	submit(l, "names", size(), size(), 0);
	assert_bounded("with many submitters", good, cost(p, l, CLAIMS));
	ledger_close(l);
}

static void test_with_many_owners_it_costs_no_more(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p);
	double good = plain(p, l);

	submit(l, "owned", size(), 1, 0);
	place_sql(p, "UPDATE fumehood_queue SET owner = id WHERE id LIKE 'owned%'",
		  "ALTER TABLE fumehood.queue DISABLE TRIGGER owner_kept;"
		  "UPDATE fumehood.queue SET owner = id WHERE id LIKE 'owned%';"
		  "ALTER TABLE fumehood.queue ENABLE TRIGGER owner_kept");
	/* That has left dead rows, which are another case. */
	if (p->is_postgres)
		place_sql(p, NULL, "VACUUM fumehood.queue");
	assert_bounded("with many owners", good, cost(p, l, CLAIMS));
	ledger_close(l);
}

/* Of what was there, nothing is left but dead rows. */
static void test_after_a_burst_it_costs_no_more(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p);
	double good = plain(p, l);

	submit(l, "burst", size(), 1, 0);
	place_sql(p, "UPDATE fumehood_queue SET state = 'running' WHERE state = 'queued'",
		  "UPDATE fumehood.queue SET state = 'running' WHERE state = 'queued'");
	place_sql(p, "UPDATE fumehood_queue SET state = 'finished' WHERE state = 'running'",
		  "UPDATE fumehood.queue SET state = 'finished' WHERE state = 'running'");
	submit(l, "after", size(), 1, 0);
	assert_bounded("after a burst", good, cost(p, l, size() < 1000 ? size() : 1000));
	ledger_close(l);
}

/* As pg_dump has one: nothing that has ended since can be vacuumed. */
static void test_while_somebody_has_an_old_snapshot_it_costs_no_more(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p);
	_cleanup_ledger_url_ struct ledger_url u = {0};
	struct backend *dump = NULL;
	double good = plain(p, l), worst = 0;

	if (!p->is_postgres) {
		ledger_close(l);
		skip();
	}
	submit(l, "churn", 2 * size(), 2, 0);
	OK(ledger_url_parse(p->url, &u, &err));
	OK(postgres_open(&u, LEDGER_CREATE, &dump, &err));
	OK(dump->ops->script(dump,
			     "SET idle_in_transaction_session_timeout = 0;"
			     "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM fumehood.queue",
			     &err));
	for (int left = size(); left > 0; left -= 500)
		worst = fmax(worst, cost(p, l, left < 500 ? left : 500));
	dump->ops->close(dump);
	assert_bounded("with an old snapshot", good, worst);
	ledger_close(l);
}

#define ROW(name) cmocka_unit_test_setup_teardown(test_##name, place_setup, place_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROW(among_many_it_costs_no_more),
		ROW(behind_many_that_do_not_fit_it_costs_no_more),
		ROW(with_many_submitters_it_costs_no_more),
		ROW(with_many_owners_it_costs_no_more),
		ROW(after_a_burst_it_costs_no_more),
		ROW(while_somebody_has_an_old_snapshot_it_costs_no_more),
	};

	return cmocka_run_group_tests_name(getenv("TEST_LEDGER") ? "a claim's cost on PostgreSQL"
								 : "a claim's cost on SQLite",
					   tests, NULL, NULL);
}
