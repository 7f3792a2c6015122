/* The queue from a program: submitting, looking, waiting, cancelling, and a worker in the same process. */
#include "site.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>

static void submit(struct site *s, fh_request *const *requests, size_t n, unsigned flags)
{
	fh_error err = {0};
	char *text;

	assert_ok(fh_submit(s->hood, requests, n, flags, &text, &err), err);
	fh_free(text);
}

static const char *text_of(json_t *rows, size_t i, const char *key)
{
	const char *text = json_string_value(json_object_get(json_array_get(rows, i), key));

	return text ? text : "null";
}

/* ---- without a worker ---- */

static void test_what_is_submitted_is_queued_and_can_be_cancelled(void **state)
{
	struct site *s = *state;
	fh_request *requests[] = {shell("q1", "true"), shell("q2", "true")};
	const char *ids[] = {"q2", "q1", NULL}, *nobody[] = {"nobody", NULL}, *before;
	fh_error err = {0};
	json_t *rows;
	char *text;

	assert_ok(fh_request_set(requests[0], "priority", "5", &err), err);
	assert_ok(fh_request_set(requests[1], "after", "q1", &err), err);
	for (int i = 0; i < 2; i++)
		assert_ok(fh_request_set(requests[i], "submitter", "somebody", &err), err);
	assert_ok(fh_submit(s->hood, requests, 2, 0, &text, &err), err);
	rows = parse(text);
	assert_string_equal(text_of(rows, 1, "id"), "q2");
	assert_true(json_is_true(json_object_get(json_array_get(rows, 0), "new")));
	json_decref(rows);
	assert_int_equal(fh_submit(s->hood, requests, 2, 0, &text, &err), -FH_BUSY);
	submit(s, requests, 2, FH_IF_ABSENT);
	assert_int_equal(fh_wait(s->hood, ids, 0, -1, &text, &err), 0);
	rows = parse(text);
	assert_string_equal(text_of(rows, 0, "state"), "waiting");
	assert_string_equal(text_of(rows, 1, "state"), "queued");
	assert_string_equal(text_of(rows, 1, "submitter"), "somebody");
	json_decref(rows);
	assert_int_equal(fh_wait(s->hood, nobody, 0, -1, &text, &err), -FH_NOT_FOUND);
	assert_ok(fh_queue(s->hood, "queued", NULL, 0, &text, &err), err);
	rows = parse(text);
	assert_int_equal(json_array_size(rows), 1);
	json_decref(rows);
	assert_int_equal(fh_queue(s->hood, "lost", NULL, 0, &text, &err), -FH_USAGE);
	assert_ok(fh_cancel(s->hood, "q1", &before, &err), err);
	assert_string_equal(before, "queued");
	assert_int_equal(fh_wait(s->hood, ids, 0, -1, &text, &err), 1);
	rows = parse(text);
	assert_string_equal(text_of(rows, 0, "state"), "cancelled"); /* it waited for the other */
	json_decref(rows);
	assert_ok(fh_retry(s->hood, "q1", &err), err);
	assert_int_equal(fh_cancel(s->hood, "nobody", NULL, &err), -FH_NOT_FOUND);
	for (int i = 0; i < 2; i++)
		fh_request_free(requests[i]);
}

static void test_a_wait_ends_in_time_and_when_it_is_told_to(void **state)
{
	struct site *s = *state;
	fh_request *request = shell("w1", "true");
	const char *ids[] = {"w1", NULL};
	fh_error err = {0};
	int64_t begun;
	int stop[2];
	char *text;

	assert_int_equal(pipe2(stop, O_CLOEXEC), 0);
	submit(s, &request, 1, 0);
	begun = now_ms();
	assert_int_equal(fh_wait(s->hood, ids, 200, stop[0], &text, &err), 0);
	fh_free(text);
	assert_true(now_ms() - begun >= 200);
	assert_int_equal(write(stop[1], "x", 1), 1);
	assert_int_equal(fh_wait(s->hood, ids, -1, stop[0], &text, &err), 0);
	fh_free(text);
	close(stop[0]);
	close(stop[1]);
	fh_request_free(request);
}

static void test_a_queued_analysis_has_no_stdin_and_one_submitter(void **state)
{
	struct site *s = *state;
	fh_request *requests[] = {shell("s1", "cat"), shell("s2", "true")};
	fh_error err = {0};
	char *text;

	assert_ok(fh_request_stdin(requests[0], 0, &err), err);
	assert_int_equal(fh_submit(s->hood, requests, 2, 0, &text, &err), -FH_REFUSED);
	assert_ok(fh_request_stdin(requests[0], -1, &err), err);
	assert_ok(fh_request_set(requests[1], "submitter", "other", &err), err);
	assert_int_equal(fh_submit(s->hood, requests, 2, 0, &text, &err), -FH_USAGE);
	assert_int_equal(fh_request_set(requests[1], "submitter", "", &err), -FH_USAGE);
	assert_int_equal(fh_submit(s->hood, requests, 1, 0x1000, &text, &err), -FH_USAGE);
	fh_request_free(requests[0]);
	fh_request_free(requests[1]);
}

/* ---- with one ---- */

struct worker {
	struct site *site;
	int stop;
	int drain;
	int r;
	fh_error err;
};

static void *work(void *arg)
{
	struct worker *w = arg;

	w->r = fh_worker_run(w->site->hood, 2, "5s", w->drain, w->stop, &w->err);
	return NULL;
}

static void test_a_worker_in_the_host_runs_what_is_queued(void **state)
{
	struct site *s = *state;
	const char *ids[] = {"a0", "a1", "a2", "a3", NULL};
	fh_request *requests[4];
	struct worker w = {.site = s};
	fh_error err = {0};
	pthread_t thread;
	json_t *rows;
	int stop[2];
	char *text;

	assert_int_equal(pipe2(stop, O_CLOEXEC), 0);
	w.stop = stop[0];
	assert_int_equal(pthread_create(&thread, NULL, work, &w), 0);
	for (int i = 0; i < 4; i++)
		requests[i] = shell(ids[i], i == 3 ? "exit 9" : "echo x > x");
	submit(s, requests, 4, 0);
	assert_int_equal(fh_wait(s->hood, ids, 60000, -1, &text, &err), 1);
	rows = parse(text);
	assert_string_equal(text_of(rows, 0, "verdict"), "succeeded");
	assert_string_equal(text_of(rows, 3, "verdict"), "failed");
	assert_int_equal(json_integer_value(json_object_get(json_array_get(rows, 3), "status")), 9);
	json_decref(rows);
	assert_int_equal(write(stop[1], "x", 1), 1);
	pthread_join(thread, NULL);
	assert_ok(w.r, w.err);
	for (int i = 0; i < 4; i++)
		fh_request_free(requests[i]);
	close(stop[0]);
	close(stop[1]);
	assert_nothing_left(s);
}

static void test_a_draining_worker_ends_by_itself(void **state)
{
	struct site *s = *state;
	fh_request *request = shell("d1", "echo x > x");
	struct worker w = {.site = s, .stop = -1, .drain = 1};
	fh_result *result = NULL;
	fh_error err = {0};

	submit(s, &request, 1, 0);
	work(&w);
	assert_ok(w.r, w.err);
	assert_ok(fh_load(s->hood, "d1", 0, &result, &err), err);
	assert_int_equal(fh_result_verdict(result), FH_SUCCEEDED);
	fh_result_free(result);
	assert_int_equal(fh_worker_run(s->hood, -1, NULL, 1, -1, &err), -FH_USAGE);
	assert_int_equal(fh_worker_run(s->hood, 1, "soon", 1, -1, &err), -FH_USAGE);
	assert_int_equal(fh_worker_run_engine(s->hood, "pbs", 1, NULL, 1, -1, &err), -FH_USAGE);
	/* Its ledger is a file. */
	assert_int_equal(fh_worker_run_engine(s->hood, "slurm", 1, NULL, 1, -1, &err), -FH_REFUSED);
	assert_non_null(strstr(err.message, "one host"));
	fh_request_free(request);
}

/* A ledger that others can write to is nobody's: what is submitted there may name nothing of the worker's host. */
static void test_a_worker_does_for_strangers_only_what_is_listed(void **state)
{
	static const char *const ids[] = {"own", "strangers"};
	struct site *s = *state;
	struct worker w = {.site = s, .stop = -1, .drain = 1};
	fh_error err = {0};

	for (int i = 0; i < 2; i++) {
		fh_request *request = shell(ids[i], "true");
		fh_result *result = NULL;

		assert_ok(fh_request_set(request, "ro", "/usr/share", &err), err);
		submit(s, &request, 1, 0);
		assert_int_equal(chmod(s->directory, i ? 0777 : 0755), 0);
		work(&w);
		assert_int_equal(chmod(s->directory, 0755), 0);
		if (i && geteuid() == 0) { /* which root does not even open */
			assert_true(w.r < 0);
			assert_non_null(strstr(w.err.message, "root opens only what nobody else can change"));
			fh_request_free(request);
			break;
		}
		assert_ok(w.r, w.err);
		assert_ok(fh_load(s->hood, ids[i], 0, &result, &err), err);
		assert_int_equal(fh_result_verdict(result), i ? FH_VERDICT_REFUSED : FH_SUCCEEDED);
		if (i)
			assert_non_null(strstr(fh_result_reason(result), "'/usr/share' is not allowed"));
		fh_result_free(result);
		fh_request_free(request);
	}
	assert_nothing_left(s);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, site_setup, site_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_what_is_submitted_is_queued_and_can_be_cancelled),
		TEST(test_a_wait_ends_in_time_and_when_it_is_told_to),
		TEST(test_a_queued_analysis_has_no_stdin_and_one_submitter),
		TEST(test_a_worker_in_the_host_runs_what_is_queued),
		TEST(test_a_worker_does_for_strangers_only_what_is_listed),
		TEST(test_a_draining_worker_ends_by_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
