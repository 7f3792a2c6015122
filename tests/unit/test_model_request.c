#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "flow.h"
#include "request.h"

static int parse(struct request *r, const char *text, struct error *err)
{
	return request_parse(r, text, strlen(text), "r.yaml", err);
}

/* The text must fail with a message that starts with "r.yaml:<place>: " and contains word. */
static void assert_fails(const char *text, const char *place, const char *word)
{
	_cleanup_request_ struct request r = {0};
	struct error err = ERROR_INIT;
	char start[64];

	snprintf(start, sizeof start, "r.yaml:%s: ", place);
	if (parse(&r, text, &err) == 0)
		fail_msg("taken: %s", text);
	assert_int_equal(err.kind, ERROR_USAGE);
	if (strncmp(err.message, start, strlen(start)) != 0 || !strstr(err.message, word))
		fail_msg("%s\n  instead of %s… %s", err.message, start, word);
}

static const char whole[] = "id: a42\n"
			    "command: [python3, analysis.py, 5, true]\n"
			    "data: /srv/data\n"
			    "docs: /srv/docs\n"
			    "ro: /opt/conda:/opt/c\n"
			    "input: [a.csv, 'b:c.csv:d.csv', 'x:y:']\n"
			    "from: [a41, 'sweep.*:n/**:in']\n"
			    "no_stage: true\n"
			    "output: ['results/**', \"*.png\"]\n"
			    "optional_output: log.txt\n"
			    "env: [A=1, B]\n"
			    "stdin: true\n"
			    "limits:\n"
			    "  wall: 90\n"
			    "  grace: 2s\n"
			    "  cpu_time: 1.5h\n"
			    "  cpus: 0.5\n"
			    "  memory: 512M\n"
			    "  pids: 64\n"
			    "  disk: 1G\n"
			    "  files: 1000\n"
			    "  input_max: 1048578\n"
			    "  output_max: 1048577\n"
			    "  log_max: 64K\n"
			    "  file_size: none\n"
			    "  open_files: 100\n"
			    "allow_unlimited: true\n"
			    "strength: landlock\n"
			    "keep: on-failure\n"
			    "into: out\n"
			    "again: true\n"
			    "post_process: python3 post.py\n"
			    "query: genes=SELECT a FROM b WHERE c = 1\n"
			    "explain: true\n";

static void assert_whole(const struct request *r)
{
	assert_string_equal(r->id, "a42");
	assert_int_equal(strv_length(r->command), 4);
	assert_string_equal(r->command[2], "5");
	assert_string_equal(r->command[3], "true");
	assert_string_equal(r->data, "/srv/data");
	assert_string_equal(r->docs, "/srv/docs");
	assert_int_equal(r->n_ro, 1);
	assert_string_equal(r->ro[0].from, "/opt/conda");
	assert_string_equal(r->ro[0].to, "/opt/c");
	assert_int_equal(r->n_inputs, 3);
	assert_string_equal(r->inputs[0].from, "a.csv");
	assert_null(r->inputs[0].to);
	assert_string_equal(r->inputs[1].from, "b:c.csv");
	assert_string_equal(r->inputs[1].to, "d.csv");
	assert_string_equal(r->inputs[2].from, "x:y");
	assert_null(r->inputs[2].to);
	assert_int_equal(strv_length(r->from), 2);
	assert_string_equal(r->from[1], "sweep.*:n/**:in");
	assert_true(r->no_stage && r->stdin_open && r->allow_unlimited && r->again && r->explain);
	assert_int_equal(strv_length(r->outputs), 2);
	assert_string_equal(r->optional_outputs[0], "log.txt");
	assert_int_equal(strv_length(r->env), 2);
	assert_int_equal(r->limits.value[LIMIT_WALL], 90 * NSEC_PER_SEC);
	assert_int_equal(r->limits.value[LIMIT_CPUS], 500);
	assert_int_equal(r->limits.value[LIMIT_MEMORY], 512 << 20);
	assert_int_equal(r->limits.value[LIMIT_OUTPUT_MAX], 1048577);
	assert_true(r->limits.value[LIMIT_FILE_SIZE] == LIMIT_NONE);
	for (int i = 0; i < LIMIT_COUNT; i++)
		assert_int_equal(r->limits.origin[i], LIMIT_ASKED);
	assert_int_equal(r->strength, STRENGTH_LANDLOCK);
	assert_int_equal(r->keep, KEEP_ON_FAILURE);
	assert_string_equal(r->into, "out");
	assert_string_equal(r->post_process, "python3 post.py");
	assert_int_equal(r->n_queries, 1);
	assert_string_equal(r->queries[0].from, "genes");
	assert_string_equal(r->queries[0].to, "SELECT a FROM b WHERE c = 1");
}

static void test_every_key_of_a_request_is_read(void **state)
{
	_cleanup_request_ struct request r = {0};
	struct error err = ERROR_INIT;

	(void)state;
	if (parse(&r, whole, &err) < 0)
		fail_msg("%s", err.message);
	assert_whole(&r);
	assert_int_equal(request_check(&r, &err), 0);
}

static void test_a_request_survives_json_and_back(void **state)
{
	_cleanup_request_ struct request r = {0}, back = {0};
	struct error err = ERROR_INIT;
	json_auto_t *json = NULL, *again = NULL;

	(void)state;
	assert_int_equal(parse(&r, whole, &err), 0);
	r.directory = strdup("/home/u");
	json = request_to_json(&r);
	assert_non_null(json);
	if (request_from_json(&back, json, &err) < 0)
		fail_msg("%s", err.message);
	assert_whole(&back);
	assert_string_equal(back.directory, "/home/u");
	again = request_to_json(&back);
	assert_true(json_equal(json, again));
}

static void test_stored_json_is_a_request_file_too(void **state)
{
	_cleanup_request_ struct request r = {0}, back = {0};
	json_auto_t *json = NULL;
	char *text;

	(void)state;
	assert_int_equal(parse(&r, whole, NULL), 0);
	json = request_to_json(&r);
	text = json_dumps(json, JSON_INDENT(2));
	assert_int_equal(parse(&back, text, NULL), 0);
	assert_whole(&back);
	free(text);
}

static void test_bytes_that_are_not_utf8_survive_json(void **state)
{
	_cleanup_request_ struct request r = {0}, back = {0};
	json_auto_t *json = NULL;
	char *text;

	(void)state;
	assert_int_equal(request_option(&r, "--data", "/d\xff", NULL), 1);
	assert_int_equal(request_option(&r, "--ro", "/a\xfe:/b", NULL), 1);
	assert_int_equal(request_option(&r, "--env", "A=\x80", NULL), 1);
	assert_int_equal(strv_append(&r.command, "\xc3(", NULL), 0);
	json = request_to_json(&r);
	assert_non_null(json);
	text = json_dumps(json, 0);
	assert_int_equal(request_from_json(&back, json, NULL), 0);
	assert_string_equal(back.data, "/d\xff");
	assert_string_equal(back.ro[0].from, "/a\xfe");
	assert_string_equal(back.ro[0].to, "/b");
	assert_string_equal(back.env[0], "A=\x80");
	assert_string_equal(back.command[0], "\xc3(");
	free(text);
}

static void test_json_is_a_subset_with_surrogates_and_tabs(void **state)
{
	_cleanup_request_ struct request r = {0};
	struct error err = ERROR_INIT;

	(void)state;
	if (parse(&r,
		  "\t{\"id\":\"a\",\n\t\"command\":[\"echo\",\"\\ud83d\\ude00\\/\"],\"limits\":{\"pids\":3}}",
		  &err) < 0)
		fail_msg("%s", err.message);
	assert_string_equal(r.command[1], "\xf0\x9f\x98\x80/");
	assert_int_equal(r.limits.value[LIMIT_PIDS], 3);
	assert_string_equal(err.message, "");
}

static void test_errors_point_at_line_and_column(void **state)
{
	(void)state;
	assert_fails("id: a\nmemroy: 2G\n", "2:1", "unknown key 'memroy'");
	assert_fails("limits:\n  memroy: 2G\n", "2:3", "unknown key 'memroy'");
	assert_fails("id: a\nid: b\n", "2:1", "twice");
	assert_fails("limits: {wall: 1, wall: 2}\n", "1:19", "twice");
	assert_fails("id: [a]\n", "1:5", "text");
	assert_fails("id: {a: b}\n", "1:5", "text");
	assert_fails("id: 42\n", "1:5", "quotes");
	assert_fails("data: true\n", "1:7", "quotes");
	assert_fails("data:\n", "1:6", "no value");
	assert_fails("output: [a, 5]\n", "1:13", "quotes");
	assert_fails("command: 5\n", "1:10", "quotes");
	assert_fails("command: [a, [b]]\n", "1:14", "text");
	assert_fails("command: [a, null]\n", "1:14", "no value");
	assert_fails("command: echo 'a\n", "1:10", "quote");
	assert_fails("no_stage: yes\n", "1:11", "true or false");
	assert_fails("no_stage: 1\n", "1:11", "true or false");
	assert_fails("limits: 5\n", "1:9", "map");
	assert_fails("limits: {memory: [1]}\n", "1:18", "number or text");
	assert_fails("limits: {memory: true}\n", "1:18", "number or text");
	assert_fails("limits: {memory: lots}\n", "1:18", "512M");
	assert_fails("limits: {memory: -1}\n", "1:18", "memory");
	assert_fails("limits: {wall: .nan}\n", "1:16", "wall");
	assert_fails("limits: {pids: 0}\n", "1:16", "pids");
	assert_fails("strength: half\n", "1:11", "full, landlock");
	assert_fails("keep: ''\n", "1:7", "never, on-failure, always");
	assert_fails("keep: [never]\n", "1:7", "text");
	assert_fails("query: [a=b, c]\n", "1:14", "NAME=SQL");
	assert_fails("- a\n", "1:1", "map");
	assert_fails("hello\n", "1:1", "map");
	assert_fails("directory: /tmp\n", "1:1", "unknown key");
	assert_fails("b: &a x\n", "1:4", "anchors");
	assert_fails("id: *a\n", "1:5", "alias");
	assert_fails("id: !!str a\n", "1:5", "tags");
	assert_fails("id: a\n---\nid: b\n", "2:1", "second document");
	assert_fails("? [a]\n: b\n", "1:3", "key");
	assert_fails("id: \"a\\0b\"\n", "1:5", "NUL");
	assert_fails("id: [a\n", "2:1", "");
	assert_fails("id: 'a\n", "2:1", "");
	assert_fails("\tid: a\n", "1:1", "");
	assert_fails("data: {b64: '!'}\n", "1:13", "base64");
	assert_fails("data: {b64: AGEA}\n", "1:13", "NUL");
}

static void test_hostile_names_do_not_reach_the_terminal(void **state)
{
	_cleanup_request_ struct request r = {0};
	struct error err = ERROR_INIT;

	(void)state;
	assert_true(request_parse(&r, "\"\\e[2J\": 1\n", 11, "a\x1b.yaml", &err) < 0);
	assert_null(strchr(err.message, 0x1b));
}

static void test_what_is_not_text_is_an_error(void **state)
{
	const char *bad[] = {"id: \xff\n", "id: \x01\n", "\xff\xfei"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		_cleanup_request_ struct request r = {0};
		struct error err = ERROR_INIT;

		assert_true(parse(&r, bad[i], &err) < 0);
		assert_int_equal(err.kind, ERROR_USAGE);
		assert_non_null(strstr(err.message, "r.yaml"));
	}
}

static void test_deep_wide_and_large_texts_are_refused_quickly(void **state)
{
	_cleanup_buffer_ struct buffer deep = {0}, wide = {0}, large = {0};
	_cleanup_request_ struct request r = {0};
	struct error err = ERROR_INIT;

	(void)state;
	for (int i = 0; i < 200000; i++)
		assert_int_equal(buffer_puts(&deep, i ? "[" : "id: ["), 0);
	assert_true(request_parse(&r, deep.data, deep.size, "r.yaml", &err) < 0);
	assert_non_null(strstr(err.message, "deep"));
	for (int i = 0; i < 50000; i++)
		assert_int_equal(buffer_printf(&wide, "k%d: 1\n", i), 0);
	assert_true(request_parse(&r, wide.data, wide.size, "r.yaml", &err) < 0);
	assert_non_null(strstr(err.message, "keys"));
	for (int i = 0; i < 1 << 20; i++)
		assert_int_equal(buffer_puts(&large, "#"), 0);
	assert_int_equal(request_parse(&r, large.data, large.size, "r.yaml", &err), 0);
	assert_int_equal(buffer_puts(&large, "#"), 0);
	assert_true(request_parse(&r, large.data, large.size, "r.yaml", &err) < 0);
	assert_non_null(strstr(err.message, "larger"));
}

static void test_an_empty_text_is_a_request_without_a_command(void **state)
{
	const char *empty[] = {"", "\n", "# nothing\n", "---\n", "---\n...\n", "{}"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(empty); i++) {
		_cleanup_request_ struct request r = {0};
		struct error err = ERROR_INIT;

		assert_int_equal(parse(&r, empty[i], &err), 0);
		assert_true(request_check(&r, &err) < 0);
		assert_non_null(strstr(err.message, "command"));
	}
}

static void test_options_win_over_the_file(void **state)
{
	_cleanup_request_ struct request r = {0};

	(void)state;
	assert_int_equal(request_option(&r, "--strength", "full", NULL), 1);
	assert_int_equal(request_option(&r, "--memory", "1G", NULL), 1);
	assert_int_equal(request_option(&r, "--output", "x", NULL), 1);
	assert_int_equal(request_option(&r, "--keep", "never", NULL), 1);
	assert_int_equal(parse(&r, whole, NULL), 0);
	assert_int_equal(r.strength, STRENGTH_FULL);
	assert_int_equal(r.keep, KEEP_NEVER);
	assert_int_equal(r.limits.value[LIMIT_MEMORY], 1 << 30);
	assert_int_equal(r.limits.value[LIMIT_PIDS], 64);
	assert_int_equal(strv_length(r.outputs), 1);
}

static void test_a_skipped_value_is_checked_all_the_same(void **state)
{
	_cleanup_request_ struct request r = {0};
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(request_option(&r, "--memory", "1G", NULL), 1);
	assert_true(parse(&r, "limits: {memory: lots}\n", &err) < 0);
	assert_int_equal(r.limits.value[LIMIT_MEMORY], 1 << 30);
}

static void test_false_and_an_empty_list_hold_against_defaults(void **state)
{
	_cleanup_request_ struct request r = {0}, defaults = {0};

	(void)state;
	assert_int_equal(parse(&defaults,
			       "stdin: true\noutput: [a]\nro: [/opt]\ndata: /d\nstrength: landlock\n", NULL),
			 0);
	assert_int_equal(parse(&r, "stdin: false\noutput: []\nro: []\nstrength: full\n", NULL), 0);
	assert_int_equal(request_inherit(&r, &defaults, NULL), 0);
	assert_false(r.stdin_open);
	assert_int_equal(strv_length(r.outputs), 0);
	assert_int_equal(r.n_ro, 0);
	assert_int_equal(r.strength, STRENGTH_FULL);
	assert_string_equal(r.data, "/d");
}

static void test_options_know_what_they_take(void **state)
{
	_cleanup_request_ struct request r = {0};
	struct error err = ERROR_INIT;
	const char *flags[] = {"--no-stage", "-i", "--allow-unlimited", "--again", "--explain"};
	const char *valued[] = {
		"--data", "--docs", "--ro",	    "--input",	  "--output",	    "--optional-output",
		"--env",  "--wall", "--grace",	    "--cpu-time", "--cpus",	    "--memory",
		"--pids", "--disk", "--output-max", "--log-max",  "--files",	    "--file-size",
		"--keep", "--into", "--strength",   "--query",	  "--post-process", "--open-files"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
		assert_int_equal(request_option_takes_value(flags[i]), 0);
	for (size_t i = 0; i < ARRAY_SIZE(valued); i++)
		assert_int_equal(request_option_takes_value(valued[i]), 1);
	assert_int_equal(request_option_takes_value("--id"), -1);
	assert_int_equal(request_option(&r, "--json", NULL, &err), 0);
	assert_true(request_option(&r, "--memory", NULL, &err) < 0);
	assert_true(request_option(&r, "--again", "x", &err) < 0);
	assert_true(request_option(&r, "--pids", "many", &err) < 0);
	assert_int_equal(err.kind, ERROR_USAGE);
}

static void test_a_repeated_option_adds_to_a_list_and_replaces_a_text(void **state)
{
	_cleanup_request_ struct request r = {0};

	(void)state;
	assert_int_equal(request_option(&r, "--output", "a", NULL), 1);
	assert_int_equal(request_option(&r, "--output", "b", NULL), 1);
	assert_int_equal(request_option(&r, "--into", "c", NULL), 1);
	assert_int_equal(request_option(&r, "--into", "d", NULL), 1);
	assert_int_equal(strv_length(r.outputs), 2);
	assert_string_equal(r.into, "d");
}

static void test_the_check_refuses_what_cannot_be_meant(void **state)
{
	static const char *const bad[][2] = {
		{"--env", "=x"},
		{"--env", "A-B=1"},
		{"--env", ""},
		{"--env", "1A=x"},
		{"--output", "/etc/passwd"},
		{"--output", "../x"},
		{"--output", ""},
		{"--output", "a/../../b"},
		{"--optional-output", ".."},
		{"--ro", "/a:b"},
		{"--ro", ""},
		{"--ro", "/a:/b/../c"},
		{"--ro", "/a:/"},
		{"--input", "a:/etc/x"},
		{"--input", "a:../x"},
		{"--input", ":x"},
		{"--data", ""},
		{"--into", ""},
		{"--query", "a b=SELECT 1"},
		{"--query", "a="},
		{"--query", "=SELECT 1"},
		{"--post-process", ""},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		_cleanup_request_ struct request r = {0};
		struct error err = ERROR_INIT;

		assert_int_equal(strv_append(&r.command, "true", NULL), 0);
		assert_int_equal(request_option(&r, bad[i][0], bad[i][1], &err), 1);
		if (request_check(&r, &err) == 0)
			fail_msg("taken: %s %s", bad[i][0], bad[i][1]);
		assert_int_equal(err.kind, ERROR_USAGE);
	}
}

static void test_the_check_takes_names_that_only_look_odd(void **state)
{
	static const char *const good[][2] = {
		{"--env", "A="},
		{"--env", "_a1=b=c"},
		{"--output", "..a/b.."},
		{"--output", "a b/**"},
		{"--ro", "rel"},
		{"--input", "../x"},
		{"--input", "/etc/hosts:etc/hosts"},
		{"--query", "q1=SELECT 'a=b'"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		_cleanup_request_ struct request r = {0};
		struct error err = ERROR_INIT;

		assert_int_equal(strv_append(&r.command, "true", NULL), 0);
		assert_int_equal(request_option(&r, good[i][0], good[i][1], &err), 1);
		if (request_check(&r, &err) < 0)
			fail_msg("%s", err.message);
	}
}

static void test_words_are_split_without_a_shell(void **state)
{
	static const struct {
		const char *line;
		const char *words[5];
	} rows[] = {
		{"python3 a.py", {"python3", "a.py"}},
		{"  a\tb\n", {"a", "b"}},
		{"a 'b c' \"d e\"", {"a", "b c", "d e"}},
		{"a\\ b 'c\\d' \"e\\\"f\\g\"", {"a b", "c\\d", "e\"f\\g"}},
		{"a'b'\"c\" ''", {"abc", ""}},
		{"$HOME `x` *.c ; |", {"$HOME", "`x`", "*.c", ";", "|"}},
		{"", {NULL}},
		{"a\\", {"a\\"}},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_strv_ char **words = NULL;

		assert_int_equal(words_split(rows[i].line, &words, NULL), 0);
		for (size_t k = 0; k < strv_length(words); k++)
			assert_string_equal(words[k], rows[i].words[k]);
		assert_true(strv_length(words) == 5 || !rows[i].words[strv_length(words)]);
	}
	assert_int_equal(words_split("a 'b", &(char **){NULL}, NULL), -EINVAL);
}

static void test_what_flows_has_a_source_a_pattern_and_a_place(void **state)
{
	static const struct {
		const char *text, *id, *glob, *as;
		bool is_array;
	} good[] = {
		{"a42", "a42"},
		{"a42:", "a42"},
		{"a42::", "a42"},
		{"a42:*.csv", "a42", "*.csv"},
		{"a42:*.csv:", "a42", "*.csv"},
		{"a42:*.csv:in", "a42", "*.csv", "in"},
		{"a42::in", "a42", NULL, "in"},
		{"a42:a:b:", "a42", "a:b"},
		{"a42:a:b:c", "a42", "a:b", "c"},
		{"a42::./in//x/.", "a42", NULL, "in/x"},
		{"a42::..x/y..", "a42", NULL, "..x/y.."},
		{"sweep.*", "sweep", .is_array = true},
		{"sweep.*:**/n:all", "sweep", "**/n", "all", true},
		{"sweep.1", "sweep.1"},
		{"a42:caf\xe9:\x1b", "a42", "caf\xe9", "\x1b"},
	};
	static const char *const bad[] = {
		"",	 ":",	 ":a",	  "::in",    ".*",	"*",	    "a*",   "a*.*",   "a?.*",
		"[a]",	 "-a",	 ".a",	  "a b",     "a/b",	"a:/etc",   "a:..", "a:x/..", "a::/in",
		"a::..", "a::.", "a::./", "a::x/..", "a::../x", "a:b:c/..", "\xff", "a\n",    "a.*.*"};
	char long_id[200] = "", long_array[200] = "";

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		_cleanup_flow_ struct flow f = {0};
		struct error err = ERROR_INIT;

		if (flow_parse(good[i].text, &f, &err) < 0)
			fail_msg("%s: %s", good[i].text, err.message);
		assert_string_equal(f.id, good[i].id);
		assert_int_equal(f.is_array, good[i].is_array);
		assert_string_equal(f.glob ? f.glob : "-", good[i].glob ? good[i].glob : "-");
		assert_string_equal(f.as ? f.as : "-", good[i].as ? good[i].as : "-");
		assert_string_equal(flow_root(&f), good[i].as ? good[i].as : "from");
	}
	memset(long_id, 'x', ID_ROOM);
	snprintf(long_array, sizeof long_array, "%s.*", long_id);
	for (size_t i = 0; i < ARRAY_SIZE(bad) + 2; i++) {
		const char *text = i < ARRAY_SIZE(bad) ? bad[i] : i == ARRAY_SIZE(bad) ? long_id : long_array;
		_cleanup_flow_ struct flow f = {0};
		struct error err = ERROR_INIT;

		if (flow_parse(text, &f, &err) >= 0)
			fail_msg("'%s' was taken", text);
		assert_int_equal(err.kind, ERROR_USAGE);
		assert_null(strpbrk(err.message, "\n\x1b\xff"));
	}
}

static void test_what_flows_is_waited_for_once(void **state)
{
	char *from[] = {(char *)"a:x", (char *)"b.*", (char *)"a:y:z", (char *)"c", NULL};
	_cleanup_strv_ char **after = NULL;
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(strv_append(&after, "c", &err), 0);
	assert_int_equal(flows_after(from, &after, &err), 0);
	assert_int_equal(strv_length(after), 3);
	assert_string_equal(after[0], "c");
	assert_string_equal(after[1], "a");
	assert_string_equal(after[2], "b");
}

static void test_a_task_takes_from_a_task(void **state)
{
	_cleanup_request_ struct request r = {0};
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(request_option(&r, "--from", "sweep.{task}:n{task}:in/{task}", &err), 1);
	assert_int_equal(request_set_task(&r, 7, &err), 0);
	assert_string_equal(r.from[0], "sweep.7:n7:in/7");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_key_of_a_request_is_read),
		cmocka_unit_test(test_a_request_survives_json_and_back),
		cmocka_unit_test(test_stored_json_is_a_request_file_too),
		cmocka_unit_test(test_bytes_that_are_not_utf8_survive_json),
		cmocka_unit_test(test_json_is_a_subset_with_surrogates_and_tabs),
		cmocka_unit_test(test_errors_point_at_line_and_column),
		cmocka_unit_test(test_hostile_names_do_not_reach_the_terminal),
		cmocka_unit_test(test_what_is_not_text_is_an_error),
		cmocka_unit_test(test_deep_wide_and_large_texts_are_refused_quickly),
		cmocka_unit_test(test_an_empty_text_is_a_request_without_a_command),
		cmocka_unit_test(test_options_win_over_the_file),
		cmocka_unit_test(test_a_skipped_value_is_checked_all_the_same),
		cmocka_unit_test(test_false_and_an_empty_list_hold_against_defaults),
		cmocka_unit_test(test_options_know_what_they_take),
		cmocka_unit_test(test_a_repeated_option_adds_to_a_list_and_replaces_a_text),
		cmocka_unit_test(test_the_check_refuses_what_cannot_be_meant),
		cmocka_unit_test(test_the_check_takes_names_that_only_look_odd),
		cmocka_unit_test(test_words_are_split_without_a_shell),
		cmocka_unit_test(test_what_flows_has_a_source_a_pattern_and_a_place),
		cmocka_unit_test(test_what_flows_is_waited_for_once),
		cmocka_unit_test(test_a_task_takes_from_a_task),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
