/* The queue's promises, the same for every database behind it: what goes in, what is seen of it, and that it all ends. */
#include "test_queue.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

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
	assert_int_equal(strv_append(&j.after, "first", NULL), 0);
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
		assert_int_equal(inputs_add(&jobs[i].inputs, &in, NULL), 0);
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
	assert_int_equal(strv_append(&jobs[2].after, "unheard-of", NULL), 0);
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

static int take_id(void *arg, const struct queued *q, struct error *e)
{
	return strv_append(arg, q->id, e);
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

struct onlooker {
	char **seen;
	struct ledger *other;
};

/* At the first sight of anything another one takes what is queued. */
static int take_id_while_another_claims(void *arg, const struct queued *q, struct error *e)
{
	struct onlooker *o = arg;
	_cleanup_job_ struct job j;

	if (!o->seen)
		assert_true(claim_by(o->other, "w2", LEASE_NS, &j));
	else
		job_init(&j);
	return strv_append(&o->seen, q->id, e);
}

static void test_who_is_claimed_while_one_looks_is_seen_once(void **state)
{
	struct ledger *l = place_open(*state);
	struct onlooker o = {.other = place_open(*state)};
	_cleanup_job_ struct job first;

	submit(l, "first", NULL);
	assert_true(claim_by(l, "w1", LEASE_NS, &first));
	submit(l, "second", NULL);
	submit(l, "third", "second");
	OK(ledger_queue_list_open(l, NULL, 0, take_id_while_another_claims, &o, &err));
	assert_int_equal(strv_length(o.seen), 3);
	assert_string_equal(o.seen[0], "first");
	assert_string_equal(o.seen[1], "second");
	assert_string_equal(o.seen[2], "third");
	strv_free(o.seen);
	ledger_close(o.other);
	ledger_close(l);
}

static void test_who_only_looks_cannot_write_whatever_he_asks(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p), *looks;
	_cleanup_strv_ char **seen = NULL;
	_cleanup_job_ struct job j, claimed;
	size_t n = 0;

	submit(l, "first", NULL);
	OK(ledger_open(p->url, LEDGER_READ_ONLY | LEDGER_LOOK, &looks, &err));
	OK(ledger_queue_list(looks, -1, NULL, 0, take_id, &seen, &err));
	assert_int_equal(strv_length(seen), 1);
	job_make(&j, "second", "ada");
	assert_true(ledger_submit(looks, &j, 1, 0, NULL, NULL, NULL, &err) < 0);
	job_init(&claimed);
	assert_true(ledger_claim(looks, &anything, &claimed, 1, &n, NULL, &err) < 0 || n == 0);
	err = (struct error)ERROR_INIT;
	OK(ledger_queue_list(l, JOB_QUEUED, NULL, 0, take_id, &seen, &err));
	assert_int_equal(strv_length(seen), 2); /* the first, once more */
	ledger_close(looks);
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

static void test_what_is_known_of_an_id_before_it_runs(void **state)
{
	struct ledger *l = place_open(*state);
	struct run_known known;
	struct job j = {0};

	OK(ledger_run_known(l, "a", &known, &err));
	assert_int_equal(known.state, JOB_STATES);
	assert_int_equal(known.next_attempt, 1);
	assert_false(known.succeeded);
	assert_string_equal(known.task, "");
	submit(l, "a", NULL);
	OK(ledger_run_known(l, "a", &known, &err));
	assert_int_equal(known.state, JOB_QUEUED);
	assert_true(claim_by(l, "w", LEASE_NS, &j));
	OK(finish(l, &j, VERDICT_SUCCEEDED));
	job_done(&j);
	OK(ledger_run_known(l, "a", &known, &err));
	assert_int_equal(known.state, JOB_FINISHED);
	assert_int_equal(known.next_attempt, 2);
	assert_true(known.succeeded);
	submit(l, "b.x", NULL);
	submit(l, "b.7", NULL);
	OK(ledger_run_known(l, "b", &known, &err));
	assert_int_equal(known.state, JOB_STATES);
	assert_string_equal(known.task, "b.7");
	ledger_close(l);
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
			assert_int_equal(strv_append(&j.after, after, NULL), 0);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROW(one_goes_from_queued_over_running_to_finished),
		ROW(what_was_submitted_is_loaded_as_it_was),
		ROW(inputs_are_stored_once_and_come_back),
		ROW(a_submission_is_stored_whole_or_not_at_all),
		ROW(a_known_id_is_refused_unless_again_or_if_absent),
		ROW(a_list_is_newest_first_and_can_be_narrowed),
		ROW(who_is_claimed_while_one_looks_is_seen_once),
		ROW(who_only_looks_cannot_write_whatever_he_asks),
		ROW(what_is_known_of_an_id_before_it_runs),
		ROW(the_bell_rings_when_something_is_submitted),
		ROW(a_crowd_of_workers_ends_each_exactly_once),
		ROW(nobody_waits_for_ever_however_others_end),
	};

	return RUN_ON_BOTH("queue", tests);
}
