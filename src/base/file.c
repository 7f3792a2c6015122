#include "file.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

int fd_close(int fd)
{
	int saved = errno;

	if (fd >= 0)
		close(fd);
	errno = saved;
	return -1;
}

static int open_resolved(int dirfd, const char *path, int flags, mode_t mode, uint64_t resolve)
{
	struct open_how how = {
		.flags = (uint64_t)(flags | O_CLOEXEC),
		.mode = flags & (O_CREAT | O_TMPFILE) ? mode : 0,
		.resolve = resolve,
	};
	int tries = 0;
	long fd;

	/* EAGAIN is a rename elsewhere that crossed our way, or a lease that somebody holds: not to be waited for. */
	do
		fd = syscall(SYS_openat2, dirfd, path, &how, sizeof how);
	while (fd < 0 && (errno == EINTR || (errno == EAGAIN && ++tries < 128)));
	return fd < 0 ? -errno : (int)fd;
}

int file_open_beneath(int dirfd, const char *path, int flags, mode_t mode)
{
	return open_resolved(dirfd, path, flags, mode,
			     RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV);
}

int file_open_nolinks(int dirfd, const char *path, int flags)
{
	return open_resolved(dirfd, path, flags, 0, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
}

int file_open_within(int dirfd, const char *path, int flags)
{
	return open_resolved(dirfd, path, flags, 0, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);
}

/* Below a directory nothing leads elsewhere; a path without one is the caller's own words, or ours. */
static int open_named(int dirfd, const char *path, int flags, mode_t mode)
{
	return dirfd == AT_FDCWD ? open(path, flags | O_CLOEXEC, mode)
				 : file_open_beneath(dirfd, path, flags, mode);
}

enum { LINKS_MAX = 40 };

/* Puts what a link says in front of what is left of the path. 1: it begins at the root again. */
static int follow_link(int link, char rest[PATH_MAX], size_t used)
{
	char text[PATH_MAX];
	ssize_t n = readlinkat(link, "", text, sizeof text);
	size_t left = strlen(rest + used);

	if (n < 0)
		return -errno;
	if ((size_t)n + left + 1 > PATH_MAX)
		return -ENAMETOOLONG;
	memmove(rest + n, rest + used, left + 1);
	memcpy(rest, text, (size_t)n);
	return text[0] == '/';
}

static int open_start(const char *path)
{
	int fd = open(*path == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* One component of rest, from fd on: the next descriptor, with rest shortened; or fd's own successor behind a link. */
static int step(int fd, char rest[PATH_MAX], bool follow, file_judge_fn judge, void *arg, unsigned *links)
{
	size_t skip = strspn(rest, "/"), n = strcspn(rest + skip, "/"), used = skip + n;
	bool last = rest[used + strspn(rest + used, "/")] == 0;
	_cleanup_close_ int next = -1;
	char name[NAME_MAX + 1];
	struct statfs fs;
	struct stat st = {0};
	int r;

	if (n > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, rest + skip, n);
	name[n] = 0;
	next = openat(fd, n ? name : ".", O_PATH | O_NOFOLLOW | O_CLOEXEC);
	r = next < 0 || fstat(next, &st) < 0 ? -errno : 0;
	if (judge)
		r = judge(arg, fd, r < 0 ? r : next, &st, name, last);
	if (r != 0)
		return r < 0 ? r : fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (!S_ISLNK(st.st_mode) || (last && !follow)) {
		memmove(rest, rest + used, strlen(rest + used) + 1);
		return TAKE_FD(next);
	}
	if (fstatfs(next, &fs) < 0)
		return -errno;
	if (fs.f_type == PROC_SUPER_MAGIC || (st.st_uid != 0 && st.st_uid != geteuid()) ||
	    ++*links > LINKS_MAX)
		return -ELOOP;
	r = follow_link(next, rest, used);
	if (r < 0)
		return r;
	r = r == 1 ? open_start("/") : fcntl(fd, F_DUPFD_CLOEXEC, 3);
	return r < 0 ? -errno : r;
}

int file_walk(const char *path, bool follow, file_judge_fn judge, void *arg)
{
	_cleanup_close_ int fd = open_start(path);
	char rest[PATH_MAX];
	unsigned links = 0;

	if (fd < 0)
		return fd;
	if (strlen(path) >= sizeof rest)
		return -ENAMETOOLONG;
	strcpy(rest, path);
	while (rest[strspn(rest, "/")]) {
		int next = step(fd, rest, follow, judge, arg, &links);

		if (next < 0)
			return next;
		fd_close(fd);
		fd = next;
	}
	return TAKE_FD(fd);
}

int file_open_trusted(const char *path, bool follow)
{
	return file_walk(path, follow, NULL, NULL);
}

char *path_real_trusted(const char *path)
{
	_cleanup_close_ int fd = file_open_trusted(path, true);

	if (fd < 0) {
		errno = -fd;
		return NULL;
	}
	return fd_path(fd);
}

int file_unlock(int dirfd, const char *name, int flags, mode_t mode)
{
	_cleanup_close_ int fd = file_open_beneath(dirfd, name, O_PATH | O_NOFOLLOW | flags, 0);
	char self[64];

	if (fd < 0)
		return fd;
	snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
	return chmod(self, mode) < 0 ? -errno : 0;
}

int file_write_at(int fd, const void *data, size_t size, off_t at)
{
	const char *p = data;

	while (size > 0) {
		ssize_t n = pwrite(fd, p, size, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		size -= (size_t)n;
		at += n;
	}
	return 0;
}

ssize_t file_read_small(int dirfd, const char *path, char *out, size_t room)
{
	_cleanup_close_ int fd = open_named(dirfd, path, O_RDONLY, 0);
	ssize_t n;

	do
		n = fd < 0 ? -1 : read(fd, out, room - 1);
	while (n < 0 && fd >= 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	out[n] = 0;
	return n;
}

int file_write_all(int fd, const void *data, size_t size)
{
	const char *p = data;

	while (size > 0) {
		ssize_t n = write(fd, p, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		p += n;
		size -= (size_t)n;
	}
	return 0;
}

int file_in_memory(const char *name, const void *data, size_t size, bool executable, struct error *err)
{
	unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	_cleanup_close_ int fd = (int)syscall(SYS_memfd_create, name, flags | (executable ? MFD_EXEC : 0));
	int r;

	if (fd < 0 && errno == EINVAL) /* before 6.3 there is no MFD_EXEC, and every memfd can be executed */
		fd = (int)syscall(SYS_memfd_create, name, flags);
	if (fd < 0)
		return error_system(err, errno, "cannot make a memory file for '%s'", name);
	r = file_write_all(fd, data, size);
	if (r == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		r = -errno;
	return r < 0 ? error_system(err, -r, "cannot fill the memory file '%s'", name) : TAKE_FD(fd);
}

int file_send(int from, int to, uint64_t size)
{
	while (size > 0) {
		ssize_t n = sendfile(to, from, NULL, size < INT_MAX ? (size_t)size : INT_MAX);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ENODATA;
		size -= (uint64_t)n;
	}
	return 0;
}

int file_read_all(int fd, struct buffer *b, size_t max)
{
	size_t start = b->size;

	for (;;) {
		ssize_t n;
		int r;

		r = buffer_reserve(b, 8192);
		if (r < 0)
			return r;
		n = read(fd, b->data + b->size, b->room - b->size - 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return 0;
		b->size += (size_t)n;
		b->data[b->size] = 0;
		if (b->size - start > max)
			return -EFBIG;
	}
}

int file_load(int dirfd, const char *path, size_t max, struct buffer *b, struct error *err)
{
	_cleanup_close_ int fd = open_named(dirfd, path, O_RDONLY | O_NOCTTY | O_NONBLOCK, 0);
	struct stat st;
	int r;

	if (fd < 0)
		return error_system(err, errno, "cannot open '%s'", path);
	if (fstat(fd, &st) < 0)
		return error_system(err, errno, "cannot look at '%s'", path);
	if (!S_ISREG(st.st_mode))
		return error_set(err, ERROR_REFUSED, "'%s' is not a regular file", path);
	r = file_read_all(fd, b, max);
	if (r == -EFBIG)
		return error_set(err, ERROR_REFUSED, "'%s' is larger than %zu bytes", path, max);
	return r < 0 ? error_system(err, -r, "cannot read '%s'", path) : 0;
}

int file_replace_with(int dirfd, const char *name, file_fill_fn fill, void *arg, mode_t mode, bool sync,
		      struct error *err)
{
	_cleanup_free_ char *temporary = NULL;
	_cleanup_close_ int fd = -1;
	int r;

	r = text_print(&temporary, err, "%s.tmp~", name);
	if (r < 0)
		return r;
	/* What lies there is a dead one's, or planted: nothing is written into it. */
	fd = open_named(dirfd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
	if (fd < 0 && errno == EEXIST && unlinkat(dirfd, temporary, 0) == 0)
		fd = open_named(dirfd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
	if (fd < 0)
		return error_system(err, errno, "cannot create '%s'", temporary);
	r = fchmod(fd, mode) < 0 ? -errno : fill(arg, fd);
	if (r == 0 && sync && fsync(fd) < 0)
		r = -errno;
	if (r == 0 && renameat(dirfd, temporary, dirfd, name) < 0)
		r = -errno;
	if (r < 0) {
		unlinkat(dirfd, temporary, 0);
		return error_system(err, -r, "cannot write '%s'", name);
	}
	if (sync && dirfd != AT_FDCWD && fsync(dirfd) < 0)
		return error_system(err, errno, "cannot write '%s' to disk", name);
	return 0;
}

struct bytes {
	const void *data;
	size_t size;
};

static int write_content(void *arg, int fd)
{
	const struct bytes *c = arg;

	return file_write_all(fd, c->data, c->size);
}

int file_replace(int dirfd, const char *name, const void *data, size_t size, mode_t mode, bool sync,
		 struct error *err)
{
	return file_replace_with(dirfd, name, write_content, &(struct bytes){data, size}, mode, sync, err);
}

int file_name_new(int from_dir, const char *from, int to_dir, const char *to)
{
	if (renameat2(from_dir, from, to_dir, to, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL)
		return -errno;
	/* The file system knows no NOREPLACE (NFS), but it has links, but for directories. */
	if (linkat(from_dir, from, to_dir, to, 0) < 0)
		return -errno;
	return unlinkat(from_dir, from, 0) < 0 ? -errno : 0;
}

int dir_make_own(int dirfd, const char *name, mode_t mode)
{
	if (mkdirat(dirfd, name, mode) < 0)
		return -errno;
	if (fchmodat(dirfd, name, mode, AT_SYMLINK_NOFOLLOW) < 0) {
		int r = -errno;

		unlinkat(dirfd, name, AT_REMOVEDIR);
		return r;
	}
	return 0;
}

int file_open_own(int dirfd, const char *name, int flags)
{
	_cleanup_close_ int fd = file_open_beneath(dirfd, name, flags | O_CREAT, 0600);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	/* Only what the umask took: who finds more than 0600 has a stranger's file to refuse. */
	if ((st.st_mode & 0600) != 0600 && fchmod(fd, (st.st_mode & 07777) | 0600) < 0)
		return -errno;
	return TAKE_FD(fd);
}

DIR *dir_list(int dirfd)
{
	_cleanup_close_ int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (dir)
		TAKE_FD(fd);
	return dir;
}

void dir_unlist(DIR *dir)
{
	if (dir)
		closedir(dir);
}

bool name_is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

char *fd_path(int fd)
{
	char link[64], path[4096];
	ssize_t n;

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof path - 1);
	if (n < 0)
		return NULL;
	path[n] = 0;
	return strdup(path);
}

char *path_join(const char *a, const char *b)
{
	size_t n = strlen(a);
	char *path = NULL;

	if (asprintf(&path, "%s%s%s", a, n && a[n - 1] == '/' ? "" : "/", b) < 0)
		return NULL;
	return path;
}

char *path_from(const char *directory, const char *path)
{
	return *path == '/' ? strdup(path) : path_join(directory, path);
}

bool path_is_below(const char *path, const char *base)
{
	size_t n = strlen(base);

	while (n > 0 && base[n - 1] == '/')
		n--;
	return strncmp(path, base, n) == 0 && (path[n] == 0 || path[n] == '/');
}

bool path_has_dot_dot(const char *path)
{
	for (const char *p = path; *p; p += strspn(p, "/")) {
		size_t n = strcspn(p, "/");

		if (n == 2 && memcmp(p, "..", 2) == 0)
			return true;
		p += n;
	}
	return false;
}
