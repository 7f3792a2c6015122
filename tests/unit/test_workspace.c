#include "test_workspace_site.h"
#include "text.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "clock.h"
#include "folder.h"
#include "tree.h"

static void test_a_workspace_is_private_whatever_the_umask(void **state)
{
	static const mode_t masks[] = {0, 022, 0777};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct error err = ERROR_INIT;
		struct workspace w;
		struct bench b;
		struct stat st;
		mode_t before;

		bench_open(&b);
		before = umask(masks[i]);
		assert_int_equal(open_plain(&b, "a42", &w, &err), 0);
		umask(before);
		assert_int_equal(fstatat(b.place.fd, "root/hood-a42", &st, AT_SYMLINK_NOFOLLOW), 0);
		assert_int_equal(st.st_mode, S_IFDIR | 0700);
		assert_int_equal(st.st_ino, w.record.inode);
		assert_int_equal(fstatat(b.place.fd, scratch_of("a42"), &st, AT_SYMLINK_NOFOLLOW), 0);
		assert_int_equal(st.st_mode, S_IFDIR | 0700);
		assert_int_equal(fstatat(b.place.fd, "state/runs/a42", &st, AT_SYMLINK_NOFOLLOW), 0);
		assert_int_equal(st.st_mode, S_IFDIR | 0700);
		assert_int_equal(fstatat(b.place.fd, "state/runs/a42/record.json", &st, AT_SYMLINK_NOFOLLOW),
				 0);
		assert_int_equal(st.st_mode, S_IFREG | 0600);
		assert_int_equal(count_entries(b.place.fd, "root"), 2);
		put_file(w.fd, "f", "x");
		assert_int_equal(workspace_remove(&w, &err), 0);
		assert_int_equal(workspace_remove(&w, &err), 0);
		workspace_close(&w);
		assert_nothing_left(&b);
		bench_close(&b);
	}
}

static void test_the_first_record_names_the_cgroups(void **state)
{
	char *const cgroups[] = {(char *)"/sys/fs/cgroup/one", (char *)"/sys/fs/cgroup/two", NULL};
	struct error err = ERROR_INIT;
	struct workspace w, read_back;
	struct bench b;

	(void)state;
	bench_open(&b);
	assert_int_equal(
		workspace_open(&b.site, "a", TOKEN, geteuid(), getegid(), cgroups, NULL, NULL, &w, &err), 0);
	workspace_blank(&read_back, &b.site);
	read_back.run_fd = w.run_fd;
	assert_int_equal(folder_load(&read_back, &err), 1);
	assert_int_equal(strv_length(read_back.record.cgroups), 2);
	assert_string_equal(read_back.record.cgroups[1], "/sys/fs/cgroup/two");
	record_done(&read_back.record);
	assert_int_equal(workspace_remove(&w, &err), 0);
	workspace_close(&w);
	bench_close(&b);
}

static void test_root_gives_the_workspace_to_the_slot(void **state)
{
	struct error err = ERROR_INIT;
	struct workspace w;
	struct bench b;
	struct stat st;

	(void)state;
	if (geteuid() != 0)
		skip();
	bench_open(&b);
	assert_int_equal(workspace_open(&b.site, "a", TOKEN, 70000, 70001, NULL, NULL, NULL, &w, &err), 0);
	assert_int_equal(fstatat(b.place.fd, "root/hood-a", &st, 0), 0);
	assert_int_equal(st.st_uid, 70000);
	/* Of scratch only what lies in it: its mode is not the slot's to change. */
	assert_int_equal(fstatat(b.place.fd, scratch_of("a"), &st, 0), 0);
	assert_int_equal(st.st_uid, 0);
	assert_int_equal(fstatat(b.place.fd, tmp_of("a"), &st, 0), 0);
	assert_int_equal(st.st_uid, 70000);
	assert_int_equal(st.st_gid, 70001);
	put_file(w.fd, "f", "x");
	assert_int_equal(fchownat(w.fd, "f", 70000, 70001, 0), 0);
	assert_int_equal(workspace_keep(&w, clock_utc() + (int64_t)NSEC_PER_SEC, &err), 0);
	workspace_close(&w);
	assert_int_equal(fstatat(b.place.fd, "root/hood-a", &st, 0), 0);
	assert_int_equal(st.st_uid, 0);
	assert_int_equal(fstatat(b.place.fd, "root/hood-a/f", &st, 0), 0);
	assert_int_equal(st.st_uid, 0);
	assert_false(is_there(b.place.fd, scratch_of("a")));
	bench_close(&b);
}

static void test_a_running_analysis_is_busy(void **state)
{
	struct error err = ERROR_INIT;
	struct workspace w, other;
	char pid[32];
	struct bench b;

	(void)state;
	bench_open(&b);
	assert_int_equal(open_plain(&b, "a", &w, &err), 0);
	assert_true(open_plain(&b, "a", &other, &err) < 0);
	assert_int_equal(err.kind, ERROR_BUSY);
	snprintf(pid, sizeof pid, "process %d", (int)getpid());
	assert_non_null(strstr(err.message, pid));
	assert_true(workspace_take(&b.site, "a", remove_it, NULL, &err) < 0);
	assert_int_equal(err.kind, ERROR_BUSY);
	assert_int_equal(gc(&b, &err).alive, 1);
	assert_true(is_there(b.place.fd, "root/hood-a"));
	workspace_close(&w);
	bench_close(&b);
}

static void put_anything(int at, int kind)
{
	switch (kind) {
	case 0:
		put_dir(at, "hood-a");
		put_file(at, "hood-a/precious", "precious");
		break;
	case 1:
		put_file(at, "hood-a", "precious");
		break;
	case 2:
		put_link(at, "hood-a", "/etc");
		break;
	case 3:
		put_link(at, "hood-a", "nowhere");
		break;
	case 4:
		put_socket(at, "hood-a");
		break;
	case 5:
		put_fifo(at, "hood-a");
		break;
	}
}

static void test_a_path_that_exists_is_refused_and_not_touched(void **state)
{
	(void)state;
	for (int kind = 0; kind < 6; kind++) {
		struct error err = ERROR_INIT;
		struct stat before, after;
		struct workspace w;
		char *path = NULL;
		struct bench b;

		bench_open(&b);
		put_anything(b.site.root_fd, kind);
		assert_int_equal(fstatat(b.site.root_fd, "hood-a", &before, AT_SYMLINK_NOFOLLOW), 0);
		assert_true(open_plain(&b, "a", &w, &err) < 0);
		assert_int_equal(err.kind, ERROR_REFUSED);
		assert_non_null(strstr(err.message, "exists"));
		assert_true(workspace_hold(&b.site, "a", NULL, INT64_MAX, NULL, NULL, &path, &err) < 0);
		assert_int_equal(workspace_take(&b.site, "a", remove_it, NULL, &err), 0);
		(void)gc(&b, &err);
		assert_int_equal(fstatat(b.site.root_fd, "hood-a", &after, AT_SYMLINK_NOFOLLOW), 0);
		assert_int_equal(before.st_ino, after.st_ino);
		assert_int_equal(before.st_ctim.tv_nsec, after.st_ctim.tv_nsec);
		assert_int_equal(count_entries(b.place.fd, "root"), 1);
		assert_int_equal(count_entries(b.place.fd, "state/runs"), 0);
		bench_close(&b);
	}
}

static int open_on_mount_point(void *arg)
{
	struct error err = ERROR_INIT;
	struct bench *b = arg;
	struct workspace w;
	char at[256];

	snprintf(at, sizeof at, "%s/hood-a", b->root);
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mkdir(at, 0700) < 0 || mount("none", at, "tmpfs", 0, NULL) < 0)
		return 77;
	/* The old descriptors show the old namespace's mounts. */
	if (site_open(&b->site, b->state_dir, b->root, "hood-", &err) < 0)
		return 3;
	if (open_plain(b, "a", &w, &err) >= 0 || err.kind != ERROR_REFUSED)
		return 1;
	return count_entries(b->place.fd, "state/runs") == 0 ? 0 : 2;
}

static void test_a_mount_point_is_refused(void **state)
{
	struct bench b;
	int r;

	(void)state;
	if (geteuid() != 0)
		skip();
	bench_open(&b);
	r = in_child(open_on_mount_point, &b);
	if (r != 77)
		assert_int_equal(r, 0);
	bench_close(&b);
}

static void test_a_bad_id_touches_nothing(void **state)
{
	static const char *const ids[] = {"", ".", "..", "../x", "a/b", "-x", ".x", "a b", "a\n", "\xff"};
	struct error err = ERROR_INIT;
	struct workspace w;
	char *path = NULL;
	struct bench b;

	(void)state;
	bench_open(&b);
	for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
		assert_true(open_plain(&b, ids[i], &w, &err) < 0);
		assert_int_equal(err.kind, ERROR_USAGE);
		assert_true(workspace_hold(&b.site, ids[i], NULL, INT64_MAX, NULL, NULL, &path, &err) < 0);
		assert_true(workspace_take(&b.site, ids[i], remove_it, NULL, &err) < 0);
	}
	assert_nothing_left(&b);
	bench_close(&b);
}

static void test_an_unsafe_root_is_refused(void **state)
{
	struct error err = ERROR_INIT;
	char path[256];
	struct bench b;
	struct site s;

	(void)state;
	bench_open(&b);
	assert_int_equal(chmod(b.root, 0777), 0);
	assert_true(site_open(&s, b.state_dir, b.root, "hood-", &err) < 0);
	assert_int_equal(err.kind, ERROR_REFUSED);
	assert_int_equal(chmod(b.root, 0700), 0);
	assert_int_equal(site_open(&s, b.state_dir, b.root, "hood-", &err), 0);
	site_close(&s);
	snprintf(path, sizeof path, "%s/file", b.place.path);
	put_file(b.place.fd, "file", "");
	assert_true(site_open(&s, b.state_dir, path, "hood-", &err) < 0);
	assert_true(site_open(&s, b.state_dir, "relative", "hood-", &err) < 0);
	assert_true(site_open(&s, b.state_dir, b.root, "a/b", &err) < 0);
	assert_true(site_open(&s, b.state_dir, b.root, "", &err) < 0);
	if (geteuid() == 0) {
		assert_int_equal(chown(b.root, 1234, 1234), 0);
		assert_true(site_open(&s, b.state_dir, b.root, "hood-", &err) < 0);
	}
	bench_close(&b);
}

static void test_a_state_directory_that_others_can_change_is_refused(void **state)
{
	struct error err = ERROR_INIT;
	char runs[256];
	struct bench b;
	struct site s;

	(void)state;
	bench_open(&b);
	assert_int_equal(chmod(b.state_dir, 0770), 0);
	assert_true(site_open(&s, b.state_dir, b.root, "hood-", &err) < 0);
	assert_int_equal(err.kind, ERROR_REFUSED);
	assert_int_equal(chmod(b.state_dir, 0700), 0);
	snprintf(runs, sizeof runs, "%s/runs", b.state_dir);
	assert_int_equal(chmod(runs, 0702), 0);
	assert_true(site_open(&s, b.state_dir, b.root, "hood-", &err) < 0);
	assert_int_equal(chmod(runs, 0700), 0);
	if (geteuid() == 0) {
		assert_int_equal(chown(b.state_dir, 1234, 1234), 0);
		assert_true(site_open(&s, b.state_dir, b.root, "hood-", &err) < 0);
	}
	bench_close(&b);
}

static struct process_id self(void)
{
	struct process_id me;

	assert_int_equal(process_identify(getpid(), &me), 0);
	return me;
}

static void test_holding_twice_gives_the_same_path(void **state)
{
	struct process_id me = self(), other = {getppid(), 0};
	char *first = NULL, *second = NULL, *third = NULL;
	struct error err = ERROR_INIT;
	struct bench b;

	(void)state;
	bench_open(&b);
	assert_int_equal(process_identify(getppid(), &other), 0);
	assert_int_equal(workspace_hold(&b.site, "a", &me, 0, NULL, NULL, &first, &err), 0);
	put_file(b.place.fd, "root/hood-a/f", "mine");
	assert_int_equal(workspace_hold(&b.site, "a", &me, 0, NULL, NULL, &second, &err), 0);
	assert_string_equal(first, second);
	assert_content(b.place.fd, "root/hood-a/f", "mine");
	assert_true(workspace_hold(&b.site, "a", &other, 0, NULL, NULL, &third, &err) < 0);
	assert_int_equal(err.kind, ERROR_REFUSED);
	assert_non_null(strstr(err.message, "held by process"));
	assert_int_equal(gc(&b, &err).alive, 1);
	assert_content(b.place.fd, "root/hood-a/f", "mine");
	assert_int_equal(workspace_take(&b.site, "a", remove_it, NULL, &err), 0);
	assert_int_equal(workspace_take(&b.site, "a", remove_it, NULL, &err), 0);
	assert_nothing_left(&b);
	free(first);
	free(second);
	bench_close(&b);
}

static void test_holding_again_after_it_was_removed_by_hand_makes_it_anew(void **state)
{
	struct process_id me = self();
	char *first = NULL, *second = NULL;
	struct error err = ERROR_INIT;
	struct bench b;

	(void)state;
	bench_open(&b);
	assert_int_equal(workspace_hold(&b.site, "a", &me, 0, NULL, NULL, &first, &err), 0);
	assert_int_equal(rmdir(first), 0);
	assert_int_equal(workspace_hold(&b.site, "a", &me, 0, NULL, NULL, &second, &err), 0);
	assert_string_equal(first, second);
	assert_true(is_there(b.place.fd, "root/hood-a"));
	free(first);
	free(second);
	bench_close(&b);
}

static int open_as_descendant(void *arg)
{
	struct error err = ERROR_INIT;
	struct bench *b = arg;
	struct workspace w;

	if (open_plain(b, "a", &w, &err) < 0)
		return 1;
	if (!workspace_is_adopted(&w) || !is_there(w.fd, "input") || !is_there(b->place.fd, scratch_of("a")))
		return 2;
	if (workspace_remove(&w, &err) < 0)
		return 3;
	workspace_close(&w);
	return 0;
}

static void test_a_run_adopts_what_its_caller_holds(void **state)
{
	struct process_id me = self();
	struct error err = ERROR_INIT;
	char *path = NULL;
	struct bench b;

	(void)state;
	bench_open(&b);
	assert_int_equal(workspace_hold(&b.site, "a", &me, 0, NULL, NULL, &path, &err), 0);
	put_file(b.place.fd, "root/hood-a/input", "x");
	assert_int_equal(in_child(open_as_descendant, &b), 0);
	assert_nothing_left(&b);
	free(path);
	bench_close(&b);
}

/* What a refused run could not remove is named by the record of the held workspace, and by the next run's. */
static void test_what_is_given_back_still_names_the_cgroups_that_are_left(void **state)
{
	static const char left[] = "/sys/fs/cgroup/fumehood-left";
	struct error err = ERROR_INIT;
	struct workspace w;
	char *path = NULL;
	struct bench b;

	(void)state;
	bench_open(&b);
	assert_int_equal(workspace_hold(&b.site, "a", NULL, INT64_MAX, NULL, NULL, &path, &err), 0);
	assert_int_equal(open_plain(&b, "a", &w, &err), 0);
	assert_int_equal(strv_append(&w.record.cgroups, left, NULL), 0);
	assert_int_equal(workspace_give_back(&w, &err), 0);
	workspace_close(&w);
	assert_int_equal(open_plain(&b, "a", &w, &err), 0);
	assert_true(workspace_is_adopted(&w));
	assert_int_equal(strv_length(w.record.cgroups), 1);
	assert_string_equal(w.record.cgroups[0], left);
	assert_int_equal(workspace_remove(&w, &err), 0);
	workspace_close(&w);
	assert_nothing_left(&b);
	free(path);
	bench_close(&b);
}

static int hold_for_self(void *arg)
{
	struct error err = ERROR_INIT;
	struct bench *b = arg;
	struct process_id me;
	char *path = NULL;

	if (process_identify(getpid(), &me) < 0)
		return 1;
	return workspace_hold(&b->site, "a", &me, 0, NULL, NULL, &path, &err) < 0;
}

static void test_what_a_dead_process_held_is_collected(void **state)
{
	struct error err = ERROR_INIT;
	struct workspace w;
	char *path = NULL;
	struct bench b;

	(void)state;
	bench_open(&b);
	assert_int_equal(in_child(hold_for_self, &b), 0);
	assert_true(is_there(b.place.fd, "root/hood-a"));
	assert_true(open_plain(&b, "a", &w, &err) < 0);
	assert_non_null(strstr(err.message, "fumehood gc"));
	assert_int_equal(gc(&b, &err).taken, 1);
	assert_nothing_left(&b);
	assert_int_equal(in_child(hold_for_self, &b), 0);
	assert_true(workspace_hold(&b.site, "a", NULL, INT64_MAX, NULL, NULL, &path, &err) < 0);
	assert_int_equal(workspace_hold(&b.site, "a", NULL, INT64_MAX, remove_it, NULL, &path, &err), 0);
	free(path);
	bench_close(&b);
}

static void test_what_is_held_until_an_instant_lives_until_then(void **state)
{
	struct error err = ERROR_INIT;
	struct workspace w;
	char *path = NULL;
	struct bench b;

	(void)state;
	bench_open(&b);
	assert_int_equal(workspace_hold(&b.site, "a", NULL, clock_utc() + 3600 * (int64_t)NSEC_PER_SEC, NULL,
					NULL, &path, &err),
			 0);
	assert_int_equal(gc(&b, &err).alive, 1);
	free(path);
	assert_int_equal(workspace_hold(&b.site, "a", NULL, clock_utc() - 1, NULL, NULL, &path, &err), 0);
	assert_int_equal(gc(&b, &err).taken, 1);
	assert_nothing_left(&b);
	free(path);
	assert_int_equal(workspace_hold(&b.site, "a", NULL, INT64_MAX, NULL, NULL, &path, &err), 0);
	assert_int_equal(open_plain(&b, "a", &w, &err), 0);
	assert_true(workspace_is_adopted(&w));
	workspace_close(&w);
	free(path);
	bench_close(&b);
}

static void test_what_is_kept_moves_aside_and_stays_until_it_expires(void **state)
{
	struct error err = ERROR_INIT;
	struct workspace w, again;
	char *path = NULL;
	struct bench b;

	(void)state;
	bench_open(&b);
	assert_int_equal(open_plain(&b, "a", &w, &err), 0);
	put_file(w.fd, "f", "x");
	assert_int_equal(workspace_keep(&w, clock_utc() + 3600 * (int64_t)NSEC_PER_SEC, &err), 0);
	workspace_close(&w);
	assert_false(is_there(b.place.fd, scratch_of("a")));
	assert_int_equal(open_plain(&b, "a", &again, &err), 0);
	assert_true(is_there(b.place.fd, "root/hood-a@1/f"));
	assert_false(is_there(b.place.fd, "root/hood-a/f"));
	assert_int_equal(workspace_keep(&again, clock_utc() + 3600 * (int64_t)NSEC_PER_SEC, &err), 0);
	workspace_close(&again);
	/* The same attempt of another ledger, say: the first one stays what it is. */
	assert_int_equal(workspace_hold(&b.site, "a", NULL, INT64_MAX, NULL, NULL, &path, &err), 0);
	free(path);
	assert_true(is_there(b.place.fd, "root/hood-a@1.2"));
	assert_int_equal(gc(&b, &err).alive, 3);
	assert_true(is_there(b.place.fd, "root/hood-a@1/f"));
	assert_int_equal(workspace_take(&b.site, "a", remove_it, NULL, &err), 0);
	assert_int_equal(workspace_take(&b.site, "a@1", remove_it, NULL, &err), 0);
	assert_int_equal(workspace_take(&b.site, "a@1.2", remove_it, NULL, &err), 0);
	assert_nothing_left(&b);
	assert_int_equal(open_plain(&b, "a", &w, &err), 0);
	assert_int_equal(workspace_keep(&w, clock_utc() - 1, &err), 0);
	workspace_close(&w);
	assert_int_equal(gc(&b, &err).taken, 1);
	assert_nothing_left(&b);
	bench_close(&b);
}

static void test_opening_what_died_recovers_it_first(void **state)
{
	struct error err = ERROR_INIT;
	struct workspace w;
	int recovered = 0;
	struct bench b;

	(void)state;
	bench_open(&b);
	leave_dead_run(&b, "a");
	assert_true(open_plain(&b, "a", &w, &err) < 0);
	assert_non_null(strstr(err.message, "fumehood gc"));
	assert_true(is_there(b.place.fd, "root/hood-a/result"));
	assert_int_equal(workspace_open(&b.site, "a", TOKEN, geteuid(), getegid(), NULL, remove_it,
					&recovered, &w, &err),
			 0);
	assert_int_equal(recovered, 1);
	assert_false(is_there(w.fd, "result"));
	assert_int_equal(workspace_remove(&w, &err), 0);
	workspace_close(&w);
	assert_nothing_left(&b);
	bench_close(&b);
}

static int do_nothing(void *arg, struct workspace *w, struct error *err)
{
	(void)w;
	(void)err;
	++*(int *)arg;
	return 0;
}

static void test_a_recovery_that_leaves_it_is_not_repeated(void **state)
{
	struct error err = ERROR_INIT;
	struct workspace w;
	int called = 0;
	struct bench b;

	(void)state;
	bench_open(&b);
	leave_dead_run(&b, "a");
	assert_true(workspace_open(&b.site, "a", TOKEN, geteuid(), getegid(), NULL, do_nothing, &called, &w,
				   &err) < 0);
	assert_int_equal(called, 1);
	assert_true(is_there(b.place.fd, "root/hood-a/result"));
	bench_close(&b);
}

/* Many that open and remove the same id: at any time one has it, and nobody is told that it is broken. */
static int contend(void *arg)
{
	struct bench *b = arg;
	int won = 0;

	for (int tries = 0; won < 50 && tries < 1000000; tries++) {
		struct error err = ERROR_INIT;
		struct workspace w;
		int fd;

		if (open_plain(b, "a", &w, &err) < 0) {
			if (err.kind != ERROR_BUSY)
				return 1;
			continue;
		}
		fd = openat(b->place.fd, "only-one", O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
		if (fd < 0)
			return 2;
		close(fd);
		unlinkat(b->place.fd, "only-one", 0);
		if (workspace_remove(&w, &err) < 0) {
			fprintf(stderr, "%s\n", err.message);
			return 3;
		}
		workspace_close(&w);
		won++;
	}
	return won == 50 ? 0 : 4;
}

static int contend_by_cleaning(void *arg)
{
	struct bench *b = arg;

	for (int i = 0; i < 300; i++) {
		struct error err = ERROR_INIT;
		struct workspace_gc_counts counts;

		if (workspace_take(&b->site, "a", remove_it, NULL, &err) < 0 && err.kind != ERROR_BUSY)
			return 1;
		if (workspace_each_dead(&b->site, remove_it, NULL, &counts, &err) < 0 || counts.failed)
			return 2;
	}
	return 0;
}

/* A supervisor that has made a child which has not executed yet: the child has the lock's descriptor too, and lives on
 * for a moment. */
static void supervise_and_die(struct bench *b)
{
	struct error err = ERROR_INIT;
	struct workspace w;
	int parent;

	if (open_plain(b, "a", &w, &err) < 0)
		_exit(1);
	parent = (int)syscall(SYS_pidfd_open, getpid(), 0);
	if (parent >= 0 && fork() == 0) {
		struct pollfd p = {.fd = parent, .events = POLLIN};

		poll(&p, 1, -1);
		poll(NULL, 0, 50);
		_exit(0);
	}
	raise(SIGKILL);
}

static void test_a_lock_that_only_a_dying_child_holds_is_waited_for(void **state)
{
	struct error err = ERROR_INIT;
	struct workspace_gc_counts counts;
	struct bench b;
	int status;
	pid_t pid;

	(void)state;
	bench_open(&b);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		supervise_and_die(&b);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	counts = gc(&b, &err);
	assert_int_equal(counts.alive, 0);
	assert_int_equal(counts.taken, 1);
	assert_nothing_left(&b);
	bench_close(&b);
}

/* As gc does for a moment with the folder of a run that has not written its record yet. */
static void hold_empty_folder(struct bench *b, int tell)
{
	int fd, lock;

	if (mkdirat(b->site.runs, "a", 0700) < 0)
		_exit(1);
	fd = openat(b->site.runs, "a", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	lock = openat(fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (lock < 0 || flock(lock, LOCK_EX | LOCK_NB) < 0 || write(tell, "l", 1) != 1)
		_exit(1);
	poll(NULL, 0, 50);
	if (unlinkat(fd, "lock", 0) < 0 || unlinkat(b->site.runs, "a", AT_REMOVEDIR) < 0)
		_exit(1);
	_exit(0);
}

static void test_a_run_is_not_refused_because_gc_removes_an_empty_folder(void **state)
{
	struct error err = ERROR_INIT;
	struct workspace w;
	struct bench b;
	int told[2], status;
	pid_t pid;
	char c;

	(void)state;
	bench_open(&b);
	assert_int_equal(pipe(told), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		hold_empty_folder(&b, told[1]);
	assert_int_equal(read(told[0], &c, 1), 1);
	assert_int_equal(open_plain(&b, "a", &w, &err), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(workspace_remove(&w, &err), 0);
	workspace_close(&w);
	assert_nothing_left(&b);
	close(told[0]);
	close(told[1]);
	bench_close(&b);
}

static void test_the_lock_holds_while_folders_come_and_go(void **state)
{
	struct bench b;
	pid_t pids[5];
	int status;

	(void)state;
	bench_open(&b);
	for (int i = 0; i < 5; i++) {
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		if (pids[i] == 0)
			_exit(i < 4 ? contend(&b) : contend_by_cleaning(&b));
	}
	for (int i = 0; i < 5; i++) {
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
	{
		struct error err = ERROR_INIT;

		assert_int_equal(gc(&b, &err).failed, 0);
	}
	assert_nothing_left(&b);
	bench_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_workspace_is_private_whatever_the_umask),
		cmocka_unit_test(test_the_first_record_names_the_cgroups),
		cmocka_unit_test(test_root_gives_the_workspace_to_the_slot),
		cmocka_unit_test(test_a_running_analysis_is_busy),
		cmocka_unit_test(test_a_path_that_exists_is_refused_and_not_touched),
		cmocka_unit_test(test_a_mount_point_is_refused),
		cmocka_unit_test(test_a_bad_id_touches_nothing),
		cmocka_unit_test(test_an_unsafe_root_is_refused),
		cmocka_unit_test(test_a_state_directory_that_others_can_change_is_refused),
		cmocka_unit_test(test_holding_twice_gives_the_same_path),
		cmocka_unit_test(test_holding_again_after_it_was_removed_by_hand_makes_it_anew),
		cmocka_unit_test(test_a_run_adopts_what_its_caller_holds),
		cmocka_unit_test(test_what_is_given_back_still_names_the_cgroups_that_are_left),
		cmocka_unit_test(test_what_a_dead_process_held_is_collected),
		cmocka_unit_test(test_what_is_held_until_an_instant_lives_until_then),
		cmocka_unit_test(test_what_is_kept_moves_aside_and_stays_until_it_expires),
		cmocka_unit_test(test_opening_what_died_recovers_it_first),
		cmocka_unit_test(test_a_recovery_that_leaves_it_is_not_repeated),
		cmocka_unit_test(test_a_lock_that_only_a_dying_child_holds_is_waited_for),
		cmocka_unit_test(test_a_run_is_not_refused_because_gc_removes_an_empty_folder),
		cmocka_unit_test(test_the_lock_holds_while_folders_come_and_go),
	};

	return cmocka_run_group_tests_name("workspace", tests, NULL, NULL);
}
