/* The ledger's promises, the same for every database behind it. */
#include "test_store.h"

#include <signal.h>
#include <sys/wait.h>

static void test_first_use_makes_the_ledger_and_the_second_finds_it(void **state)
{
	const struct place *p = *state;
	struct ledger *l = NULL;
	json_t *status = NULL;

	REFUSED(ledger_open(p->url, 0, &l, &err), "db init");
	assert_int_equal(err.kind, ERROR_NOT_FOUND);
	l = ledger_close(place_open(p));
	OK(ledger_open(p->url, 0, &l, &err));
	OK(ledger_status(l, &status, &err));
	assert_int_equal(json_integer_value(json_object_get(status, "version")), sql_version_wanted);
	assert_int_equal(json_integer_value(json_object_get(status, "wanted")), sql_version_wanted);
	json_decref(status);
	ledger_close(l);
}

static void test_a_newer_schema_is_refused_and_left_alone(void **state)
{
	const struct place *p = *state;
	struct ledger *l = ledger_close(place_open(p));
	char said[128];

	snprintf(said, sizeof said,
		 "made by a newer fumehood (schema 99, this one knows %d): upgrade fumehood",
		 sql_version_wanted);
	place_sql(p, "INSERT INTO fumehood_schema_version VALUES (99, 0, 'x')",
		  "INSERT INTO fumehood.schema_version VALUES (99, now(), 'x')");
	REFUSED(ledger_open(p->url, LEDGER_CREATE, &l, &err), said);
	assert_null(l);
}

/* Every field that an attempt can have. */
static void attempt_fill(struct attempt *a, const struct place *p)
{
	struct input in = {
		.path = (char *)"in\xff.csv", .source = (char *)"/data/\xfe.csv", .size = 3, .mode = 0644};

	a->signal = 9;
	a->status = 137;
	a->started = a->created + 1000000;
	a->ended = a->created + 5000000;
	a->workspace = strdup("/tmp/scidex-analysis-whole");
	a->kept = true;
	a->host = strdup("here");
	a->reason = strdup("used 2.0 GiB of 2 GiB; \xc3\xa9");
	a->request = json_pack("{s:s, s:[s, s], s:n}", "id", a->id, "command", "echo",
			       "\"quoted\" \\ \xe2\x82\xac", "x");
	a->plan = json_pack("{s:i, s:b}", "limit", 3, "held", 1);
	a->result = json_pack("[i, f, s]", 1, 0.1, "text");
	a->usage.wall_ms = 12;
	a->usage.oom_kills = 0;
	a->timeline = calloc(1, sizeof *a->timeline);
	a->timeline->interval_ms = 100;
	a->timeline->count = 2;
	a->timeline->samples[0] = (struct sample){0, 1, 2, 3};
	a->timeline->samples[1] = (struct sample){100, -1, 4096, -1};
	receipt_add(&a->receipt, "landlock", true, "ABI %d", 7);
	receipt_warn(&a->receipt, "a %s", "warning");
	attempt_output(a, p, "out.csv", "a,b\n", 4);
	attempt_output(a, p, "plot.png", "\x89PNG\0\r\n", 7);
	assert_int_equal(manifest_reject(&a->manifest, "li\xffnk", REJECT_SYMLINK, NULL), 0);
	a->manifest.n_rejected_more = 4;
	assert_int_equal(strv_append(&a->manifest.missing, "*.h5", NULL), 0);
	assert_int_equal(strv_append(&a->manifest.present, "out.\xff", NULL), 0);
	digest_bytes("abc", 3, in.sha256);
	assert_int_equal(inputs_add(&a->inputs, &in, NULL), 0);
	in.path = (char *)"from/other/x";
	in.from_analysis = (char *)"other";
	in.from_attempt = 3;
	assert_int_equal(inputs_add(&a->inputs, &in, NULL), 0);
	attempt_event(a, "plan", "made");
	attempt_event(a, "commit", "line\nbreak");
	for (size_t i = 0; i < a->n_events; i++)
		a->events[i].at = a->events[i].at / 1000 * 1000;
	a->error_stage = strdup("clean up");
	a->error_code = strdup("system");
	a->error_message = strdup("cannot remove 'x': Device or resource busy");
}

static void test_what_was_committed_is_loaded_as_it_was(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p);
	_cleanup_attempt_ struct attempt a, b;
	_cleanup_free_ char *before = NULL, *after = NULL;
	json_t *x, *y;

	attempt_make(&a, "whole");
	attempt_fill(&a, p);
	attempt_init(&b);
	assert_int_equal(attempt_commit(l, p, &a), 1);
	OK(ledger_load(l, "whole", 0, &b, &err));
	a.committed = true;
	x = attempt_to_json(&a);
	y = attempt_to_json(&b);
	before = json_dumps(x, JSON_SORT_KEYS | JSON_INDENT(1));
	after = json_dumps(y, JSON_SORT_KEYS | JSON_INDENT(1));
	assert_string_equal(before, after);
	assert_string_equal(b.inputs.list[0].source, "/data/\xfe.csv");
	assert_null(b.inputs.list[0].from_analysis);
	assert_string_equal(b.inputs.list[1].from_analysis, "other");
	assert_int_equal(b.inputs.list[1].from_attempt, 3);
	json_decref(x);
	json_decref(y);
	ledger_close(l);
}

static void test_committing_a_token_twice_changes_nothing(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p);
	_cleanup_attempt_ struct attempt a;
	struct analysis_state s;
	int number = 0;

	attempt_make(&a, "twice");
	attempt_output(&a, p, "x", "x", 1);
	assert_int_equal(ledger_has_token(l, a.token, &number, &err), 0);
	assert_int_equal(attempt_commit(l, p, &a), 1);
	assert_int_equal(quick_commit(l, p, "twice", VERDICT_FAILED), 2);
	a.number = 7;
	a.verdict = VERDICT_LOST;
	assert_int_equal(attempt_commit(l, p, &a), 1);
	assert_int_equal(ledger_has_token(l, a.token, &number, &err), 1);
	assert_int_equal(number, 1);
	OK(ledger_analysis(l, "twice", &s, &err));
	assert_int_equal(s.last_attempt, 2);
	ledger_close(l);
}

static void test_a_number_that_is_taken_gives_way_to_the_next(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p);

	for (int i = 1; i <= 3; i++)
		assert_int_equal(quick_commit(l, p, "same", VERDICT_FAILED), i);
	assert_int_equal(quick_commit(l, p, "other", VERDICT_FAILED), 1);
	ledger_close(l);
}

static void test_the_state_of_an_analysis_follows_its_attempts(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p);
	struct analysis_state s;

	OK(ledger_analysis(l, "a", &s, &err));
	assert_false(s.known);
	quick_commit(l, p, "a", VERDICT_SUCCEEDED);
	quick_commit(l, p, "a", VERDICT_TIMED_OUT);
	OK(ledger_analysis(l, "a", &s, &err));
	assert_true(s.known);
	assert_true(s.succeeded);
	assert_int_equal(s.last_attempt, 2);
	assert_int_equal(s.last_verdict, VERDICT_TIMED_OUT);
	ledger_close(l);
}

static void test_what_is_not_there_is_named_with_what_is(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p);
	struct attempt a;

	REFUSED(ledger_load(l, "no\x1b[2J", 0, &a, &err), "no analysis 'no\\x1b[2J' in the ledger");
	assert_non_null(strstr(err.message, "empty"));
	quick_commit(l, p, "a42", VERDICT_FAILED);
	REFUSED(ledger_load(l, "a43", 0, &a, &err), "the latest there: a42");
	assert_int_equal(err.kind, ERROR_NOT_FOUND);
	REFUSED(ledger_load(l, "a42", 5, &a, &err), "'a42' has no attempt 5: its latest is 1");
	assert_int_equal(err.kind, ERROR_NOT_FOUND);
	ledger_close(l);
}

static void test_any_path_survives(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p);
	_cleanup_attempt_ struct attempt a, b;
	char path[4096];
	struct output o = {.path = path, .media_type = media_type_of("x")};

	attempt_make(&a, "paths");
	attempt_init(&b);
	digest_bytes("", 0, o.sha256);
	for (size_t i = 0; i < sizeof path - 1; i++)
		path[i] = (char)(i % 255 + 1);
	path[sizeof path - 1] = 0;
	place_write(p, "empty", "", 0);
	assert_int_equal(manifest_add(&a.manifest, &o, NULL), 0);
	free(a.manifest.outputs[0].path);
	a.manifest.outputs[0].path = strdup("empty");
	assert_int_equal(manifest_add(&a.manifest, &o, NULL), 0);
	attempt_commit(l, p, &a);
	OK(ledger_load(l, "paths", 1, &b, &err));
	assert_string_equal(b.manifest.outputs[1].path, path);
	ledger_close(l);
}

/* Writes the output to a file and compares. */
static void assert_content(struct ledger *l, const struct place *p, const struct output *o, const void *data)
{
	_cleanup_free_ char *path = path_join(p->dir, "got");
	_cleanup_close_ int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	_cleanup_buffer_ struct buffer got = {0};

	OK(ledger_copy_output(l, o, fd, &err));
	lseek(fd, 0, SEEK_SET);
	assert_int_equal(file_read_all(fd, &got, SIZE_MAX - 1), 0);
	assert_int_equal(got.size, o->size);
	if (o->size)
		assert_memory_equal(got.data, data, o->size);
}

static int64_t status_of(struct ledger *l, const char *name)
{
	json_t *status = NULL;
	int64_t n;

	OK(ledger_status(l, &status, &err));
	n = json_integer_value(json_object_get(status, name));
	json_decref(status);
	return n;
}

static void test_identical_contents_are_stored_once(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p);
	_cleanup_attempt_ struct attempt a, b;

	attempt_make(&a, "one");
	attempt_output(&a, p, "x", "same", 4);
	attempt_output(&a, p, "y", "same", 4);
	attempt_output(&a, p, "empty", "", 0);
	attempt_commit(l, p, &a);
	attempt_make(&b, "two");
	attempt_output(&b, p, "z", "same", 4);
	attempt_commit(l, p, &b);
	assert_int_equal(status_of(l, "outputs"), 4);
	assert_int_equal(status_of(l, "blobs"), 2);
	for (size_t i = 0; i < 3; i++)
		assert_content(l, p, &a.manifest.outputs[i], "same");
	ledger_close(l);
}

static void test_a_content_that_changed_since_it_was_collected_commits_nothing(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p);
	_cleanup_attempt_ struct attempt a;
	static const char *const now[] = {"othe", "tru", "longer"};
	int number;

	attempt_make(&a, "changed");
	attempt_output(&a, p, "ok", "fine", 4);
	attempt_output(&a, p, "x", "true", 4);
	for (size_t i = 0; i < ARRAY_SIZE(now); i++) {
		place_write(p, "x", now[i], strlen(now[i]));
		REFUSED(ledger_commit(l, &a, place_content, (void *)p, &number, &err),
			"output 'x': its content is not what was collected");
	}
	assert_int_equal(status_of(l, "analyses"), 0);
	assert_int_equal(status_of(l, "blobs"), 0);
	place_write(p, "x", "true", 4);
	assert_int_equal(attempt_commit(l, p, &a), 1);
	ledger_close(l);
}

enum { LARGE = 3 * 1024 * 1024 + 17 };

/* A large output that is put into the object store, as collect does it. */
static void attempt_object(struct ledger *l, const struct place *p, struct attempt *a, const char *name,
			   unsigned seed)
{
	_cleanup_free_ char *path = path_join(p->dir, name);
	_cleanup_free_ uint8_t *data = malloc(LARGE);
	_cleanup_close_ int fd = -1;
	uint8_t sha256[DIGEST_SIZE];

	fill(data, LARGE, seed);
	attempt_output(a, p, name, data, LARGE);
	fd = open(path, O_RDONLY);
	OK(ledger_put_object(l, fd, LARGE, sha256, &err));
	assert_memory_equal(sha256, a->manifest.outputs[a->manifest.n_outputs - 1].sha256, DIGEST_SIZE);
	a->manifest.outputs[a->manifest.n_outputs - 1].is_object = true;
}

static char *object_path(const struct place *p, const struct output *o)
{
	char hex[DIGEST_TEXT_SIZE], *path = NULL;

	hex_encode(o->sha256, DIGEST_SIZE, hex);
	assert_true(asprintf(&path, "%s/%.2s/%s", p->objects, hex, hex) > 0);
	return path;
}

static void test_large_outputs_are_objects_beside_the_database(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p);
	_cleanup_attempt_ struct attempt a, b;
	_cleanup_free_ uint8_t *data = malloc(LARGE);
	_cleanup_free_ char *path = NULL;
	struct stat st;

	attempt_make(&a, "large");
	attempt_init(&b);
	attempt_object(l, p, &a, "x", 1);
	attempt_object(l, p, &a, "again", 1);
	attempt_commit(l, p, &a);
	OK(ledger_load(l, "large", 0, &b, &err));
	assert_true(b.manifest.outputs[0].is_object);
	fill(data, LARGE, 1);
	assert_content(l, p, &b.manifest.outputs[0], data);
	path = object_path(p, &b.manifest.outputs[0]);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(status_of(l, "objects"), 1);
	ledger_close(l);
}

static void test_a_large_output_that_is_no_object_yet_becomes_one(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p);
	_cleanup_attempt_ struct attempt a;
	_cleanup_free_ uint8_t *data = malloc(LARGE);

	fill(data, LARGE, 2);
	attempt_make(&a, "late");
	attempt_output(&a, p, "x", data, LARGE);
	attempt_output(&a, p, "limit", data, BLOB_MAX_DEFAULT);
	attempt_commit(l, p, &a);
	assert_int_equal(status_of(l, "objects"), 1);
	assert_content(l, p, &a.manifest.outputs[0], data);
	assert_content(l, p, &a.manifest.outputs[1], data);
	ledger_close(l);
}

static void test_an_object_that_is_gone_is_put_again_or_refused(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p);
	_cleanup_attempt_ struct attempt a;
	_cleanup_free_ char *path = NULL;
	struct stat st;
	int number;

	attempt_make(&a, "gone");
	attempt_object(l, p, &a, "x", 3);
	path = object_path(p, &a.manifest.outputs[0]);
	assert_int_equal(unlink(path), 0);
	place_write(p, "x", "", 0);
	REFUSED(ledger_commit(l, &a, place_content, (void *)p, &number, &err), "has changed");
	assert_int_equal(status_of(l, "attempts"), 0);
	a.manifest.n_outputs = 0;
	free(a.manifest.outputs[0].path);
	attempt_object(l, p, &a, "x", 3);
	assert_int_equal(unlink(path), 0);
	attempt_commit(l, p, &a);
	assert_int_equal(stat(path, &st), 0);
	ledger_close(l);
}

static int collect_id(void *arg, const struct attempt *a, struct error *e)
{
	return buffer_printf(arg, "%s/%d:%s ", a->id, a->number, verdict_name(a->verdict)) < 0
		       ? error_memory(e)
		       : 0;
}

static void assert_list(struct ledger *l, const struct ledger_filter *f, const char *want)
{
	_cleanup_buffer_ struct buffer b = {0};

	OK(ledger_list(l, f, collect_id, &b, &err));
	assert_string_equal(b.data ? b.data : "", want);
}

static void test_a_list_has_the_latest_attempt_of_each_newest_first(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p);

	assert_list(l, NULL, "");
	quick_commit(l, p, "a_1", VERDICT_FAILED);
	quick_commit(l, p, "b", VERDICT_SUCCEEDED);
	quick_commit(l, p, "ax1", VERDICT_FAILED);
	quick_commit(l, p, "a_1", VERDICT_SUCCEEDED);
	assert_list(l, NULL, "a_1/2:succeeded ax1/1:failed b/1:succeeded ");
	assert_list(l, &(struct ledger_filter){.limit = 1}, "a_1/2:succeeded ");
	assert_list(l, &(struct ledger_filter){.verdicts = 1U << VERDICT_SUCCEEDED},
		    "a_1/2:succeeded b/1:succeeded ");
	assert_list(l, &(struct ledger_filter){.prefix = "a_"}, "a_1/2:succeeded ");
	assert_list(l, &(struct ledger_filter){.verdicts = 1U << VERDICT_FAILED, .prefix = "a"},
		    "ax1/1:failed ");
	assert_list(l,
		    &(struct ledger_filter){.verdicts = 1U << VERDICT_FAILED | 1U << VERDICT_SUCCEEDED,
					    .limit = 2},
		    "a_1/2:succeeded ax1/1:failed ");
	assert_list(l, &(struct ledger_filter){.pattern = "*1", .prefix = "", .limit = 9},
		    "a_1/2:succeeded ax1/1:failed ");
	assert_list(l, &(struct ledger_filter){.pattern = "?", .limit = 1}, "b/1:succeeded ");
	assert_list(l, &(struct ledger_filter){.since = INT64_MAX - 1}, "");
	assert_list(l, &(struct ledger_filter){.until = 1000000}, "");
	assert_list(l, &(struct ledger_filter){.submitter = "nobody at all"}, "");
	ledger_close(l);
}

static void test_all_attempts_are_told(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p);
	json_t *attempts = NULL, *first;

	quick_commit(l, p, "a", VERDICT_FAILED);
	quick_commit(l, p, "a", VERDICT_SUCCEEDED);
	OK(ledger_attempts(l, "a", &attempts, &err));
	assert_int_equal(json_array_size(attempts), 2);
	first = json_array_get(attempts, 0);
	assert_string_equal(json_string_value(json_object_get(first, "verdict")), "failed");
	assert_true(json_is_null(json_object_get(first, "ended")));
	json_decref(attempts);
	ledger_close(l);
}

static void test_logs_keep_every_byte(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p);
	_cleanup_attempt_ struct attempt a;
	struct captured log;

	attempt_make(&a, "logs");
	a.logs[STREAM_STDERR] =
		(struct captured){.head = strndup("a\0b\xff", 4), .head_size = 2, .omitted = 1ull << 40};
	a.logs[STREAM_STDERR].tail = strdup("end\n");
	a.logs[STREAM_STDERR].tail_size = 4;
	attempt_commit(l, p, &a);
	OK(ledger_load_log(l, &a, STREAM_STDERR, &log, &err));
	assert_int_equal(log.head_size, 2);
	assert_memory_equal(log.head, "a\0", 2);
	assert_string_equal(log.tail, "end\n");
	assert_int_equal(log.omitted, 1ull << 40);
	free(log.head);
	free(log.tail);
	OK(ledger_load_log(l, &a, STREAM_STDOUT, &log, &err));
	assert_int_equal(log.head_size + log.tail_size + log.omitted, 0);
	free(log.head);
	free(log.tail);
	ledger_close(l);
}

static void test_a_sweep_removes_what_nobody_refers_to(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p), *other = place_open(p);
	_cleanup_attempt_ struct attempt a, b;
	_cleanup_free_ char *kept = NULL, *orphan = NULL, *dead = path_join(p->objects, "tmp/x.1.dead");
	uint64_t removed = 0;

	attempt_make(&a, "kept");
	attempt_object(l, p, &a, "x", 1);
	attempt_commit(l, p, &a);
	attempt_make(&b, "orphan");
	attempt_object(l, p, &b, "y", 2);
	ledger_close(l);
	kept = object_path(p, &a.manifest.outputs[0]);
	orphan = object_path(p, &b.manifest.outputs[0]);
	assert_int_equal(close(open(dead, O_CREAT | O_WRONLY, 0600)), 0);
	OK(ledger_sweep(other, &removed, &err));
	assert_int_equal(removed, 2);
	assert_int_equal(access(kept, F_OK), 0);
	assert_int_equal(access(orphan, F_OK), -1);
	assert_int_equal(access(dead, F_OK), -1);
	ledger_close(other);
}

static void test_a_sweep_leaves_alone_what_is_about_to_be_committed(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p), *other = place_open(p);
	_cleanup_attempt_ struct attempt a;
	uint64_t removed = 0;

	attempt_make(&a, "soon");
	attempt_object(l, p, &a, "x", 1);
	OK(ledger_sweep(other, &removed, &err));
	OK(ledger_sweep(l, &removed, &err));
	assert_int_equal(removed, 0);
	attempt_commit(l, p, &a);
	OK(ledger_sweep(other, &removed, &err));
	assert_int_equal(removed, 0);
	ledger_close(other);
	ledger_close(l);
}

static void test_a_pin_keeps_the_objects_of_a_finished_attempt(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p);
	_cleanup_attempt_ struct attempt a;
	_cleanup_free_ char *object = NULL, *pin = NULL;
	uint64_t removed = 0;

	attempt_make(&a, "pinned");
	attempt_object(l, p, &a, "x", 1);
	OK(ledger_pin(l, &a, &err));
	ledger_close(l);
	l = place_open(p);
	OK(ledger_sweep(l, &removed, &err));
	assert_int_equal(removed, 0);
	object = object_path(p, &a.manifest.outputs[0]);
	assert_int_equal(access(object, F_OK), 0);
	assert_true(asprintf(&pin, "%s/pins/%s", p->objects, a.token) > 0);
	assert_int_equal(access(pin, F_OK), 0);
	attempt_commit(l, p, &a);
	assert_int_equal(access(pin, F_OK), -1);
	ledger_close(l);
}

static void test_the_pin_of_a_committed_attempt_is_swept(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p);
	_cleanup_attempt_ struct attempt a;
	_cleanup_free_ char *object = NULL;
	uint64_t removed = 0;

	attempt_make(&a, "lost");
	attempt_object(l, p, &a, "x", 1);
	OK(ledger_pin(l, &a, &err));
	object = object_path(p, &a.manifest.outputs[0]);
	ledger_close(l);
	l = place_open(p);
	a.manifest.n_outputs = 0;
	a.verdict = VERDICT_LOST;
	attempt_commit(l, p, &a);
	a.manifest.n_outputs = 1;
	OK(ledger_sweep(l, &removed, &err));
	assert_int_equal(removed, 1);
	assert_int_equal(access(object, F_OK), -1);
	ledger_close(l);
}

/* The kinds of the problems that a check finds, in a row. */
static void assert_check(struct ledger *l, const char *want)
{
	_cleanup_buffer_ struct buffer kinds = {0};
	json_t *check = NULL, *problem;
	size_t i;

	OK(ledger_check(l, &check, &err));
	json_array_foreach (json_object_get(check, "problems"), i, problem) {
		buffer_printf(&kinds, "%s ", json_string_value(json_object_get(problem, "kind")));
		assert_true(strlen(json_string_value(json_object_get(problem, "message"))) > 10);
	}
	assert_string_equal(kinds.data ? kinds.data : "", want);
	json_decref(check);
}

static void flip_bit(const char *path, off_t at)
{
	_cleanup_close_ int fd = open(path, O_RDWR);
	char c;

	assert_int_equal(pread(fd, &c, 1, at), 1);
	c ^= 4;
	assert_int_equal(pwrite(fd, &c, 1, at), 1);
}

static void test_a_check_finds_a_flipped_bit_a_missing_object_and_an_orphan(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p);
	_cleanup_attempt_ struct attempt a, b;
	_cleanup_free_ char *first = NULL, *second = NULL, *sink = path_join(p->dir, "sink");
	_cleanup_close_ int fd = open(sink, O_WRONLY | O_CREAT, 0600);

	attempt_make(&a, "checked");
	attempt_object(l, p, &a, "x", 1);
	attempt_object(l, p, &a, "y", 2);
	attempt_output(&a, p, "small", "small", 5);
	attempt_commit(l, p, &a);
	assert_check(l, "");
	first = object_path(p, &a.manifest.outputs[0]);
	second = object_path(p, &a.manifest.outputs[1]);
	flip_bit(first, LARGE - 1);
	assert_check(l, "damaged ");
	REFUSED(ledger_copy_output(l, &a.manifest.outputs[0], fd, &err), "damaged");
	flip_bit(first, LARGE - 1);
	assert_int_equal(unlink(second), 0);
	assert_check(l, "missing ");
	REFUSED(ledger_copy_output(l, &a.manifest.outputs[1], fd, &err), "cannot get 'y': the object");
	attempt_make(&b, "never");
	attempt_object(l, p, &b, "z", 3);
	ledger_close(l);
	l = place_open(p);
	assert_check(l, "missing orphan ");
	ledger_close(l);
}

static void test_a_check_finds_a_flipped_bit_in_the_database(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p);
	_cleanup_attempt_ struct attempt a;

	attempt_make(&a, "flip");
	attempt_output(&a, p, "x", "content", 7);
	attempt_commit(l, p, &a);
	place_sql(p, "UPDATE fumehood_blob SET content = CAST('contemt' AS BLOB)",
		  "UPDATE fumehood.blob SET content = 'contemt'");
	assert_check(l, "damaged ");
	REFUSED(ledger_copy_output(l, &a.manifest.outputs[0], 1, &err), "cannot get 'x'");
	ledger_close(l);
}

static void test_a_check_finds_outputs_that_lost_what_they_belong_to(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p);
	_cleanup_attempt_ struct attempt a;

	attempt_make(&a, "torn");
	attempt_output(&a, p, "x", "content", 7);
	attempt_output(&a, p, "y", "other", 5);
	attempt_commit(l, p, &a);
	place_sql(p, "PRAGMA foreign_keys = OFF; DELETE FROM fumehood_blob WHERE size = 7",
		  "DELETE FROM fumehood.blob WHERE size = 7");
	assert_check(l, "reference ");
	place_sql(
		p, "PRAGMA foreign_keys = OFF; DELETE FROM fumehood_attempt",
		"ALTER TABLE fumehood.log DROP CONSTRAINT log_analysis_id_attempt_fkey; DELETE FROM fumehood.attempt");
	assert_check(l, "reference reference ");
	ledger_close(l);
}

static void test_a_missing_table_is_one_clear_sentence(void **state)
{
	const struct place *p = *state;
	struct ledger *l = place_open(p);
	_cleanup_attempt_ struct attempt a;
	int number;

	place_sql(p, "DROP TABLE fumehood_event", "DROP TABLE fumehood.event");
	attempt_make(&a, "t");
	attempt_event(&a, "plan", "x");
	REFUSED(ledger_commit(l, &a, place_content, (void *)p, &number, &err), "event");
	assert_non_null(strstr(err.message, "incomplete"));
	assert_int_equal(err.kind, ERROR_LEDGER);
	assert_int_equal(status_of(l, "attempts"), 0);
	ledger_close(l);
}

enum { CHILDREN = 8 };

/* fn in several processes at once, let go together; it returns what is added up. */
static int in_parallel(const struct place *p, const char *token,
		       int (*fn)(const struct place *, const char *))
{
	int go[2], back[2], sum = 0;
	char byte = 0;

	assert_int_equal(pipe(go), 0);
	assert_int_equal(pipe(back), 0);
	for (int i = 0; i < CHILDREN; i++) {
		if (fork() == 0) {
			close(go[1]);
			(void)!read(go[0], &byte, 1);
			int n = fn(p, token);
			(void)!write(back[1], &n, sizeof n);
			_exit(0);
		}
	}
	close(go[0]);
	close(go[1]);
	close(back[1]);
	for (int n; read(back[0], &n, sizeof n) == sizeof n;)
		sum += n;
	close(back[0]);
	while (wait(NULL) > 0)
		;
	return sum;
}

static int commit_in_child(const struct place *p, const char *token)
{
	_cleanup_attempt_ struct attempt a;
	struct error e = ERROR_INIT;
	struct ledger *l = NULL;
	int number = 0;

	attempt_make(&a, "crowd");
	if (token)
		snprintf(a.token, sizeof a.token, "%s", token);
	attempt_output(&a, p, "shared", "the same for all", 16);
	if (ledger_open(p->url, LEDGER_CREATE, &l, &e) < 0 ||
	    ledger_commit(l, &a, place_content, (void *)p, &number, &e) < 0)
		fprintf(stderr, "%s\n", e.message);
	ledger_close(l);
	return number;
}

static void test_first_uses_at_the_same_time_all_succeed(void **state)
{
	const struct place *p = *state;
	struct ledger *l;

	place_write(p, "shared", "the same for all", 16);
	assert_int_equal(in_parallel(p, NULL, commit_in_child), CHILDREN * (CHILDREN + 1) / 2);
	l = place_open(p);
	assert_int_equal(status_of(l, "attempts"), CHILDREN);
	assert_int_equal(status_of(l, "blobs"), 1);
	ledger_close(l);
}

static void test_supervisors_with_the_same_attempt_commit_it_once(void **state)
{
	const struct place *p = *state;
	struct ledger *l;

	place_write(p, "shared", "the same for all", 16);
	assert_int_equal(in_parallel(p, "0123456789abcdef0123456789abcdef", commit_in_child), CHILDREN);
	l = place_open(p);
	assert_int_equal(status_of(l, "attempts"), 1);
	ledger_close(l);
}

static void test_a_commit_survives_a_process_that_never_closes(void **state)
{
	const struct place *p = *state;
	struct ledger *l;
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		_cleanup_attempt_ struct attempt a;
		struct error e = ERROR_INIT;
		int number = 0;

		attempt_make(&a, "killed");
		if (ledger_open(p->url, LEDGER_CREATE, &l, &e) == 0 &&
		    ledger_commit(l, &a, place_content, (void *)p, &number, &e) == 0)
			kill(getpid(), SIGKILL);
		_exit(1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	l = place_open(p);
	assert_int_equal(status_of(l, "attempts"), 1);
	assert_check(l, "");
	ledger_close(l);
}

#define ROW(name) cmocka_unit_test_setup_teardown(test_##name, place_setup, place_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROW(first_use_makes_the_ledger_and_the_second_finds_it),
		ROW(a_newer_schema_is_refused_and_left_alone),
		ROW(what_was_committed_is_loaded_as_it_was),
		ROW(committing_a_token_twice_changes_nothing),
		ROW(a_number_that_is_taken_gives_way_to_the_next),
		ROW(the_state_of_an_analysis_follows_its_attempts),
		ROW(what_is_not_there_is_named_with_what_is),
		ROW(any_path_survives),
		ROW(identical_contents_are_stored_once),
		ROW(a_content_that_changed_since_it_was_collected_commits_nothing),
		ROW(large_outputs_are_objects_beside_the_database),
		ROW(a_large_output_that_is_no_object_yet_becomes_one),
		ROW(an_object_that_is_gone_is_put_again_or_refused),
		ROW(a_list_has_the_latest_attempt_of_each_newest_first),
		ROW(all_attempts_are_told),
		ROW(logs_keep_every_byte),
		ROW(a_sweep_removes_what_nobody_refers_to),
		ROW(a_sweep_leaves_alone_what_is_about_to_be_committed),
		ROW(a_pin_keeps_the_objects_of_a_finished_attempt),
		ROW(the_pin_of_a_committed_attempt_is_swept),
		ROW(a_check_finds_a_flipped_bit_a_missing_object_and_an_orphan),
		ROW(a_check_finds_a_flipped_bit_in_the_database),
		ROW(a_check_finds_outputs_that_lost_what_they_belong_to),
		ROW(a_missing_table_is_one_clear_sentence),
		ROW(first_uses_at_the_same_time_all_succeed),
		ROW(supervisors_with_the_same_attempt_commit_it_once),
		ROW(a_commit_survives_a_process_that_never_closes),
	};

	return cmocka_run_group_tests_name(getenv("TEST_LEDGER") ? "store on PostgreSQL" : "store on SQLite",
					   tests, NULL, NULL);
}
