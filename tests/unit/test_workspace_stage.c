#include "test_workspace_site.h"

#include <inttypes.h>

#include "file.h"
#include "text.h"

struct staged {
	struct bench bench;
	struct workspace w;
	struct inputs inputs;
	char source[256];
};

static void staged_open(struct staged *s)
{
	struct error err = ERROR_INIT;

	memset(&s->inputs, 0, sizeof s->inputs);
	bench_open(&s->bench);
	assert_int_equal(open_plain(&s->bench, "a", &s->w, &err), 0);
	put_file(s->bench.place.fd, "source", "abc");
	snprintf(s->source, sizeof s->source, "%s/source", s->bench.place.path);
}

static void staged_close(struct staged *s)
{
	inputs_done(&s->inputs);
	workspace_close(&s->w);
	bench_close(&s->bench);
}

static int stage(struct staged *s, const char *source, const char *as, struct error *err)
{
	return workspace_stage(&s->w, &(struct stage){.source = (char *)source, .as = (char *)as}, 1 << 20,
			       geteuid(), getegid(), &s->inputs, err);
}

static void test_a_file_is_copied_and_hashed(void **state)
{
	struct error err = ERROR_INIT;
	char hex[DIGEST_TEXT_SIZE];
	struct staged s;
	struct stat st;
	mode_t before;

	(void)state;
	staged_open(&s);
	before = umask(0777);
	assert_int_equal(stage(&s, s.source, "in/deep/er/genes.csv", &err), 0);
	umask(before);
	assert_content(s.w.fd, "in/deep/er/genes.csv", "abc");
	assert_int_equal(s.inputs.count, 1);
	hex_encode(s.inputs.list[0].sha256, DIGEST_SIZE, hex);
	assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	assert_int_equal(s.inputs.list[0].size, 3);
	assert_string_equal(s.inputs.list[0].source, s.source);
	assert_int_equal(fstatat(s.w.fd, "in/deep", &st, 0), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0700);
	assert_int_equal(fstatat(s.w.fd, "in/deep/er/genes.csv", &st, 0), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0600);
	assert_int_equal(st.st_nlink, 1);
	staged_close(&s);
}

static void test_only_the_execute_bit_is_kept(void **state)
{
	struct error err = ERROR_INIT;
	struct staged s;
	struct stat st;

	(void)state;
	staged_open(&s);
	assert_int_equal(chmod(s.source, 06755), 0);
	assert_int_equal(stage(&s, s.source, "run.sh", &err), 0);
	assert_int_equal(fstatat(s.w.fd, "run.sh", &st, 0), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0700);
	staged_close(&s);
}

static void test_twice_is_harmless_and_another_source_is_not(void **state)
{
	struct error err = ERROR_INIT;
	char other[256];
	struct staged s;

	(void)state;
	staged_open(&s);
	snprintf(other, sizeof other, "%s/other", s.bench.place.path);
	put_file(s.bench.place.fd, "other", "other");
	assert_int_equal(stage(&s, s.source, "f", &err), 0);
	assert_int_equal(stage(&s, s.source, "f", &err), 0);
	assert_int_equal(s.inputs.count, 1);
	assert_true(stage(&s, other, "f", &err) < 0);
	assert_int_equal(err.kind, ERROR_USAGE);
	assert_content(s.w.fd, "f", "abc");
	assert_int_equal(stage(&s, s.source, "g", &err), 0);
	assert_true(stage(&s, other, "g/h", &err) < 0);
	assert_int_equal(err.kind, ERROR_USAGE);
	assert_int_equal(stage(&s, other, "d/e", &err), 0);
	assert_true(stage(&s, s.source, "d", &err) < 0);
	assert_int_equal(err.kind, ERROR_USAGE);
	staged_close(&s);
}

static void test_what_is_not_a_regular_file_is_refused_with_the_reason(void **state)
{
	static const struct {
		const char *name, *reason;
	} cases[] = {{"link", "symbolic link"}, {"fifo", "FIFO"}, {"socket", "socket"}, {"dir", "directory"}};
	struct error err = ERROR_INIT;
	struct staged s;

	(void)state;
	staged_open(&s);
	put_link(s.bench.place.fd, "link", "source");
	put_fifo(s.bench.place.fd, "fifo");
	put_socket(s.bench.place.fd, "socket");
	put_dir(s.bench.place.fd, "dir");
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char path[256];

		snprintf(path, sizeof path, "%s/%s", s.bench.place.path, cases[i].name);
		assert_true(stage(&s, path, "f", &err) < 0);
		assert_int_equal(err.kind, ERROR_REFUSED);
		assert_non_null(strstr(err.message, cases[i].reason));
		assert_non_null(strstr(err.message, cases[i].name));
	}
	assert_true(stage(&s, "/dev/null", "f", &err) < 0);
	assert_int_equal(err.kind, ERROR_REFUSED);
	assert_true(stage(&s, "/nonexistent/file", "f", &err) < 0);
	assert_int_equal(err.kind, ERROR_SYSTEM);
	assert_int_equal(count_entries(s.w.fd, "."), 0);
	assert_int_equal(s.inputs.count, 0);
	staged_close(&s);
}

static void test_a_file_over_the_limit_is_refused(void **state)
{
	struct error err = ERROR_INIT;
	struct staged s;
	int fd;

	(void)state;
	staged_open(&s);
	assert_true(workspace_stage(&s.w, &(struct stage){.source = s.source, .as = (char *)"f"}, 2,
				    geteuid(), getegid(), &s.inputs, &err) < 0);
	assert_int_equal(err.kind, ERROR_REFUSED);
	assert_int_equal(workspace_stage(&s.w, &(struct stage){.source = s.source, .as = (char *)"f"}, 3,
					 geteuid(), getegid(), &s.inputs, &err),
			 0);
	fd = open(s.source, O_WRONLY | O_CLOEXEC);
	assert_int_equal(ftruncate(fd, 1LL << 40), 0);
	close(fd);
	assert_true(stage(&s, s.source, "g", &err) < 0);
	assert_int_equal(err.kind, ERROR_REFUSED);
	assert_false(is_there(s.w.fd, "g"));
	staged_close(&s);
}

static void test_an_unclean_target_is_a_usage_error(void **state)
{
	static const char *const targets[] = {"",    "/etc/passwd", "..",    "../x", "a/../b", "a/..",
					      "./a", "a//b",	    "a/./b", "a/",   ".",      "a/."};
	struct error err = ERROR_INIT;
	char longest[300];
	struct staged s;

	(void)state;
	staged_open(&s);
	memset(longest, 'x', sizeof longest);
	longest[sizeof longest - 1] = 0;
	assert_true(stage(&s, s.source, longest, &err) < 0);
	for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
		assert_true(stage(&s, s.source, targets[i], &err) < 0);
		assert_int_equal(err.kind, ERROR_USAGE);
	}
	assert_int_equal(count_entries(s.w.fd, "."), 0);
	assert_int_equal(stage(&s, s.source, "..a/.b/c..", &err), 0);
	staged_close(&s);
}

/* In an adopted workspace links may lie already: none leads out. */
static void test_no_link_in_the_workspace_is_followed(void **state)
{
	struct error err = ERROR_INIT;
	struct staged s;

	(void)state;
	staged_open(&s);
	put_dir(s.bench.place.fd, "outside");
	put_file(s.bench.place.fd, "precious", "precious");
	put_link(s.w.fd, "sub", "../../outside");
	put_link(s.w.fd, "file", "../../precious");
	assert_true(stage(&s, s.source, "sub/f", &err) < 0);
	assert_int_equal(count_entries(s.bench.place.fd, "outside"), 0);
	assert_int_equal(stage(&s, s.source, "file", &err), 0);
	assert_content(s.bench.place.fd, "precious", "precious");
	assert_content(s.w.fd, "file", "abc");
	staged_close(&s);
}

static void test_root_gives_what_it_stages_to_the_slot(void **state)
{
	struct error err = ERROR_INIT;
	struct staged s;
	struct stat st;

	(void)state;
	if (geteuid() != 0)
		skip();
	staged_open(&s);
	assert_int_equal(workspace_stage(&s.w, &(struct stage){.source = s.source, .as = (char *)"d/f"}, 100,
					 70000, 70001, &s.inputs, &err),
			 0);
	assert_int_equal(fstatat(s.w.fd, "d", &st, 0), 0);
	assert_int_equal(st.st_uid, 70000);
	assert_int_equal(fstatat(s.w.fd, "d/f", &st, 0), 0);
	assert_int_equal(st.st_uid, 70000);
	assert_int_equal(st.st_gid, 70001);
	staged_close(&s);
}

static void test_a_path_through_a_link_and_another_file_are_refused(void **state)
{
	struct error err = ERROR_INIT;
	struct stage what = {.as = (char *)"f"};
	char through[PATH_MAX];
	struct staged s;
	struct stat st;

	(void)state;
	staged_open(&s);
	put_link(s.bench.place.fd, "link", ".");
	snprintf(through, sizeof through, "%s/link/source", s.bench.place.path);
	assert_true(stage(&s, through, "f", &err) < 0);
	assert_non_null(strstr(err.message, "has become a symbolic link"));
	assert_int_equal(fstatat(s.bench.place.fd, "source", &st, 0), 0);
	what.source = s.source;
	what.device = st.st_dev;
	what.inode = st.st_ino + 1;
	assert_true(workspace_stage(&s.w, &what, 100, geteuid(), getegid(), &s.inputs, &err) < 0);
	assert_non_null(strstr(err.message, "has been replaced"));
	assert_int_equal(s.inputs.count, 0);
	what.inode = st.st_ino;
	assert_int_equal(workspace_stage(&s.w, &what, 100, geteuid(), getegid(), &s.inputs, &err), 0);
	staged_close(&s);
}

static void test_links_on_the_way_are_ours_or_not_followed(void **state)
{
	char path[PATH_MAX], *real;
	struct staged s;

	(void)state;
	staged_open(&s);
	put_link(s.bench.place.fd, "link", ".");
	put_link(s.bench.place.fd, "round", "round");
	snprintf(path, sizeof path, "%s/link/link/../%s/source", s.bench.place.path,
		 strrchr(s.bench.place.path, '/') + 1);
	real = path_real_trusted(path);
	assert_string_equal(real, s.source);
	free(real);
	snprintf(path, sizeof path, "%s/round/source", s.bench.place.path);
	assert_int_equal(file_open_trusted(path, false), -ELOOP);
	snprintf(path, sizeof path, "%s/source/below", s.bench.place.path);
	assert_int_equal(file_open_trusted(path, false), -ENOTDIR);
	/* Our own, and where we stand: but a process's, which goes where it likes. */
	put_link(s.bench.place.fd, "process", "/proc/self/cwd");
	snprintf(path, sizeof path, "%s/process", s.bench.place.path);
	assert_int_equal(file_open_trusted(path, true), -ELOOP);
	assert_int_equal(file_open_trusted("/proc/self/cwd/.", false), -ELOOP);
	if (geteuid() == 0) {
		assert_int_equal(fchownat(s.bench.place.fd, "link", 70000, 70000, AT_SYMLINK_NOFOLLOW), 0);
		snprintf(path, sizeof path, "%s/link/source", s.bench.place.path);
		assert_int_equal(file_open_trusted(path, false), -ELOOP);
	}
	staged_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_file_is_copied_and_hashed),
		cmocka_unit_test(test_only_the_execute_bit_is_kept),
		cmocka_unit_test(test_twice_is_harmless_and_another_source_is_not),
		cmocka_unit_test(test_what_is_not_a_regular_file_is_refused_with_the_reason),
		cmocka_unit_test(test_a_file_over_the_limit_is_refused),
		cmocka_unit_test(test_an_unclean_target_is_a_usage_error),
		cmocka_unit_test(test_no_link_in_the_workspace_is_followed),
		cmocka_unit_test(test_root_gives_what_it_stages_to_the_slot),
		cmocka_unit_test(test_a_path_through_a_link_and_another_file_are_refused),
		cmocka_unit_test(test_links_on_the_way_are_ours_or_not_followed),
	};

	return cmocka_run_group_tests_name("workspace staging", tests, NULL, NULL);
}
