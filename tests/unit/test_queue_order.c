/* Who is next: priority, shares, caps and who does not fit now. */
#include "test_queue.h"

static void test_priority_goes_before_order_and_order_before_nothing(void **state)
{
	struct ledger *l = place_open(*state);
	struct job jobs[4];
	const int priority[] = {0, 5, -3, 5};

	for (int i = 0; i < 4; i++) {
		char id[8];

		snprintf(id, sizeof id, "p%d", i);
		job_make(&jobs[i], id, "ada");
		jobs[i].priority = priority[i];
	}
	OK(ledger_submit(l, jobs, 4, 0, NULL, NULL, NULL, &err));
	assert_claims(l, "p1");
	assert_claims(l, "p3");
	assert_claims(l, "p0");
	assert_claims(l, "p2");
	assert_nothing(l);
	for (int i = 0; i < 4; i++)
		job_done(&jobs[i]);
	ledger_close(l);
}

static void test_ten_do_not_wait_for_a_thousand(void **state)
{
	struct ledger *l = place_open(*state);
	int bob = 0;

	submit_many(l, "thousand", "ada", 1000);
	submit_many(l, "ten", "bob", 10);
	for (int i = 0; i < 20; i++) {
		_cleanup_job_ struct job j = {0};

		assert_true(claim_by(l, "w1", LEASE_NS, &j));
		bob += strcmp(j.submitter, "bob") == 0;
		/* Each ends before the next: nobody has more running than the other. */
		assert_true(finish(l, &j, VERDICT_SUCCEEDED) > 0);
	}
	assert_int_equal(bob, 10);
	ledger_close(l);
}

static void test_who_has_fewest_running_is_next(void **state)
{
	struct ledger *l = place_open(*state);
	struct job jobs[8] = {0};
	size_t n = 0;
	int bob = 0;

	submit_many(l, "a", "ada", 4);
	OK(ledger_claim(l, &anything, jobs, 3, &n, NULL, &err));
	assert_int_equal(n, 3);
	for (size_t i = 0; i < n; i++)
		job_done(&jobs[i]);
	submit_many(l, "b", "bob", 4);
	OK(ledger_claim(l, &anything, jobs, 8, &n, NULL, &err));
	assert_int_equal(n, 5);
	for (size_t i = 0; i < 3; i++)
		bob += strcmp(jobs[i].submitter, "bob") == 0;
	assert_int_equal(bob, 3);
	for (size_t i = 0; i < n; i++)
		job_done(&jobs[i]);
	ledger_close(l);
}

/* Behind the ledger's back: it would not let anybody. */
static void give_to(const struct place *p, const char *prefix, const char *owner)
{
	char sqlite[256], postgres[512];

	snprintf(sqlite, sizeof sqlite, "UPDATE fumehood_queue SET owner = '%s' WHERE id LIKE '%s%%'", owner,
		 prefix);
	snprintf(postgres, sizeof postgres,
		 "ALTER TABLE fumehood.queue DISABLE TRIGGER owner_kept;"
		 "UPDATE fumehood.queue SET owner = '%s' WHERE id LIKE '%s%%';"
		 "ALTER TABLE fumehood.queue ENABLE TRIGGER owner_kept",
		 owner, prefix);
	place_sql(p, sqlite, postgres);
}

static void test_a_cap_holds_for_an_owner_over_all_workers(void **state)
{
	struct ledger *l = place_open(*state);
	struct claim_order o = {.worker = "w1", .lease_ns = LEASE_NS, .cap = 2};
	struct job jobs[20] = {0}, first;
	size_t n = 0;

	submit_many(l, "a", "ada", 5);
	submit_many(l, "b", "bob", 5);
	submit_many(l, "c", "cyd", 5);
	give_to(*state, "c", "else");
	OK(ledger_claim(l, &o, jobs, 20, &n, NULL, &err));
	assert_int_equal(n, 4);
	first = jobs[0];
	for (size_t i = 1; i < n; i++)
		job_done(&jobs[i]);
	o.worker = "w2";
	OK(ledger_claim(l, &o, jobs, 20, &n, NULL, &err));
	assert_int_equal(n, 0);
	assert_int_equal(finish(l, &first, VERDICT_SUCCEEDED), 1);
	OK(ledger_claim(l, &o, jobs, 20, &n, NULL, &err));
	assert_int_equal(n, 1);
	assert_int_equal(jobs[0].id[0] == 'c', first.id[0] == 'c');
	job_done(&jobs[0]);
	job_done(&first);
	ledger_close(l);
}

static void test_more_names_do_not_make_a_larger_share(void **state)
{
	static const char *const names[] = {"a", "b", "c", "d"};
	struct ledger *l = place_open(*state);
	struct job jobs[8] = {0};
	size_t n = 0;
	int of_e = 0;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		submit_many(l, names[i], names[i], 8);
	submit_many(l, "e", "e", 8);
	give_to(*state, "e", "else");
	OK(ledger_claim(l, &anything, jobs, 8, &n, NULL, &err));
	assert_int_equal(n, 8);
	for (size_t i = 0; i < n; i++) {
		of_e += jobs[i].id[0] == 'e';
		job_done(&jobs[i]);
	}
	assert_int_equal(of_e, 4);
	ledger_close(l);
}

static int see_owner(void *arg, const struct queued *q, struct error *e UNUSED)
{
	snprintf(arg, 64, "%s", q->owner ? q->owner : "");
	return 0;
}

/* Whatever the submitter calls himself, and whatever he writes into the tables. */
static void test_whose_it_is_the_database_says(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p);
	_cleanup_attempt_ struct attempt a;
	_cleanup_job_ struct job j = {0};
	char *const ids[] = {(char *)"forged", NULL};
	char me[64] = "", seen[64] = "";

	attempt_init(&a);
	submit(l, "honest", NULL);
	assert_true(claim_by(l, "w1", LEASE_NS, &j));
	snprintf(me, sizeof me, "%s", j.owner);
	assert_true(me[0] && strcmp(me, "ada") != 0);
	if (p->is_postgres)
		assert_string_equal(me, "owner"); /* who connects, tests/support/with-postgres */
	assert_true(finish(l, &j, VERDICT_SUCCEEDED) > 0);
	OK(ledger_load(l, "honest", 0, &a, &err));
	assert_string_equal(a.owner, me);
	place_sql(
		p,
		"INSERT INTO fumehood_queue SELECT NULL, 'forged', 'queued', submitter, priority, retries, retry_on, again, "
		"tries, request, inputs, memory_bytes, cpus_milli, submitted_at, due_at, 0, NULL, NULL, NULL, "
		"cancelling, NULL, NULL, NULL, 'root', NULL, NULL, NULL, NULL, NULL, NULL FROM fumehood_queue",
		"INSERT INTO fumehood.queue(id, state, submitter, priority, retries, retry_on, again, tries, request, "
		"inputs, memory_bytes, cpus_milli, submitted_at, attempt, cancelling, owner) SELECT 'forged', 'queued', "
		"submitter, priority, retries, retry_on, again, tries, request, inputs, memory_bytes, cpus_milli, "
		"submitted_at, 0, false, 'root' FROM fumehood.queue; UPDATE fumehood.queue SET owner = 'root'; "
		"UPDATE fumehood.attempt SET owner = 'root'");
	OK(ledger_queue_look(l, ids, see_owner, seen, &err));
	assert_string_equal(seen, me);
	job_done(&j);
	assert_true(claim_by(l, "w1", LEASE_NS, &j));
	assert_string_equal(j.id, "forged");
	assert_string_equal(j.owner, me);
	ledger_close(l);
}

static void test_nobody_overtakes_who_does_not_fit_now(void **state)
{
	struct ledger *l = place_open(*state);
	struct claim_order o = {.worker = "w",
				.lease_ns = LEASE_NS,
				.memory_total = 100,
				.memory_free = 50,
				.cpus_total = 4000,
				.cpus_free = 4000};
	const uint64_t memory[] = {30, 101, 60, 1};
	struct job jobs[4], got[4] = {0};
	bool full = false;
	size_t n = 0;

	for (int i = 0; i < 4; i++) {
		char id[8];

		snprintf(id, sizeof id, "m%d", i);
		job_make(&jobs[i], id, "ada");
		jobs[i].memory_bytes = memory[i];
		jobs[i].cpus_milli = 1000;
	}
	OK(ledger_submit(l, jobs, 4, 0, NULL, NULL, NULL, &err));
	OK(ledger_claim(l, &o, got, 4, &n, &full, &err));
	assert_int_equal(n, 1);
	assert_true(full);
	assert_string_equal(got[0].id, "m0");
	job_done(&got[0]);
	/* What this host can never have is left to others, and is in nobody's way. */
	o.memory_free = 100;
	OK(ledger_claim(l, &o, got, 4, &n, &full, &err));
	assert_int_equal(n, 2);
	assert_false(full);
	assert_string_equal(got[0].id, "m2");
	assert_string_equal(got[1].id, "m3");
	assert_state(l, "m1", JOB_QUEUED);
	job_done(&got[0]);
	job_done(&got[1]);
	for (int i = 0; i < 4; i++)
		job_done(&jobs[i]);
	ledger_close(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROW(priority_goes_before_order_and_order_before_nothing),
		ROW(ten_do_not_wait_for_a_thousand),
		ROW(who_has_fewest_running_is_next),
		ROW(a_cap_holds_for_an_owner_over_all_workers),
		ROW(more_names_do_not_make_a_larger_share),
		ROW(whose_it_is_the_database_says),
		ROW(nobody_overtakes_who_does_not_fit_now),
	};

	return RUN_ON_BOTH("order of the queue", tests);
}
