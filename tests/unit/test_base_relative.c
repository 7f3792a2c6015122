/* A path that somebody else wrote: what is one, and that none leads anywhere. */
#include "place.h"

#include <limits.h>

#include "relative.h"

static struct relative made(const char *text)
{
	struct relative path = {NULL};

	assert_int_equal(relative_check(text, strlen(text), &path, NULL), 0);
	assert_ptr_equal(path.text, text);
	return path;
}

static void test_only_plain_names_with_one_slash_between_them_are_a_path(void **state UNUSED)
{
	static const char *const bad[] = {"",	       "/",	"/etc/passwd", ".",  "..", "../x",
					  "a/../../x", "a/..",	"a//b",	       "a/", "//", "./a",
					  "a/.",       "a/./b", "../../x",     "/.."};
	static const char *const good[] = {"a",	       "a/b",  "..a/b..", "...", ".a/.b",
					   "a b/\xff", "a\nb", "-",	  "~"};
	char text[2 * PATH_MAX];
	struct relative path;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct error err = ERROR_INIT;

		path.text = NULL;
		assert_true(relative_check(bad[i], strlen(bad[i]), &path, &err) < 0);
		assert_null(path.text);
		assert_int_equal(err.kind, ERROR_USAGE);
	}
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		made(good[i]);
	assert_true(relative_check("a\0b", 3, &path, NULL) < 0);
	assert_true(relative_check("a\0", 2, &path, NULL) < 0);
	assert_true(relative_check("\0", 1, &path, NULL) < 0);
	memset(text, 'x', sizeof text);
	text[NAME_MAX] = 0;
	made(text);
	text[NAME_MAX] = 'x';
	text[NAME_MAX + 1] = 0;
	assert_true(relative_check(text, NAME_MAX + 1, &path, NULL) < 0);
	for (size_t i = 1; i < sizeof text; i += 2)
		text[i] = '/', text[i - 1] = 'x';
	text[PATH_MAX - 1] = 0;
	made(text);
	text[PATH_MAX - 1] = '/';
	text[PATH_MAX + 1] = 0;
	assert_true(relative_check(text, PATH_MAX + 1, &path, NULL) < 0);
}

static mode_t mode_of(int dirfd, const char *name)
{
	struct stat st;

	assert_int_equal(fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
	return st.st_mode & 07777;
}

static void test_directories_on_the_way_are_made_with_a_mode_and_keep_the_one_they_have(void **state UNUSED)
{
	const struct relative_make exact = {0755, .is_exact = true, geteuid(), getegid()},
				   plain = {.mode = 0777};
	mode_t before = umask(0777);
	const char *name = NULL;
	struct place p;
	int fd;

	umask(0077);
	place_open(&p);
	umask(geteuid() ? 0777 : 0);
	fd = relative_open_parent(p.fd, made("a/b/c"), &exact, &name);
	assert_true(fd >= 0);
	assert_string_equal(name, "c");
	close(fd);
	assert_int_equal(mode_of(p.fd, "a"), 0755);
	assert_int_equal(mode_of(p.fd, "a/b"), 0755);
	assert_int_equal(fchmodat(p.fd, "a", 0700, 0), 0);
	assert_int_equal(fchmodat(p.fd, "a/b", 01777, 0), 0);
	umask(0027);
	fd_close(relative_open_parent(p.fd, made("a/b/d/c"), &exact, &name));
	fd_close(relative_open_parent(p.fd, made("a/e/c"), &plain, &name));
	assert_int_equal(mode_of(p.fd, "a"), 0700);
	assert_int_equal(mode_of(p.fd, "a/b"), 01777);
	assert_int_equal(mode_of(p.fd, "a/b/d"), 0755);
	assert_int_equal(mode_of(p.fd, "a/e"), 0750);
	assert_int_equal(relative_open_parent(p.fd, made("a/none/c"), NULL, &name), -ENOENT);
	assert_int_equal(faccessat(p.fd, "a/none", F_OK, 0), -1);
	umask(before);
	place_close(&p);
}

static int entries(int fd)
{
	_cleanup_dir_ DIR *dir = dir_list(fd);
	int n = 0;

	for (const struct dirent *e; (e = readdir(dir));)
		n += !name_is_dots(e->d_name);
	return n;
}

static int fill(void *arg, int fd, struct error *err UNUSED)
{
	return file_write_all(fd, arg, strlen(arg));
}

static void test_no_link_and_no_magic_link_leads_out(void **state UNUSED)
{
	const struct relative_make exact = {0755, .is_exact = true, geteuid(), getegid()};
	struct place p, outside;
	const char *name;
	char magic[64];

	place_open(&p);
	place_open(&outside);
	snprintf(magic, sizeof magic, "/proc/self/fd/%d", outside.fd);
	put_link(p.fd, "link", outside.path);
	put_link(p.fd, "magic", magic);
	put_link(p.fd, "up", "..");
	put_link(p.fd, "here", ".");
	put_file(p.fd, "file", "as it was");
	for (size_t i = 0; i < 5; i++) {
		static const char *const ways[] = {"link/x", "magic/x", "up/x", "here/x", "file/x"};
		struct error err = ERROR_INIT;
		int r = relative_open_parent(p.fd, made(ways[i]), i % 2 ? &exact : NULL, &name);

		assert_true(r == -ELOOP || r == -ENOTDIR);
		assert_true(relative_look(p.fd, made(ways[i]), true, &err) < 0);
		assert_int_equal(err.kind, ERROR_REFUSED);
		assert_true(relative_write(p.fd, made(ways[i]), true, fill, (void *)"new", &err) < 0);
	}
	assert_int_equal(entries(outside.fd), 0);
	/* A link of that very name is replaced, never written through, and only if he said so. */
	assert_true(relative_look(p.fd, made("link"), false, NULL) < 0);
	assert_true(relative_write(p.fd, made("link"), false, fill, (void *)"new", NULL) < 0);
	assert_true(relative_write(p.fd, made("file"), false, fill, (void *)"new", NULL) < 0);
	assert_content(p.fd, "file", "as it was");
	assert_int_equal(relative_write(p.fd, made("link"), true, fill, (void *)"new", NULL), 0);
	assert_int_equal(relative_write(p.fd, made("new/er/file"), false, fill, (void *)"new", NULL), 0);
	assert_content(p.fd, "link", "new");
	assert_content(p.fd, "new/er/file", "new");
	assert_int_equal(entries(p.fd), 6);
	assert_int_equal(entries(outside.fd), 0);
	place_close(&p);
	place_close(&outside);
}

static void test_a_file_in_proc_is_no_directory_of_ours(void **state UNUSED)
{
	int proc = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const char *name;

	assert_true(proc >= 0);
	assert_true(relative_open_parent(proc, made("cwd/x"), NULL, &name) < 0);
	assert_true(relative_open_parent(proc, made("root/etc/x"), NULL, &name) < 0);
	assert_true(relative_open_parent(proc, made("fd/0/x"), NULL, &name) < 0);
	close(proc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_only_plain_names_with_one_slash_between_them_are_a_path),
		cmocka_unit_test(test_directories_on_the_way_are_made_with_a_mode_and_keep_the_one_they_have),
		cmocka_unit_test(test_no_link_and_no_magic_link_leads_out),
		cmocka_unit_test(test_a_file_in_proc_is_no_directory_of_ours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
