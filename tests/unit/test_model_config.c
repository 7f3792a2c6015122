#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "config.h"

static void must_parse(struct config *c, const char *text, bool is_site)
{
	struct error err = ERROR_INIT;

	if (config_parse(c, text, strlen(text), "c.yaml", is_site, &err) < 0)
		fail_msg("%s", err.message);
}

static void assert_fails(const char *text, const char *place, const char *word)
{
	_cleanup_config_ struct config c = {0};
	struct error err = ERROR_INIT;
	char start[64];

	snprintf(start, sizeof start, "c.yaml:%s: ", place);
	if (config_parse(&c, text, strlen(text), "c.yaml", false, &err) == 0)
		fail_msg("taken: %s", text);
	assert_int_equal(err.kind, ERROR_USAGE);
	if (strncmp(err.message, start, strlen(start)) != 0 || !strstr(err.message, word))
		fail_msg("%s\n  instead of %s… %s", err.message, start, word);
}

static void test_every_key_of_a_configuration_is_read(void **state)
{
	_cleanup_config_ struct config c = {0};

	(void)state;
	must_parse(
		&c,
		"ledger: sqlite:/var/lib/fumehood/ledger.db\n"
		"state_dir: /var/lib/fumehood/state/\n"
		"workspace: {root: /scratch//, prefix: lab-}\n"
		"defaults:\n"
		"  data: /srv/data\n"
		"  env: [LAB=1]\n"
		"  keep: on-failure\n"
		"  limits: {wall: 10m}\n"
		"maximum: {memory: 8G, wall: 1d}\n"
		"keep: {max_bytes: 1G, for: 2d}\n"
		"post_process:\n"
		"  command: python3 post_process.py\n"
		"  tables:\n"
		"    hypotheses: [title, score]\n"
		"    scores: {columns: [gene, value], fill: {analysis_id: '{id}'}, key: [gene, analysis_id], on_conflict: update}\n"
		"query: {role: reader, passfile: /etc/fumehood/pgpass, timeout: 30s, max_bytes: 100M}\n"
		"slurm: {partition: short, jobs: 3, poll: 500ms, options: [--comment=lab, --hint=nomultithread], submit_as_user: true}\n",
		false);
	assert_string_equal(c.ledger, "sqlite:/var/lib/fumehood/ledger.db");
	assert_string_equal(c.state_dir, "/var/lib/fumehood/state");
	assert_string_equal(c.workspace_root, "/scratch");
	assert_string_equal(c.workspace_prefix, "lab-");
	assert_string_equal(c.defaults.data, "/srv/data");
	assert_int_equal(c.defaults.keep, KEEP_ON_FAILURE);
	assert_int_equal(c.defaults.limits.origin[LIMIT_WALL], LIMIT_SITE);
	assert_int_equal(c.maximum.value[LIMIT_MEMORY], 8ULL << 30);
	assert_int_equal(c.keep_max_bytes, 1 << 30);
	assert_int_equal(c.keep_for_ns, 2 * 86400 * NSEC_PER_SEC);
	assert_string_equal(json_string_value(json_object_get(c.post_process, "command")),
			    "python3 post_process.py");
	assert_int_equal(
		json_array_size(json_object_get(json_object_get(c.post_process, "tables"), "hypotheses")), 2);
	assert_int_equal(json_integer_value(json_object_get(c.slurm, "jobs")), 3);
	assert_string_equal(json_string_value(json_array_get(json_object_get(c.slurm, "options"), 1)),
			    "--hint=nomultithread");
}

static void test_what_is_unset_gets_its_built_in_value(void **state)
{
	_cleanup_config_ struct config c = {0};

	(void)state;
	must_parse(&c, "# nothing yet\n", true);
	assert_int_equal(config_finish(&c, NULL), 0);
	assert_string_equal(c.workspace_root, "/tmp");
	assert_string_equal(c.workspace_prefix, "scidex-analysis-");
	assert_int_equal(c.keep_max_bytes, 10ULL << 30);
	assert_int_equal(c.keep_for_ns, 7 * 86400 * NSEC_PER_SEC);
	assert_null(c.ledger);
	assert_int_equal(c.maximum.origin[LIMIT_MEMORY], LIMIT_UNSET);
}

static void test_zero_and_none_of_keep_are_values(void **state)
{
	_cleanup_config_ struct config c = {0};

	(void)state;
	must_parse(&c, "keep: {max_bytes: none, for: 0}\n", false);
	must_parse(&c, "keep: {max_bytes: 1G, for: 1h}\n", true);
	assert_int_equal(config_finish(&c, NULL), 0);
	assert_true(c.keep_max_bytes == LIMIT_NONE);
	assert_int_equal(c.keep_for_ns, 0);
}

static void test_the_first_file_that_sets_a_key_wins(void **state)
{
	_cleanup_config_ struct config c = {0};

	(void)state;
	must_parse(&c, "ledger: a\ndefaults: {data: /mine, limits: {wall: 1m}}\n", false);
	must_parse(
		&c,
		"ledger: b\nstate_dir: /s\ndefaults: {data: /site, docs: /docs, limits: {wall: 2m, pids: 9}}\n",
		true);
	assert_string_equal(c.ledger, "a");
	assert_string_equal(c.state_dir, "/s");
	assert_string_equal(c.defaults.data, "/mine");
	assert_string_equal(c.defaults.docs, "/docs");
	assert_int_equal(c.defaults.limits.value[LIMIT_WALL], 60 * NSEC_PER_SEC);
	assert_int_equal(c.defaults.limits.value[LIMIT_PIDS], 9);
}

static void test_a_user_cannot_widen_what_the_site_has_fixed(void **state)
{
	_cleanup_config_ struct config c = {0};

	(void)state;
	must_parse(&c,
		   "maximum: {memory: none, pids: 10, disk: 5G}\n"
		   "post_process: {command: mine, tables: {secrets: [all]}}\n"
		   "query: {role: superuser, timeout: 1h}\n",
		   false);
	must_parse(&c,
		   "maximum: {memory: 4G, pids: 100}\n"
		   "post_process: {command: theirs, tables: {scores: [value]}}\n"
		   "query: {role: reader}\n",
		   true);
	assert_int_equal(c.maximum.value[LIMIT_MEMORY], 4ULL << 30);
	assert_int_equal(c.maximum.value[LIMIT_PIDS], 10); /* narrower is fine */
	assert_int_equal(c.maximum.value[LIMIT_DISK], 5ULL << 30);
	assert_string_equal(json_string_value(json_object_get(c.post_process, "command")), "mine");
	assert_null(json_object_get(json_object_get(c.post_process, "tables"), "secrets"));
	assert_non_null(json_object_get(json_object_get(c.post_process, "tables"), "scores"));
	assert_string_equal(json_string_value(json_object_get(c.query, "role")), "reader");
	assert_string_equal(json_string_value(json_object_get(c.query, "timeout")), "1h");
}

static void test_without_the_sites_word_the_stronger_file_stands(void **state)
{
	_cleanup_config_ struct config c = {0};

	(void)state;
	must_parse(&c, "maximum: {memory: 16G}\nquery: {role: a}\n", false);
	must_parse(&c, "maximum: {memory: 4G}\nquery: {role: b}\n", false);
	assert_int_equal(c.maximum.value[LIMIT_MEMORY], 16ULL << 30);
	assert_string_equal(json_string_value(json_object_get(c.query, "role")), "a");
}

static void test_errors_point_at_line_and_column(void **state)
{
	(void)state;
	assert_fails("legder: x\n", "1:1", "unknown key 'legder'");
	assert_fails("ledger: 5\n", "1:9", "quotes");
	assert_fails("ledger: ''\n", "1:9", "empty");
	assert_fails("state_dir: state\n", "1:12", "absolute");
	assert_fails("workspace: /tmp\n", "1:12", "map");
	assert_fails("workspace: {root: tmp}\n", "1:19", "absolute");
	assert_fails("workspace: {prefix: a/b}\n", "1:21", "prefix");
	assert_fails("workspace: {prefix: .a}\n", "1:21", "prefix");
	assert_fails("workspace: {prefix: ''}\n", "1:21", "prefix");
	assert_fails("workspace: {size: 1}\n", "1:13", "unknown key 'size'");
	assert_fails("defaults: {id: a}\n", "1:12", "unknown key 'id'");
	assert_fails("defaults: {command: a}\n", "1:12", "unknown key");
	assert_fails("defaults: {again: true}\n", "1:12", "unknown key");
	assert_fails("defaults:\n", "1:10", "map");
	assert_fails("maximum: {memory: much}\n", "1:19", "memory");
	assert_fails("keep: always\n", "1:7", "map");
	assert_fails("keep: {for: soon}\n", "1:13", "7d");
	assert_fails("keep: {max_bytes: -1}\n", "1:19", "10G");
	assert_fails("post_process: x\n", "1:15", "map");
	assert_fails("post_process: {command: [a]}\n", "1:25", "text");
	assert_fails("post_process: {tables: [a]}\n", "1:24", "map");
	assert_fails("post_process: {tables: {a: b}}\n", "1:28", "columns");
	assert_fails("post_process: {tables: {a: {fill: {b: c}}}}\n", "1:28", "columns");
	assert_fails("post_process: {tables: {a: [b, 5]}}\n", "1:32", "quotes");
	assert_fails("post_process: {tables: {a: {columns: [b], on_conflict: explode}}}\n", "1:56", "update");
	assert_fails("post_process: {tables: {a: {columns: [b], colour: red}}}\n", "1:43", "unknown key");
	assert_fails("query: {role: [a]}\n", "1:15", "text");
	assert_fails("query: {passfile: 1}\n", "1:19", "text");
	assert_fails("query: {timeout: x}\n", "1:18", "30s");
	assert_fails("slurm: short\n", "1:8", "map");
	assert_fails("slurm: {partitions: a}\n", "1:9", "unknown key");
	assert_fails("slurm: {partition: [a]}\n", "1:20", "text");
	assert_fails("slurm: {options: --a}\n", "1:18", "list");
	assert_fails("slurm: {options: [a]}\n", "1:19", "--NAME=VALUE");
	assert_fails("slurm: {jobs: 0}\n", "1:15", "4096");
	assert_fails("slurm: {bin: usr}\n", "1:14", "absolute");
	assert_fails("slurm: {poll: 1ms}\n", "1:15", "100ms");
	assert_fails("slurm: {submit_as_user: maybe}\n", "1:25", "true");
}

static void test_a_file_with_an_error_changes_nothing(void **state)
{
	_cleanup_config_ struct config c = {0};
	const char text[] = "ledger: a\nmaximum: {memory: 1G}\noops: 1\n";

	(void)state;
	assert_true(config_parse(&c, text, strlen(text), "c.yaml", true, NULL) < 0);
	assert_null(c.ledger);
	assert_int_equal(c.maximum.origin[LIMIT_MEMORY], LIMIT_UNSET);
}

static void test_who_is_whom_and_what_anybody_may_name(void **state)
{
	_cleanup_config_ struct config c = {0};

	(void)state;
	must_parse(&c,
		   "queue:\n"
		   "  users: {lab: alice, '7': 1001}\n"
		   "  allow:\n"
		   "    ro: [/srv/reference, /srv/more]\n"
		   "    post_process: [python3 rows.py]\n"
		   "    env: [LICENCE]\n"
		   "    query: true\n",
		   false);
	assert_string_equal(json_string_value(json_object_get(c.queue_users, "lab")), "alice");
	assert_string_equal(json_string_value(json_object_get(c.queue_users, "7")), "1001");
	assert_int_equal(json_array_size(json_object_get(c.queue_allow, "ro")), 2);
	assert_true(json_is_true(json_object_get(c.queue_allow, "query")));
	assert_string_equal(c.queue_allow_directory, ".");
}

static void test_a_user_cannot_widen_what_the_site_lets_strangers_name(void **state)
{
	_cleanup_config_ struct config c = {0};

	(void)state;
	must_parse(&c, "queue: {users: {mallory: root}, allow: {ro: [/root], into: [/etc]}}\n", false);
	must_parse(&c, "queue: {users: {lab: alice}, allow: {ro: [/srv]}}\n", true);
	assert_null(json_object_get(c.queue_users, "mallory"));
	assert_non_null(json_object_get(c.queue_users, "lab"));
	assert_null(json_object_get(c.queue_allow, "into"));
	assert_string_equal(json_string_value(json_array_get(json_object_get(c.queue_allow, "ro"), 0)),
			    "/srv");
}

static void test_what_strangers_may_name_is_written_strictly(void **state)
{
	(void)state;
	assert_fails("queue: {users: [a]}\n", "1:16", "map");
	assert_fails("queue: {users: {a: [b]}}\n", "1:20", "local user");
	assert_fails("queue: {users: {a: ''}}\n", "1:20", "local user");
	assert_fails("queue: {users: {a: null}}\n", "1:20", "local user");
	assert_fails("queue: {users: {'': b}}\n", "1:17", "without a name");
	assert_fails("queue: {allow: all}\n", "1:16", "map");
	assert_fails("queue: {allow: {input: [/a]}}\n", "1:17", "unknown key 'input'");
	assert_fails("queue: {allow: {ro: /srv}}\n", "1:21", "list");
	assert_fails("queue: {allow: {ro: [srv]}}\n", "1:22", "absolute");
	assert_fails("queue: {allow: {ro: [/srv/../root]}}\n", "1:22", "'..'");
	assert_fails("queue: {allow: {into: [/tmp, //]}}\n", "1:30", "everything");
	assert_fails("queue: {allow: {data: ['']}}\n", "1:24", "empty");
	assert_fails("queue: {allow: {env: [A=1]}}\n", "1:23", "without values");
	assert_fails("queue: {allow: {query: sometimes}}\n", "1:24", "query");
	assert_fails("queue: {allow: {keep: [true]}}\n", "1:23", "keep");
	assert_fails("queue: {allow: {post_process: [[a]]}}\n", "1:32", "text");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_key_of_a_configuration_is_read),
		cmocka_unit_test(test_what_is_unset_gets_its_built_in_value),
		cmocka_unit_test(test_zero_and_none_of_keep_are_values),
		cmocka_unit_test(test_the_first_file_that_sets_a_key_wins),
		cmocka_unit_test(test_a_user_cannot_widen_what_the_site_has_fixed),
		cmocka_unit_test(test_without_the_sites_word_the_stronger_file_stands),
		cmocka_unit_test(test_errors_point_at_line_and_column),
		cmocka_unit_test(test_a_file_with_an_error_changes_nothing),
		cmocka_unit_test(test_who_is_whom_and_what_anybody_may_name),
		cmocka_unit_test(test_a_user_cannot_widen_what_the_site_lets_strangers_name),
		cmocka_unit_test(test_what_strangers_may_name_is_written_strictly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
