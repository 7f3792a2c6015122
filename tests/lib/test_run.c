/* Running analyses from a program: verdicts, errors, output as it comes, cancelling, the commit that is the host's. */
#include "site.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>

static fh_run *start(struct site *s, const char *id, const char *script, unsigned flags)
{
	fh_request *request = shell(id, script);
	fh_run *run = NULL;
	fh_error err = {0};

	assert_ok(fh_start(s->hood, request, flags, &run, &err), err);
	fh_request_free(request);
	return run;
}

static fh_result *result_of(fh_run *run)
{
	fh_result *result = NULL;
	fh_error err = {0};

	assert_int_equal(fh_run_wait(run, -1, &err), 1);
	assert_ok(fh_run_result(run, &result, &err), err);
	return result;
}

/* ---- verdicts and errors ---- */

static void test_a_success_has_outputs_usage_and_is_committed(void **state)
{
	fh_result *result = perform(*state, "a1", "echo 42 > answer.txt");
	fh_error err = {0};
	fh_output o;

	assert_string_equal(fh_result_id(result), "a1");
	assert_int_equal(fh_result_attempt(result), 1);
	assert_int_equal(fh_result_verdict(result), FH_SUCCEEDED);
	assert_int_equal(fh_result_status(result), 0);
	assert_int_equal(fh_result_committed(result), 1);
	assert_int_equal(fh_result_outputs(result), 1);
	assert_ok(fh_result_output(result, 0, &o, &err), err);
	assert_string_equal(o.path, "answer.txt");
	assert_int_equal(o.size, 3);
	assert_string_equal(o.sha256, "084c799cd551dd1d8d5c5f9a5d593b2e931f5e36122ee5c793c1d08a19839cc0");
	assert_true(fh_result_usage(result, "wall_ms") >= 0);
	assert_int_equal(fh_result_usage(result, "no such counter"), -1);
	assert_int_equal(fh_result_output(result, 1, &o, &err), -FH_USAGE);
	assert_int_equal(fh_result_error(result, &err), FH_OK);
	fh_result_free(result);
	assert_nothing_left(*state);
}

static void test_a_failure_is_a_verdict_with_its_log(void **state)
{
	fh_result *result = perform(*state, NULL, "echo out; echo one >&2; echo two >&2; exit 3");
	fh_error err = {0};
	size_t size;
	char *text;

	assert_int_equal(fh_result_verdict(result), FH_FAILED);
	assert_int_equal(fh_result_exit_code(result), 3);
	assert_int_equal(fh_result_status(result), 3);
	assert_true(*fh_result_id(result));
	assert_ok(fh_result_log(result, FH_STDERR, 4, &text, &size, &err), err);
	assert_string_equal(text, "two\n");
	fh_free(text);
	assert_ok(fh_result_log(result, FH_STDERR, 1000, &text, &size, &err), err);
	assert_string_equal(text, "one\ntwo\n");
	fh_free(text);
	fh_result_free(result);
}

static void test_what_cannot_be_committed_is_pending_until_gc(void **state)
{
	struct site *s = *state;
	fh_error err = {0};
	fh_result *result;
	char store[128], *text;
	json_t *json;
	int fd;

	/* The object store takes nothing: something lies where it makes its files. */
	snprintf(store, sizeof store, "%s/ledger.db.objects", s->directory);
	assert_int_equal(mkdir(store, 0700), 0);
	snprintf(store, sizeof store, "%s/ledger.db.objects/tmp", s->directory);
	fd = open(store, O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_true(fd >= 0);
	close(fd);
	result = perform(s, "p1", "head -c 300000 /dev/zero > large");
	assert_int_equal(fh_result_pending(result), 1);
	assert_int_equal(fh_result_committed(result), 0);
	assert_int_equal(fh_result_status(result), 125);
	assert_int_equal(fh_result_verdict(result), FH_SUCCEEDED);
	assert_true(fh_result_error(result, &err) != FH_OK && err.message[0]);
	fh_result_free(result);
	assert_ok(fh_list(s->hood, "pending", NULL, 0, &text, &err), err);
	json = parse(text);
	assert_int_equal(json_array_size(json), 1);
	json_decref(json);
	assert_int_equal(unlink(store), 0);
	assert_ok(fh_gc(s->hood, &text, &err), err);
	json = parse(text);
	assert_int_equal(json_integer_value(json_object_get(json, "committed")), 1);
	json_decref(json);
	assert_nothing_left(s);
}

static void test_a_refusal_has_code_stage_and_sentence(void **state)
{
	fh_result *result = perform(*state, "r1", "true");
	fh_error err = {0};
	char *text;

	fh_result_free(result);
	result = perform(*state, "r1", "true");
	assert_int_equal(fh_result_verdict(result), FH_VERDICT_REFUSED);
	assert_int_equal(fh_result_status(result), 125);
	assert_int_equal(fh_result_error(result, &err), FH_REFUSED);
	assert_int_equal(err.code, FH_REFUSED);
	assert_string_equal(err.stage, "plan");
	assert_non_null(strstr(err.message, "'r1' has already succeeded"));
	assert_ok(fh_result_json(result, 0, &text, &err), err);
	assert_non_null(strstr(text, "\"code\":\"refused\""));
	fh_free(text);
	fh_result_free(result);
}

static void test_what_makes_no_sense_is_refused_before_anything_starts(void **state)
{
	struct site *s = *state;
	fh_request *request = fh_request_new();
	fh_error err = {0};
	fh_run *run = NULL;
	fh_hood *hood = NULL;

	assert_int_equal(fh_request_set(request, "memroy", "2G", &err), -FH_USAGE);
	assert_non_null(strstr(err.message, "'memroy'"));
	assert_string_equal(err.stage, "request");
	assert_int_equal(fh_request_set(request, "memory", "2X", &err), -FH_USAGE);
	assert_int_equal(fh_request_set(request, "memory", NULL, &err), -FH_USAGE);
	assert_int_equal(fh_request_set(request, "again", "perhaps", &err), -FH_USAGE);
	assert_int_equal(fh_request_set(request, "directory", "here", &err), -FH_USAGE);
	assert_int_equal(fh_request_parse(request, "memory: 2G", 10, NULL, &err), -FH_USAGE);
	assert_int_equal(fh_start(s->hood, request, 0, &run, &err), -FH_USAGE);
	assert_non_null(strstr(err.message, "command"));
	assert_int_equal(fh_start(s->hood, request, 0x1000, &run, NULL), -FH_USAGE);
	assert_int_equal(fh_open("/nonexistent/config.yaml", NULL, &hood, &err), -FH_SYSTEM);
	assert_int_equal(err.errnum, 2);
	assert_null(run);
	assert_null(hood);
	fh_request_free(request);
}

static void test_every_name_of_an_option_or_a_file_can_be_set(void **state)
{
	static const char *const words[][2] = {
		{"memory", "512M"},   {"cpu-time", "10s"},     {"cpu_time", "20s"}, {"files", "100"},
		{"open_files", "64"}, {"output", "*.csv"},     {"output", "*.txt"}, {"optional_output", "x"},
		{"env", "A=1"},	      {"keep", "on-failure"},  {"again", NULL},	    {"no_stage", "true"},
		{"explain", "false"}, {"strength", "full"},    {"retries", "3"},    {"priority", "-5"},
		{"after", "other"},   {"post-process", "cat"},
	};
	fh_request *request = shell("set1", "true");
	fh_error err = {0};
	json_t *json, *limits;
	char *text;

	(void)state;
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		assert_ok(fh_request_set(request, words[i][0], words[i][1], &err), err);
	assert_ok(fh_request_json(request, &text, &err), err);
	json = parse(text);
	limits = json_object_get(json, "limits");
	assert_string_equal(json_string_value(json_object_get(limits, "memory")), "512M");
	assert_string_equal(json_string_value(json_object_get(limits, "cpu_time")), "20s");
	assert_non_null(json_object_get(limits, "open_files"));
	assert_int_equal(json_array_size(json_object_get(json, "output")), 2);
	assert_true(json_is_true(json_object_get(json, "again")));
	assert_true(json_is_false(json_object_get(json, "explain")));
	json_decref(json);
	fh_request_free(request);
}

static void test_a_plan_touches_nothing(void **state)
{
	struct site *s = *state;
	fh_request *request = shell("p1", "true");
	fh_error err = {0};
	json_t *json;
	char *text;

	assert_ok(fh_plan(s->hood, request, &text, &err), err);
	json = parse(text);
	assert_string_equal(json_string_value(json_object_get(json, "id")), "p1");
	json_decref(json);
	fh_request_free(request);
	assert_nothing_left(s);
}

/* ---- while it runs ---- */

static void test_output_comes_while_it_runs_and_ends_with_it(void **state)
{
	fh_run *run = start(*state, "f1", "echo one; read x; echo \"$x\" >&2", FH_FOLLOW);
	struct pollfd p = {.fd = fh_run_fd(run), .events = POLLIN};
	char text[64];
	ssize_t n;

	(void)n;
	assert_int_equal(poll(&p, 1, 120000), 1);
	n = fh_run_read(run, FH_STDOUT, text, sizeof text, NULL);
	assert_int_equal(n, 4);
	assert_memory_equal(text, "one\n", 4);
	fh_result_free(result_of(run));
	assert_int_equal(poll(&p, 1, 0), 1);
	assert_int_equal(fh_run_read(run, FH_STDERR, text, sizeof text, NULL),
			 1); /* /dev/null: an empty line */
	assert_int_equal(fh_run_read(run, FH_STDERR, text, sizeof text, NULL), -1);
	assert_int_equal(fh_run_read(run, FH_STDOUT, text, sizeof text, NULL), -1);
	fh_run_free(run);
}

static void test_a_host_that_does_not_read_loses_the_oldest_and_is_told(void **state)
{
	fh_run *run = start(*state, "f2", "head -c 3000000 /dev/zero; printf end", FH_FOLLOW);
	static char text[2 << 20];
	uint64_t dropped = 0;
	ssize_t n;

	fh_result_free(result_of(run));
	n = fh_run_read(run, FH_STDOUT, text, sizeof text, &dropped);
	assert_int_equal(n, 1 << 20);
	assert_int_equal(dropped, 3000003 - (1 << 20));
	assert_memory_equal(text + n - 3, "end", 3);
	fh_run_free(run);
}

static void test_a_host_that_wants_all_of_it_loses_nothing(void **state)
{
	fh_run *run = start(*state, "f3", "head -c 3000000 /dev/zero; printf end", FH_FOLLOW | FH_WHOLE);
	static char text[4 << 20];
	uint64_t dropped = 1;
	ssize_t n;

	fh_result_free(result_of(run));
	n = fh_run_read(run, FH_STDOUT, text, sizeof text, &dropped);
	assert_int_equal(n, 3000003);
	assert_int_equal(dropped, 0);
	assert_memory_equal(text + n - 3, "end", 3);
	fh_run_free(run);
}

static void test_what_is_merged_comes_in_the_order_in_which_it_was_written(void **state)
{
	fh_run *run =
		start(*state, "f4", "for i in 1 2 3; do printf o; printf e >&2; done", FH_FOLLOW | FH_MERGE);
	fh_result *result = result_of(run);
	char text[64];

	assert_int_equal(fh_run_read(run, FH_STDOUT, text, sizeof text, NULL), 6);
	assert_memory_equal(text, "oeoeoe", 6);
	assert_int_equal(fh_run_read(run, FH_STDERR, text, sizeof text, NULL), -1);
	assert_int_equal(fh_result_verdict(result), FH_SUCCEEDED);
	fh_result_free(result);
	fh_run_free(run);
}

static void test_a_host_learns_whether_the_command_was_executed(void **state)
{
	struct site *s = *state;
	const char *none[] = {"no-such-program", NULL};
	fh_request *request = shell("s2", "true");
	fh_run *run = start(s, "s1", "exec sleep 31.4158", 0);
	fh_error err = {0};
	int why = -1;

	assert_int_equal(fh_run_started(run, 120000, &why, &err), 1);
	assert_int_equal(why, 0);
	assert_int_equal(fh_run_state(run), FH_RUNNING);
	fh_run_free(run);
	assert_ok(fh_request_command(request, none, &err), err);
	assert_ok(fh_start(s->hood, request, 0, &run, &err), err);
	assert_int_equal(fh_run_started(run, 120000, &why, &err), 1);
	assert_int_equal(why, ENOENT);
	fh_result_free(result_of(run));
	fh_run_free(run);
	assert_ok(fh_request_set(request, "id", "s3", &err), err);
	assert_ok(fh_request_set(request, "ro", "/no/such/place", &err), err);
	assert_ok(fh_start(s->hood, request, 0, &run, &err), err);
	assert_int_equal(fh_run_started(run, 120000, &why, &err), 1); /* it is refused, and will not be */
	assert_int_equal(why, 0);
	fh_run_free(run);
	fh_request_free(request);
}

/* Who still writes would wait for a reader for ever. */
static void test_nobody_holds_the_stdin_of_what_has_ended(void **state)
{
	struct site *s = *state;
	fh_request *request = shell("i2", "true");
	fh_error err = {0};
	fh_run *run = NULL;
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	assert_ok(fh_request_stdin(request, ends[0], &err), err);
	close(ends[0]);
	assert_ok(fh_start(s->hood, request, 0, &run, &err), err);
	fh_request_free(request);
	fh_result_free(result_of(run));
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(write(ends[1], "x", 1), -1);
	assert_int_equal(errno, EPIPE);
	close(ends[1]);
	fh_run_free(run);
}

static void test_what_it_reads_comes_from_the_hosts_descriptor(void **state)
{
	struct site *s = *state;
	fh_request *request = shell("i1", "cat > copy.txt");
	fh_result *result = NULL;
	fh_error err = {0};
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_ok(fh_request_stdin(request, ends[0], &err), err);
	assert_int_equal(write(ends[1], "hello", 5), 5);
	close(ends[0]);
	close(ends[1]);
	assert_ok(fh_perform(s->hood, request, &result, &err), err);
	assert_int_equal(fh_result_usage(result, "wall_ms") >= 0, 1);
	assert_int_equal(fh_result_outputs(result), 1);
	fh_result_free(result);
	fh_request_free(request);
}

static void test_progress_names_the_stage(void **state)
{
	fh_run *run = start(*state, "g1", "exec sleep 31.4151", FH_PROGRESS);
	fh_error err = {0};
	fh_progress p;
	int64_t end = now_ms() + 20000;

	do {
		assert_ok(fh_run_progress(run, &p, &err), err);
		assert_int_equal(fh_run_wait(run, 5, &err), 0);
	} while ((strcmp(p.stage, "running") != 0 || p.pids == -1) && now_ms() < end);
	assert_string_equal(p.stage, "running");
	assert_int_equal(fh_run_result(run, &(fh_result *){NULL}, &err), -FH_BUSY);
	fh_run_free(run);
	assert_int_equal(find_process("sleep 31.4151"), 0);
}

static void test_cancelling_ends_it_with_that_verdict(void **state)
{
	fh_run *run = start(*state, "c1", "exec sleep 31.4152", 0);
	fh_error err = {0};
	fh_result *result;

	assert_true(await_process("sleep 31.4152", true));
	assert_int_equal(fh_run_cancel(run, SIGUSR1, &err), -FH_USAGE);
	assert_int_equal(fh_run_wait(run, 0, &err), 0);
	assert_ok(fh_run_cancel(run, SIGINT, &err), err);
	result = result_of(run);
	assert_int_equal(fh_result_verdict(result), FH_CANCELLED);
	assert_int_equal(fh_result_status(result), 130);
	assert_int_equal(find_process("sleep 31.4152"), 0);
	assert_ok(fh_run_cancel(run, SIGINT, &err), err); /* too late is no failure */
	fh_result_free(result);
	fh_run_free(run);
	assert_nothing_left(*state);
}

static void test_killing_does_not_wait_for_the_grace(void **state)
{
	fh_request *request = shell("c2", "trap '' TERM; while :; do sleep 31.4153; done");
	struct site *s = *state;
	fh_run *run = NULL;
	fh_error err = {0};
	int64_t begun;

	assert_ok(fh_request_set(request, "grace", "90s", &err), err);
	assert_ok(fh_start(s->hood, request, 0, &run, &err), err);
	assert_true(await_process("sleep 31.4153", true));
	begun = now_ms();
	assert_ok(fh_run_cancel(run, SIGKILL, &err), err);
	assert_int_equal(fh_run_wait(run, 30000, &err), 1);
	assert_true(now_ms() - begun < 20000);
	fh_run_free(run);
	fh_request_free(request);
}

static void test_a_run_that_is_freed_is_dead_and_leaves_nothing(void **state)
{
	fh_run *run = start(*state, "d1", "exec sleep 31.4154", FH_DEFER);

	assert_true(await_process("sleep 31.4154", true));
	fh_run_free(run);
	assert_int_equal(find_process("sleep 31.4154"), 0);
	assert_nothing_left(*state);
}

static void test_the_hood_may_be_closed_before_its_runs(void **state)
{
	struct site *s = *state;
	fh_run *run = start(s, "h1", "true", 0);
	fh_result *result;

	fh_close(s->hood);
	s->hood = NULL;
	result = result_of(run);
	assert_int_equal(fh_result_verdict(result), FH_SUCCEEDED);
	fh_run_free(run);
	assert_string_equal(fh_result_id(result), "h1"); /* a result outlives both */
	fh_result_free(result);
}

/* ---- the commit that is the host's ---- */

/* With another SQLite than the library's: only while no hood is open on the file. */
static int64_t ask(struct site *s, const char *sql)
{
	char path[128];
	sqlite3 *db;
	sqlite3_stmt *statement;
	int64_t answer = -1;

	fh_close(s->hood);
	s->hood = NULL;
	snprintf(path, sizeof path, "%s/ledger.db", s->directory);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
	if (sqlite3_step(statement) == SQLITE_ROW)
		answer = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	sqlite3_close(db);
	site_open(s);
	return answer;
}

static const char good_rows[] = "{\"table\": \"finding\", \"row\": {\"title\": \"a\", \"score\": 0.5}}\n"
				"{\"table\": \"finding\", \"row\": {\"title\": \"b\", \"score\": 1}}\n";
static const char bad_rows[] = "{\"table\": \"secret\", \"row\": {\"title\": \"a\"}}\n";

static void test_rows_and_result_are_committed_with_the_outputs(void **state)
{
	struct site *s = *state;
	fh_error err = {0};
	fh_result *result;
	fh_run *run;
	json_t *json;
	char *text, read_back[8] = "";
	int fd;

	ask(s, "CREATE TABLE finding (title TEXT, score REAL)");
	run = start(s, "w1", "echo 42 > answer.txt", FH_DEFER);
	result = result_of(run);
	assert_int_equal(fh_run_state(run), FH_DECIDED);
	assert_int_equal(fh_result_verdict(result), FH_SUCCEEDED);
	assert_int_equal(fh_result_committed(result), 0);
	fh_result_free(result);
	fd = fh_run_open_output(run, "answer.txt", &err);
	assert_ok(fd, err);
	assert_int_equal(read(fd, read_back, sizeof read_back), 3);
	close(fd);
	assert_int_equal(fh_run_open_output(run, "../x", &err), -FH_NOT_FOUND);
	assert_int_equal(fh_run_commit(run, bad_rows, strlen(bad_rows), NULL, &err), -FH_REFUSED);
	assert_string_equal(err.stage, "commit");
	assert_int_equal(fh_run_commit(run, NULL, 0, "{oops", &err), -FH_USAGE);
	assert_int_equal(fh_run_state(run), FH_DECIDED);
	assert_ok(fh_run_commit(run, good_rows, strlen(good_rows), "{\"model\": \"m1\"}", &err), err);
	assert_int_equal(fh_run_state(run), FH_ENDED);
	result = result_of(run);
	assert_int_equal(fh_result_committed(result), 1);
	assert_int_equal(fh_result_rows(result), 2);
	assert_null(fh_result_engine(result, "job")); /* it ran here */
	fh_result_free(result);
	assert_int_equal(fh_run_commit(run, NULL, 0, NULL, &err), -FH_USAGE);
	fh_run_free(run);
	assert_int_equal(ask(s, "SELECT count(*) FROM finding"), 2);
	assert_ok(fh_show(s->hood, "w1", 0, &text, &err), err);
	json = parse(text);
	text = json_dumps(json_object_get(json, "result"), JSON_COMPACT);
	assert_string_equal(text, "{\"model\":\"m1\"}");
	free(text);
	json_decref(json);
	assert_nothing_left(s);
}

static void test_what_is_dropped_is_recorded_nowhere(void **state)
{
	struct site *s = *state;
	fh_error err = {0};
	fh_result *result;
	json_t *json;
	char *text;
	fh_run *run = start(s, "x1", "echo 42 > answer.txt", FH_DEFER);

	assert_int_equal(fh_run_drop(run, &err), -FH_BUSY);
	fh_result_free(result_of(run));
	assert_ok(fh_run_drop(run, &err), err);
	result = result_of(run);
	assert_int_equal(fh_result_committed(result), 0);
	fh_result_free(result);
	fh_run_free(run);
	assert_ok(fh_list(s->hood, NULL, NULL, 0, &text, &err), err);
	json = parse(text);
	assert_int_equal(json_array_size(json), 0);
	json_decref(json);
	assert_nothing_left(s);
}

static void test_rows_of_a_failure_are_refused(void **state)
{
	fh_run *run = start(*state, "y1", "exit 1", FH_DEFER);
	fh_error err = {0};

	fh_result_free(result_of(run));
	assert_int_equal(fh_run_commit(run, good_rows, strlen(good_rows), NULL, &err), -FH_REFUSED);
	assert_ok(fh_run_commit(run, NULL, 0, NULL, &err), err);
	fh_run_free(run);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, site_setup, site_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_success_has_outputs_usage_and_is_committed),
		TEST(test_a_failure_is_a_verdict_with_its_log),
		TEST(test_what_cannot_be_committed_is_pending_until_gc),
		TEST(test_a_refusal_has_code_stage_and_sentence),
		TEST(test_what_makes_no_sense_is_refused_before_anything_starts),
		TEST(test_every_name_of_an_option_or_a_file_can_be_set),
		TEST(test_a_plan_touches_nothing),
		TEST(test_output_comes_while_it_runs_and_ends_with_it),
		TEST(test_a_host_that_does_not_read_loses_the_oldest_and_is_told),
		TEST(test_a_host_that_wants_all_of_it_loses_nothing),
		TEST(test_what_is_merged_comes_in_the_order_in_which_it_was_written),
		TEST(test_a_host_learns_whether_the_command_was_executed),
		TEST(test_nobody_holds_the_stdin_of_what_has_ended),
		TEST(test_what_it_reads_comes_from_the_hosts_descriptor),
		TEST(test_progress_names_the_stage),
		TEST(test_cancelling_ends_it_with_that_verdict),
		TEST(test_killing_does_not_wait_for_the_grace),
		TEST(test_a_run_that_is_freed_is_dead_and_leaves_nothing),
		TEST(test_the_hood_may_be_closed_before_its_runs),
		TEST(test_rows_and_result_are_committed_with_the_outputs),
		TEST(test_what_is_dropped_is_recorded_nowhere),
		TEST(test_rows_of_a_failure_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
