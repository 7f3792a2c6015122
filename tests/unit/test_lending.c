/* Many handles that share a few connections: each is as good as one with its own. For every database behind it. */
#include "lending_private.h" /* its inline functions have an err of their own */
#include "test_queue.h"

#include <poll.h>
#include <pthread.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

static struct lending *lend(const struct place *p, int most)
{
	struct lending *l = NULL;

	OK(lending_open(p->url, most, &l, &err));
	l->joint.brief_ms = 60000; /* who waits in a test waits until it lets him go on */
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
	const struct output *output; /* NULL: it has none */
	const struct place *place;   /* where its content is */
	struct error err;
	int number, r;
	pid_t tid;
};

static void *end_it(void *arg)
{
	struct ending *e = arg;
	_cleanup_attempt_ struct attempt a;
	struct analysis_state state;

	e->tid = gettid();
	attempt_of(&a, &e->job, VERDICT_SUCCEEDED);
	e->r = ledger_analysis(e->l, e->job.id, &state, &e->err);
	if (e->output) {
		a.manifest.outputs = calloc(1, sizeof *e->output);
		a.manifest.outputs[0] = *e->output;
		a.manifest.outputs[0].path = strdup(e->output->path);
		a.manifest.n_outputs = 1;
	}
	if (e->r == 0)
		e->r = ledger_commit(e->l, &a, place_content, (void *)e->place, &e->number, &e->err);
	return NULL;
}

static void claim_round(struct ledger *l, struct lending *from, struct ending *list, int n, int round)
{
	char name[16];

	snprintf(name, sizeof name, "a%d", round);
	submit_many(l, name, "ada", n);
	for (int i = 0; i < n; i++) {
		list[i] = (struct ending){.l = lent_open(from), .err = ERROR_INIT};
		assert_true(claim_by(l, "w1", LEASE_NS, &list[i].job));
	}
}

static void claim_all(struct ledger *l, struct lending *from, struct ending *list, int n)
{
	claim_round(l, from, list, n, 0);
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

/* Somebody keeps everybody from committing. */
struct blocker {
	struct backend *b;
};

static void begin_alone(struct blocker *k, const struct place *p)
{
	_cleanup_ledger_url_ struct ledger_url u = {0};

	OK(ledger_url_parse(p->url, &u, &err));
	OK((p->is_postgres ? postgres_open : sqlite_open)(&u, 0, &k->b, &err));
	OK(k->b->ops->begin(k->b, NULL, &err));
}

static void block(struct blocker *k, const struct place *p)
{
	begin_alone(k, p);
	if (p->is_postgres)
		OK(k->b->ops->script(k->b, "LOCK TABLE fumehood.queue IN SHARE MODE", &err));
}

static void unblock(struct blocker *k)
{
	k->b->ops->rollback(k->b);
	k->b->ops->close(k->b);
}

/* Until somebody is at it, and so many wait for him. */
static void await_waiting(struct lending *from, int n)
{
	for (bool is = false; !is; poll(NULL, 0, 1)) {
		pthread_mutex_lock(&from->lock);
		is = from->joint.has_leader && from->joint.n_waiting == n;
		pthread_mutex_unlock(&from->lock);
	}
}

/* One begins, all others come while it has to wait, in their order. */
static void line_up(struct lending *from, struct ending *list, int n)
{
	for (int i = 0; i < n; i++) {
		assert_int_equal(pthread_create(&list[i].thread, NULL, end_it, &list[i]), 0);
		await_waiting(from, i);
	}
}

/* Then they go on, all at once. */
static void end_together(const struct place *p, struct lending *from, struct ending *list, int n)
{
	struct blocker k;

	block(&k, p);
	line_up(from, list, n);
	unblock(&k);
	for (int i = 0; i < n; i++)
		pthread_join(list[i].thread, NULL);
}

static int count_attempts(struct ledger *l, struct ending *list, int n)
{
	int found = 0;

	for (int i = 0; i < n; i++) {
		struct analysis_state state;

		OK(ledger_analysis(l, list[i].job.id, &state, &err));
		found += state.last_attempt;
	}
	return found;
}

static void test_who_ends_together_is_committed_together(void **state)
{
	enum { N = 20 };
	const struct place *p = *state;
	struct ledger *l = place_open(p);
	struct lending *from = lend(p, 3);
	struct ending list[N];

	claim_all(l, from, list, N);
	end_together(p, from, list, N);
	for (int i = 0; i < N; i++)
		if (list[i].r < 0 || list[i].number != 1)
			fail_msg("%s: %s", list[i].job.id, list[i].err.message);
	assert_int_equal(count_attempts(l, list, N), N);
	assert_int_equal(from->joint.n_together, N - 1);
	forget_all(list, N);
	lending_close(from);
	ledger_close(l);
}

static void test_a_bad_one_takes_nobody_with_it(void **state)
{
	enum { N = 12 };
	struct output gone = {.path = (char *)"gone", .size = 4, .media_type = "text/plain"},
		      there = {.path = (char *)"there", .size = 5, .media_type = "text/plain"};
	const struct place *p = *state;
	struct ledger *l = place_open(p);
	struct lending *from = lend(p, 3);
	struct ending list[N];

	place_write(p, "there", "there", 5);
	digest_bytes("there", 5, there.sha256);
	claim_all(l, from, list, N);
	for (int i = 0; i < N; i++)
		list[i].place = p;
	OK(ledger_release(l, list[5].job.id, list[5].job.token, 0, &err));
	list[7].output = &gone;
	list[8].output = &there;
	end_together(p, from, list, N);
	for (int i = 0; i < N; i++)
		if (i != 5 && i != 7 && list[i].r < 0)
			fail_msg("%s: %s", list[i].job.id, list[i].err.message);
	assert_true(list[5].r < 0 && list[5].err.kind == ERROR_LEASE);
	assert_true(list[7].r < 0 && strstr(list[7].err.message, "cannot open 'gone'"));
	assert_int_equal(count_attempts(l, list, N), N - 2);
	forget_all(list, N);
	lending_close(from);
	ledger_close(l);
}

/* It may have been committed, or not: each of them is, once. */
static void test_a_server_that_is_gone_in_between_commits_each_once(void **state)
{
	enum { N = 12, ROUNDS = 5 };
	const struct place *p = *state;
	struct ledger *l = place_open(p);
	struct lending *from = lend(p, 3);

	for (int round = 0; round < ROUNDS && p->is_postgres; round++) {
		struct ending list[N];

		claim_round(l, from, list, N, round);
		for (int i = 0; i < N; i++)
			assert_int_equal(pthread_create(&list[i].thread, NULL, end_it, &list[i]), 0);
		poll(NULL, 0, round * 4);
		cut(p);
		for (int i = 0; i < N; i++)
			pthread_join(list[i].thread, NULL);
		for (int i = 0; i < N; i++)
			if (list[i].r < 0)
				fail_msg("%s: %s", list[i].job.id, list[i].err.message);
		assert_int_equal(count_attempts(l, list, N), N);
		forget_all(list, N);
	}
	lending_close(from);
	ledger_close(l);
}

/* A process with five that have ended: the first is committed by itself, the second leads the others. It says who that is, and goes
 * on when it is told to. */
enum { FIVE = 5 };

static void commit_five(const struct place *p, const struct job *jobs, int say, int hear)
{
	struct lending *from = lend(p, 2);
	struct ending list[FIVE];
	struct blocker k;
	char byte;

	for (int i = 0; i < FIVE; i++)
		list[i] = (struct ending){.l = lent_open(from), .job = jobs[i], .err = ERROR_INIT};
	block(&k, p);
	line_up(from, list, FIVE);
	if (write(say, &list[1].tid, sizeof list[1].tid) != sizeof list[1].tid || read(hear, &byte, 1) != 1)
		_exit(2);
	unblock(&k);
	for (int i = 0; i < FIVE; i++)
		pthread_join(list[i].thread, NULL);
	for (int i = 0; i < FIVE; i++)
		if (list[i].r < 0)
			_exit(3);
	_exit(0);
}

/* Lets the thread make n calls, and kills all of them at the next. False: it did not come to that. */
static bool kill_at(pid_t pid, pid_t tid, int go, int n)
{
	int status = 0;

	assert_int_equal(ptrace(PTRACE_SEIZE, tid, 0, PTRACE_O_TRACESYSGOOD), 0);
	assert_int_equal(ptrace(PTRACE_INTERRUPT, tid, 0, 0), 0);
	assert_int_equal(waitpid(tid, &status, __WALL), tid);
	assert_int_equal(write(go, "", 1), 1);
	for (int stops = 0; WIFSTOPPED(status) && stops <= 2 * n; stops++) {
		if (ptrace(PTRACE_SYSCALL, tid, 0, 0) < 0 || waitpid(tid, &status, __WALL) != tid)
			break;
	}
	if (WIFSTOPPED(status)) {
		kill(pid, SIGKILL);
		waitpid(tid, &status, __WALL);
		waitpid(pid, &status, __WALL);
		return true;
	}
	assert_int_equal(waitpid(pid, &status, __WALL), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	return false;
}

static bool kill_five(const struct place *p, const struct job *jobs, int n)
{
	int say[2], go[2];
	bool was_killed;
	pid_t pid, tid;

	assert_int_equal(pipe2(say, O_CLOEXEC), 0);
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		commit_five(p, jobs, say[1], go[0]);
	assert_int_equal(read(say[0], &tid, sizeof tid), sizeof tid);
	was_killed = kill_at(pid, tid, go[1], n);
	for (int i = 0; i < 2; i++) {
		close(say[i]);
		close(go[i]);
	}
	return was_killed;
}

/* Whoever comes after the crash commits all of them again, as recovery does: each is there once, those who were together all or
 * none of them. */
static void check_five(struct ledger *l, const struct job *jobs)
{
	int there = 0, number;

	for (int i = 1; i < FIVE; i++) {
		int has;

		OK(has = ledger_has_token(l, jobs[i].token, &number, &err));
		there += has;
	}
	assert_true(there == 0 || there == FIVE - 1);
	for (int i = 0; i < FIVE; i++) {
		struct analysis_state state;

		if (finish(l, &jobs[i], VERDICT_SUCCEEDED) != 1)
			fail_msg("%s", err.message);
		OK(ledger_analysis(l, jobs[i].id, &state, &err));
		assert_int_equal(state.last_attempt, 1);
	}
}

static void test_killed_at_every_call_of_a_joint_commit_each_is_there_once(void **state)
{
	const struct place *p = *state;
	int step = p->is_postgres ? 5 : 1; /* a server makes new connections for each */
	bool was_killed = true;
	int n = 0;

	for (; was_killed; n += step) {
		struct ledger *l = place_open(p);
		struct job jobs[FIVE] = {0};
		char name[16];

		snprintf(name, sizeof name, "k%d", n);
		submit_many(l, name, "ada", FIVE);
		for (int i = 0; i < FIVE; i++)
			assert_true(claim_by(l, "w1", LEASE_NS, &jobs[i]));
		ledger_close(l); /* nothing of it is open where the process is forked */
		was_killed = kill_five(p, jobs, n);
		l = place_open(p);
		check_five(l, jobs);
		for (int i = 0; i < FIVE; i++)
			job_done(&jobs[i]);
		ledger_close(l);
	}
	assert_true(n > 20);
}

static int64_t ms_since(uint64_t start)
{
	return (int64_t)((clock_now() - start) / NSEC_PER_MSEC);
}

/* Whoever has submitted may keep what is his locked. */
static void test_a_lock_on_some_rows_is_no_wait_for_the_others(void **state)
{
	enum { N = 24, LOCKED = 6 };
	const struct place *p = *state;
	struct ledger *l = place_open(p);
	struct lending *from = lend(p, 4);
	struct ending list[N];
	struct blocker k = {0};
	char sql[256];
	uint64_t start;

	if (!p->is_postgres) { /* has no locks of rows */
		lending_close(from);
		ledger_close(l);
		return;
	}
	from->joint.brief_ms = 100;
	claim_all(l, from, list, N);
	begin_alone(&k, p);
	/* The first of them comes alone, the others with those who are not locked, and more of them than there are connections. */
	for (int i = 0; i < LOCKED; i++) {
		snprintf(sql, sizeof sql, "SELECT 1 FROM fumehood.queue WHERE id = '%s' FOR UPDATE",
			 list[i].job.id);
		OK(k.b->ops->script(k.b, sql, &err));
	}
	start = clock_now();
	for (int i = 0; i < N; i++)
		assert_int_equal(pthread_create(&list[i].thread, NULL, end_it, &list[i]), 0);
	for (int i = LOCKED; i < N; i++)
		pthread_join(list[i].thread, NULL);
	assert_true(ms_since(start) < 5000);
	assert_int_equal(count_attempts(l, list, N), N - LOCKED);
	unblock(&k);
	for (int i = 0; i < LOCKED; i++)
		pthread_join(list[i].thread, NULL);
	for (int i = 0; i < N; i++)
		if (list[i].r < 0 || list[i].number != 1)
			fail_msg("%s: %s", list[i].job.id, list[i].err.message);
	forget_all(list, N);
	lending_close(from);
	ledger_close(l);
}

/* In SQLite they take turns; somebody outside is in the way of one of them. */
static void test_who_could_not_write_gives_his_turn_back(void **state)
{
	struct place p = *(const struct place *)*state;
	struct ledger *l = place_open(&p), *lent;
	_cleanup_job_ struct job j = {0};
	struct lending *from;
	struct blocker k;

	if (p.is_postgres) {
		ledger_close(l);
		return;
	}
	strncat(p.url, "&busy=100ms", sizeof p.url - strlen(p.url) - 1);
	from = lend(&p, 2);
	lent = lent_open(from);
	ledger_take_turns(l, from);
	submit(l, "a", NULL);
	assert_true(claim_by(l, "w1", LEASE_NS, &j));
	block(&k, &p);
	assert_true(finish(lent, &j, VERDICT_SUCCEEDED) < 0);
	assert_non_null(strstr(err.message, "locked for 100 ms"));
	unblock(&k);
	submit(l, "b", NULL);
	assert_int_equal(finish(lent, &j, VERDICT_SUCCEEDED), 1);
	submit(l, "c", NULL);
	/* Within the process, too, nobody waits for longer. */
	OK(l->backend->ops->begin(l->backend, NULL, &err));
	assert_true(finish(lent, &j, VERDICT_SUCCEEDED) < 0);
	assert_non_null(strstr(err.message, "locked for 100 ms"));
	l->backend->ops->rollback(l->backend);
	assert_int_equal(finish(lent, &j, VERDICT_SUCCEEDED), 1);
	ledger_close(lent);
	ledger_close(l);
	lending_close(from);
}

#define ROW(name) cmocka_unit_test_setup_teardown(test_##name, place_setup, place_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROW(more_end_at_once_than_there_are_connections),
		ROW(one_that_fails_keeps_nothing),
		ROW(what_cannot_be_opened_keeps_no_place),
		ROW(connections_that_are_gone_are_nobodys_failure),
		ROW(who_could_not_write_gives_his_turn_back),
		ROW(who_ends_together_is_committed_together),
		ROW(a_bad_one_takes_nobody_with_it),
		ROW(a_lock_on_some_rows_is_no_wait_for_the_others),
		ROW(killed_at_every_call_of_a_joint_commit_each_is_there_once),
		ROW(a_server_that_is_gone_in_between_commits_each_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
