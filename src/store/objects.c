#include "objects.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "file.h"
#include "hasher.h"
#include "process.h"
#include "relative.h"
#include "text.h"

enum { FLUSH_EVERY = 16 << 20, LOCK_TRY_MS = 10 };

void objects_init(struct objects *o, char *path)
{
	*o = (struct objects){.path = path, .dir = -1, .lock = -1, .group = NO_GROUP};
}

void objects_done(struct objects *o)
{
	fd_close(o->lock);
	fd_close(o->dir);
	free(o->path);
	objects_init(o, NULL);
}

static bool is_empty(int fd)
{
	_cleanup_dir_ DIR *dir = dir_list(fd);
	const struct dirent *e = NULL;

	while (dir && (e = readdir(dir)) && name_is_dots(e->d_name))
		;
	return dir && !e;
}

/* What we have made is its owner's alone, or the group's too, whatever the umask: of a directory nothing that lies in it already,
 * for it may be another of ours, which a member has put there. -errno. */
static int share(const struct objects *o, int fd, mode_t alone, mode_t shared)
{
	if (o->group != NO_GROUP && shared & S_ISGID && !is_empty(fd))
		return -ENOTEMPTY;
	if (o->group != NO_GROUP && fchown(fd, (uid_t)-1, o->group) < 0)
		return -errno;
	return fchmod(fd, o->group == NO_GROUP ? alone : shared) < 0 ? -errno : 0;
}

/* Anybody who can open the file can hold its lock: nobody waits for it without an end. */
static int lock_take(const struct objects *o, int fd, int operation)
{
	static const struct timespec pause = {.tv_nsec = LOCK_TRY_MS * (long)NSEC_PER_MSEC};

	for (uint64_t waited = 0; flock(fd, operation | LOCK_NB) < 0; waited += LOCK_TRY_MS) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		if (waited >= o->busy_ms)
			return -ETIMEDOUT;
		(void)nanosleep(&pause, NULL);
	}
	return 0;
}

/* A directory that others of the group may come upon: it has its mode before it has its name. A sweep may take it before that. */
static int dir_make_shared(const struct objects *o, int from, const char *temporary, int to, const char *name)
{
	_cleanup_close_ int fd = dir_make(from, temporary, 0700, geteuid(), getegid());
	int r;

	if (fd < 0)
		return fd;
	if ((r = lock_take(o, fd, LOCK_EX)) < 0 || (r = share(o, fd, 0700, 02770)) < 0 ||
	    (r = file_name_new(from, temporary, to, name)) < 0)
		unlinkat(from, temporary, AT_REMOVEDIR);
	return r;
}

static int subdir_make_shared(struct objects *o, const char *name)
{
	_cleanup_close_ int tmp = openat(o->dir, "tmp", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	char temporary[40];
	uint64_t random;

	if (tmp < 0)
		return -errno;
	(void)random_bytes(&random, sizeof random);
	snprintf(temporary, sizeof temporary, "%s.%016llx", name, (unsigned long long)random);
	return dir_make_shared(o, tmp, temporary, o->dir, name);
}

/* Where there are no links for directories, or no other place to begin. */
static int dir_make_here(const struct objects *o, int dir, const char *name)
{
	_cleanup_close_ int fd = dir_make(dir, name, 0700, geteuid(), getegid());

	return fd < 0 ? fd : share(o, fd, 0700, 02770);
}

static int subdir_make(struct objects *o, const char *name)
{
	int r = -ENOENT;

	for (int tries = 8; o->group != NO_GROUP && r == -ENOENT && tries > 0; tries--)
		r = subdir_make_shared(o, name);
	/* ENOENT: there is no tmp yet, then it is this one. */
	return o->group != NO_GROUP && r != -EPERM && r != -ENOENT ? r : dir_make_here(o, o->dir, name);
}

int objects_subdir(struct objects *o, const char *name, struct error *err)
{
	int fd = file_open_beneath(o->dir, name, O_RDONLY | O_DIRECTORY, 0), r;

	if (fd >= 0)
		return fd;
	r = errno == ENOENT ? subdir_make(o, name) : -errno;
	if (r < 0 && r != -EEXIST)
		return error_system(err, -r, "cannot make '%s' in the object store '%s'", name, o->path);
	fd = fsync(o->dir) < 0 ? -1 : file_open_beneath(o->dir, name, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return error_system(err, errno, "cannot make '%s' in the object store '%s'", name, o->path);
	return fd;
}

int objects_open(struct objects *o, struct error *err)
{
	_cleanup_close_ int fd = -1;

	if (!o->path || o->dir >= 0)
		return o->path != NULL;
	if (access(o->path, F_OK) < 0 && errno == ENOENT)
		return 0;
	fd = owned_open("object store", o->path, 0, o->group, err);
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	o->dir = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return o->dir < 0 ? error_system(err, errno, "cannot open the object store '%s'", o->path) : 1;
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
		int r;

		(void)random_bytes(&random, sizeof random);
		snprintf(name, room, "%.8s.%d.%016llx", host, (int)getpid(), (unsigned long long)random);
		fd = file_open_beneath(tmp, name, O_RDWR | O_CREAT | O_EXCL, 0600);
		if (fd < 0 && errno == EEXIST)
			continue;
		if ((r = fd < 0 ? -errno : share(o, fd, 0600, 0640)) < 0 ||
		    (r = lock_take(o, fd, LOCK_EX)) < 0 || (r = fstat(fd, &st) < 0 ? -errno : 0) < 0)
			return error_system(err, -r, "cannot make an object in '%s'", o->path);
		if (st.st_nlink > 0)
			return TAKE_FD(fd);
	}
}

/* It has its mode before it has its name: what has that name already keeps its own. One that died here left what the next takes away. */
static int lock_make(struct objects *o)
{
	static const char temporary[] = "lock.new";
	_cleanup_close_ int fd = -1;
	int r;

	(void)unlinkat(o->dir, temporary, 0);
	fd = file_open_beneath(o->dir, temporary, O_RDWR | O_CREAT | O_EXCL, 0600);
	r = fd < 0 ? fd : share(o, fd, 0600, 0660);
	if (r == 0)
		r = file_name_new(o->dir, temporary, o->dir, "lock");
	if (r < 0)
		unlinkat(o->dir, temporary, 0);
	return r == -EEXIST ? 0 : r;
}

int objects_open_lock(struct objects *o, struct error *err)
{
	int r = objects_open(o, err);

	if (r <= 0 || o->lock >= 0)
		return r;
	while ((o->lock = openat(o->dir, "lock", O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)) < 0 &&
	       errno == ENOENT)
		if ((r = lock_make(o)) < 0)
			return error_system(err, -r, "cannot lock the object store '%s'", o->path);
	return o->lock < 0 ? error_system(err, errno, "cannot lock the object store '%s'", o->path) : 1;
}

int objects_hold(struct objects *o, struct error *err)
{
	int r;

	if (o->holding)
		return 0;
	if (!o->joined && o->join(o->join_arg, err) < 0)
		return -1;
	r = objects_open_lock(o, err);
	if (r < 0)
		return r;
	if (r == 0)
		return error_system(err, ENOENT, "cannot open the object store '%s'", o->path);
	r = lock_take(o, o->lock, LOCK_SH);
	if (r == -ETIMEDOUT)
		return error_set(
			err, ERROR_LEDGER,
			"cannot write to the object store '%s': somebody, a gc or one of its group, has kept its file 'lock' "
			"locked for %llu ms; find and end them, then `fumehood gc` finishes what is pending",
			o->path, (unsigned long long)o->busy_ms);
	if (r < 0)
		return error_system(err, -r, "cannot lock the object store '%s'", o->path);
	o->holding = true;
	return 0;
}

void objects_release(struct objects *o)
{
	if (o->holding)
		(void)flock(o->lock, LOCK_UN);
	o->holding = false;
}

int objects_id_read(struct objects *o, struct store_id *ret, struct error *err)
{
	_cleanup_buffer_ struct buffer b = {0};
	_cleanup_close_ int fd = -1;
	struct store_id id = {0};
	int r = objects_open(o, err);

	*ret = id;
	if (r <= 0)
		return r;
	fd = openat(o->dir, "id", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return 0;
	r = fd < 0 ? -errno : file_read_all(fd, &b, 2 * TOKEN_SIZE);
	if (r < 0 && r != -EFBIG)
		return error_system(err, -r, "cannot read the id of the object store '%s'", o->path);
	if (r == 0 && b.size == 2 * TOKEN_SIZE && b.data[TOKEN_SIZE - 1] == ' ' &&
	    b.data[b.size - 1] == '\n') {
		memcpy(id.ledger, b.data, TOKEN_SIZE - 1);
		memcpy(id.store, b.data + TOKEN_SIZE, TOKEN_SIZE - 1);
	}
	if (strspn(id.ledger, "0123456789abcdef") + strspn(id.store, "0123456789abcdef") !=
	    2 * (TOKEN_SIZE - 1))
		return error_set(err, ERROR_LEDGER,
				 "the file 'id' of the object store '%s' is damaged: it has one line, of two "
				 "words with 32 digits each, which the ledger has in its table 'store'",
				 o->path);
	*ret = id;
	return 1;
}

/* Of what was there before we came: an administrator has made it, or given it to the group. */
static int check_shared(const struct objects *o, int fd, struct error *err)
{
	struct stat st;

	if (o->group == NO_GROUP)
		return 0;
	if (fstat(fd, &st) < 0)
		return error_system(err, errno, "cannot look at the object store '%s'", o->path);
	if (st.st_gid == o->group && (st.st_mode & 02770) == 02770)
		return 0;
	return error_set(
		err, ERROR_REFUSED,
		"the object store '%s' does not belong to its group: `chgrp -R %u DIR`, `chmod -R g+rwX DIR` "
		"and `find DIR -type d -exec chmod 2770 {} +` by its owner give it to the group",
		o->path, (unsigned)o->group);
}

/* Parents that are made for it are their owner's alone, where nobody else would come through: a group's must be there. Who makes it
 * holds the ledger's row, and takes away what one that died here has left. */
static int store_make(const struct objects *o, struct error *err)
{
	const char *slash = strrchr(o->path, '/');
	_cleanup_free_ char *above = strndup(o->path, slash ? (size_t)(slash - o->path) + 1 : 0),
			    *temporary = NULL;
	_cleanup_close_ int parent = -1;
	int r;

	if (o->group == NO_GROUP)
		return dir_make_private(o->path, err);
	if (access(o->path, F_OK) == 0)
		return 0;
	if (!above || text_print(&temporary, err, "%s.new", slash + 1) < 0)
		return error_memory(err);
	parent = owned_open("directory of the object store", above, 0, o->group, err);
	if (parent < 0 && parent != -ENOENT)
		return parent;
	(void)unlinkat(parent, temporary, AT_REMOVEDIR);
	r = parent < 0 ? parent : dir_make_shared(o, parent, temporary, parent, slash + 1);
	if (r == -EPERM)
		r = dir_make_here(o, parent, slash + 1);
	return r < 0 && r != -EEXIST ? error_system(err, -r, "cannot make the object store '%s'", o->path)
				     : 0;
}

static int furnish(struct objects *o, struct error *err)
{
	static const char *const names[] = {"tmp", "pins"};

	if (store_make(o, err) < 0 || objects_open(o, err) < 0 || check_shared(o, o->dir, err) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		_cleanup_close_ int fd = objects_subdir(o, names[i], err);

		if (fd < 0 || check_shared(o, fd, err) < 0)
			return -1;
	}
	return objects_open_lock(o, err);
}

/* -errno. */
static int id_write(struct objects *o, int fd, const char *temporary, const struct store_id *id)
{
	char line[2 * TOKEN_SIZE + 1];
	int r;

	snprintf(line, sizeof line, "%s %s\n", id->ledger, id->store);
	if ((r = share(o, fd, 0600, 0640)) < 0 || (r = file_write_all(fd, line, strlen(line))) < 0)
		return r;
	if (fsync(fd) < 0)
		return -errno;
	r = file_name_new(o->dir, temporary, o->dir, "id");
	if (r < 0)
		return r;
	return fsync(o->dir) < 0 ? -errno : 0;
}

int objects_make(struct objects *o, const struct store_id *id, struct error *err)
{
	_cleanup_close_ int fd = -1;
	char temporary[TOKEN_SIZE + 8];
	int r;

	if (furnish(o, err) < 0)
		return -1;
	/* Not in tmp/, which nobody sweeps before there is an id: one that died here left what the next one of this ledger, who
	 * holds its row, takes away. */
	snprintf(temporary, sizeof temporary, "id.%s", id->ledger);
	(void)unlinkat(o->dir, temporary, 0);
	fd = file_open_beneath(o->dir, temporary, O_RDWR | O_CREAT | O_EXCL, 0600);
	r = fd < 0 ? -errno : id_write(o, fd, temporary, id);
	if (r == 0)
		return 0;
	unlinkat(o->dir, temporary, 0);
	return r == -EEXIST ? 1 : error_system(err, -r, "cannot give the object store '%s' its id", o->path);
}

static ssize_t read_at(int fd, void *data, size_t size, uint64_t at)
{
	ssize_t n;

	do
		n = pread(fd, data, size, (off_t)at);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

/* One pass: every byte is read once, written, and hashed meanwhile. to may be -1. */
static int copy_hashing(struct objects *o, int from, int to, uint64_t size, uint8_t ret_sha256[DIGEST_SIZE],
			struct error *err)
{
	_cleanup_hasher_ struct hasher *h = hasher_new(size);
	uint64_t at = 0, flushed = 0;

	if (!h)
		return error_memory(err);
	for (;;) {
		char *room = hasher_room(h);
		ssize_t n = read_at(from, room, HASHER_ROOM, at);
		int r = 0;

		if (n < 0)
			return error_system(err, (int)-n, "cannot read a content of %llu bytes",
					    (unsigned long long)size);
		if (n == 0)
			break;
		hasher_feed(h, (size_t)n);
		if (to >= 0)
			r = file_write_all(to, room, (size_t)n);
		if (r < 0)
			return error_system(err, -r, "cannot write a content of %llu bytes",
					    (unsigned long long)size);
		at += (uint64_t)n;
		work_add(o->work, (uint64_t)n);
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
	hasher_final(h, ret_sha256);
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
	int r;

	if (objects_hold(o, err) < 0)
		return -1;
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

int objects_find(struct objects *o, const uint8_t sha256[DIGEST_SIZE], int *ret_fd, struct error *err)
{
	char path[3 + DIGEST_TEXT_SIZE], fan[3], name[DIGEST_TEXT_SIZE];
	int r = objects_open(o, err), fd;

	if (r <= 0)
		return r;
	object_name(sha256, fan, name);
	snprintf(path, sizeof path, "%s/%s", fan, name);
	fd = file_open_beneath(o->dir, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	if (fd < 0)
		return fd == -ENOENT
			       ? 0
			       : error_system(err, -fd, "cannot open the object %s in '%s'", name, o->path);
	*ret_fd = fd;
	return 1;
}

int objects_has(struct objects *o, const uint8_t sha256[DIGEST_SIZE], uint64_t size, struct error *err)
{
	_cleanup_close_ int fd = -1;
	struct stat st;
	int r = objects_find(o, sha256, &fd, err);

	if (r <= 0)
		return r;
	if (fstat(fd, &st) < 0)
		return error_system(err, errno, "cannot look at an object in '%s'", o->path);
	return S_ISREG(st.st_mode) && (uint64_t)st.st_size == size;
}

int objects_copy(struct objects *o, const uint8_t sha256[DIGEST_SIZE], uint64_t size, int fd,
		 struct error *err)
{
	char fan[3], name[DIGEST_TEXT_SIZE];
	_cleanup_close_ int from = -1;
	uint8_t found[DIGEST_SIZE];
	int r = objects_find(o, sha256, &from, err);

	object_name(sha256, fan, name);
	if (r == 0)
		return error_set(err, ERROR_NOT_FOUND, "the object %s is missing from '%s'", name, o->path);
	if (r < 0)
		return r;
	r = copy_hashing(o, from, fd, size, found, err);
	if (r < 0)
		return error_prefix(err, r, "the object %s", name);
	if (memcmp(found, sha256, DIGEST_SIZE) != 0)
		return error_damaged_ledger(
			err, "the object %s in '%s' is damaged: its digest is another now", name, o->path);
	return 0;
}
