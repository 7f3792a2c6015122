#include "tree.h"
#include "file.h"
#include "seen.h"
#include "text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { DEPTH_MAX = 256, CHUNK_SIZE = 64 * 1024 };

struct copying {
	struct seen seen; /* files with several names */
	struct error *err;
};

static int fail(struct copying *c, int errnum, const char *name)
{
	return error_system(c->err, errnum, "cannot copy '%s' to the kept workspace", SHOWN(300, name));
}

/* The bytes from start to end, by the kernel where it can. */
static int copy_range(int from, int to, off_t start, off_t end)
{
	char data[CHUNK_SIZE];

	while (start < end) {
		size_t want = (size_t)(end - start);
		off_t in = start, out = start;
		ssize_t n = copy_file_range(from, &in, to, &out, want, 0);

		if (n < 0 && (errno == EXDEV || errno == EINVAL || errno == EOPNOTSUPP)) {
			n = pread(from, data, want < sizeof data ? want : sizeof data, start);
			if (n > 0)
				n = pwrite(to, data, (size_t)n, start);
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		start += n;
	}
	return 0;
}

/* Only what is there: a sparse file of a terabyte must not become one that is full. */
static int copy_content(int from, int to, off_t size)
{
	off_t at = 0;

	while (at < size) {
		off_t start = lseek(from, at, SEEK_DATA), end;
		int r;

		if (start < 0 && errno == ENXIO)
			break;
		end = start < 0 ? -1 : lseek(from, start, SEEK_HOLE);
		if (end < 0)
			return -errno;
		r = copy_range(from, to, start, end);
		if (r < 0)
			return r;
		at = end;
	}
	return ftruncate(to, size) < 0 ? -errno : 0;
}

/* A file that its owner has locked is unlocked. */
static int open_file(int dirfd, const char *name)
{
	const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
	int fd = file_open_beneath(dirfd, name, flags, 0);

	if (fd == -EACCES && file_unlock(dirfd, name, 0, 0600) == 0)
		fd = file_open_beneath(dirfd, name, flags, 0);
	return fd;
}

static int copy_file(struct copying *c, int from, int to, const char *name)
{
	_cleanup_close_ int in = open_file(from, name), out = -1;
	struct stat st;
	int r;

	/* One that cannot be read is not worth losing the others for. */
	if (in < 0 || fstat(in, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	if (st.st_nlink > 1) {
		r = seen_add(&c->seen, st.st_ino);
		if (r <= 0)
			return r < 0 ? error_memory(c->err) : 0;
	}
	out = file_open_beneath(to, name, O_WRONLY | O_CREAT | O_EXCL, 0600);
	if (out < 0)
		return fail(c, errno, name);
	r = copy_content(in, out, st.st_size);
	if (r == 0 && fchmod(out, st.st_mode & 0777) < 0)
		r = -errno;
	return r < 0 ? fail(c, -r, name) : 0;
}

static int copy_link(struct copying *c, int from, int to, const char *name)
{
	char text[PATH_MAX];
	ssize_t n = readlinkat(from, name, text, sizeof text - 1);

	if (n < 0)
		return 0;
	text[n] = 0;
	return symlinkat(text, to, name) < 0 ? fail(c, errno, name) : 0;
}

static int copy_below(struct copying *c, int from, int to, int depth);

static int copy_directory(struct copying *c, int from, int to, const char *name, int depth)
{
	_cleanup_close_ int in = -1, out = -1;

	if (depth >= DEPTH_MAX)
		return 0;
	in = tree_open_directory(from, name);
	if (in < 0)
		return 0;
	if (mkdirat(to, name, 0700) < 0 && errno != EEXIST)
		return fail(c, errno, name);
	out = tree_open_directory(to, name);
	if (out < 0)
		return fail(c, -out, name);
	return copy_below(c, in, out, depth + 1);
}

static int copy_entry(struct copying *c, int from, int to, const char *name, int depth)
{
	struct stat st;

	if (name_is_dots(name) || fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0)
		return 0;
	switch (st.st_mode & S_IFMT) {
	case S_IFREG:
		return copy_file(c, from, to, name);
	case S_IFLNK:
		return copy_link(c, from, to, name);
	case S_IFDIR:
		return copy_directory(c, from, to, name, depth);
	default:
		return 0;
	}
}

static int copy_below(struct copying *c, int from, int to, int depth)
{
	_cleanup_dir_ DIR *dir = dir_list(from);
	const struct dirent *e;
	int r = 0;

	while (dir && r == 0 && (e = readdir(dir)))
		r = copy_entry(c, from, to, e->d_name, depth);
	return r;
}

int tree_copy(int from, int to, struct error *err)
{
	struct copying c = {.err = err};
	int r;

	/* The analysis may have locked its own directory. */
	(void)fchmod(from, 0700);
	r = copy_below(&c, from, to, 0);
	seen_done(&c.seen);
	return r;
}
