/* Reading the ledger, held workspaces, the house: the library says what the command says. */
#include "site.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* What `fumehood WORDS --json` prints. */
static json_t *command(const struct site *s, const char *words)
{
	char line[512];
	json_error_t at;
	json_t *json;
	FILE *f;

	snprintf(line, sizeof line, "%s %s --config %s --json", getenv("FUMEHOOD"), words, s->config);
	f = popen(line, "re");
	assert_non_null(f);
	json = json_loadf(f, JSON_DECODE_ANY, &at);
	pclose(f);
	if (!json)
		fail_msg("%s: %s", line, at.text);
	return json;
}

/* Fails with the first of an object's values that differs. */
static void complain(const char *words, json_t *theirs, json_t *ours)
{
	const char *key;
	json_t *value;

	json_object_foreach (theirs, key, value)
		if (!json_equal(value, json_object_get(ours, key)))
			fail_msg("`%s` says %s: %s, the library %s", words, key,
				 json_dumps(value, JSON_ENCODE_ANY),
				 json_dumps(json_object_get(ours, key), JSON_ENCODE_ANY));
	fail_msg("`%s` says %s, the library %s", words, json_dumps(theirs, 0), json_dumps(ours, 0));
}

static void assert_same(const struct site *s, const char *words, char *text)
{
	json_t *theirs = command(s, words), *ours = parse(text);

	if (!json_equal(theirs, ours))
		complain(words, theirs, ours);
	json_decref(theirs);
	json_decref(ours);
}

static fh_result *perform_from(struct site *s, const char *id, const char *script, const char *from)
{
	fh_request *request = shell(id, script);
	fh_result *result = NULL;
	fh_error err = {0};

	assert_ok(fh_request_set(request, "from", from, &err), err);
	assert_ok(fh_perform(s->hood, request, &result, &err), err);
	assert_int_equal(fh_result_verdict(result), FH_SUCCEEDED);
	fh_request_free(request);
	return result;
}

static void test_the_library_says_what_the_command_says(void **state)
{
	struct site *s = *state;
	fh_error err = {0};
	char *text;

	fh_result_free(perform(s, "a1", "echo 42 > answer.txt; ln -s /etc link; printf 'a\\377b' >&2"));
	fh_result_free(perform(s, "a2", "echo out; exit 3"));
	fh_result_free(perform(s, "a2", "exit 4"));
	assert_ok(fh_workspace_create(s->hood, "held1", 0, 0, &text, &err), err);
	fh_free(text);
	assert_ok(fh_list(s->hood, NULL, NULL, 0, &text, &err), err);
	assert_same(s, "ls", text);
	assert_ok(fh_list(s->hood, "failed", "a", 1, &text, &err), err);
	assert_same(s, "ls a --state failed --limit 1", text);
	assert_ok(fh_list_where(s->hood,
				(const char *const[]){"verdict=failed,succeeded", "id=a?", "since=1h",
						      "sort=id", "limit=1", NULL},
				&text, &err),
		  err);
	assert_same(s, "ls a? --verdict failed,succeeded --since 1h --sort id --limit 1", text);
	assert_ok(fh_list_where(s->hood, NULL, &text, &err), err);
	assert_same(s, "ls", text);
	assert_ok(fh_show(s->hood, "a2", 0, &text, &err), err);
	assert_same(s, "show a2", text);
	assert_ok(fh_show(s->hood, "a2", 1, &text, &err), err);
	assert_same(s, "show a2 --attempt 1", text);
	assert_ok(fh_show(s->hood, "held1", 0, &text, &err), err);
	assert_same(s, "show held1", text);
	fh_result_free(perform_from(s, "a3", "cat from/a1/answer.txt", "a1:*.txt"));
	assert_ok(fh_lineage(s->hood, "a1", 0, &text, &err), err);
	assert_non_null(strstr(text, "\"a3\""));
	assert_same(s, "show a1 --lineage", text);
	assert_ok(fh_outputs(s->hood, "a1", 0, &text, &err), err);
	assert_same(s, "outputs a1", text);
	assert_ok(fh_logs(s->hood, "a1", 0, &text, &err), err);
	assert_same(s, "logs a1 --stdout --stderr --post-process", text);
	assert_ok(fh_db_status(s->hood, &text, &err), err);
	assert_same(s, "db status", text);
	assert_ok(fh_db_check(s->hood, &text, &err), err);
	assert_same(s, "db check", text);
	assert_ok(fh_db_init(s->hood, &text, &err), err);
	fh_free(text);
	assert_int_equal(fh_db_roles(s->hood, &text, &err), -FH_REFUSED);
	assert_non_null(strstr(err.message, "an SQLite ledger has no roles"));
	assert_ok(fh_db_upgrade(s->hood, &text, &err), err);
	fh_free(text);
	assert_ok(fh_gc(s->hood, &text, &err), err);
	assert_same(s, "gc", text);
	assert_ok(fh_workspace_cleanup(s->hood, "held1", &err), err);
	assert_ok(fh_workspace_cleanup(s->hood, "held1", &err), err);
	assert_int_equal(fh_list(s->hood, "no such state", NULL, 0, &text, &err), -FH_USAGE);
	assert_int_equal(fh_list_where(s->hood, (const char *const[]){"colour=red", NULL}, &text, &err),
			 -FH_USAGE);
	assert_int_equal(fh_list_where(s->hood, (const char *const[]){"limit", NULL}, &text, &err),
			 -FH_USAGE);
	assert_int_equal(fh_show(s->hood, "nobody", 0, &text, &err), -FH_NOT_FOUND);
	assert_int_equal(fh_show(s->hood, "../x", 0, &text, &err), -FH_USAGE);
	assert_int_equal(fh_lineage(s->hood, "nobody", 0, &text, &err), -FH_NOT_FOUND);
	assert_int_equal(fh_lineage(s->hood, "../x", 0, &text, &err), -FH_USAGE);
	assert_nothing_left(s);
}

static void test_a_doctor_in_the_library_finds_what_the_command_finds(void **state)
{
	struct site *s = *state;
	fh_error err = {0};
	json_t *json;
	char *text;

	assert_ok(fh_doctor(s->hood, &text, &err), err);
	json = parse(text);
	assert_true(json_is_true(json_object_get(json, "ok")));
	assert_true(json_array_size(json_object_get(json, "items")) > 5);
	json_decref(json);
}

static void test_an_output_can_be_taken(void **state)
{
	struct site *s = *state;
	int fd = memfd_create("output", MFD_CLOEXEC);
	fh_result *result = NULL;
	fh_error err = {0};
	char text[8] = "", *log;
	size_t size;

	fh_result_free(perform(s, "g1", "echo 42 > answer.txt; echo said; echo loud >&2"));
	assert_ok(fh_get(s->hood, "g1", 0, "answer.txt", fd, &err), err);
	assert_int_equal(pread(fd, text, sizeof text, 0), 3);
	assert_string_equal(text, "42\n");
	assert_int_equal(fh_get(s->hood, "g1", 0, "nothing", fd, &err), -FH_NOT_FOUND);
	assert_int_equal(ftruncate(fd, 0), 0);
	lseek(fd, 0, SEEK_SET);
	assert_ok(fh_log_copy(s->hood, "g1", 0, FH_STDOUT, fd, 1, -1, &err), err);
	assert_int_equal(pread(fd, text, sizeof text, 0), 5);
	close(fd);
	assert_ok(fh_load(s->hood, "g1", 0, &result, &err), err);
	assert_int_equal(fh_result_verdict(result), FH_SUCCEEDED);
	assert_int_equal(fh_result_committed(result), 1);
	assert_ok(fh_result_log(result, FH_STDERR, 100, &log, &size, &err), err);
	assert_string_equal(log, "loud\n");
	fh_free(log);
	assert_ok(fh_result_explain(result, &log, &err), err);
	assert_string_equal(
		log, "verdict: succeeded\nevidence: exit status 0, 1 output, committed\nstderr: loud\n");
	fh_free(log);
	fh_result_free(result);
}

static void test_a_log_can_be_followed_from_elsewhere(void **state)
{
	struct site *s = *state;
	fh_request *request = shell("f1", "echo one; sleep 0.5; echo two");
	fh_run *run = NULL;
	fh_error err = {0};
	int ends[2];
	char text[64] = "";

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_ok(fh_start(s->hood, request, 0, &run, &err), err);
	while (fh_log_copy(s->hood, "f1", 0, FH_STDOUT, ends[1], 1, -1, &err) == -FH_NOT_FOUND)
		; /* not begun yet */
	assert_int_equal(fh_run_wait(run, -1, &err), 1);
	assert_int_equal(read(ends[0], text, sizeof text), 8);
	assert_string_equal(text, "one\ntwo\n");
	close(ends[0]);
	close(ends[1]);
	fh_run_free(run);
	fh_request_free(request);
}

/* ---- held workspaces ---- */

static void write_file(const char *directory, const char *name, const char *text)
{
	char path[300];
	FILE *f;

	snprintf(path, sizeof path, "%s/%s", directory, name);
	f = fopen(path, "we");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static int make_rows(void *arg, const fh_result *collected, int workspace, fh_rows *rows, fh_error *err)
{
	static const char start[] = "{\"table\": \"finding\", \"row\": {\"title\": ",
			  rest[] = "\"a\", \"score\": 1}}\n";
	fh_output o;
	struct stat st;
	int *refuses = arg;

	if (fh_result_outputs(collected) != 1 || fh_result_output(collected, 0, &o, err) < 0 ||
	    fstatat(workspace, o.path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -1;
	if (*refuses == 1)
		return -1;
	if (*refuses == 2) {
		err->code = FH_USAGE;
		strcpy(err->message, "the handler said no");
		return -1;
	}
	return fh_rows_add(rows, start, strlen(start), err) | fh_rows_add(rows, rest, strlen(rest), err);
}

static void test_a_held_workspace_is_committed_with_rows_of_a_handler(void **state)
{
	struct site *s = *state;
	const char *outputs[] = {"*.csv", NULL};
	fh_result *result = NULL;
	fh_error err = {0};
	char *path, *again;
	int refuses;
	char create[512];

	assert_ok(fh_workspace_create(s->hood, "w1", 0, 0, &path, &err), err);
	assert_ok(fh_workspace_create(s->hood, "w1", 0, 0, &again, &err), err);
	assert_string_equal(path, again);
	write_file(path, "a.csv", "x,1\n");
	write_file(path, "b.txt", "no output\n");
	refuses = 1;
	assert_int_equal(fh_commit(s->hood, "w1", outputs, NULL, make_rows, &refuses, 0, &result, &err),
			 -FH_REFUSED);
	assert_non_null(strstr(err.message, "nothing was committed"));
	refuses = 2;
	assert_int_equal(fh_commit(s->hood, "w1", outputs, NULL, make_rows, &refuses, 0, &result, &err),
			 -FH_USAGE);
	assert_string_equal(err.message, "the handler said no");
	assert_int_equal(fh_load(s->hood, "w1", 0, &result, &err), -FH_NOT_FOUND);
	fh_close(s->hood);
	snprintf(create, sizeof create,
		 "/usr/bin/python3 -c 'import sqlite3; c = sqlite3.connect(\"%s/ledger.db\"); "
		 "c.execute(\"CREATE TABLE finding (title TEXT, score REAL)\"); c.commit()'",
		 s->directory);
	assert_int_equal(system(create), 0);
	s->hood = NULL;
	site_open(s);
	refuses = 0;
	assert_ok(fh_commit(s->hood, "w1", outputs, "[1, 2]", make_rows, &refuses, 0, &result, &err), err);
	assert_int_equal(fh_result_committed(result), 1);
	assert_int_equal(fh_result_rows(result), 1);
	assert_int_equal(fh_result_outputs(result), 1);
	fh_result_free(result);
	assert_int_equal(fh_commit(s->hood, "w1", NULL, NULL, NULL, NULL, 0, &result, &err), -FH_REFUSED);
	assert_ok(fh_commit(s->hood, "w1", NULL, NULL, NULL, NULL, FH_AGAIN, &result, &err), err);
	assert_int_equal(fh_result_attempt(result), 2);
	fh_result_free(result);
	assert_ok(fh_workspace_cleanup(s->hood, "w1", &err), err);
	assert_int_not_equal(access(path, F_OK), 0);
	fh_free(path);
	fh_free(again);
	assert_nothing_left(s);
}

static void test_a_run_adopts_the_workspace_that_its_host_holds(void **state)
{
	struct site *s = *state;
	fh_result *result;
	fh_error err = {0};
	char *path;

	assert_ok(fh_workspace_create(s->hood, "v1", 0, 0, &path, &err), err);
	write_file(path, "script.sh", "echo ran > out.txt\n");
	result = perform(s, "v1", "sh script.sh");
	if (fh_result_error(result, &err) != FH_OK)
		fail_msg("%s", err.message);
	assert_int_equal(fh_result_verdict(result), FH_SUCCEEDED);
	assert_int_equal(fh_result_outputs(result), 1);
	fh_result_free(result);
	assert_int_equal(fh_workspace_create(s->hood, "v2", 0, -1, &path, &err), -FH_USAGE);
	fh_free(path);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, site_setup, site_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_the_library_says_what_the_command_says),
		TEST(test_a_doctor_in_the_library_finds_what_the_command_finds),
		TEST(test_an_output_can_be_taken),
		TEST(test_a_log_can_be_followed_from_elsewhere),
		TEST(test_a_held_workspace_is_committed_with_rows_of_a_handler),
		TEST(test_a_run_adopts_the_workspace_that_its_host_holds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
