/* What root may open: nothing on the way to it, nor it, can be changed by others. */
#include "place.h"

#include <errno.h>

#include "owned.h"

enum { OTHER = 61999 };

static int judge(const struct place *p, const char *name, unsigned flags, gid_t group, struct error *err)
{
	char path[256];
	int fd;

	snprintf(path, sizeof path, "%s/%s", p->path, name);
	*err = (struct error)ERROR_INIT;
	fd = owned_open("thing", path, flags | OWNED_AS_ROOT, group, err);
	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

#define MAY(p, name, flags) assert_int_equal(judge(p, name, flags, NO_GROUP, &err), 0)
#define REFUSED(p, name, flags, words)                                                    \
	do {                                                                              \
		assert_true(judge(p, name, flags, NO_GROUP, &err) < 0);                   \
		assert_int_equal(err.kind, ERROR_REFUSED);                                \
		assert_non_null(strstr(err.message, words));                              \
		assert_non_null(strstr(err.message, "only what nobody else can change")); \
	} while (0)

static void make(const struct place *p, const char *name, mode_t mode)
{
	assert_int_equal(mkdirat(p->fd, name, 0700), 0);
	assert_int_equal(fchmodat(p->fd, name, mode, 0), 0);
}

static int setup(void **state)
{
	static struct place p;

	place_open(&p);
	*state = &p;
	return 0;
}

static int teardown(void **state)
{
	place_close(*state);
	return 0;
}

static void test_what_is_roots_alone_may_be_opened(void **state)
{
	struct error err;

	make(*state, "dir", 0755);
	put_file(((struct place *)*state)->fd, "dir/file", "x");
	MAY(*state, "dir", 0);
	MAY(*state, "dir/file", OWNED_FILE);
	MAY(*state, "dir/../dir//file", OWNED_FILE);
}

static void test_what_is_not_there_could_be_made_where_root_alone_writes(void **state)
{
	struct error err;

	make(*state, "open", 0777);
	assert_int_equal(judge(*state, "new", OWNED_FILE, NO_GROUP, &err), -ENOENT);
	assert_int_equal(err.kind, ERROR_NONE);
	assert_int_equal(judge(*state, "new/er", 0, NO_GROUP, &err), -ENOENT);
	REFUSED(*state, "open/new", 0, "(mode 777)");
}

static void test_a_file_in_a_sticky_directory_is_refused_a_directory_is_not(void **state)
{
	struct error err;

	make(*state, "sticky", 01777);
	make(*state, "sticky/dir", 0755);
	put_file(((struct place *)*state)->fd, "sticky/file", "x");
	put_file(((struct place *)*state)->fd, "sticky/dir/file", "x");
	MAY(*state, "sticky/dir", 0);
	MAY(*state, "sticky/dir/file", OWNED_FILE);
	REFUSED(*state, "sticky/file", OWNED_FILE, "(mode 1777)");
	REFUSED(*state, "sticky/new", OWNED_FILE, "(mode 1777)");
	REFUSED(*state, "sticky", 0, "(mode 1777)");
	assert_int_equal(judge(*state, "sticky/new", 0, NO_GROUP, &err), -ENOENT);
}

static void test_directories_are_made_one_by_one_and_for_root_alone(void **state)
{
	const struct place *p = *state;
	struct error err;
	struct stat st;
	mode_t before = umask(0777);

	make(p, "sticky", 01777);
	MAY(p, "sticky/a/b", OWNED_MAKE);
	assert_int_equal(judge(p, "sticky/c/file", OWNED_MAKE | OWNED_FILE, NO_GROUP, &err), -ENOENT);
	umask(before);
	assert_int_equal(fstatat(p->fd, "sticky/a/b", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(fstatat(p->fd, "sticky/c", &st, 0), 0);
	assert_int_equal(fstatat(p->fd, "sticky/c/file", &st, 0), -1);
}

static void test_others_directories_files_and_links_are_refused_by_name(void **state)
{
	const struct place *p = *state;
	struct error err;

	make(p, "theirs", 0755);
	make(p, "theirs/dir", 0755);
	make(p, "sticky", 01777);
	put_file(p->fd, "file", "x");
	assert_int_equal(symlinkat("..", p->fd, "sticky/link"), 0);
	assert_int_equal(fchownat(p->fd, "theirs", OTHER, OTHER, 0), 0);
	assert_int_equal(fchownat(p->fd, "file", OTHER, OTHER, 0), 0);
	assert_int_equal(fchownat(p->fd, "sticky/link", OTHER, OTHER, AT_SYMLINK_NOFOLLOW), 0);
	REFUSED(p, "theirs/dir", 0, "/theirs' is 61999's");
	REFUSED(p, "theirs/new", OWNED_MAKE, "`sudo -u '#61999' fumehood …`");
	REFUSED(p, "file", OWNED_FILE, "': it is 61999's");
	REFUSED(p, "sticky/link/theirs", 0, "(mode 1777)");
}

static void test_roots_links_are_followed_to_what_is_judged_as_well(void **state)
{
	const struct place *p = *state;
	struct error err;

	make(p, "dir", 0755);
	make(p, "open", 0777);
	put_file(p->fd, "dir/file", "x");
	assert_int_equal(symlinkat("dir", p->fd, "link"), 0);
	assert_int_equal(symlinkat("../open", p->fd, "dir/way"), 0);
	assert_int_equal(symlinkat("loop", p->fd, "loop"), 0);
	MAY(p, "link/file", OWNED_FILE);
	REFUSED(p, "link/way", 0, "(mode 777)");
	assert_int_equal(judge(p, "loop", 0, NO_GROUP, &err), -ELOOP);
}

static void test_a_group_may_write_what_is_its_own_and_around_it(void **state)
{
	const struct place *p = *state;
	struct error err;

	make(p, "lab", 02770);
	make(p, "lab/store", 02770);
	make(p, "lab/store/more", 02770);
	assert_int_equal(fchownat(p->fd, "lab", 0, OTHER, 0), 0);
	assert_int_equal(fchownat(p->fd, "lab/store", OTHER, OTHER, 0), 0);
	assert_int_equal(fchmodat(p->fd, "lab", 02770, 0) | fchmodat(p->fd, "lab/store", 02770, 0), 0);
	assert_int_equal(judge(p, "lab/store", 0, OTHER, &err), 0);
	assert_true(judge(p, "lab/store", 0, OTHER + 1, &err) < 0);
	assert_true(judge(p, "lab/store/more", 0, OTHER, &err) < 0);
	REFUSED(p, "lab/store", 0, "(mode 2770)");
}

#define ROW(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROW(what_is_roots_alone_may_be_opened),
		ROW(what_is_not_there_could_be_made_where_root_alone_writes),
		ROW(a_file_in_a_sticky_directory_is_refused_a_directory_is_not),
		ROW(directories_are_made_one_by_one_and_for_root_alone),
		ROW(others_directories_files_and_links_are_refused_by_name),
		ROW(roots_links_are_followed_to_what_is_judged_as_well),
		ROW(a_group_may_write_what_is_its_own_and_around_it),
	};

	if (geteuid() != 0)
		return 77; /* skipped: nobody else can make what is root's */
	return cmocka_run_group_tests_name("what root may open", tests, NULL, NULL);
}
