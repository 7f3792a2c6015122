/*
 * Jobs of a queue, submitted, claimed and ended by hand, for the tests of its promises, which are the same for every database
 * behind it.
 */
#ifndef TEST_QUEUE_H
#define TEST_QUEUE_H

#include "test_store.h"

#include "queue.h"

enum { LEASE_S = 60 };
#define LEASE_NS (LEASE_S * NSEC_PER_SEC)

static inline void job_make(struct job *j, const char *id, const char *submitter)
{
	job_init(j);
	snprintf(j->id, sizeof j->id, "%s", id);
	j->submitter = strdup(submitter);
	j->request = json_pack("{s:s, s:[s]}", "id", id, "command", "true");
	assert_non_null(j->request);
}

/* One job, with at most one that it comes after. */
static inline void submit(struct ledger *l, const char *id, const char *after)
{
	_cleanup_job_ struct job j;

	job_make(&j, id, "ada");
	if (after)
		assert_int_equal(strv_append(&j.after, after, NULL), 0);
	OK(ledger_submit(l, &j, 1, 0, NULL, NULL, NULL, &err));
}

/* n of them, NAME-0000 to NAME-…, in one transaction. */
static inline void submit_many(struct ledger *l, const char *name, const char *submitter, int n)
{
	struct job *jobs = calloc((size_t)n, sizeof *jobs);

	for (int i = 0; i < n; i++) {
		char id[64];

		snprintf(id, sizeof id, "%s-%06d", name, i);
		job_make(&jobs[i], id, submitter);
	}
	OK(ledger_submit(l, jobs, (size_t)n, 0, NULL, NULL, NULL, &err));
	for (int i = 0; i < n; i++)
		job_done(&jobs[i]);
	free(jobs);
}

static const struct claim_order anything = {.worker = "w1", .lease_ns = LEASE_NS};

/* The next one for this worker; false: there is none. */
static inline bool claim_by(struct ledger *l, const char *worker, uint64_t lease_ns, struct job *ret)
{
	struct claim_order o = {.worker = worker, .lease_ns = lease_ns};
	size_t n = 0;

	OK(ledger_claim(l, &o, ret, 1, &n, NULL, &err));
	return n == 1;
}

static inline void assert_claims(struct ledger *l, const char *id)
{
	_cleanup_job_ struct job j = {0};

	assert_true(claim_by(l, "w1", LEASE_NS, &j));
	assert_string_equal(j.id, id);
}

static inline void assert_nothing(struct ledger *l)
{
	_cleanup_job_ struct job j = {0};

	assert_false(claim_by(l, "w1", LEASE_NS, &j));
}

static inline void attempt_of(struct attempt *a, const struct job *j, enum verdict verdict)
{
	attempt_init(a);
	memcpy(a->id, j->id, sizeof a->id);
	memcpy(a->token, j->token, sizeof a->token);
	a->number = j->attempt;
	a->verdict = verdict;
	a->exit_code = verdict == VERDICT_SUCCEEDED ? 0 : 1;
	a->status = a->exit_code;
	a->queued = true;
	a->created = clock_utc() / 1000 * 1000;
}

static inline int finish(struct ledger *l, const struct job *j, enum verdict verdict)
{
	_cleanup_attempt_ struct attempt a;
	int number = 0, r;

	err = (struct error)ERROR_INIT;
	attempt_of(&a, j, verdict);
	r = ledger_commit(l, &a, NULL, NULL, &number, &err);
	return r < 0 ? r : number;
}

/* Claims the next one, which must be this, and ends it. */
static inline void run(struct ledger *l, const char *id, enum verdict verdict)
{
	_cleanup_job_ struct job j = {0};

	assert_true(claim_by(l, "w1", LEASE_NS, &j));
	assert_string_equal(j.id, id);
	if (finish(l, &j, verdict) < 0)
		fail_msg("%s", err.message);
}

struct seen {
	struct queued q;
	char reason[256], worker[64];
	int count;
};

static inline int see(void *arg, const struct queued *q, struct error *e)
{
	struct seen *s = arg;

	(void)e;
	s->q = *q;
	s->count++;
	snprintf(s->reason, sizeof s->reason, "%s", q->reason ? q->reason : "");
	snprintf(s->worker, sizeof s->worker, "%s", q->worker ? q->worker : "");
	return 0;
}

static inline struct seen look(struct ledger *l, const char *id)
{
	char *const ids[] = {(char *)id, NULL};
	struct seen s = {.count = 0};

	OK(ledger_queue_look(l, ids, see, &s, &err));
	assert_int_equal(s.count, 1);
	return s;
}

static inline void assert_state(struct ledger *l, const char *id, enum job_state state)
{
	assert_string_equal(job_state_name(look(l, id).q.state), job_state_name(state));
}

static inline uint64_t count(struct ledger *l, enum job_state state)
{
	uint64_t counts[JOB_STATES];

	OK(ledger_queue_counts(l, counts, &err));
	return counts[state];
}

/* Time passes, behind the ledger's back. */
static inline void let_leases_end(const struct place *p)
{
	place_sql(p, "UPDATE fumehood_queue SET lease_until = 1 WHERE state = 'running'",
		  "UPDATE fumehood.queue SET lease_until = '2000-01-01' WHERE state = 'running'");
}

static inline void let_waiting_end(const struct place *p)
{
	place_sql(p, "UPDATE fumehood_queue SET due_at = 1 WHERE due_at IS NOT NULL",
		  "UPDATE fumehood.queue SET due_at = '2000-01-01' WHERE due_at IS NOT NULL");
}

/* With leases of no length the first look is enough. */
static inline int expire_at_once(struct ledger *l, unsigned *n, int64_t *next)
{
	struct lease_watch watch = {0};
	int r = ledger_expire(l, &watch, n, next, &err);

	lease_watch_done(&watch);
	return r;
}

static inline unsigned expire(struct ledger *l)
{
	unsigned n = 0;
	int64_t next = 0;

	OK(expire_at_once(l, &n, &next));
	return n;
}

static inline void lease_seen(void *arg, const char *id, const char *token, bool cancelling)
{
	int *seen = arg;

	assert_int_equal(strlen(token), TOKEN_SIZE - 1);
	assert_true(strlen(id) > 0);
	seen[0]++;
	seen[1] += cancelling;
}

#define ROW(name) cmocka_unit_test_setup_teardown(test_##name, place_setup, place_teardown)
/* Tests that run on both databases say on which. */
#define RUN_ON_BOTH(what, tests)                                                                       \
	cmocka_run_group_tests_name(getenv("TEST_LEDGER") ? what " on PostgreSQL" : what " on SQLite", \
				    tests, NULL, NULL)

#endif
