#include "place.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include "collect.h"
#include "text.h"

static const struct collect_rules everything = {
	.max_bytes = 1 << 20,
	.max_files = 1000000,
	.object_min = UINT64_MAX,
	.content_max = UINT64_MAX,
	.owner = (uid_t)-1,
};

static struct manifest collect_all(int fd, const struct collect_rules *rules)
{
	struct error err = ERROR_INIT;
	struct manifest m = {0};

	if (collect(fd, rules, NULL, NULL, &m, &err) < 0)
		fail_msg("%s", err.message);
	return m;
}

static const char *reason_of(const struct manifest *m, const char *path)
{
	for (size_t i = 0; i < m->n_rejected; i++)
		if (strcmp(m->rejected[i].path, path) == 0)
			return m->rejected[i].reason;
	return NULL;
}

static const struct output *output_of(const struct manifest *m, const char *path)
{
	for (size_t i = 0; i < m->n_outputs; i++)
		if (strcmp(m->outputs[i].path, path) == 0)
			return &m->outputs[i];
	return NULL;
}

static void put_sparse(int at, const char *name, off_t size)
{
	int fd = openat(at, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, size), 0);
	close(fd);
}

static void test_every_file_the_analysis_made_is_an_output(void **state)
{
	_cleanup_manifest_ struct manifest m = {0};
	char hex[DIGEST_TEXT_SIZE];
	struct place p;

	(void)state;
	place_open(&p);
	put_file(p.fd, "result.csv", "abc");
	put_dir(p.fd, "sub");
	put_dir(p.fd, "sub/deep");
	put_dir(p.fd, "sub/empty");
	put_file(p.fd, "sub/deep/fig.png", "");
	put_file(p.fd, ".RData", "r");
	put_file(p.fd, "x.tmp", "t");
	m = collect_all(p.fd, &everything);
	assert_int_equal(m.n_outputs, 4);
	assert_int_equal(m.n_rejected, 0);
	assert_non_null(output_of(&m, ".RData"));
	assert_non_null(output_of(&m, "x.tmp"));
	hex_encode(output_of(&m, "result.csv")->sha256, DIGEST_SIZE, hex);
	assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	assert_int_equal(output_of(&m, "result.csv")->size, 3);
	assert_string_equal(output_of(&m, "result.csv")->media_type, "text/csv");
	assert_int_equal(output_of(&m, "sub/deep/fig.png")->size, 0);
	place_close(&p);
}

static void test_outputs_are_sorted_by_their_whole_path(void **state)
{
	static const char *const names[] = {"a", "a-", "a.b", "ab", "b", "b0", "b/x", "B"};
	_cleanup_manifest_ struct manifest m = {0};
	struct collect_rules rules = everything;
	struct place p;

	(void)state;
	place_open(&p);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (strcmp(names[i], "b") == 0)
			put_dir(p.fd, "b");
		else
			put_file(p.fd, names[i], "1");
	}
	put_file(p.fd, "b-", "1");
	rules.max_files = 5;
	m = collect_all(p.fd, &rules);
	assert_int_equal(m.n_outputs, 5);
	for (size_t i = 1; i < m.n_outputs; i++)
		assert_true(strcmp(m.outputs[i - 1].path, m.outputs[i].path) < 0);
	assert_string_equal(m.outputs[0].path, "B");
	/* What does not fit is the end of the order, so the same ones every time. */
	assert_string_equal(reason_of(&m, "b-"), REJECT_FILES);
	assert_string_equal(reason_of(&m, "b/x"), REJECT_FILES);
	assert_string_equal(reason_of(&m, "b0"), REJECT_FILES);
	place_close(&p);
}

static void test_what_is_not_inert_is_listed_with_the_reason(void **state)
{
	_cleanup_manifest_ struct manifest m = {0};
	struct place p;

	(void)state;
	place_open(&p);
	put_file(p.fd, "good", "x");
	put_link(p.fd, "passwd", "/etc/passwd");
	put_link(p.fd, "dir-link", "/etc");
	put_link(p.fd, "dangling", "nowhere");
	put_fifo(p.fd, "fifo");
	put_socket(p.fd, "socket");
	put_file(p.fd, "one-name", "x");
	assert_int_equal(linkat(p.fd, "one-name", p.fd, "two-names", 0), 0);
	put_file(p.fd, "setuid", "x");
	put_mode(p.fd, "setuid", 04755);
	put_file(p.fd, "setgid", "x");
	put_mode(p.fd, "setgid", 02755);
	if (geteuid() == 0)
		(void)mknodat(p.fd, "device", S_IFCHR | 0600, 0x103);
	m = collect_all(p.fd, &everything);
	assert_int_equal(m.n_outputs, 1);
	assert_string_equal(reason_of(&m, "passwd"), REJECT_SYMLINK);
	assert_string_equal(reason_of(&m, "dir-link"), REJECT_SYMLINK);
	assert_string_equal(reason_of(&m, "dangling"), REJECT_SYMLINK);
	assert_string_equal(reason_of(&m, "fifo"), REJECT_FIFO);
	assert_string_equal(reason_of(&m, "socket"), REJECT_SOCKET);
	assert_string_equal(reason_of(&m, "one-name"), REJECT_HARD_LINK);
	assert_string_equal(reason_of(&m, "two-names"), REJECT_HARD_LINK);
	assert_string_equal(reason_of(&m, "setuid"), REJECT_SET_ID);
	assert_string_equal(reason_of(&m, "setgid"), REJECT_SET_ID);
	if (is_there(p.fd, "device"))
		assert_string_equal(reason_of(&m, "device"), REJECT_DEVICE);
	place_close(&p);
}

static void test_files_of_somebody_else_are_rejected(void **state)
{
	_cleanup_manifest_ struct manifest m = {0};
	struct collect_rules rules = everything;
	struct place p;

	(void)state;
	place_open(&p);
	put_file(p.fd, "f", "x");
	rules.owner = geteuid() + 1;
	m = collect_all(p.fd, &rules);
	assert_int_equal(m.n_outputs, 0);
	assert_string_equal(reason_of(&m, "f"), REJECT_OWNER);
	manifest_done(&m);
	rules.owner = geteuid();
	m = collect_all(p.fd, &rules);
	assert_int_equal(m.n_outputs, 1);
	place_close(&p);
}

static void test_a_sparse_monster_is_rejected_unread(void **state)
{
	_cleanup_manifest_ struct manifest m = {0};
	struct place p;

	(void)state;
	place_open(&p);
	put_sparse(p.fd, "monster", 1LL << 40);
	put_sparse(p.fd, "fits", 1 << 19);
	put_sparse(p.fd, "largest", (1 << 19) + 1);
	m = collect_all(p.fd, &everything);
	assert_int_equal(m.n_outputs, 1);
	assert_int_equal(output_of(&m, "fits")->size, 1 << 19);
	assert_string_equal(reason_of(&m, "monster"), REJECT_SPARSE);
	assert_string_equal(reason_of(&m, "largest"), REJECT_SPARSE);
	place_close(&p);
}

static void test_the_byte_limit_is_held_to_the_byte(void **state)
{
	_cleanup_manifest_ struct manifest m = {0};
	struct collect_rules rules = everything;
	struct place p;

	(void)state;
	place_open(&p);
	put_file(p.fd, "a", "12345");
	put_file(p.fd, "b", "1234567");
	put_file(p.fd, "c", "12345");
	put_file(p.fd, "d", "");
	rules.max_bytes = 10 + 3; /* and three names of one byte */
	m = collect_all(p.fd, &rules);
	assert_int_equal(m.n_outputs, 3);
	assert_non_null(output_of(&m, "a"));
	assert_non_null(reason_of(&m, "b"));
	assert_non_null(output_of(&m, "c"));
	assert_non_null(output_of(&m, "d"));
	place_close(&p);
}

static void test_names_are_bytes(void **state)
{
	static const char *const names[] = {"new\nline", "\xff\xfe", "-rf", " ", "\x1b[31mred", "a\\b"};
	_cleanup_manifest_ struct manifest m = {0};
	char longest[256] = "";
	struct place p;

	(void)state;
	place_open(&p);
	memset(longest, 'x', 255);
	put_file(p.fd, longest, "x");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		put_file(p.fd, names[i], "x");
	m = collect_all(p.fd, &everything);
	assert_int_equal(m.n_outputs, ARRAY_SIZE(names) + 1);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_non_null(output_of(&m, names[i]));
	place_close(&p);
}

static void test_a_tree_that_is_too_deep_is_one_row(void **state)
{
	_cleanup_manifest_ struct manifest m = {0};
	struct place p;
	int fd;

	(void)state;
	place_open_large(&p);
	fd = dup(p.fd);
	for (int i = 0; i < 4000; i++) {
		int next;

		put_file(fd, "f", "x");
		put_dir(fd, "d");
		next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		close(fd);
		fd = next;
	}
	close(fd);
	m = collect_all(p.fd, &everything);
	assert_int_equal(m.n_outputs, 256);
	assert_int_equal(m.n_rejected, 1);
	assert_string_equal(m.rejected[0].reason, REJECT_DEPTH);
	place_close(&p);
}

static void test_the_list_of_rejected_is_bounded(void **state)
{
	_cleanup_manifest_ struct manifest m = {0};
	struct place p;
	char name[32];

	(void)state;
	place_open_large(&p);
	for (int i = 0; i < 1500; i++) {
		snprintf(name, sizeof name, "%d", i);
		put_link(p.fd, name, "x");
	}
	m = collect_all(p.fd, &everything);
	assert_int_equal(m.n_rejected, 1000);
	assert_int_equal(m.n_rejected_more, 500);
	place_close(&p);
}

static void test_100000_files_are_collected(void **state)
{
	_cleanup_manifest_ struct manifest m = {0};
	struct place p;
	char name[32];

	(void)state;
	place_open_large(&p);
	for (int i = 0; i < 100000; i++) {
		snprintf(name, sizeof name, "file-%d", i);
		assert_int_equal(mknodat(p.fd, name, S_IFREG | 0600, 0), 0);
	}
	m = collect_all(p.fd, &everything);
	assert_int_equal(m.n_outputs, 100000);
	place_close(&p);
}

static int collect_locked(void *arg)
{
	struct collect_rules rules = everything;
	struct error err = ERROR_INIT;
	struct manifest m = {0};
	int at = *(int *)arg, fd;

	rules.owner = geteuid();
	put_dir(at, "work");
	fd = openat(at, "work", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	put_file(fd, "secret", "x");
	put_dir(fd, "dir");
	put_file(fd, "dir/f", "x");
	put_dir(fd, "dir-r");
	put_file(fd, "dir-r/f", "x");
	put_mode(fd, "secret", 0);
	put_mode(fd, "dir/f", 0);
	put_mode(fd, "dir", 0);
	put_mode(fd, "dir-r", 0400);
	fchmod(fd, 0);
	if (collect(fd, &rules, NULL, NULL, &m, &err) < 0)
		return 1;
	if (m.n_rejected || m.n_outputs != 3)
		return 2;
	manifest_done(&m);
	return 0;
}

/* On one CPU there is one hand. */
static struct manifest collect_alone(int fd, const struct collect_rules *rules)
{
	cpu_set_t before, one;
	struct manifest m;

	assert_return_code(sched_getaffinity(0, sizeof before, &before), 0);
	CPU_ZERO(&one);
	for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
		if (CPU_ISSET(i, &before))
			CPU_SET(i, &one);
	assert_return_code(sched_setaffinity(0, sizeof one, &one), 0);
	m = collect_all(fd, rules);
	assert_return_code(sched_setaffinity(0, sizeof before, &before), 0);
	return m;
}

static void check_hands(int fd, const struct collect_rules *rules, size_t expected)
{
	_cleanup_manifest_ struct manifest many = collect_all(fd, rules), alone = collect_alone(fd, rules);

	assert_int_equal(many.n_outputs, expected);
	assert_int_equal(alone.n_outputs, expected);
	for (size_t i = 0; i < expected; i++) {
		assert_string_equal(many.outputs[i].path, alone.outputs[i].path);
		assert_memory_equal(many.outputs[i].sha256, alone.outputs[i].sha256, DIGEST_SIZE);
		assert_int_equal(many.outputs[i].size, alone.outputs[i].size);
	}
	assert_int_equal(many.n_rejected, alone.n_rejected);
	assert_int_equal(many.n_rejected_more, alone.n_rejected_more);
	for (size_t i = 0; i < many.n_rejected; i++) {
		assert_string_equal(many.rejected[i].path, alone.rejected[i].path);
		assert_string_equal(many.rejected[i].reason, alone.rejected[i].reason);
	}
}

static void test_many_hands_find_what_one_finds(void **state)
{
	enum { FILES = 2600 };
	char name[64], text[64], later[64], fives[] = "f*5", all[] = "d0001/**",
					    *outputs[] = {fives, all, NULL};
	_cleanup_manifest_ struct manifest few = {0};
	struct collect_rules rules = everything;
	struct place p;

	(void)state;
	place_open(&p);
	for (int i = 0; i < FILES; i++) {
		snprintf(name, sizeof name, "f%04d", i);
		snprintf(text, sizeof text, "content of %d", i % 997);
		put_file(p.fd, name, text);
		if (i % 300 == 7) {
			put_mode(p.fd, name, 0);
			snprintf(later, sizeof later, "f%04d-link", i);
			put_link(p.fd, later, name);
			snprintf(later, sizeof later, "f%04d-other", i + 1);
			put_file(p.fd, later, "two names");
			assert_int_equal(linkat(p.fd, later, p.fd, strcat(name, "-same"), 0), 0);
		}
	}
	put_sparse(p.fd, "f0100-large", 300 * 1024);
	put_dir(p.fd, "d0001");
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof name, "d0001/g%d", i);
		put_file(p.fd, name, name);
	}
	rules.max_bytes = 1 << 30;
	check_hands(p.fd, &rules, FILES + 1 + 100);
	rules.max_files = 1500;
	check_hands(p.fd, &rules, 1500);
	rules.max_files = FILES;
	rules.outputs = outputs;
	check_hands(p.fd, &rules, FILES / 10 + 100);
	rules.outputs = NULL;
	rules.max_bytes = 20000;
	few = collect_alone(p.fd, &rules);
	assert_in_range(few.n_outputs, 100, FILES);
	check_hands(p.fd, &rules, few.n_outputs);
	place_close(&p);
}

static void test_what_the_analysis_locked_is_collected_all_the_same(void **state)
{
	struct place p;

	(void)state;
	place_open(&p);
	assert_int_equal(fchmod(p.fd, 0777), 0);
	assert_int_equal(as_ordinary_user(collect_locked, &p.fd), 0);
	place_close(&p);
}

static int collect_foreign_locked(void *arg)
{
	struct collect_rules rules = everything;
	struct error err = ERROR_INIT;
	struct manifest m = {0};

	if (collect(*(int *)arg, &rules, NULL, NULL, &m, &err) < 0)
		return 1;
	if (m.n_outputs != 0 || m.n_rejected != 2)
		return 2;
	return strcmp(m.rejected[0].reason, REJECT_UNREADABLE) != 0;
}

static void test_what_nobody_can_unlock_is_rejected(void **state)
{
	struct place p;

	(void)state;
	if (geteuid() != 0)
		skip();
	place_open(&p);
	put_file(p.fd, "f", "x");
	put_dir(p.fd, "d");
	put_file(p.fd, "d/f", "x");
	put_mode(p.fd, "f", 0);
	put_mode(p.fd, "d", 0);
	assert_int_equal(fchmod(p.fd, 0755), 0);
	assert_int_equal(as_ordinary_user(collect_foreign_locked, &p.fd), 0);
	place_close(&p);
}

static void test_caches_and_leftovers_are_not_outputs(void **state)
{
	static const char *const dirs[] = {
		"__pycache__",	      "pkg",	      "pkg/__pycache__", ".cache", ".config",
		".config/matplotlib", ".config/mine", ".ipython",	 ".nv",	   ".fontconfig",
		".matplotlib",	      "core",	      "pkg/.cache",
	};
	static const char *const skipped[] = {
		"__pycache__/m.pyc",	"pkg/__pycache__/x", "m.pyc",	 ".cache/x",
		".config/matplotlib/x", ".ipython/x",	     ".nv/x",	 ".Rhistory",
		"pkg/.Rhistory",	"core.1234",	     "pkg/core", "notes~",
		".matplotlib/x",
	};
	static const char *const kept[] = {
		"core/result", ".config/mine/x", "core.csv", "core.", "x.tmp",
		".RData",      "pkg/.cache/x",	 ".pyc",     "~",
	};
	_cleanup_manifest_ struct manifest m = {0};
	struct collect_rules rules = everything;
	char *declared[] = {(char[]){"m.pyc"}, (char[]){".cache/"}, NULL};
	struct place p;

	(void)state;
	place_open(&p);
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		put_dir(p.fd, dirs[i]);
	for (size_t i = 0; i < ARRAY_SIZE(skipped); i++)
		put_file(p.fd, skipped[i], "x");
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		put_file(p.fd, kept[i], "x");
	m = collect_all(p.fd, &everything);
	for (size_t i = 0; i < ARRAY_SIZE(skipped); i++)
		if (output_of(&m, skipped[i]))
			fail_msg("%s was collected", skipped[i]);
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		if (!output_of(&m, kept[i]))
			fail_msg("%s was not collected", kept[i]);
	assert_int_equal(m.n_rejected, 0);
	manifest_done(&m);
	/* What is declared is meant. */
	rules.outputs = declared;
	m = collect_all(p.fd, &rules);
	assert_int_equal(m.n_outputs, 2);
	assert_null(m.missing);
	place_close(&p);
}

static void test_our_own_mount_points_are_ignored_at_the_top_only(void **state)
{
	static const char *const ours[] = {"data", "docs", NULL};
	_cleanup_manifest_ struct manifest m = {0};
	struct collect_rules rules = everything;
	struct place p;

	(void)state;
	place_open(&p);
	put_dir(p.fd, "data");
	put_file(p.fd, "data/x", "x");
	put_link(p.fd, "docs", "/etc");
	put_dir(p.fd, "sub");
	put_dir(p.fd, "sub/data");
	put_file(p.fd, "sub/data/x", "x");
	rules.ignore = ours;
	m = collect_all(p.fd, &rules);
	assert_int_equal(m.n_outputs, 1);
	assert_string_equal(m.outputs[0].path, "sub/data/x");
	assert_int_equal(m.n_rejected, 0);
	place_close(&p);
}

static void stage(struct inputs *in, const char *path, const char *content)
{
	struct input i = {.path = (char *)path, .source = (char[]){"/src"}, .size = strlen(content)};

	digest_bytes(content, strlen(content), i.sha256);
	assert_int_equal(inputs_add(in, &i, NULL), 0);
}

static void test_an_input_counts_only_once_it_was_changed(void **state)
{
	_cleanup_manifest_ struct manifest m = {0};
	struct collect_rules rules = everything;
	char *declared[] = {(char[]){"same"}, NULL};
	struct inputs in = {0};
	struct place p;

	(void)state;
	place_open(&p);
	put_file(p.fd, "same", "abc");
	put_file(p.fd, "changed", "abd");
	put_file(p.fd, "longer", "abcd");
	put_file(p.fd, "made", "abc");
	stage(&in, "same", "abc");
	stage(&in, "changed", "abc");
	stage(&in, "longer", "abc");
	rules.inputs = &in;
	rules.max_files = 3; /* an unchanged input takes no room */
	m = collect_all(p.fd, &rules);
	assert_int_equal(m.n_outputs, 3);
	assert_null(output_of(&m, "same"));
	assert_int_equal(m.n_rejected, 0);
	manifest_done(&m);
	rules.outputs = declared;
	m = collect_all(p.fd, &rules);
	assert_int_equal(m.n_outputs, 1);
	assert_non_null(output_of(&m, "same"));
	inputs_done(&in);
	place_close(&p);
}

static void test_what_another_analysis_made_is_no_output_even_if_declared(void **state)
{
	_cleanup_manifest_ struct manifest m = {0};
	struct collect_rules rules = everything;
	char *declared[] = {(char[]){"**"}, NULL};
	struct inputs in = {0};
	struct place p;

	(void)state;
	place_open(&p);
	put_file(p.fd, "same", "abc");
	put_file(p.fd, "changed", "abd");
	put_file(p.fd, "staged", "abc");
	stage(&in, "same", "abc");
	stage(&in, "changed", "abc");
	stage(&in, "staged", "abc");
	assert_int_equal(inputs_set_from(&in, "same", "other", 1, NULL), 0);
	assert_int_equal(inputs_set_from(&in, "changed", "other", 1, NULL), 0);
	rules.outputs = declared;
	rules.inputs = rules.flows = &in;
	m = collect_all(p.fd, &rules);
	assert_int_equal(m.n_outputs, 2);
	assert_non_null(output_of(&m, "changed"));
	assert_non_null(output_of(&m, "staged"));
	inputs_done(&in);
	place_close(&p);
}

static void test_declared_outputs_are_taken_and_missing_ones_named(void **state)
{
	char *outputs[] = {(char[]){"*.csv"},	  (char[]){"result.csv"}, (char[]){"figs/"},
			   (char[]){"model.pkl"}, (char[]){"link.txt"},	  NULL};
	char *optional[] = {(char[]){"log.txt"}, (char[]){"never"}, NULL};
	_cleanup_manifest_ struct manifest m = {0};
	struct collect_rules rules = everything;
	struct place p;

	(void)state;
	place_open(&p);
	put_file(p.fd, "result.csv", "x");
	put_dir(p.fd, "figs");
	put_dir(p.fd, "figs/deep");
	put_file(p.fd, "figs/deep/a.png", "x");
	put_file(p.fd, "other", "x");
	put_file(p.fd, "log.txt", "x");
	put_link(p.fd, "link.txt", "other");
	put_link(p.fd, "uninteresting", "other");
	rules.outputs = outputs;
	rules.optional_outputs = optional;
	m = collect_all(p.fd, &rules);
	assert_int_equal(m.n_outputs, 3);
	assert_non_null(output_of(&m, "figs/deep/a.png"));
	assert_non_null(output_of(&m, "log.txt"));
	assert_int_equal(strv_length(m.missing), 2);
	assert_string_equal(m.missing[0], "model.pkl");
	assert_string_equal(m.missing[1], "link.txt"); /* it is there, and rejected */
	assert_int_equal(m.n_rejected, 1);
	assert_string_equal(reason_of(&m, "link.txt"), REJECT_SYMLINK);
	assert_int_equal(strv_length(m.present), 4);
	place_close(&p);
}

static void test_of_what_was_there_instead_a_few_are_named(void **state)
{
	char *outputs[] = {(char[]){"missing"}, NULL};
	_cleanup_manifest_ struct manifest m = {0};
	struct collect_rules rules = everything;
	struct place p;
	char name[32];

	(void)state;
	place_open(&p);
	for (int i = 0; i < 50; i++) {
		snprintf(name, sizeof name, "f%d", i);
		put_file(p.fd, name, "x");
	}
	rules.outputs = outputs;
	m = collect_all(p.fd, &rules);
	assert_int_equal(strv_length(m.present), 20);
	place_close(&p);
}

struct puts {
	int called;
	bool change, fail;
};

static int put_counted(void *arg, int fd, uint64_t size, uint8_t sha256[DIGEST_SIZE], struct error *err)
{
	struct puts *p = arg;
	char text[64];

	p->called++;
	if (p->fail)
		return error_set(err, ERROR_LEDGER, "the store is full");
	assert_int_equal(read(fd, text, sizeof text), (ssize_t)size);
	digest_bytes(text, size, sha256);
	if (p->change) {
		char self[64];
		int again;

		snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
		again = open(self, O_WRONLY | O_APPEND | O_CLOEXEC);
		assert_int_equal(write(again, "!", 1), 1);
		close(again);
	}
	return 0;
}

static void test_large_files_go_to_the_store(void **state)
{
	_cleanup_manifest_ struct manifest m = {0};
	struct collect_rules rules = everything;
	struct error err = ERROR_INIT;
	struct puts puts = {0};
	struct inputs in = {0};
	struct place p;

	(void)state;
	place_open(&p);
	put_file(p.fd, "large", "0123456789");
	put_file(p.fd, "limit", "01234567");
	put_file(p.fd, "staged", "9876543210");
	stage(&in, "staged", "9876543210");
	rules.inputs = &in;
	rules.object_min = 8;
	assert_int_equal(collect(p.fd, &rules, put_counted, &puts, &m, &err), 0);
	assert_int_equal(puts.called, 1);
	assert_true(output_of(&m, "large")->is_object);
	assert_false(output_of(&m, "limit")->is_object);
	manifest_done(&m);
	puts.change = true;
	assert_int_equal(collect(p.fd, &rules, put_counted, &puts, &m, &err), 0);
	assert_string_equal(reason_of(&m, "large"), REJECT_CHANGED);
	manifest_done(&m);
	puts.fail = true;
	assert_true(collect(p.fd, &rules, put_counted, &puts, &m, &err) < 0);
	assert_int_equal(err.kind, ERROR_LEDGER);
	inputs_done(&in);
	place_close(&p);
}

static int collect_around_mount(void *arg)
{
	struct place *p = arg;
	struct manifest m = {0};
	struct error err = ERROR_INIT;
	char at[128];

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return 77;
	snprintf(at, sizeof at, "%s/mounted", p->path);
	if (mount("none", at, "tmpfs", 0, NULL) < 0)
		return 77;
	snprintf(at, sizeof at, "%s/file", p->path);
	if (mount("/etc/passwd", at, NULL, MS_BIND, NULL) < 0)
		return 77;
	/* The old descriptor shows the old namespace's mounts. */
	p->fd = open(p->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	put_file(p->fd, "mounted/f", "x");
	if (collect(p->fd, &everything, NULL, NULL, &m, &err) < 0)
		return 1;
	return m.n_outputs == 0 && m.n_rejected == 2 ? 0 : 2;
}

static void test_nothing_is_collected_across_a_mount(void **state)
{
	struct place p;
	int r;

	(void)state;
	if (geteuid() != 0)
		skip();
	place_open(&p);
	put_dir(p.fd, "mounted");
	put_file(p.fd, "file", "");
	r = in_child(collect_around_mount, &p);
	if (r != 77)
		assert_int_equal(r, 0);
	place_close(&p);
}

struct swapper {
	int fd;
	bool stop;
};

static void *swap(void *arg)
{
	struct swapper *s = arg;

	while (!__atomic_load_n(&s->stop, __ATOMIC_RELAXED)) {
		(void)renameat2(s->fd, "work/sub", s->fd, "dir-bait", RENAME_EXCHANGE);
		(void)renameat2(s->fd, "work/file", s->fd, "file-bait", RENAME_EXCHANGE);
		(void)renameat2(s->fd, "work/x", s->fd, "fifo-bait", RENAME_EXCHANGE);
	}
	return NULL;
}

static void test_a_swap_while_we_look_brings_nothing_in_from_outside(void **state)
{
	static const char secret[] = "secret";
	uint8_t hash[DIGEST_SIZE];
	struct swapper s = {0};
	pthread_t thread;
	char target[128];
	struct place p;
	int fd;

	(void)state;
	place_open_large(&p);
	put_dir(p.fd, "outside");
	put_file(p.fd, "outside/f", secret);
	snprintf(target, sizeof target, "%s/outside", p.path);
	put_link(p.fd, "dir-bait", target);
	snprintf(target, sizeof target, "%s/outside/f", p.path);
	put_link(p.fd, "file-bait", target);
	put_fifo(p.fd, "fifo-bait");
	put_dir(p.fd, "work");
	put_dir(p.fd, "work/sub");
	put_file(p.fd, "work/sub/f", "mine");
	put_file(p.fd, "work/file", "mine");
	put_file(p.fd, "work/x", "mine");
	digest_bytes(secret, strlen(secret), hash);
	fd = openat(p.fd, "work", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	s.fd = p.fd;
	assert_int_equal(pthread_create(&thread, NULL, swap, &s), 0);
	for (int i = 0; i < 3000; i++) {
		struct manifest m = collect_all(fd, &everything);

		for (size_t k = 0; k < m.n_outputs; k++) {
			assert_memory_not_equal(m.outputs[k].sha256, hash, DIGEST_SIZE);
			assert_int_equal(m.outputs[k].size, 4);
		}
		manifest_done(&m);
	}
	__atomic_store_n(&s.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	close(fd);
	place_close(&p);
}

static void test_opening_again_refuses_what_is_not_the_same_any_more(void **state)
{
	struct error err = ERROR_INIT;
	struct output o = {.path = (char[]){"sub/f"}, .size = 1};
	struct place p;
	int fd;

	(void)state;
	place_open(&p);
	put_dir(p.fd, "sub");
	put_file(p.fd, "sub/f", "x");
	fd = collect_open(p.fd, &o, &err);
	assert_true(fd >= 0);
	close(fd);
	put_file(p.fd, "sub/f", "xy");
	assert_int_equal(collect_open(p.fd, &o, &err), -1);
	assert_int_equal(err.kind, ERROR_REFUSED);
	unlinkat(p.fd, "sub/f", 0);
	assert_int_equal(collect_open(p.fd, &o, &err), -1);
	put_file(p.fd, "g", "x");
	put_link(p.fd, "sub/f", "../g");
	assert_int_equal(collect_open(p.fd, &o, &err), -1);
	unlinkat(p.fd, "sub/f", 0);
	put_fifo(p.fd, "sub/f");
	assert_int_equal(collect_open(p.fd, &o, &err), -1);
	unlinkat(p.fd, "sub/f", 0);
	assert_int_equal(renameat(p.fd, "sub", p.fd, "other"), 0);
	put_file(p.fd, "other/f", "x");
	put_link(p.fd, "sub", "other");
	assert_int_equal(collect_open(p.fd, &o, &err), -1);
	place_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_file_the_analysis_made_is_an_output),
		cmocka_unit_test(test_outputs_are_sorted_by_their_whole_path),
		cmocka_unit_test(test_what_is_not_inert_is_listed_with_the_reason),
		cmocka_unit_test(test_files_of_somebody_else_are_rejected),
		cmocka_unit_test(test_a_sparse_monster_is_rejected_unread),
		cmocka_unit_test(test_the_byte_limit_is_held_to_the_byte),
		cmocka_unit_test(test_names_are_bytes),
		cmocka_unit_test(test_a_tree_that_is_too_deep_is_one_row),
		cmocka_unit_test(test_the_list_of_rejected_is_bounded),
		cmocka_unit_test(test_100000_files_are_collected),
		cmocka_unit_test(test_many_hands_find_what_one_finds),
		cmocka_unit_test(test_what_the_analysis_locked_is_collected_all_the_same),
		cmocka_unit_test(test_what_nobody_can_unlock_is_rejected),
		cmocka_unit_test(test_caches_and_leftovers_are_not_outputs),
		cmocka_unit_test(test_our_own_mount_points_are_ignored_at_the_top_only),
		cmocka_unit_test(test_an_input_counts_only_once_it_was_changed),
		cmocka_unit_test(test_what_another_analysis_made_is_no_output_even_if_declared),
		cmocka_unit_test(test_declared_outputs_are_taken_and_missing_ones_named),
		cmocka_unit_test(test_of_what_was_there_instead_a_few_are_named),
		cmocka_unit_test(test_large_files_go_to_the_store),
		cmocka_unit_test(test_nothing_is_collected_across_a_mount),
		cmocka_unit_test(test_a_swap_while_we_look_brings_nothing_in_from_outside),
		cmocka_unit_test(test_opening_again_refuses_what_is_not_the_same_any_more),
	};

	return cmocka_run_group_tests_name("collect", tests, NULL, NULL);
}
