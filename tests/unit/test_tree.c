#include "place.h"

#include <dirent.h>
#include <linux/fs.h>
#include <pthread.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <time.h>

#include "file.h"
#include "tree.h"

/* A chain of directories, made with two descriptors, each with a file in it. */
static void put_chain(int at, const char *name, int depth)
{
	int fd = dup(at);

	for (int i = 0; i < depth; i++) {
		int next;

		put_dir(fd, i == 0 ? name : "d");
		next = openat(fd, i == 0 ? name : "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		close(fd);
		fd = next;
		if (i % 100 == 0)
			put_file(fd, "f", "x");
	}
	close(fd);
}

static int measure(int fd, const struct tree_size *stop_at, struct tree_size *ret)
{
	struct tree_look *l = NULL;
	int r = tree_look_open(&fd, 1, stop_at, &l);

	if (r == 0)
		r = tree_look_on(l, UINT64_MAX, ret);
	tree_look_free(l);
	return r;
}

static bool is_empty(int fd)
{
	struct tree_size size;

	assert_int_equal(measure(fd, NULL, &size), 0);
	return size.files == 0;
}

/* Of CPU, with all threads: not what the machine does beside it. */
static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void test_removing_what_is_missing_is_fine(void **state)
{
	struct error err = ERROR_INIT;
	struct place p;

	(void)state;
	place_open(&p);
	assert_int_equal(tree_remove(p.fd, "nothing", &err), 0);
	assert_int_equal(tree_empty(p.fd, &err), 0);
	place_close(&p);
}

/* As one that opens a folder's lock, not knowing yet that the folder was set aside; twenty times, or until it is gone. */
static void fill_again_and_again(int fd)
{
	int lock = 0;

	for (int i = 0; i < 20 && lock >= 0; i++) {
		lock = openat(fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		close(lock);
		poll(NULL, 0, 0);
	}
	_exit(0);
}

static void test_what_is_filled_meanwhile_is_removed(void **state)
{
	struct error err = ERROR_INIT;
	struct place p;

	(void)state;
	place_open(&p);
	for (int i = 0; i < 200; i++) {
		int fd, status;
		pid_t pid;

		put_dir(p.fd, "dir");
		put_file(p.fd, "dir/x", "x");
		fd = openat(p.fd, "dir", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		pid = fork();
		assert_true(fd >= 0 && pid >= 0);
		if (pid == 0)
			fill_again_and_again(fd);
		assert_int_equal(tree_remove(p.fd, "dir", &err), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		close(fd);
	}
	place_close(&p);
}

static void test_whatever_it_is_it_is_removed(void **state)
{
	static const char *const names[] = {"file", "link", "dangling", "fifo", "socket", "dir"};
	struct error err = ERROR_INIT;
	struct place p;

	(void)state;
	place_open(&p);
	put_file(p.fd, "file", "x");
	put_link(p.fd, "link", "kept");
	put_file(p.fd, "kept", "kept");
	put_link(p.fd, "dangling", "nowhere");
	put_fifo(p.fd, "fifo");
	put_socket(p.fd, "socket");
	put_dir(p.fd, "dir");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		assert_int_equal(tree_remove(p.fd, names[i], &err), 0);
		assert_false(is_there(p.fd, names[i]));
	}
	assert_content(p.fd, "kept", "kept");
	place_close(&p);
}

static void test_no_link_is_followed(void **state)
{
	struct error err = ERROR_INIT;
	struct place p;

	(void)state;
	place_open(&p);
	put_dir(p.fd, "outside");
	put_file(p.fd, "outside/precious", "precious");
	put_dir(p.fd, "tree");
	put_link(p.fd, "tree/a", "../outside");
	put_link(p.fd, "tree/b", "../outside/precious");
	put_link(p.fd, "tree/c", "/");
	put_link(p.fd, "top", "outside");
	assert_int_equal(tree_remove(p.fd, "tree", &err), 0);
	assert_int_equal(tree_remove(p.fd, "top", &err), 0);
	assert_false(is_there(p.fd, "tree"));
	assert_content(p.fd, "outside/precious", "precious");
	place_close(&p);
}

static void test_names_of_any_bytes_are_removed(void **state)
{
	static const char *const names[] = {"new\nline", "\xff\xfe", "-rf",  " ",
					    "*",	 "\x1b[31m", "a\\b", "…"};
	char longest[256] = "";
	struct error err = ERROR_INIT;
	struct place p;

	(void)state;
	place_open(&p);
	memset(longest, 'x', 255);
	put_file(p.fd, longest, "");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char below[64];

		put_dir(p.fd, names[i]);
		snprintf(below, sizeof below, "%s/%s", names[i], names[i]);
		put_file(p.fd, below, "");
	}
	assert_int_equal(tree_empty(p.fd, &err), 0);
	assert_true(is_empty(p.fd));
	place_close(&p);
}

/* With few descriptors, and far beyond PATH_MAX. */
static int remove_deep(void *arg)
{
	const struct rlimit few = {64, 64};
	struct error err = ERROR_INIT;
	int fd = *(int *)arg;

	return setrlimit(RLIMIT_NOFILE, &few) < 0 || tree_empty(fd, &err) < 0;
}

static void test_a_tree_100000_deep_needs_few_descriptors(void **state)
{
	struct place p;

	(void)state;
	place_open_large(&p);
	put_chain(p.fd, "deep", 100000);
	assert_int_equal(in_child(remove_deep, &p.fd), 0);
	assert_true(is_empty(p.fd));
	place_close(&p);
}

static void test_a_bushy_deep_tree_is_removed(void **state)
{
	struct error err = ERROR_INIT;
	char name[32];
	struct place p;

	(void)state;
	place_open_large(&p);
	put_dir(p.fd, "tree");
	for (int i = 0; i < 60; i++) {
		int fd = openat(p.fd, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		snprintf(name, sizeof name, "chain%d", i);
		put_chain(fd, name, 5 + i);
		close(fd);
	}
	/* Names that removal itself would like to use. */
	put_dir(p.fd, "tree/.moved-0000000000000000");
	assert_int_equal(tree_remove(p.fd, "tree", &err), 0);
	assert_true(is_empty(p.fd));
	place_close(&p);
}

static void test_100000_files_are_removed_quickly(void **state)
{
	struct error err = ERROR_INIT;
	struct place p;
	double start;
	char name[32];

	(void)state;
	place_open_large(&p);
	for (int i = 0; i < 100000; i++) {
		snprintf(name, sizeof name, "file-%d", i);
		assert_int_equal(mknodat(p.fd, name, S_IFREG | 0600, 0), 0);
	}
	start = seconds();
	assert_int_equal(tree_empty(p.fd, &err), 0);
	assert_true(seconds() - start < 30);
	assert_true(is_empty(p.fd));
	place_close(&p);
}

static int lock_and_remove(void *arg)
{
	struct error err = ERROR_INIT;
	int at = *(int *)arg, fd;

	if (mkdirat(at, "tree", 0700) < 0)
		return 1;
	put_chain(at, "tree/chain", 40);
	put_dir(at, "tree/a");
	put_dir(at, "tree/a/b");
	put_file(at, "tree/a/b/f", "x");
	put_dir(at, "tree/empty");
	put_dir(at, "tree/r");
	put_file(at, "tree/r/f", "x");
	put_dir(at, "tree/x");
	put_file(at, "tree/x/f", "x");
	put_mode(at, "tree/chain/d/d/d", 0);
	put_mode(at, "tree/a/b/f", 0);
	put_mode(at, "tree/a/b", 0);
	put_mode(at, "tree/a", 0);
	put_mode(at, "tree/empty", 0);
	put_mode(at, "tree/r", 0400);
	put_mode(at, "tree/x", 0100);
	fd = openat(at, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fchmod(fd, 0);
	if (tree_empty(fd, &err) < 0)
		return 2;
	fchmod(fd, 0);
	if (tree_remove(at, "tree", &err) < 0)
		return 3;
	return is_there(at, "tree") ? 4 : 0;
}

static void test_mode_000_does_not_stop_an_ordinary_user(void **state)
{
	struct place p;

	(void)state;
	place_open(&p);
	assert_int_equal(fchmod(p.fd, 0777), 0);
	assert_int_equal(as_ordinary_user(lock_and_remove, &p.fd), 0);
	place_close(&p);
}

static int remove_around_mount(void *arg)
{
	struct error err = ERROR_INIT;
	struct place *p = arg;
	char at[128];
	int r;

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return 77;
	snprintf(at, sizeof at, "%s/tree/mounted", p->path);
	if (mount("none", at, "tmpfs", 0, NULL) < 0)
		return 77;
	/* The old descriptor shows the old namespace's mounts. */
	p->fd = open(p->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	put_file(p->fd, "tree/mounted/precious", "precious");
	r = tree_remove(p->fd, "tree", &err);
	if (r >= 0 || !strstr(err.message, "mounted"))
		return 1;
	if (!is_there(p->fd, "tree/mounted/precious") || is_there(p->fd, "tree/a"))
		return 2;
	return 0;
}

static void test_a_mount_is_not_crossed_and_the_rest_goes(void **state)
{
	struct place p;
	int r;

	(void)state;
	if (geteuid() != 0)
		skip();
	place_open(&p);
	put_dir(p.fd, "tree");
	put_dir(p.fd, "tree/a");
	put_file(p.fd, "tree/a/f", "x");
	put_dir(p.fd, "tree/mounted");
	r = in_child(remove_around_mount, &p);
	if (r != 77)
		assert_int_equal(r, 0);
	place_close(&p);
}

static int set_immutable(int fd, bool on)
{
	int flags = 0;

	if (ioctl(fd, FS_IOC_GETFLAGS, &flags) < 0)
		return -1;
	flags = on ? flags | FS_IMMUTABLE_FL : flags & ~FS_IMMUTABLE_FL;
	return ioctl(fd, FS_IOC_SETFLAGS, &flags);
}

static void test_what_cannot_be_removed_is_named_and_the_rest_goes(void **state)
{
	struct error err = ERROR_INIT;
	struct place p;
	int fd;

	(void)state;
	place_open(&p);
	put_dir(p.fd, "tree");
	put_dir(p.fd, "tree/sub");
	put_file(p.fd, "tree/sub/stone", "x");
	put_file(p.fd, "tree/sub/a", "x");
	put_file(p.fd, "tree/z", "x");
	fd = openat(p.fd, "tree/sub/stone", O_RDONLY | O_CLOEXEC);
	if (set_immutable(fd, true) < 0) {
		close(fd);
		place_close(&p);
		skip();
	}
	assert_true(tree_remove(p.fd, "tree", &err) < 0);
	assert_non_null(strstr(err.message, "stone"));
	assert_false(is_there(p.fd, "tree/sub/a"));
	assert_false(is_there(p.fd, "tree/z"));
	assert_int_equal(set_immutable(fd, false), 0);
	close(fd);
	assert_int_equal(tree_remove(p.fd, "tree", &err), 0);
	place_close(&p);
}

/* One that swaps a directory of the tree for a link to what must not be touched, as fast as it can. */
struct swapper {
	int fd;
	bool stop;
};

static void *swap(void *arg)
{
	struct swapper *s = arg;

	while (!__atomic_load_n(&s->stop, __ATOMIC_RELAXED)) {
		(void)renameat2(s->fd, "tree/sub", s->fd, "bait", RENAME_EXCHANGE);
		(void)renameat2(s->fd, "tree/x/y", s->fd, "bait", RENAME_EXCHANGE);
	}
	return NULL;
}

static void test_a_directory_swapped_for_a_link_leads_nowhere(void **state)
{
	struct swapper s = {0};
	char target[128];
	struct place p;
	pthread_t thread;

	(void)state;
	place_open_large(&p);
	put_dir(p.fd, "outside");
	put_file(p.fd, "outside/precious", "precious");
	snprintf(target, sizeof target, "%s/outside", p.path);
	put_link(p.fd, "bait", target);
	s.fd = p.fd;
	assert_int_equal(pthread_create(&thread, NULL, swap, &s), 0);
	for (int i = 0; i < 3000; i++) {
		struct error err = ERROR_INIT;

		if (mkdirat(p.fd, "tree", 0700) < 0)
			assert_int_equal(errno, EEXIST);
		(void)mkdirat(p.fd, "tree/sub", 0700);
		(void)mkdirat(p.fd, "tree/sub/s", 0700);
		(void)mkdirat(p.fd, "tree/x", 0700);
		(void)mkdirat(p.fd, "tree/x/y", 0700);
		(void)mkdirat(p.fd, "tree/x/y/z", 0700);
		(void)tree_remove(p.fd, "tree", &err);
		assert_true(is_there(p.fd, "outside/precious"));
	}
	__atomic_store_n(&s.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	assert_content(p.fd, "outside/precious", "precious");
	place_close(&p);
}

static void test_each_inode_is_measured_once(void **state)
{
	struct tree_size size;
	struct place p;
	struct stat st;
	int fd;

	(void)state;
	place_open(&p);
	fd = openat(p.fd, "big", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(posix_fallocate(fd, 0, 1 << 20), 0);
	assert_int_equal(fstat(fd, &st), 0);
	close(fd);
	for (int i = 0; i < 2000; i++) {
		char name[32];

		snprintf(name, sizeof name, "name%d", i);
		assert_int_equal(linkat(p.fd, "big", p.fd, name, 0), 0);
	}
	assert_int_equal(measure(p.fd, NULL, &size), 0);
	assert_int_equal(size.files, 2001);
	assert_int_equal(size.bytes, (uint64_t)st.st_blocks * 512);
	place_close(&p);
}

static void test_a_sparse_file_measures_what_it_takes(void **state)
{
	struct tree_size size;
	struct place p;
	int fd;

	(void)state;
	place_open(&p);
	fd = openat(p.fd, "sparse", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 1LL << 40), 0);
	close(fd);
	assert_int_equal(measure(p.fd, NULL, &size), 0);
	assert_true(size.bytes < 1 << 20);
	place_close(&p);
}

static void test_measuring_stops_early(void **state)
{
	const struct tree_size stop_at = {UINT64_MAX, 10};
	struct tree_size size;
	struct place p;
	char name[32];

	(void)state;
	place_open_large(&p);
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof name, "%d", i);
		put_file(p.fd, name, "");
	}
	assert_int_equal(measure(p.fd, &stop_at, &size), 0);
	assert_int_equal(size.files, 11);
	place_close(&p);
}

static int measure_deep(void *arg)
{
	const struct rlimit few = {100, 100};
	struct tree_size size;

	if (setrlimit(RLIMIT_NOFILE, &few) < 0 || measure(*(int *)arg, NULL, &size) < 0)
		return 1;
	return size.files == 4000 + 40 + 1 + 40 ? 0 : 2;
}

static void test_a_deep_tree_is_measured_whole_and_coming_back_up(void **state)
{
	struct error err = ERROR_INIT;
	struct place p;

	(void)state;
	place_open_large(&p);
	put_chain(p.fd, "deep", 4000);
	put_dir(p.fd, "zz");
	for (int i = 0; i < 40; i++) {
		char name[32];

		snprintf(name, sizeof name, "zz/%d", i);
		put_dir(p.fd, name);
	}
	assert_int_equal(in_child(measure_deep, &p.fd), 0);
	assert_int_equal(tree_empty(p.fd, &err), 0);
	place_close(&p);
}

/* 0: it was said that there is more than could be seen. */
static int measure_hidden(void *arg)
{
	struct tree_size size;

	if (measure(*(int *)arg, NULL, &size) < 0)
		return 2;
	return size.hidden ? 0 : 3;
}

static void test_a_directory_that_cannot_be_looked_into_is_not_passed_over_in_silence(void **state)
{
	static const mode_t modes[] = {0300, 0100, 0400, 0600, 0000};
	struct error err = ERROR_INIT;
	struct place p;

	(void)state;
	place_open(&p);
	assert_int_equal(fchmod(p.fd, 0755), 0);
	put_dir(p.fd, "d");
	put_file(p.fd, "d/f", "x");
	assert_int_equal(fchmodat(p.fd, "d", 0755, 0), 0);
	assert_int_equal(as_ordinary_user(measure_hidden, &p.fd), 3);
	if (geteuid() == 0)
		assert_int_equal(fchownat(p.fd, "d", 65534, 65534, 0), 0);
	for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
		assert_int_equal(fchmodat(p.fd, "d", modes[i], 0), 0);
		assert_int_equal(as_ordinary_user(measure_hidden, &p.fd), 0);
	}
	assert_int_equal(tree_empty(p.fd, &err), 0);
	place_close(&p);
}

static void move_branches(int fd, const char *path, bool away)
{
	for (int i = 0; i < 2; i++) {
		char below[400], top[16];

		snprintf(below, sizeof below, "%s/%d", path, i);
		snprintf(top, sizeof top, "away%d", i);
		assert_int_equal(renameat(fd, away ? below : top, fd, away ? top : below), 0);
	}
}

/* Both branches are moved away when so many steps are done. */
static bool look_loses_it(int fd, const char *path, int moment)
{
	struct tree_look *look = NULL;
	struct tree_size size = {0};
	int step = 0;

	assert_int_equal(tree_look_open(&fd, 1, NULL, &look), 0);
	for (int r = 1; r == 1; step++) {
		if (step == moment)
			move_branches(fd, path, true);
		r = tree_look_on(look, 0, &size);
		assert_true(r >= 0);
	}
	tree_look_free(look);
	if (step > moment)
		move_branches(fd, path, false);
	assert_false(size.hidden);
	return size.lost;
}

/* So deep that parents are closed meanwhile. Whichever branch comes first, the walk does not find the way back from it to
 * the other. */
static void test_a_branch_that_is_moved_away_under_the_look_is_said_to_be_lost(void **state)
{
	struct error err = ERROR_INIT;
	struct place p;
	char path[300] = "a";
	int lost = 0;

	(void)state;
	place_open(&p);
	put_dir(p.fd, "a");
	for (int i = 0; i < 70; i++) {
		strcat(path, "/d");
		put_dir(p.fd, path);
	}
	for (int i = 0; i < 4; i++) {
		char below[400];

		snprintf(below, sizeof below, i < 2 ? "%s/%d" : "%s/%d/x", path, i % 2);
		put_dir(p.fd, below);
	}
	for (int moment = 0; moment < 300; moment++)
		lost += look_loses_it(p.fd, path, moment);
	assert_in_range(lost, 1, 20);
	assert_false(look_loses_it(p.fd, path, 1000));
	assert_int_equal(tree_empty(p.fd, &err), 0);
	place_close(&p);
}

static void test_a_look_at_a_wide_directory_can_be_left_and_taken_up_again(void **state)
{
	struct error err = ERROR_INIT;
	struct tree_look *look = NULL;
	struct tree_size size = {0};
	struct place p;
	char name[32];
	int slices = 0, r;

	(void)state;
	place_open_large(&p);
	for (int i = 0; i < 20000; i++) {
		snprintf(name, sizeof name, "%d", i);
		put_file(p.fd, name, "");
	}
	assert_int_equal(tree_look_open((const int[]){p.fd, -1}, 2, NULL, &look), 0);
	while ((r = tree_look_on(look, 0, &size)) == 1)
		slices++;
	assert_int_equal(r, 0);
	assert_int_equal(size.files, 20000);
	assert_true(slices >= 5);
	tree_look_free(look);
	assert_int_equal(tree_empty(p.fd, &err), 0);
	place_close(&p);
}

static void test_giving_a_tree_away_reaches_nothing_outside(void **state)
{
	struct error err = ERROR_INIT;
	struct place p;
	struct stat st;
	int fd;

	(void)state;
	if (geteuid() != 0)
		skip();
	place_open(&p);
	put_file(p.fd, "outside", "x");
	put_dir(p.fd, "tree");
	put_dir(p.fd, "tree/sub");
	put_file(p.fd, "tree/sub/f", "x");
	put_link(p.fd, "tree/sub/link", "../../outside");
	assert_int_equal(linkat(p.fd, "outside", p.fd, "tree/hard", 0), 0);
	fd = openat(p.fd, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(tree_chown(fd, 1234, 1235, &err), 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_uid, 1234);
	close(fd);
	assert_int_equal(fstatat(p.fd, "tree/sub/f", &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(st.st_uid, 1234);
	assert_int_equal(st.st_gid, 1235);
	assert_int_equal(fstatat(p.fd, "tree/sub/link", &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(st.st_uid, 1234);
	assert_int_equal(fstatat(p.fd, "outside", &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(st.st_uid, 0);
	place_close(&p);
}

static int copy_hostile(void *arg)
{
	struct error err = ERROR_INIT;
	struct tree_size size;
	int at = *(int *)arg, from, to, fd;
	char text[8] = "";
	struct stat st;

	put_dir(at, "from");
	put_dir(at, "to");
	from = openat(at, "from", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	to = openat(at, "to", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	put_file(from, "secret", "x");
	put_dir(from, "dir");
	put_file(from, "dir/run", "#!");
	put_mode(from, "dir/run", 04755);
	put_link(from, "dir/link", "/etc/passwd");
	put_fifo(from, "fifo");
	put_socket(from, "socket");
	fd = openat(from, "sparse", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (pwrite(fd, "end", 3, 1LL << 40) != 3)
		return 1;
	close(fd);
	put_file(from, "names", "several");
	if (linkat(from, "names", from, "more", 0) < 0)
		return 2;
	put_mode(from, "secret", 0);
	put_mode(from, "dir", 0);
	fchmod(from, 0);
	if (tree_copy(from, to, &err) < 0)
		return 3;
	if (measure(to, NULL, &size) < 0 || size.bytes > 1 << 20 || size.files != 6)
		return 4;
	if (!is_there(to, "secret") || is_there(to, "fifo") || is_there(to, "socket") ||
	    is_there(to, "names") == is_there(to, "more"))
		return 5;
	if (fstatat(to, "dir/run", &st, AT_SYMLINK_NOFOLLOW) < 0 || (st.st_mode & 07777) != 0755)
		return 6;
	if (fstatat(to, "dir/link", &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISLNK(st.st_mode))
		return 7;
	fd = openat(to, "sparse", O_RDONLY | O_CLOEXEC);
	return pread(fd, text, 3, 1LL << 40) == 3 && strcmp(text, "end") == 0 ? 0 : 8;
}

static void test_a_copy_takes_no_more_room_than_what_is_copied(void **state)
{
	struct place p;

	(void)state;
	place_open(&p);
	assert_int_equal(fchmod(p.fd, 0777), 0);
	assert_int_equal(as_ordinary_user(copy_hostile, &p.fd), 0);
	place_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_removing_what_is_missing_is_fine),
		cmocka_unit_test(test_what_is_filled_meanwhile_is_removed),
		cmocka_unit_test(test_whatever_it_is_it_is_removed),
		cmocka_unit_test(test_no_link_is_followed),
		cmocka_unit_test(test_names_of_any_bytes_are_removed),
		cmocka_unit_test(test_a_tree_100000_deep_needs_few_descriptors),
		cmocka_unit_test(test_a_bushy_deep_tree_is_removed),
		cmocka_unit_test(test_100000_files_are_removed_quickly),
		cmocka_unit_test(test_mode_000_does_not_stop_an_ordinary_user),
		cmocka_unit_test(test_a_mount_is_not_crossed_and_the_rest_goes),
		cmocka_unit_test(test_what_cannot_be_removed_is_named_and_the_rest_goes),
		cmocka_unit_test(test_a_directory_swapped_for_a_link_leads_nowhere),
		cmocka_unit_test(test_each_inode_is_measured_once),
		cmocka_unit_test(test_a_sparse_file_measures_what_it_takes),
		cmocka_unit_test(test_measuring_stops_early),
		cmocka_unit_test(test_a_deep_tree_is_measured_whole_and_coming_back_up),
		cmocka_unit_test(test_a_copy_takes_no_more_room_than_what_is_copied),
		cmocka_unit_test(test_a_directory_that_cannot_be_looked_into_is_not_passed_over_in_silence),
		cmocka_unit_test(test_a_branch_that_is_moved_away_under_the_look_is_said_to_be_lost),
		cmocka_unit_test(test_a_look_at_a_wide_directory_can_be_left_and_taken_up_again),
		cmocka_unit_test(test_giving_a_tree_away_reaches_nothing_outside),
	};

	return cmocka_run_group_tests_name("tree", tests, NULL, NULL);
}
