#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "attempt.h"
#include "attempt_stream.h"
#include "buffer.h"
#include "plan.h"
#include "text.h"

/* An attempt in which every member has a value of its own. */
static void fill(struct attempt *a)
{
	struct output o = {.path = (char *)"results/genes.csv",
			   .sha256 = {1, 2, 0xfe},
			   .size = 12345678901ULL,
			   .media_type = "text/csv",
			   .is_object = true};
	struct output odd = {.path = (char *)"caf\xe9.bin", .media_type = "application/octet-stream"};
	struct input in = {.path = (char *)"a.py",
			   .source = (char *)"/src/\xff.py",
			   .sha256 = {9},
			   .size = 3,
			   .mode = 0644,
			   .from_analysis = (char *)"a41",
			   .from_attempt = 2};
	struct error err = {.kind = ERROR_LEDGER, .stage = "commit", .message = "cannot reach it"};

	attempt_init(a);
	strcpy(a->id, "a42");
	a->number = 3;
	strcpy(a->token, "00112233445566778899aabbccddeeff");
	a->verdict = VERDICT_OUT_OF_MEMORY;
	a->signal = 9;
	a->status = 137;
	a->created = 1794709448123456789LL;
	a->started = 1794709448123456790LL;
	a->ended = 1794709449000000001LL;
	a->workspace = strdup("/tmp/scidex-analysis-a42");
	a->kept = true;
	a->host = strdup("node1");
	a->reason = strdup("used 2.0 GiB of 2 GiB");
	a->request = json_pack("{s:s}", "id", "a42");
	a->plan = json_pack("{s:i}", "attempt", 3);
	a->result = json_pack("[i, n]", 1);
	a->usage = (struct usage){1, 2, 3, 4, 5, 6, -1, 8, 9, 10, 11, 12, 0, 14};
	a->timeline = calloc(1, sizeof *a->timeline);
	timeline_add(a->timeline, &(struct sample){0, 1, 2, -1});
	timeline_add(a->timeline, &(struct sample){100, 3, 4, 5});
	receipt_add(&a->receipt, "landlock", true, "ABI %d", 7);
	receipt_add(&a->receipt, "limit disk", false, "%s", "no quota here");
	receipt_warn(&a->receipt, "disk limit of %s dropped", "10G");
	assert_int_equal(manifest_add(&a->manifest, &o, NULL), 0);
	assert_int_equal(manifest_add(&a->manifest, &odd, NULL), 0);
	assert_int_equal(manifest_reject(&a->manifest, "link\x80", REJECT_SYMLINK, NULL), 0);
	a->manifest.n_rejected_more = 7;
	assert_int_equal(strv_append(&a->manifest.missing, "*.png", NULL), 0);
	assert_int_equal(strv_append(&a->manifest.present, "plot.svg\xff", NULL), 0);
	assert_int_equal(inputs_add(&a->inputs, &in, NULL), 0);
	a->logs[STREAM_STDERR].head = strdup("hello");
	a->logs[STREAM_STDERR].head_size = 5;
	a->logs[STREAM_STDERR].omitted = 77;
	attempt_event(a, "sandbox", "raised %d walls", 8);
	assert_int_equal(attempt_set_error(a, &err), 0);
	a->committed = true;
}

static void test_an_attempt_survives_json_and_back(void **state)
{
	_cleanup_attempt_ struct attempt a, back;
	struct error err = ERROR_INIT;
	json_auto_t *json = NULL, *read = NULL, *again = NULL;
	char *text;

	(void)state;
	attempt_init(&back);
	fill(&a);
	json = attempt_to_json(&a);
	assert_non_null(json);
	text = json_dumps(json, 0);
	read = json_loads(text, 0, NULL);
	free(text);
	if (attempt_from_json(&back, read, &err) < 0)
		fail_msg("%s", err.message);
	again = attempt_to_json(&back);
	assert_true(json_equal(json, again));

	assert_string_equal(back.id, "a42");
	assert_string_equal(back.token, a.token);
	assert_int_equal(back.verdict, a.verdict);
	assert_int_equal(back.exit_code, -1);
	assert_true(back.created == a.created && back.started == a.started && back.ended == a.ended);
	assert_memory_equal(&back.usage, &a.usage, sizeof a.usage);
	assert_memory_equal(back.timeline, a.timeline, sizeof *a.timeline);
	assert_int_equal(back.receipt.count, 2);
	assert_string_equal(back.receipt.layers[1].detail, "no quota here");
	assert_string_equal(back.manifest.outputs[1].path, "caf\xe9.bin");
	assert_memory_equal(back.manifest.outputs[0].sha256, a.manifest.outputs[0].sha256, DIGEST_SIZE);
	assert_true(back.manifest.outputs[0].is_object);
	assert_string_equal(back.manifest.outputs[0].media_type, "text/csv");
	assert_string_equal(back.manifest.rejected[0].path, "link\x80");
	assert_string_equal(back.manifest.rejected[0].reason, REJECT_SYMLINK);
	assert_string_equal(back.manifest.present[0], "plot.svg\xff");
	assert_string_equal(back.inputs.list[0].source, "/src/\xff.py");
	assert_int_equal(back.inputs.list[0].mode, 0644);
	assert_string_equal(back.inputs.list[0].from_analysis, "a41");
	assert_int_equal(back.inputs.list[0].from_attempt, 2);
	assert_int_equal(back.logs[STREAM_STDERR].head_size, 5);
	assert_null(back.logs[STREAM_STDERR].head);
	assert_int_equal(back.logs[STREAM_STDERR].omitted, 77);
	assert_string_equal(back.events[0].text, "raised 8 walls");
	assert_string_equal(back.error_code, "ledger");
}

static int put(const char *text, size_t size, void *arg)
{
	return buffer_append(arg, text, size);
}

/* Reads the first n lines; whether that is all of it. */
static bool read_lines(struct attempt *a, const char *text, int n)
{
	struct attempt_lines lines = {0};
	struct error err = ERROR_INIT;

	for (; n > 0 && *text; n--) {
		size_t size = strcspn(text, "\n");

		if (attempt_read_line(a, &lines, text, size, &err) < 0)
			fail_msg("%s", err.message);
		text += size + 1;
	}
	return attempt_lines_are_whole(&lines);
}

static void test_an_attempt_survives_lines_and_back_and_a_missing_line_is_missed(void **state)
{
	_cleanup_attempt_ struct attempt a;
	_cleanup_buffer_ struct buffer text = {0};
	json_auto_t *json = NULL, *again = NULL;

	(void)state;
	fill(&a);
	assert_int_equal(attempt_write_lines(&a, put, &text), 0);
	for (int n = 0; n <= 5; n++) {
		_cleanup_attempt_ struct attempt back;

		attempt_init(&back);
		assert_int_equal(read_lines(&back, text.data, n), n == 5);
		if (n < 5)
			continue;
		json = attempt_to_json(&a);
		again = attempt_to_json(&back);
		assert_true(json_equal(json, again));
	}
}

static void test_a_line_too_many_or_a_broken_one_is_refused(void **state)
{
	_cleanup_attempt_ struct attempt a, back;
	struct attempt_lines lines = {.head = true};
	struct error err = ERROR_INIT;

	(void)state;
	attempt_init(&back);
	fill(&a);
	assert_true(attempt_read_line(&back, &lines, "{\"path\": \"a\"}", 13, &err) < 0);
	lines.outputs = 1;
	assert_true(attempt_read_line(&back, &lines, "{\"path\": ", 9, &err) < 0);
	assert_true(attempt_read_line(&back, &lines, "", 0, &err) < 0);
}

static void test_what_could_not_be_read_back_is_not_written(void **state)
{
	_cleanup_attempt_ struct attempt a;
	_cleanup_buffer_ struct buffer text = {0};

	(void)state;
	fill(&a);
	free(a.reason);
	a.reason = malloc(ATTEMPT_HEAD_MAX + 1);
	assert_non_null(a.reason);
	memset(a.reason, 'x', ATTEMPT_HEAD_MAX);
	a.reason[ATTEMPT_HEAD_MAX] = 0;
	assert_int_equal(attempt_write_lines(&a, put, &text), -EFBIG);
	assert_int_equal(text.size, 0);
}

static void test_public_json_is_the_same_in_one_piece_and_in_many(void **state)
{
	static const size_t flags[] = {JSON_INDENT(2), JSON_COMPACT, 0, JSON_INDENT(1) | JSON_ENSURE_ASCII};
	_cleanup_attempt_ struct attempt a;

	(void)state;
	fill(&a);
	for (size_t i = 0; i < 2 * ARRAY_SIZE(flags); i++) {
		_cleanup_buffer_ struct buffer text = {0};
		json_auto_t *json = attempt_to_public_json(&a, i & 1),
			    *over = json_pack("{s:n, s:[i]}", "verdict", "more", 1);
		char *whole;

		assert_int_equal(json_object_update(json, over), 0);
		whole = json_dumps(json, flags[i / 2]);
		assert_int_equal(attempt_write_public(&a, i & 1, over, flags[i / 2], put, &text), 0);
		assert_string_equal(text.data, whole);
		free(whole);
	}
}

static void test_an_attempt_with_nothing_known_survives_too(void **state)
{
	_cleanup_attempt_ struct attempt a, back;
	json_auto_t *json = NULL, *again = NULL;

	(void)state;
	attempt_init(&a);
	attempt_init(&back);
	strcpy(a.id, "x");
	json = attempt_to_json(&a);
	assert_int_equal(attempt_from_json(&back, json, NULL), 0);
	again = attempt_to_json(&back);
	assert_true(json_equal(json, again));
	assert_true(json_is_null(json_object_get(json_object_get(json, "usage"), "wall_ms")));
}

/* Replaces one value of a good attempt, which must then be refused with nothing changed. */
static void assert_not_read(const char *key, json_t *value)
{
	_cleanup_attempt_ struct attempt a, back;
	struct error err = ERROR_INIT;
	json_auto_t *json = NULL;

	attempt_init(&back);
	fill(&a);
	json = attempt_to_json(&a);
	assert_int_equal(json_object_set_new(json, key, value), 0);
	if (attempt_from_json(&back, json, &err) == 0)
		fail_msg("taken: a strange %s", key);
	assert_string_not_equal(err.message, "");
	assert_string_equal(back.id, "");
}

static void test_a_record_that_makes_no_sense_is_refused_whole(void **state)
{
	(void)state;
	assert_not_read("id", json_string("../etc"));
	assert_not_read("id", json_integer(1));
	assert_not_read("token", json_string("000000000000000000000000000000000000000000000"));
	assert_not_read("verdict", json_string("great"));
	assert_not_read("verdict", json_null());
	assert_not_read("attempt", json_integer(1LL << 40));
	assert_not_read("created_ns", json_string("now"));
	assert_not_read("kept", json_integer(1));
	assert_not_read("usage", json_pack("{s:i}", "wall_ms", -5));
	assert_not_read("usage", json_array());
	assert_not_read("receipt", json_pack("{s:[{s:b}]}", "layers", "held", 1));
	assert_not_read("manifest", json_pack("{s:[{s:s, s:s}]}", "outputs", "path", "a", "sha256", "zz"));
	assert_not_read("manifest", json_pack("{s:[{s:i}]}", "outputs", "path", 1));
	assert_not_read("manifest",
			json_pack("{s:[{s:s, s:s}]}", "rejected", "path", "a", "path_b64", "AA=="));
	assert_not_read("inputs", json_pack("[{s:s, s:i}]", "path", "a", "source", 3));
	assert_not_read("logs", json_pack("[{s:i}]", "head_size", -1));
	assert_not_read("events", json_pack("[{s:i}]", "at_ns", 1));
	assert_not_read("timeline", json_pack("{s:i, s:i}", "interval_ms", 1, "samples", 2));
}

static void test_public_json_keeps_its_promise(void **state)
{
	static const char *const promised[] = {
		"id",	   "attempt",	       "verdict", "exit_code", "signal",  "committed", "workspace",
		"outputs", "rejected_outputs", "usage",	  "receipt",   "denials", "error"};
	static const char *const added[] = {"request", "plan",	  "events", "result", "reason",
					    "created", "started", "ended",  "inputs", "status"};
	_cleanup_attempt_ struct attempt a;
	json_auto_t *o = NULL, *full = NULL;
	const json_t *output;

	(void)state;
	fill(&a);
	o = attempt_to_public_json(&a, false);
	full = attempt_to_public_json(&a, true);
	for (size_t i = 0; i < ARRAY_SIZE(promised); i++)
		assert_non_null(json_object_get(o, promised[i]));
	for (size_t i = 0; i < ARRAY_SIZE(added); i++)
		assert_non_null(json_object_get(full, added[i]));
	assert_null(json_object_get(o, "plan"));
	assert_null(json_object_get(full, "token"));
	assert_true(json_is_null(json_object_get(o, "exit_code")));
	assert_int_equal(json_integer_value(json_object_get(o, "signal")), 9);
	assert_string_equal(json_string_value(json_object_get(o, "verdict")), "out_of_memory");
	assert_string_equal(json_string_value(json_object_get(full, "created")),
			    "2026-11-15T02:24:08.123456Z");
	assert_string_equal(json_string_value(json_object_get(json_object_get(o, "error"), "code")),
			    "ledger");

	output = json_array_get(json_object_get(o, "outputs"), 1);
	assert_string_equal(json_string_value(json_object_get(output, "path")), "caf\\xe9.bin");
	assert_string_equal(json_string_value(json_object_get(output, "path_b64")), "Y2Fm6S5iaW4=");
	output = json_array_get(json_object_get(o, "outputs"), 0);
	assert_null(json_object_get(output, "path_b64"));
	assert_int_equal(strlen(json_string_value(json_object_get(output, "sha256"))), 64);
}

static void test_a_refusal_is_an_object_too(void **state)
{
	_cleanup_attempt_ struct attempt a;
	struct error err = {.kind = ERROR_REFUSED, .message = "no user namespaces here: \xff"};
	json_auto_t *o = NULL;

	(void)state;
	attempt_init(&a);
	strcpy(a.id, "a42");
	a.verdict = VERDICT_REFUSED;
	assert_int_equal(attempt_set_error(&a, &err), 0);
	o = attempt_to_public_json(&a, true);
	assert_non_null(o);
	assert_true(json_is_integer(json_object_get(o, "attempt")));
	assert_true(json_is_null(json_object_get(o, "workspace")));
	assert_true(json_is_null(json_object_get(json_object_get(o, "usage"), "cpu_ms")));
	assert_true(json_is_null(json_object_get(json_object_get(o, "error"), "stage")));
	assert_string_equal(json_string_value(json_object_get(json_object_get(o, "error"), "message")),
			    "no user namespaces here: \\xff");
}

static void test_a_verdict_without_evidence_has_its_exit_status_and_one_reason(void **state)
{
	static const struct {
		enum verdict verdict;
		int status;
	} rows[] = {{VERDICT_LOST, 125},
		    {VERDICT_CANCELLED, 143},
		    {VERDICT_POST_PROCESS_FAILED, 123},
		    {VERDICT_SUCCEEDED, 0}};
	_cleanup_attempt_ struct attempt a;
	json_auto_t *request = json_pack("{s:s}", "id", "a42");

	(void)state;
	attempt_init(&a);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char reason[32];

		attempt_identify(&a, "a42", "token", (int)i + 1, request);
		attempt_conclude(&a, rows[i].verdict, "reason %zu", i);
		assert_string_equal(a.id, "a42");
		assert_string_equal(a.token, "token");
		assert_int_equal(a.number, i + 1);
		assert_ptr_equal(a.request, request);
		assert_int_equal(a.verdict, rows[i].verdict);
		assert_int_equal(a.status, rows[i].status);
		assert_int_equal(a.exit_code, -1);
		snprintf(reason, sizeof reason, "reason %zu", i);
		assert_string_equal(a.reason, reason);
	}
}

static void test_paths_of_any_bytes_survive_json(void **state)
{
	(void)state;
	for (int c = 1; c < 256; c++) {
		char path[] = {'a', (char)c, 'b', 0};
		json_auto_t *object = json_object();
		_cleanup_free_ char *back = NULL;

		assert_int_equal(json_set_path(object, path), 0);
		back = json_get_path(object, NULL);
		assert_string_equal(back, path);
	}
}

static void test_the_manifest_is_sorted_by_bytes(void **state)
{
	_cleanup_manifest_ struct manifest m = {0};
	const char *paths[] = {"b", "a\xff", "a/c", "a", "ab"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		assert_int_equal(manifest_add(&m, &(struct output){.path = (char *)paths[i]}, NULL), 0);
		assert_int_equal(manifest_reject(&m, paths[i], REJECT_FIFO, NULL), 0);
	}
	manifest_sort(&m);
	assert_string_equal(m.outputs[0].path, "a");
	assert_string_equal(m.outputs[1].path, "a/c");
	assert_string_equal(m.outputs[2].path, "ab");
	assert_string_equal(m.outputs[3].path, "a\xff");
	assert_string_equal(m.rejected[4].path, "b");
}

static void test_inputs_are_found_in_whatever_order_they_came(void **state)
{
	const char *paths[] = {"b", "a", "d", "c"};
	struct inputs in = {0};

	(void)state;
	assert_null(inputs_find(&in, "a"));
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		assert_int_equal(inputs_add(&in, &(struct input){.path = (char *)paths[i], .size = i}, NULL),
				 0);
	assert_int_equal(inputs_find(&in, "c")->size, 3);
	assert_int_equal(inputs_find(&in, "b")->size, 0);
	assert_null(inputs_find(&in, "x"));
	assert_int_equal(inputs_set_from(&in, "c", "a41", 2, NULL), 0);
	assert_string_equal(inputs_find(&in, "c")->from_analysis, "a41");
	inputs_forget_from(&in);
	assert_true(!inputs_find(&in, "c")->from_analysis && inputs_find(&in, "c")->from_attempt == 0);
	inputs_done(&in);
}

static void test_media_types_go_by_the_last_ending(void **state)
{
	(void)state;
	assert_string_equal(media_type_of("a/b.CSV"), "text/csv");
	assert_string_equal(media_type_of("a.tar.gz"), "application/gzip");
	assert_string_equal(media_type_of("a.png/b"), "application/octet-stream");
	assert_string_equal(media_type_of("csv"), "application/octet-stream");
	assert_string_equal(media_type_known("image/png"), "image/png");
	assert_string_equal(media_type_known("x/y"), "application/octet-stream");
	assert_string_equal(reject_reason_known("socket"), REJECT_SOCKET);
	assert_string_equal(reject_reason_known("because"), REJECT_OTHER);
}

static void test_a_full_timeline_is_thinned_and_keeps_its_span(void **state)
{
	struct timeline t = {0};

	(void)state;
	for (int64_t ms = 0; ms <= 3600000; ms += 100)
		timeline_add(&t, &(struct sample){.at_ms = ms});
	assert_true(t.count > SAMPLES_MAX / 4 && t.count <= SAMPLES_MAX);
	assert_int_equal(t.samples[0].at_ms, 0);
	assert_true(t.samples[t.count - 1].at_ms > 3600000 - 2 * t.interval_ms);
	for (int i = 1; i < t.count; i++)
		assert_true(t.samples[i].at_ms - t.samples[i - 1].at_ms >= t.interval_ms);
}

static void test_a_plan_prints_every_limit_and_no_file_contents(void **state)
{
	_cleanup_plan_ struct plan p;
	struct mount *m;
	json_auto_t *json = NULL;
	const json_t *limits;
	char *text;

	(void)state;
	plan_init(&p);
	strcpy(p.id, "a42");
	strcpy(p.token, "secret-token");
	limits_built_in(&p.limits);
	p.keep = KEEP_NEVER;
	assert_int_equal(strv_append(&p.command, "\xff", NULL), 0);
	m = plan_add_mount(&p, MOUNT_FILE, NULL, "/etc/passwd");
	m->content = strdup("secret-content");
	m->content_size = 14;
	m = plan_add_mount(&p, MOUNT_OVERLAY, "/srv/data", "/srv/data");
	assert_non_null(m);
	plan_add_stage(&p, "/home/a.py", "a.py", 1, 2, 3);
	json = plan_to_json(&p);
	assert_non_null(json);
	limits = json_object_get(json, "limits");
	for (int i = 0; i < LIMIT_COUNT; i++)
		assert_string_equal(json_string_value(json_object_get(
					    json_object_get(limits, limit_table[i].name), "origin")),
				    "built_in");
	assert_true(json_is_null(json_object_get(json_object_get(limits, "cpus"), "value")));
	assert_int_equal(json_array_size(json_object_get(json, "mounts")), 2);
	text = json_dumps(json, 0);
	assert_null(strstr(text, "secret"));
	free(text);
}

static void assert_streams(const char *head, const char *tail, uint64_t omitted, size_t max,
			   const char *want_head, const char *want_tail, json_int_t want_omitted)
{
	const struct captured c = {.head = (char *)head,
				   .head_size = strlen(head),
				   .tail = (char *)tail,
				   .tail_size = strlen(tail),
				   .omitted = omitted};
	json_auto_t *json = captured_to_json(&c, max);

	assert_non_null(json);
	assert_string_equal(json_string_value(json_object_get(json, "head")), want_head);
	assert_string_equal(json_string_value(json_object_get(json, "tail")), want_tail);
	assert_int_equal(json_integer_value(json_object_get(json, "omitted_bytes")), want_omitted);
	assert_null(json_object_get(json, "head_b64"));
	assert_null(json_object_get(json, "tail_b64"));
}

static void test_a_streams_beginning_and_end_are_shown_and_the_rest_counted(void **state)
{
	(void)state;
	assert_streams("", "", 0, 4, "", "", 0);
	assert_streams("abc", "", 0, 4, "abc", "", 0);
	assert_streams("abcdef", "", 0, 4, "abcd", "ef", 0);
	assert_streams("abcdefghij", "", 0, 4, "abcd", "ghij", 2);
	assert_streams("abcdef", "gh", 0, 4, "abcd", "efgh", 0);
	assert_streams("abcdef", "gh", 5, 4, "abcd", "gh", 7);
	assert_streams("abcdef", "ghijkl", 5, 4, "abcd", "ijkl", 9);
	/* No character is cut in two. */
	assert_streams("abcé", "", 0, 4, "abc", "é", 0);
	assert_streams("abcdefgéijk", "", 0, 4, "abcd", "ijk", 5);
}

static void assert_lines(const char *head, const char *tail, int lines, const char *want_head,
			 const char *want_tail, uint64_t want_omitted)
{
	struct captured c = {.head = strdup(head),
			     .head_size = strlen(head),
			     .tail = strdup(tail),
			     .tail_size = strlen(tail),
			     .omitted = 7};

	captured_keep_lines(&c, lines);
	assert_int_equal(c.head_size, strlen(want_head));
	assert_memory_equal(c.head, want_head, c.head_size);
	assert_int_equal(c.tail_size, strlen(want_tail));
	assert_memory_equal(c.tail, want_tail, c.tail_size);
	assert_int_equal(c.omitted, want_omitted);
	captured_done(&c);
}

static void test_the_last_lines_of_a_stream(void **state)
{
	(void)state;
	assert_lines("", "", 3, "", "", 7);
	assert_lines("a\nb\n", "c\nd\n", 1, "", "d\n", 0);
	assert_lines("a\nb\n", "c\nd", 1, "", "d", 0);
	assert_lines("a\nb\n", "c\nd\n", 2, "", "c\nd\n", 7);
	assert_lines("a\nb\n", "c\nd\n", 3, "b\n", "c\nd\n", 7);
	assert_lines("a\nb\n", "", 1, "b\n", "", 7);
	assert_lines("a\nb", "", 9, "a\nb", "", 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_attempt_survives_json_and_back),
		cmocka_unit_test(test_an_attempt_survives_lines_and_back_and_a_missing_line_is_missed),
		cmocka_unit_test(test_a_line_too_many_or_a_broken_one_is_refused),
		cmocka_unit_test(test_what_could_not_be_read_back_is_not_written),
		cmocka_unit_test(test_public_json_is_the_same_in_one_piece_and_in_many),
		cmocka_unit_test(test_an_attempt_with_nothing_known_survives_too),
		cmocka_unit_test(test_a_record_that_makes_no_sense_is_refused_whole),
		cmocka_unit_test(test_public_json_keeps_its_promise),
		cmocka_unit_test(test_a_refusal_is_an_object_too),
		cmocka_unit_test(test_a_verdict_without_evidence_has_its_exit_status_and_one_reason),
		cmocka_unit_test(test_paths_of_any_bytes_survive_json),
		cmocka_unit_test(test_the_manifest_is_sorted_by_bytes),
		cmocka_unit_test(test_inputs_are_found_in_whatever_order_they_came),
		cmocka_unit_test(test_media_types_go_by_the_last_ending),
		cmocka_unit_test(test_a_full_timeline_is_thinned_and_keeps_its_span),
		cmocka_unit_test(test_a_plan_prints_every_limit_and_no_file_contents),
		cmocka_unit_test(test_a_streams_beginning_and_end_are_shown_and_the_rest_counted),
		cmocka_unit_test(test_the_last_lines_of_a_stream),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
