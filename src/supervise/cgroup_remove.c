/*
 * The end of a cgroup: everything in it is killed, its emptiness awaited, its directories removed. Normally the kernel
 * has emptied it together with the pid namespace and only rmdir is left to do.
 */
#include "cgroup_private.h"
#include "clock.h"
#include "file.h"
#include "process.h"
#include "text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

enum { PROCS_TEXT_MAX = 1 << 20, BATCH = 64, RETRY_MS = 1, LOOK_AGAIN_MS = 20 };

static int milliseconds_until(uint64_t deadline)
{
	uint64_t now = clock_now();

	return now >= deadline ? 0 : (int)((deadline - now) / NSEC_PER_MSEC) + 1;
}

/* --- v2: one write, one event --- */

static bool is_populated(int events)
{
	char text[128];
	ssize_t n = pread(events, text, sizeof text - 1, 0);

	if (n < 0)
		return false; /* ENODEV: somebody has removed it */
	text[n] = 0;
	return strstr(text, "populated 1") != NULL;
}

/* The kernel tells of emptiness at most every 10 ms and takes back what it has not told yet when the cgroup is removed:
 * if somebody else removes it (systemd does, as soon as it is empty), nothing is told. So we look, too; and whoever was
 * still on his way in when the others were killed is killed then. */
static int v2_kill(int dirfd, uint64_t deadline)
{
	_cleanup_close_ int events = openat(dirfd, "cgroup.events", O_RDONLY | O_CLOEXEC);
	struct pollfd p = {.fd = events, .events = POLLPRI};

	if (events < 0)
		return -errno;
	while (is_populated(events)) {
		int left = milliseconds_until(deadline), r = cgroup_file_write(dirfd, "cgroup.kill", "1");

		if (r < 0)
			return r == -ENODEV ? 0 : r;
		if (left == 0)
			return -ETIMEDOUT;
		if (poll(&p, 1, left < LOOK_AGAIN_MS ? left : LOOK_AGAIN_MS) < 0 && errno != EINTR)
			return -errno;
	}
	return 0;
}

/* --- v1, and v2 before Linux 5.14: process by process --- */

/* A pidfd for pid if it is a member of the cgroup whose directory is called name. Looked up while the pidfd is held:
 * the number may have passed to another since it was listed. */
static int member_open(pid_t pid, const char *name)
{
	_cleanup_close_ int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	_cleanup_buffer_ struct buffer text = {0};
	char file[64];

	snprintf(file, sizeof file, "/proc/%d/cgroup", (int)pid);
	if (fd < 0 || file_load(AT_FDCWD, file, PROCS_TEXT_MAX, &text, NULL) < 0)
		return -ESRCH;
	return text.data && strstr(text.data, name) ? TAKE_FD(fd) : -ESRCH;
}

static void await_all(int *pidfds, int count, uint64_t deadline)
{
	for (int i = 0; i < count; i++) {
		pidfd_wait(pidfds[i], milliseconds_until(deadline));
		fd_close(pidfds[i]);
	}
}

/* Kills those who are listed now; returns how many were listed, or -errno. */
static int members_kill(int dirfd, const char *name, bool await, uint64_t deadline)
{
	_cleanup_close_ int procs = openat(dirfd, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	_cleanup_buffer_ struct buffer text = {0};
	int pidfds[BATCH], n = 0, listed = 0, r;
	char *save = NULL;

	if (procs < 0)
		return -errno;
	r = file_read_all(procs, &text, PROCS_TEXT_MAX);
	if (r < 0 && r != -EFBIG)
		return r == -ENODEV ? 0 : r;
	for (char *p = text.data ? strtok_r(text.data, "\n", &save) : NULL; p;
	     p = strtok_r(NULL, "\n", &save)) {
		int fd = member_open((pid_t)atoi(p), name);

		listed++;
		if (fd < 0)
			continue;
		pidfd_kill(fd, SIGKILL);
		if (await && n < BATCH)
			pidfds[n++] = fd;
		else
			fd_close(fd);
	}
	await_all(pidfds, n, deadline);
	return listed;
}

/* Nobody may be born while the others are killed. pids.max does it, where this is the hierarchy of pids; else the
 * freezer, which must thaw again before its members can die. */
static int v1_kill(int dirfd, const char *name, uint64_t deadline)
{
	bool frozen;

	cgroup_file_write(dirfd, "pids.max", "0");
	frozen = cgroup_file_write(dirfd, "freezer.state", "FROZEN") == 0;
	for (;;) {
		int n = members_kill(dirfd, name, !frozen, deadline);

		if (frozen) {
			cgroup_file_write(dirfd, "freezer.state", "THAWED");
			frozen = false;
		}
		if (n <= 0)
			return n;
		if (milliseconds_until(deadline) == 0)
			return -ETIMEDOUT;
	}
}

/* Kills what is in the directory until it is empty, or the deadline is over; -errno. */
static int dir_kill(int dirfd, const char *path, uint64_t deadline)
{
	const char *name = strrchr(path, '/');
	int r = cgroup_file_write(dirfd, "cgroup.kill", "1");

	if (r == -ENODEV)
		return 0;
	if (r == 0)
		return v2_kill(dirfd, deadline);
	return v1_kill(dirfd, name ? name + 1 : path, deadline);
}

void cgroup_empty(const struct cgroup *c)
{
	uint64_t deadline = clock_now() + CGROUP_REMOVE_MS * NSEC_PER_MSEC;

	for (int i = 0; i < c->n_groups; i++)
		(void)dir_kill(c->groups[i].dir, c->groups[i].path, deadline);
}

/* --- directories --- */

/* Removes the directories below; an analysis makes none, but we do in a systemd scope. */
static void children_remove(int dirfd)
{
	_cleanup_dir_ DIR *dir = dir_list(dirfd);
	struct dirent *e;

	while (dir && (e = readdir(dir)))
		if (e->d_type == DT_DIR && !name_is_dots(e->d_name)) {
			_cleanup_close_ int child =
				file_open_beneath(dirfd, e->d_name, O_PATH | O_DIRECTORY, 0);

			if (unlinkat(dirfd, e->d_name, AT_REMOVEDIR) < 0 && errno == EBUSY && child >= 0) {
				children_remove(child);
				unlinkat(dirfd, e->d_name, AT_REMOVEDIR);
			}
		}
}

int cgroup_dir_remove(const char *path, uint64_t deadline, struct error *err)
{
	_cleanup_close_ int dir = -1;
	char shown[256];

	if (rmdir(path) == 0 || errno == ENOENT)
		return 0;
	text_escape_into(shown, sizeof shown, path, strlen(path));
	while (errno == EBUSY || errno == ENOTEMPTY) {
		int r;

		if (dir < 0)
			dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
		r = dir < 0 ? -errno : dir_kill(dir, path, deadline);
		if (dir >= 0)
			children_remove(dir);
		if (rmdir(path) == 0 || errno == ENOENT)
			return 0;
		if (milliseconds_until(deadline) == 0)
			return error_set(err, ERROR_BUSY,
					 "cgroup '%s' still has processes that cannot be killed", shown);
		if (r < 0 && r != -ENOENT && r != -ENODEV)
			return error_system(err, -r, "cannot empty cgroup '%s'", shown);
		/* Empty, but the last task has not been unlinked yet; there is no event for that moment. */
		if (errno == EBUSY) {
			poll(NULL, 0, RETRY_MS);
			errno = EBUSY;
		}
	}
	return error_system(err, errno, "cannot remove cgroup '%s'", shown);
}

/* True for an absolute path without "." or ".." whose last component carries our prefix. */
static bool path_is_ours(const char *path)
{
	const char *name = strrchr(path, '/');

	return path[0] == '/' && !strstr(path, "/./") && !strstr(path, "/../") && name &&
	       strncmp(name + 1, CGROUP_PREFIX, strlen(CGROUP_PREFIX)) == 0;
}

int cgroup_remove_path(const char *path, struct error *err)
{
	_cleanup_close_ int dir = -1;
	struct statfs fs;
	char shown[256];

	text_escape_into(shown, sizeof shown, path, strlen(path));
	if (!path_is_ours(path))
		return error_set(err, ERROR_REFUSED, "'%s' is not the name of a cgroup of ours", shown);
	dir = file_open_nolinks(AT_FDCWD, path, O_PATH | O_DIRECTORY);
	if (dir == -ENOENT)
		return 0;
	if (dir < 0)
		return error_system(err, -dir, "cannot open cgroup '%s'", shown);
	if (fstatfs(dir, &fs) < 0)
		return error_system(err, errno, "cannot look at cgroup '%s'", shown);
	if (fs.f_type != CGROUP_SUPER_MAGIC && fs.f_type != CGROUP2_SUPER_MAGIC)
		return error_set(err, ERROR_REFUSED, "'%s' is not a cgroup", shown);
	return cgroup_dir_remove(path, clock_now() + CGROUP_REMOVE_MS * NSEC_PER_MSEC, err);
}
