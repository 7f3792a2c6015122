#include "objects.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "file.h"
#include "process.h"
#include "text.h"

enum { SCRATCH_SIZE = 1 << 20, FLUSH_EVERY = 16 << 20 };

void objects_init(struct objects *o, char *path)
{
	*o = (struct objects){.path = path, .dir = -1, .lock = -1};
}

void objects_done(struct objects *o)
{
	fd_close(o->lock);
	fd_close(o->dir);
	free(o->scratch);
	free(o->path);
	objects_init(o, NULL);
}

int objects_subdir(struct objects *o, const char *name, struct error *err)
{
	int fd = openat(o->dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), r = 0;

	if (fd >= 0)
		return fd;
	if (errno == ENOENT && ((r = dir_make_own(o->dir, name, 0700)) == 0 || r == -EEXIST)) {
		fd = openat(o->dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0 && fsync(o->dir) == 0)
			return fd;
		fd_close(fd);
	}
	return error_system(err, errno, "cannot make '%s' in the object store '%s'", name, o->path);
}

static int scratch_alloc(struct objects *o, struct error *err)
{
	if (!o->scratch)
		o->scratch = malloc(SCRATCH_SIZE);
	return o->scratch ? 0 : error_memory(err);
}

int objects_open(struct objects *o, bool make, struct error *err)
{
	if (!o->path)
		return 0;
	if (o->dir < 0)
		o->dir = open(o->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (o->dir < 0 && errno == ENOENT) {
		int r = make ? dir_make_private(o->path, err) : 0;

		if (r < 0 || !make)
			return r;
		o->dir = open(o->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	if (o->dir < 0)
		return error_system(err, errno, "cannot open the object store '%s'", o->path);
	if (o->lock < 0) {
		o->lock = openat(o->dir, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (o->lock < 0 || fchmod(o->lock, 0600) < 0)
			return error_system(err, errno, "cannot lock the object store '%s'", o->path);
	}
	return 1;
}

static int lock_take(int fd, int operation)
{
	int r;

	do
		r = flock(fd, operation);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}

int objects_hold(struct objects *o, struct error *err)
{
	int r;

	if (o->holding)
		return 0;
	r = objects_open(o, true, err);
	if (r < 0)
		return r;
	r = lock_take(o->lock, LOCK_SH);
	if (r < 0)
		return error_system(err, -r, "cannot lock the object store '%s'", o->path);
	o->holding = true;
	return 0;
}

void objects_release(struct objects *o)
{
	if (o->holding)
		(void)lock_take(o->lock, LOCK_UN);
	o->holding = false;
}

/* A new file in tmp/, locked. A sweep may have come between its birth and the lock: then it has no name any more. */
static int temporary_open(struct objects *o, int tmp, char *name, size_t room, struct error *err)
{
	char host[33];

	machine_id(host);
	for (;;) {
		_cleanup_close_ int fd = -1;
		uint64_t random;
		struct stat st;

		(void)random_bytes(&random, sizeof random);
		snprintf(name, room, "%.8s.%d.%016llx", host, (int)getpid(), (unsigned long long)random);
		fd = openat(tmp, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd < 0 && errno == EEXIST)
			continue;
		if (fd < 0 || fchmod(fd, 0600) < 0 || lock_take(fd, LOCK_EX) < 0 || fstat(fd, &st) < 0)
			return error_system(err, errno, "cannot make an object in '%s'", o->path);
		if (st.st_nlink > 0)
			return TAKE_FD(fd);
	}
}

static ssize_t read_at(int fd, void *data, size_t size, uint64_t at)
{
	ssize_t n;

	do
		n = pread(fd, data, size, (off_t)at);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

/* One pass: every byte is read once, hashed and written. to may be -1. */
static int copy_hashing(struct objects *o, int from, int to, uint64_t size, uint8_t ret_sha256[DIGEST_SIZE],
			struct error *err)
{
	uint64_t at = 0, flushed = 0;
	struct digest d;

	digest_init(&d);
	for (;;) {
		ssize_t n = read_at(from, o->scratch, SCRATCH_SIZE, at);
		int r = 0;

		if (n < 0)
			return error_system(err, (int)-n, "cannot read a content of %llu bytes",
					    (unsigned long long)size);
		if (n == 0)
			break;
		digest_update(&d, o->scratch, (size_t)n);
		if (to >= 0)
			r = file_write_all(to, o->scratch, (size_t)n);
		if (r < 0)
			return error_system(err, -r, "cannot write a content of %llu bytes",
					    (unsigned long long)size);
		at += (uint64_t)n;
		if (at > size)
			break;
		/* The disk begins to write while we hash on, so that the fsync at the end is short. */
		if (to >= 0 && at - flushed >= FLUSH_EVERY) {
			(void)sync_file_range(to, (off_t)flushed, (off_t)(at - flushed),
					      SYNC_FILE_RANGE_WRITE);
			flushed = at;
		}
	}
	if (at != size)
		return error_set(err, ERROR_LEDGER,
				 "a content of %llu bytes has changed: %s%llu are there now",
				 (unsigned long long)size, at > size ? "more than " : "",
				 (unsigned long long)(at > size ? size : at));
	digest_final(&d, ret_sha256);
	return 0;
}

static void object_name(const uint8_t sha256[DIGEST_SIZE], char fan[3], char name[DIGEST_TEXT_SIZE])
{
	hex_encode(sha256, DIGEST_SIZE, name);
	memcpy(fan, name, 2);
	fan[2] = 0;
}

/* Gives the temporary its name: 1, or 0 if it was not needed. What is there under it already is the same, unless a disk has lost its end. */
static int object_publish(struct objects *o, int fd, int tmp, const char *temporary,
			  const uint8_t sha256[DIGEST_SIZE], uint64_t size, struct error *err)
{
	char fan[3], name[DIGEST_TEXT_SIZE];
	_cleanup_close_ int dir = -1;
	struct stat st;
	int r;

	object_name(sha256, fan, name);
	dir = objects_subdir(o, fan, err);
	if (dir < 0)
		return dir;
	/* Its writer may not have come to the fsync of the directory yet, and we are about to rely on it. */
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && (uint64_t)st.st_size == size)
		return fsync(dir) < 0 ? error_system(err, errno, "cannot name an object in '%s'", o->path)
				      : 0;
	if (fsync(fd) < 0)
		return error_system(err, errno, "cannot write an object to '%s'", o->path);
	r = renameat2(tmp, temporary, dir, name, RENAME_NOREPLACE);
	/* EINVAL: the file system knows no NOREPLACE. EEXIST: of another size, or another writer was faster. */
	if (r < 0 && (errno == EINVAL || errno == EEXIST))
		r = renameat(tmp, temporary, dir, name);
	if (r < 0 || fsync(dir) < 0)
		return error_system(err, errno, "cannot name an object in '%s'", o->path);
	return 1;
}

int objects_put(struct objects *o, int fd, uint64_t size, uint8_t ret_sha256[DIGEST_SIZE], struct error *err)
{
	_cleanup_close_ int tmp = -1, to = -1;
	uint8_t sha256[DIGEST_SIZE];
	char temporary[64];
	int r = objects_hold(o, err);

	if (r == 0)
		r = scratch_alloc(o, err);
	if (r < 0)
		return r;
	tmp = objects_subdir(o, "tmp", err);
	if (tmp < 0)
		return tmp;
	to = temporary_open(o, tmp, temporary, sizeof temporary, err);
	if (to < 0)
		return to;
	r = copy_hashing(o, fd, to, size, sha256, err);
	if (r < 0)
		error_prefix(err, r, "cannot store an object in '%s'", o->path);
	else
		r = object_publish(o, to, tmp, temporary, sha256, size, err);
	if (r <= 0)
		unlinkat(tmp, temporary, 0);
	if (r < 0)
		return r;
	memcpy(ret_sha256, sha256, DIGEST_SIZE);
	return 0;
}

int objects_find(struct objects *o, const uint8_t sha256[DIGEST_SIZE], struct error *err)
{
	char path[3 + DIGEST_TEXT_SIZE], fan[3], name[DIGEST_TEXT_SIZE];
	int r = objects_open(o, false, err);

	if (r <= 0)
		return r < 0 ? r : -ENOENT;
	object_name(sha256, fan, name);
	snprintf(path, sizeof path, "%s/%s", fan, name);
	r = file_open_beneath(o->dir, path, O_RDONLY, 0);
	if (r < 0 && r != -ENOENT)
		return error_system(err, -r, "cannot open the object %s in '%s'", name, o->path);
	return r;
}

int objects_has(struct objects *o, const uint8_t sha256[DIGEST_SIZE], uint64_t size, struct error *err)
{
	_cleanup_close_ int fd = objects_find(o, sha256, err);
	struct stat st;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	if (fstat(fd, &st) < 0)
		return error_system(err, errno, "cannot look at an object in '%s'", o->path);
	return S_ISREG(st.st_mode) && (uint64_t)st.st_size == size;
}

int objects_copy(struct objects *o, const uint8_t sha256[DIGEST_SIZE], uint64_t size, int fd,
		 struct error *err)
{
	char fan[3], name[DIGEST_TEXT_SIZE];
	_cleanup_close_ int from = objects_find(o, sha256, err);
	uint8_t found[DIGEST_SIZE];
	int r;

	object_name(sha256, fan, name);
	if (from == -ENOENT)
		return error_set(err, ERROR_NOT_FOUND, "the object %s is missing from '%s'", name, o->path);
	r = from < 0 ? from : scratch_alloc(o, err);
	if (r < 0)
		return r;
	r = copy_hashing(o, from, fd, size, found, err);
	if (r < 0)
		return error_prefix(err, r, "the object %s", name);
	if (memcmp(found, sha256, DIGEST_SIZE) != 0)
		return error_set(err, ERROR_LEDGER,
				 "the object %s in '%s' is damaged: its digest is another now", name,
				 o->path);
	return 0;
}
