/* The queue's promises, the same for every database behind it. */
#include "test_store.h"

#include <poll.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "queue.h"

enum { LEASE_S = 60 };
#define LEASE_NS (LEASE_S * NSEC_PER_SEC)

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

static void job_make(struct job *j, const char *id, const char *submitter)
{
	job_init(j);
	snprintf(j->id, sizeof j->id, "%s", id);
	j->submitter = strdup(submitter);
	j->request = json_pack("{s:s, s:[s]}", "id", id, "command", "true");
	assert_non_null(j->request);
}

/* One job, with at most one that it comes after. */
static void submit(struct ledger *l, const char *id, const char *after)
{
	_cleanup_job_ struct job j;

	job_make(&j, id, "ada");
	if (after)
		assert_int_equal(strv_append(&j.after, after), 0);
	OK(ledger_submit(l, &j, 1, 0, NULL, NULL, NULL, &err));
}

/* n of them, NAME-0000 to NAME-…, in one transaction. */
static void submit_many(struct ledger *l, const char *name, const char *submitter, int n)
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
static bool claim_by(struct ledger *l, const char *worker, uint64_t lease_ns, struct job *ret)
{
	struct claim_order o = {.worker = worker, .lease_ns = lease_ns};
	size_t n = 0;

	OK(ledger_claim(l, &o, ret, 1, &n, NULL, &err));
	return n == 1;
}

static void assert_claims(struct ledger *l, const char *id)
{
	_cleanup_job_ struct job j = {0};

	assert_true(claim_by(l, "w1", LEASE_NS, &j));
	assert_string_equal(j.id, id);
}

static void assert_nothing(struct ledger *l)
{
	_cleanup_job_ struct job j = {0};

	assert_false(claim_by(l, "w1", LEASE_NS, &j));
}

static void attempt_of(struct attempt *a, const struct job *j, enum verdict verdict)
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

static int finish(struct ledger *l, const struct job *j, enum verdict verdict)
{
	_cleanup_attempt_ struct attempt a;
	int number = 0, r;

	err = (struct error)ERROR_INIT;
	attempt_of(&a, j, verdict);
	r = ledger_commit(l, &a, NULL, NULL, &number, &err);
	return r < 0 ? r : number;
}

/* Claims the next one, which must be this, and ends it. */
static void run(struct ledger *l, const char *id, enum verdict verdict)
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

static int see(void *arg, const struct queued *q, struct error *e)
{
	struct seen *s = arg;

	(void)e;
	s->q = *q;
	s->count++;
	snprintf(s->reason, sizeof s->reason, "%s", q->reason ? q->reason : "");
	snprintf(s->worker, sizeof s->worker, "%s", q->worker ? q->worker : "");
	return 0;
}

static struct seen look(struct ledger *l, const char *id)
{
	char *const ids[] = {(char *)id, NULL};
	struct seen s = {.count = 0};

	OK(ledger_queue_look(l, ids, see, &s, &err));
	assert_int_equal(s.count, 1);
	return s;
}

static void assert_state(struct ledger *l, const char *id, enum job_state state)
{
	assert_string_equal(job_state_name(look(l, id).q.state), job_state_name(state));
}

static uint64_t count(struct ledger *l, enum job_state state)
{
	uint64_t counts[JOB_STATES];

	OK(ledger_queue_counts(l, counts, &err));
	return counts[state];
}

/* Time passes, behind the ledger's back. */
static void let_leases_end(const struct place *p)
{
	place_sql(p, "UPDATE fumehood_queue SET lease_until = 1 WHERE state = 'running'",
		  "UPDATE fumehood.queue SET lease_until = '2000-01-01' WHERE state = 'running'");
}

static void let_waiting_end(const struct place *p)
{
	place_sql(p, "UPDATE fumehood_queue SET due_at = 1 WHERE due_at IS NOT NULL",
		  "UPDATE fumehood.queue SET due_at = '2000-01-01' WHERE due_at IS NOT NULL");
}

/* With leases of no length the first look is enough. */
static int expire_at_once(struct ledger *l, unsigned *n, int64_t *next)
{
	struct lease_watch watch = {0};
	int r = ledger_expire(l, &watch, n, next, &err);

	lease_watch_done(&watch);
	return r;
}

static unsigned expire(struct ledger *l)
{
	unsigned n = 0;
	int64_t next = 0;

	OK(expire_at_once(l, &n, &next));
	return n;
}

static void test_one_goes_from_queued_over_running_to_finished(void **state)
{
	struct ledger *l = place_open(*state);
	_cleanup_job_ struct job j = {0};
	struct seen s;

	submit(l, "one", NULL);
	assert_state(l, "one", JOB_QUEUED);
	assert_true(claim_by(l, "w7", LEASE_NS, &j));
	assert_int_equal(j.attempt, 1);
	assert_int_equal(strlen(j.token), TOKEN_SIZE - 1);
	assert_string_equal(j.submitter, "ada");
	assert_string_equal(json_string_value(json_object_get(j.request, "id")), "one");
	s = look(l, "one");
	assert_int_equal(s.q.state, JOB_RUNNING);
	assert_string_equal(s.worker, "w7");
	assert_nothing(l);
	assert_int_equal(finish(l, &j, VERDICT_FAILED), 1);
	s = look(l, "one");
	assert_int_equal(s.q.state, JOB_FINISHED);
	assert_int_equal(s.q.verdict, VERDICT_FAILED);
	assert_int_equal(s.q.status, 1);
	assert_int_equal(s.q.attempt, 1);
	/* The answer to the first commit may never have come. */
	assert_int_equal(finish(l, &j, VERDICT_FAILED), 1);
	assert_nothing(l);
	ledger_close(l);
}

static void test_what_was_submitted_is_loaded_as_it_was(void **state)
{
	struct ledger *l = place_open(*state);
	_cleanup_job_ struct job j, k = {0};
	_cleanup_free_ char *before = NULL, *after = NULL;

	submit(l, "first", NULL);
	job_make(&j, "whole", "bob");
	j.priority = -7;
	j.retries = 3;
	j.retry_on = 1u << VERDICT_TIMED_OUT;
	j.again = true;
	j.memory_bytes = 1ull << 40;
	j.cpus_milli = 1500;
	assert_int_equal(strv_append(&j.after, "first"), 0);
	OK(ledger_submit(l, &j, 1, 0, NULL, NULL, NULL, &err));
	OK(ledger_queue_load(l, "whole", &k, &err));
	before = json_dumps(j.request, JSON_SORT_KEYS);
	after = json_dumps(k.request, JSON_SORT_KEYS);
	assert_string_equal(before, after);
	assert_string_equal(k.submitter, "bob");
	assert_int_equal(k.priority, -7);
	assert_int_equal(k.retries, 3);
	assert_int_equal(k.retry_on, j.retry_on);
	assert_true(k.again);
	assert_true(k.memory_bytes == j.memory_bytes);
	assert_int_equal(k.cpus_milli, 1500);
	assert_string_equal(k.after[0], "first");
	assert_true(k.submitted > 0);
	REFUSED(ledger_queue_load(l, "nobody", &k, &err), "not in the queue");
	assert_int_equal(err.kind, ERROR_NOT_FOUND);
	ledger_close(l);
}

static void test_inputs_are_stored_once_and_come_back(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p);
	struct job jobs[3];
	_cleanup_job_ struct job k = {0};
	struct input in = {.path = (char *)"in.txt", .source = (char *)"source", .size = 5, .mode = 0755};
	struct output o = {.path = (char *)"source", .size = 5};
	_cleanup_close_ int fd = -1;
	json_t *status = NULL;
	char text[8] = "";

	place_write(p, "source", "hello", 5);
	digest_bytes("hello", 5, in.sha256);
	memcpy(o.sha256, in.sha256, DIGEST_SIZE);
	for (int i = 0; i < 3; i++) {
		char id[8];

		snprintf(id, sizeof id, "j%d", i);
		job_make(&jobs[i], id, "ada");
		assert_int_equal(inputs_add(&jobs[i].inputs, &in), 0);
	}
	OK(ledger_submit(l, jobs, 3, 0, place_content, *state, NULL, &err));
	OK(ledger_status(l, &status, &err));
	assert_int_equal(json_integer_value(json_object_get(status, "blobs")), 1);
	json_decref(status);
	assert_true(claim_by(l, "w", LEASE_NS, &k));
	assert_int_equal(k.inputs.count, 1);
	assert_string_equal(k.inputs.list[0].path, "in.txt");
	assert_int_equal(k.inputs.list[0].mode, 0755);
	assert_memory_equal(k.inputs.list[0].sha256, in.sha256, DIGEST_SIZE);
	place_write(p, "copy", "", 0);
	fd = open(p->dir, O_TMPFILE | O_RDWR, 0600);
	OK(ledger_copy_output(l, &o, fd, &err));
	assert_int_equal(pread(fd, text, sizeof text, 0), 5);
	assert_string_equal(text, "hello");
	for (int i = 0; i < 3; i++)
		job_done(&jobs[i]);
	ledger_close(l);
}

static void test_a_submission_is_stored_whole_or_not_at_all(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p);
	struct job jobs[3];

	submit(l, "there", NULL);
	for (int i = 0; i < 3; i++)
		job_make(&jobs[i], i == 0 ? "a" : i == 1 ? "b" : "there", "ada");
	REFUSED(ledger_submit(l, jobs, 3, 0, NULL, NULL, NULL, &err), "'there': it is in the queue already");
	strcpy(jobs[2].id, "c");
	assert_int_equal(strv_append(&jobs[2].after, "unheard-of"), 0);
	REFUSED(ledger_submit(l, jobs, 3, 0, NULL, NULL, NULL, &err),
		"cannot submit 'c' after 'unheard-of', which nobody knows");
	strcpy(jobs[2].id, "a");
	REFUSED(ledger_submit(l, jobs, 3, 0, NULL, NULL, NULL, &err), "'a' is there twice");
	strcpy(jobs[2].id, "no/id");
	REFUSED(ledger_submit(l, jobs, 3, 0, NULL, NULL, NULL, &err), "no/id");
	assert_int_equal(count(l, JOB_QUEUED) + count(l, JOB_WAITING), 1);
	for (int i = 0; i < 3; i++)
		job_done(&jobs[i]);
	ledger_close(l);
}

static void test_a_known_id_is_refused_unless_again_or_if_absent(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p);
	_cleanup_job_ struct job j;
	struct job both[2];
	bool fresh[2] = {true, true};

	assert_int_equal(quick_commit(l, p, "ran", VERDICT_SUCCEEDED), 1);
	job_make(&j, "ran", "ada");
	REFUSED(ledger_submit(l, &j, 1, 0, NULL, NULL, NULL, &err), "already");
	OK(ledger_submit(l, &j, 1, SUBMIT_IF_ABSENT, NULL, NULL, fresh, &err));
	assert_false(fresh[0]);
	assert_int_equal(count(l, JOB_QUEUED), 0);
	j.again = true;
	OK(ledger_submit(l, &j, 1, 0, NULL, NULL, fresh, &err));
	assert_true(fresh[0]);
	REFUSED(ledger_submit(l, &j, 1, 0, NULL, NULL, NULL, &err), "in the queue already");
	run(l, "ran", VERDICT_FAILED);
	assert_int_equal(look(l, "ran").q.attempt, 2);
	OK(ledger_submit(l, &j, 1, 0, NULL, NULL, fresh, &err));
	assert_state(l, "ran", JOB_QUEUED);
	job_make(&both[0], "twin", "ada");
	job_make(&both[1], "twin", "ada");
	OK(ledger_submit(l, both, 2, SUBMIT_IF_ABSENT, NULL, NULL, fresh, &err));
	assert_true(fresh[0]);
	assert_false(fresh[1]);
	job_done(&both[0]);
	job_done(&both[1]);
	ledger_close(l);
}

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
		"cancelling, NULL, NULL, NULL, 'root', NULL FROM fumehood_queue",
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

static void test_a_chain_starts_one_after_the_other(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p);
	struct job jobs[3];

	for (int i = 0; i < 3; i++) {
		job_make(&jobs[i], i == 0 ? "c0" : i == 1 ? "c1" : "c2", "ada");
		if (i)
			assert_int_equal(strv_append(&jobs[i].after, i == 1 ? "c0" : "c1"), 0);
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
	assert_int_equal(strv_append(&j.after, "x"), 0);
	assert_int_equal(strv_append(&j.after, "y"), 0);
	assert_int_equal(strv_append(&j.after, "x"), 0);
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

static void lease_seen(void *arg, const char *id, const char *token, bool cancelling)
{
	int *seen = arg;

	assert_int_equal(strlen(token), TOKEN_SIZE - 1);
	assert_true(strlen(id) > 0);
	seen[0]++;
	seen[1] += cancelling;
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

static int take_id(void *arg, const struct queued *q, struct error *e)
{
	(void)e;
	return strv_append(arg, q->id);
}

static void test_a_list_is_newest_first_and_can_be_narrowed(void **state)
{
	struct ledger *l = place_open(*state);
	_cleanup_strv_ char **all = NULL, **some = NULL, **queued = NULL;

	submit(l, "a1", NULL);
	submit(l, "a2", NULL);
	submit(l, "b1", "a1");
	OK(ledger_queue_list(l, -1, NULL, 0, take_id, &all, &err));
	assert_int_equal(strv_length(all), 3);
	assert_string_equal(all[0], "b1");
	OK(ledger_queue_list(l, -1, "a", 1, take_id, &some, &err));
	assert_int_equal(strv_length(some), 1);
	assert_string_equal(some[0], "a2");
	OK(ledger_queue_list(l, JOB_QUEUED, NULL, 0, take_id, &queued, &err));
	assert_int_equal(strv_length(queued), 2);
	ledger_close(l);
}

static bool rings(struct ledger *l)
{
	struct pollfd fd = {.events = POLLIN};
	int any;

	OK(fd.fd = ledger_bell(l, &err));
	poll(&fd, 1, 60000);
	OK(any = ledger_bell_read(l, &err));
	return any;
}

static void test_the_bell_rings_when_something_is_submitted(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p), *other = place_open(p);
	struct pollfd fd = {.events = POLLIN};

	OK(fd.fd = ledger_bell(l, &err));
	assert_int_equal(poll(&fd, 1, 0), 0);
	submit(other, "a", NULL);
	assert_true(rings(l));
	assert_int_equal(poll(&fd, 1, 0), 0);
	OK(ledger_cancel(other, "a", NULL, &err));
	assert_true(rings(l));
	/* Reading rings nothing. */
	assert_state(other, "a", JOB_CANCELLED);
	assert_nothing(other);
	assert_int_equal(poll(&fd, 1, 50), 0);
	ledger_close(other);
	ledger_close(l);
}

enum { CROWD = 8, CROWD_JOBS = 2000, CROWD_BATCH = 7 };

/* Claims until there is nothing, and ends each; says its name for each. */
static void worker_main(const struct place *p, int number)
{
	struct ledger *l = place_open(p);
	struct claim_order o = {.lease_ns = LEASE_NS};
	char worker[16];
	size_t n = 0;

	snprintf(worker, sizeof worker, "w%d", number);
	o.worker = worker;
	do {
		struct job jobs[CROWD_BATCH] = {0};

		OK(ledger_claim(l, &o, jobs, CROWD_BATCH, &n, NULL, &err));
		for (size_t i = 0; i < n; i++) {
			if (finish(l, &jobs[i], VERDICT_SUCCEEDED) != 1)
				fail_msg("%s: %s", jobs[i].id, err.message);
			job_done(&jobs[i]);
		}
	} while (n || count(l, JOB_QUEUED));
	ledger_close(l);
}

static void test_a_crowd_of_workers_ends_each_exactly_once(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p);
	json_t *status = NULL;
	pid_t pids[CROWD];

	for (int i = 0; i < 4; i++) {
		char name[8];

		snprintf(name, sizeof name, "s%d", i);
		submit_many(l, name, name, CROWD_JOBS / 4);
	}
	ledger_close(l);
	for (int i = 0; i < CROWD; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			worker_main(p, i);
			_exit(0);
		}
	}
	for (int i = 0; i < CROWD; i++) {
		int how = -1;

		assert_int_equal(waitpid(pids[i], &how, 0), pids[i]);
		assert_int_equal(how, 0);
	}
	l = place_open(p);
	assert_int_equal(count(l, JOB_FINISHED), CROWD_JOBS);
	OK(ledger_status(l, &status, &err));
	assert_int_equal(json_integer_value(json_object_get(status, "attempts")), CROWD_JOBS);
	json_decref(status);
	ledger_close(l);
}

/* As it was before the last migration, or so many before. */
static void make_older(const struct place *p, int version)
{
	char sqlite[128], postgres[128];

	place_sql(p, "", "CREATE SCHEMA fumehood");
	for (int i = 0; i < version; i++)
		place_sql(p, sql_migrations[i].script[SQL_SQLITE], sql_migrations[i].script[SQL_POSTGRES]);
	snprintf(sqlite, sizeof sqlite, "INSERT INTO fumehood_schema_version VALUES (%d, 0, 'x')", version);
	snprintf(postgres, sizeof postgres, "INSERT INTO fumehood.schema_version VALUES (%d, now(), 'x')",
		 version);
	place_sql(p, sqlite, postgres);
}

static void test_an_older_ledger_is_refused_until_it_is_upgraded(void **state)
{
	static const unsigned ways[] = {0, LEDGER_CREATE, LEDGER_READ_ONLY};
	const struct place *p = *state;
	struct ledger *l = NULL;

	make_older(p, 2);
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		err = (struct error)ERROR_INIT;
		assert_true(ledger_open(p->url, ways[i], &l, &err) < 0);
		assert_int_equal(err.kind, ERROR_SCHEMA);
		assert_non_null(strstr(err.message, "schema 2, this one needs"));
		assert_non_null(strstr(err.message, "'fumehood db upgrade'"));
	}
	OK(ledger_open(p->url, LEDGER_UPGRADE, &l, &err));
	submit(l, "a", NULL);
	assert_claims(l, "a");
	ledger_close(l);
	OK(ledger_open(p->url, LEDGER_READ_ONLY, &l, &err));
	ledger_close(l);
}

static void test_nothing_is_claimed_of_a_ledger_that_was_upgraded_meanwhile(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p);
	struct job jobs[1];
	size_t n = 7;

	submit(l, "a", NULL);
	place_sql(p, "INSERT INTO fumehood_schema_version VALUES (99, 0, 'x')",
		  "INSERT INTO fumehood.schema_version VALUES (99, now(), 'x')");
	err = (struct error)ERROR_INIT;
	assert_true(ledger_claim(l, &anything, jobs, 1, &n, NULL, &err) < 0);
	assert_int_equal(err.kind, ERROR_SCHEMA);
	assert_non_null(strstr(err.message, "newer fumehood (schema 99"));
	assert_int_equal(count(l, JOB_QUEUED), 1);
	ledger_close(l);
}

static void test_ten_upgrades_at_once_are_one(void **state)
{
	const struct place *p = *state;
	struct ledger *l = NULL;
	pid_t pids[10];
	int how;

	make_older(p, 1);
	for (size_t i = 0; i < ARRAY_SIZE(pids); i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			_exit(ledger_open(p->url, LEDGER_UPGRADE, &l, &err) < 0);
	}
	for (size_t i = 0; i < ARRAY_SIZE(pids); i++) {
		assert_int_equal(waitpid(pids[i], &how, 0), pids[i]);
		assert_int_equal(how, 0);
	}
	l = place_open(p);
	submit(l, "a", NULL);
	assert_claims(l, "a");
	ledger_close(l);
}

enum { WEB = 300, WEB_WORKERS = 4 };

/* Submits one at a time, each after one or two of the last few, most of which are about to end. What comes after a
 * failure is refused, and then comes after nobody. */
static void weaver_main(const struct place *p)
{
	struct ledger *l = place_open(p);
	unsigned seed = 7;

	for (int i = 0; i < WEB; i++) {
		_cleanup_job_ struct job j;
		char id[16], after[16];

		snprintf(id, sizeof id, "web%d", i);
		job_make(&j, id, "ada");
		for (int k = 0; i >= 6 && k < 1 + i % 2; k++) {
			seed = seed * 1664525u + 1013904223u;
			snprintf(after, sizeof after, "web%d", i - 1 - (int)((seed >> 16) % 6));
			assert_int_equal(strv_append(&j.after, after), 0);
		}
		err = (struct error)ERROR_INIT;
		if (ledger_submit(l, &j, 1, 0, NULL, NULL, NULL, &err) < 0) {
			assert_non_null(strstr(err.message, "did not succeed"));
			strv_free(j.after);
			j.after = NULL;
			OK(ledger_submit(l, &j, 1, 0, NULL, NULL, NULL, &err));
		}
	}
	submit(l, "last", NULL);
	ledger_close(l);
}

/* Ends what it can get until the weaver is gone; every ninth fails. */
static void spider_main(const struct place *p)
{
	struct ledger *l = place_open(p);
	bool over = false;

	while (!over || count(l, JOB_QUEUED) || count(l, JOB_RUNNING)) {
		struct job j = {0};

		if (claim_by(l, "w", LEASE_NS, &j)) {
			over = over || strcmp(j.id, "last") == 0;
			if (finish(l, &j, j.id[3] == '9' ? VERDICT_FAILED : VERDICT_SUCCEEDED) < 0)
				fail_msg("%s", err.message);
			job_done(&j);
		} else if (!over) {
			char *const last[] = {(char *)"last", NULL};
			struct seen s = {.count = 0};

			OK(ledger_queue_look(l, last, see, &s, &err));
			over = s.count && s.q.state == JOB_FINISHED;
		}
	}
	ledger_close(l);
}

static void test_nobody_waits_for_ever_however_others_end(void **state)
{
	const struct place *p = *state;
	struct ledger *l = ledger_close(place_open(p));
	pid_t pids[WEB_WORKERS + 1];

	for (int i = 0; i <= WEB_WORKERS; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			(i ? spider_main : weaver_main)(p);
			_exit(0);
		}
	}
	for (int i = 0; i <= WEB_WORKERS; i++) {
		int how = -1;

		assert_int_equal(waitpid(pids[i], &how, 0), pids[i]);
		assert_int_equal(how, 0);
	}
	l = place_open(p);
	assert_int_equal(count(l, JOB_WAITING) + count(l, JOB_QUEUED) + count(l, JOB_RUNNING), 0);
	assert_int_equal(count(l, JOB_FINISHED) + count(l, JOB_CANCELLED), WEB + 1);
	ledger_close(l);
}

#define ROW(name) cmocka_unit_test_setup_teardown(test_##name, place_setup, place_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROW(one_goes_from_queued_over_running_to_finished),
		ROW(what_was_submitted_is_loaded_as_it_was),
		ROW(inputs_are_stored_once_and_come_back),
		ROW(a_submission_is_stored_whole_or_not_at_all),
		ROW(a_known_id_is_refused_unless_again_or_if_absent),
		ROW(priority_goes_before_order_and_order_before_nothing),
		ROW(ten_do_not_wait_for_a_thousand),
		ROW(who_has_fewest_running_is_next),
		ROW(a_cap_holds_for_an_owner_over_all_workers),
		ROW(more_names_do_not_make_a_larger_share),
		ROW(whose_it_is_the_database_says),
		ROW(nobody_overtakes_who_does_not_fit_now),
		ROW(a_chain_starts_one_after_the_other),
		ROW(one_after_two_waits_for_both),
		ROW(who_waits_for_a_failure_is_cancelled_with_the_reason),
		ROW(cancelling_ends_what_waits_and_tells_who_runs),
		ROW(a_job_handed_back_while_it_is_cancelled_stays_so),
		ROW(what_is_handed_back_is_as_if_it_had_not_been_claimed),
		ROW(what_retrying_can_mend_is_tried_again_after_a_while),
		ROW(a_wrong_script_is_not_tried_again_our_own_failure_is),
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
		ROW(a_list_is_newest_first_and_can_be_narrowed),
		ROW(the_bell_rings_when_something_is_submitted),
		ROW(a_crowd_of_workers_ends_each_exactly_once),
		ROW(an_older_ledger_is_refused_until_it_is_upgraded),
		ROW(nothing_is_claimed_of_a_ledger_that_was_upgraded_meanwhile),
		ROW(ten_upgrades_at_once_are_one),
		ROW(nobody_waits_for_ever_however_others_end),
	};

	return cmocka_run_group_tests_name(getenv("TEST_LEDGER") ? "queue on PostgreSQL" : "queue on SQLite",
					   tests, NULL, NULL);
}
