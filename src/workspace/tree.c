#include "tree.h"
#include "crew.h"
#include "file.h"
#include "process.h"
#include "text.h"
#include "walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/*
 * Removal goes down at most LEVELS directories with a descriptor each; what lies deeper is renamed to the top, where
 * the next pass finds it. So neither the stack nor the descriptors grow with the tree. Each directory is read in large
 * chunks, and a chunk is removed in the order of its inodes, which is how they lie on the disk: by several hands, if there is
 * much of it. A hand that comes upon a directory empties it alone.
 */
enum { LEVELS = 16, CHUNK_SIZE = 256 * 1024, ENTRY_SIZE_MIN = 24, PASSES = 64 };
/* Entries, or directories among them, that are worth several hands; and how many of them one takes at a time. */
enum { MANY = 256, MANY_DIRECTORIES = 16, GRAIN = 32, GRAIN_DIRECTORIES = 1 };

struct tree_entry {
	ino64_t inode;
	unsigned at; /* offset of its dirent64 in the chunk */
	bool gone;
};

struct tree_scan {
	struct tree_entry entries[CHUNK_SIZE / ENTRY_SIZE_MIN];
	char chunk[CHUNK_SIZE];
};

struct tree_level {
	int fd;
	struct tree_scan *scan;
	size_t count, next;
	bool removed; /* something since the last pass began */
	bool moved;   /* something came here from below */
	int passes;
};

struct removal {
	struct tree_level *levels;
	size_t depth, room;
	dev_t device;
	uint64_t moves; /* names what is moved to the top */
	bool alone;	/* one of several hands itself */
	struct crew *crew;
	struct error *err;
	int result; /* the first failure */
};

static void removal_done(struct removal *r)
{
	while (r->depth > 0)
		fd_close(r->levels[--r->depth].fd);
	for (size_t i = 0; i < r->room; i++)
		free(r->levels[i].scan);
	free(r->levels);
	crew_free(r->crew);
}

static void note(struct removal *r, int errnum, const char *name)
{
	if (r->result == 0)
		r->result = error_system(r->err, errnum, "cannot remove '%s'", SHOWN(300, name));
}

int tree_open_directory(int dirfd, const char *name)
{
	const int flags = O_DIRECTORY | O_NOFOLLOW;
	_cleanup_close_ int fd = file_open_beneath(dirfd, name, O_RDONLY | flags, 0);
	struct stat st;

	if (fd == -EACCES) {
		int r = file_unlock(dirfd, name, flags, 0700);

		fd = r < 0 ? r : file_open_beneath(dirfd, name, O_RDONLY | flags, 0);
	}
	if (fd < 0)
		return fd;
	/* Readable is not enough: its entries are looked up and removed. Root may do so anyway. */
	if (fstat(fd, &st) == 0 && (st.st_mode & 0700) != 0700)
		(void)fchmod(fd, (st.st_mode & 0777) | 0700);
	return TAKE_FD(fd);
}

/* Whatever it is, if it is not a directory with something in it. 0, -errno; gone already is 0. */
static int unlink_any(int dirfd, const char *name, bool directory)
{
	for (int tries = 0; tries < 2; tries++, directory = !directory) {
		if (unlinkat(dirfd, name, directory ? AT_REMOVEDIR : 0) == 0 || errno == ENOENT)
			return 0;
		if (errno != (directory ? ENOTDIR : EISDIR))
			break;
	}
	return -errno;
}

static const struct dirent64 *entry_at(const struct tree_level *l, size_t i)
{
	return (const struct dirent64 *)(l->scan->chunk + l->scan->entries[i].at);
}

static int entry_compare(const void *a, const void *b)
{
	ino64_t x = ((const struct tree_entry *)a)->inode, y = ((const struct tree_entry *)b)->inode;

	return (x > y) - (x < y);
}

/* The next chunk. 1, 0 at the end, -errno. */
static int level_fill(struct tree_level *l)
{
	struct tree_scan *s = l->scan;

	l->count = l->next = 0;
	while (l->count == 0) {
		ssize_t n = getdents64(l->fd, s->chunk, sizeof s->chunk);

		if (n <= 0)
			return n < 0 && errno != ENOENT ? -errno : 0;
		for (unsigned at = 0; at < (unsigned)n;) {
			const struct dirent64 *e = (const struct dirent64 *)(s->chunk + at);

			if (!name_is_dots(e->d_name))
				s->entries[l->count++] = (struct tree_entry){.inode = e->d_ino, .at = at};
			at += e->d_reclen;
		}
	}
	qsort(s->entries, l->count, sizeof *s->entries, entry_compare);
	return 1;
}

static void level_rewind(struct tree_level *l)
{
	lseek(l->fd, 0, SEEK_SET);
	l->count = l->next = 0;
	l->removed = l->moved = false;
}

static int empty(int fd, bool alone, struct error *err);

/* What lies in it too. 0, or it is left for who says why. */
static int remove_entry(const struct removal *r, int dirfd, const struct dirent64 *e)
{
	struct error ignored = ERROR_INIT;
	_cleanup_close_ int fd = -1;
	struct stat st;
	int result = unlink_any(dirfd, e->d_name, e->d_type == DT_DIR);

	if (result != -ENOTEMPTY && result != -EEXIST)
		return result;
	fd = tree_open_directory(dirfd, e->d_name);
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_dev != r->device || empty(fd, true, &ignored) < 0)
		return result;
	return unlink_any(dirfd, e->d_name, true);
}

struct share {
	struct removal *removal;
	struct tree_level *level;
};

static void remove_share(void *arg, size_t from, size_t to)
{
	const struct share *s = arg;

	for (size_t i = from; i < to; i++)
		s->level->scan->entries[i].gone =
			remove_entry(s->removal, s->level->fd, entry_at(s->level, i)) == 0;
}

/* All of the chunk that several hands can remove; the rest stays in it. */
static void level_share(struct removal *r, struct tree_level *l)
{
	struct share share = {r, l};
	size_t directories = 0, left = 0;

	for (size_t i = 0; i < l->count; i++)
		directories += entry_at(l, i)->d_type == DT_DIR;
	if (r->alone || (l->count < MANY && directories < MANY_DIRECTORIES))
		return;
	if (!r->crew)
		r->crew = crew_new();
	if (!r->crew)
		return;
	crew_each(r->crew, l->count, directories < MANY_DIRECTORIES ? GRAIN : GRAIN_DIRECTORIES, remove_share,
		  &share);
	for (size_t i = 0; i < l->count; i++)
		if (!l->scan->entries[i].gone)
			l->scan->entries[left++] = l->scan->entries[i];
	l->removed = l->removed || left < l->count;
	l->count = left;
}

/* Takes fd over, also on failure. */
static int push(struct removal *r, int fd)
{
	_cleanup_close_ int owned = fd;
	struct tree_level *l;

	if (r->depth == r->room) {
		size_t room = r->room + LEVELS;
		struct tree_level *more = reallocarray(r->levels, room, sizeof *more);

		if (!more)
			return -ENOMEM;
		memset(more + r->room, 0, LEVELS * sizeof *more);
		r->levels = more;
		r->room = room;
	}
	l = &r->levels[r->depth];
	if (!l->scan)
		l->scan = malloc(sizeof *l->scan);
	if (!l->scan)
		return -ENOMEM;
	*l = (struct tree_level){.fd = TAKE_FD(owned), .scan = l->scan};
	r->depth++;
	return 0;
}

static int move_to_top(struct removal *r, int dirfd, const char *name)
{
	char moved[32];
	int e;

	do {
		snprintf(moved, sizeof moved, ".moved-%016llx", (unsigned long long)r->moves++);
		e = renameat2(dirfd, name, r->levels[0].fd, moved, RENAME_NOREPLACE) < 0 ? errno : 0;
	} while (e == EEXIST);
	return -e;
}

/* Goes down into a directory that is not empty. */
static int enter(struct removal *r, const char *name)
{
	struct tree_level *l = &r->levels[r->depth - 1];
	_cleanup_close_ int fd = tree_open_directory(l->fd, name);
	struct stat st;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_dev != r->device)
		return -EXDEV;
	/* Where nothing can be moved, because the disk is full, descriptors are spent instead. */
	if (r->depth >= LEVELS && move_to_top(r, l->fd, name) == 0) {
		l->removed = r->levels[0].moved = true;
		return 0;
	}
	return push(r, TAKE_FD(fd));
}

static void remove_next(struct removal *r)
{
	struct tree_level *l = &r->levels[r->depth - 1];
	const struct dirent64 *e = entry_at(l, l->next++);
	int result = unlink_any(l->fd, e->d_name, e->d_type == DT_DIR);

	if (result == 0) {
		l->removed = true;
		return;
	}
	if (result == -ENOTEMPTY || result == -EEXIST)
		result = enter(r, e->d_name);
	if (result < 0)
		note(r, -result, e->d_name);
}

/* The end of a directory: it is removed in its parent, or read again if it was filled meanwhile. */
static void leave(struct removal *r)
{
	struct tree_level *l = &r->levels[r->depth - 1];
	bool again = l->removed && l->passes++ < PASSES;

	if (r->depth == 1) {
		if (again || l->moved) {
			level_rewind(l);
			return;
		}
	} else {
		struct tree_level *parent = l - 1;
		const char *name = entry_at(parent, parent->next - 1)->d_name;
		int result = unlink_any(parent->fd, name, true);

		if (result == -ENOTEMPTY && again) {
			level_rewind(l);
			return;
		}
		if (result < 0)
			note(r, -result, name);
		else
			parent->removed = true;
	}
	fd_close(l->fd);
	r->depth--;
}

static int empty(int fd, bool alone, struct error *err)
{
	_cleanup_(removal_done) struct removal r = {.err = err, .alone = alone};
	struct stat st;
	int top;

	if (fstat(fd, &st) < 0)
		return error_system(err, errno, "cannot look at a directory to be emptied");
	if ((st.st_mode & 0700) != 0700)
		(void)fchmod(fd, (st.st_mode & 0777) | 0700);
	r.device = st.st_dev;
	if (random_bytes(&r.moves, sizeof r.moves) < 0)
		r.moves = 0;
	/* A description of its own: the caller's offset is the caller's. */
	top = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (top < 0)
		return error_system(err, errno, "cannot open a directory to be emptied");
	if (push(&r, top) < 0)
		return error_memory(err);
	while (r.depth > 0) {
		struct tree_level *l = &r.levels[r.depth - 1];
		int n = 1;

		if (l->next == l->count && (n = level_fill(l)) > 0)
			level_share(&r, l);
		if (n > 0 && l->next < l->count)
			remove_next(&r);
		else if (n == 0)
			leave(&r);
		else if (n < 0) {
			note(&r, -n, ".");
			l->removed = l->moved = false;
			leave(&r);
		}
	}
	return r.result;
}

int tree_empty(int fd, struct error *err)
{
	return empty(fd, false, err);
}

int tree_remove(int dirfd, const char *name, struct error *err)
{
	_cleanup_close_ int fd = -1;
	int r = unlink_any(dirfd, name, false);
	char shown[300];

	text_escape_into(shown, sizeof shown, name, strlen(name));
	if (r == 0)
		return 0;
	if (r != -ENOTEMPTY && r != -EEXIST)
		return error_system(err, -r, "cannot remove '%s'", shown);
	fd = tree_open_directory(dirfd, name);
	if (fd == -ENOENT)
		return 0;
	if (fd < 0)
		return error_system(err, -fd, "cannot open directory '%s' to remove it", shown);
	/* Who had it open before it got this name may put something there: a lock, to find out that it is not the one. */
	for (int pass = 0; (r == -ENOTEMPTY || r == -EEXIST) && pass < PASSES; pass++) {
		int e = tree_empty(fd, err);

		if (e < 0)
			return error_prefix(err, e, "cannot empty '%s'", shown);
		r = unlink_any(dirfd, name, true);
	}
	return r < 0 ? error_system(err, -r, "cannot remove '%s'", shown) : 0;
}

struct gift {
	uid_t uid;
	gid_t gid;
};

static int give_entry(void *arg, int dirfd, const char *name, const struct stat *st UNUSED)
{
	const struct gift *g = arg;
	_cleanup_close_ int fd = file_open_beneath(dirfd, name, O_PATH | O_NOFOLLOW, 0);
	struct stat now;

	if (fd < 0)
		return fd == -ENOENT || fd == -EXDEV ? 0 : fd;
	if (fstat(fd, &now) < 0)
		return -errno;
	if (!S_ISDIR(now.st_mode) && now.st_nlink > 1)
		return 0;
	if (now.st_uid == g->uid && now.st_gid == g->gid)
		return 0;
	return fchownat(fd, "", g->uid, g->gid, AT_EMPTY_PATH) < 0 ? -errno : 0;
}

int tree_chown(int fd, uid_t uid, gid_t gid, struct error *err)
{
	struct gift gift = {uid, gid};
	int r = tree_walk(fd, true, give_entry, &gift);

	if (r == 0 && fchown(fd, uid, gid) < 0)
		r = -errno;
	return r < 0 ? error_system(err, -r, "cannot give files to user %u", (unsigned)uid) : 0;
}
