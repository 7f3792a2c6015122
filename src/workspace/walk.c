#include "walk.h"
#include "file.h"
#include "tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

enum {
	CHUNK_SIZE = 64 * 1024,
	NAMES_MAX = 64 * 1024 * 1024, /* of directories that wait, all levels together */
};

struct frame {
	int fd;	   /* -1: closed on the way down */
	bool read; /* to its end */
	dev_t device;
	ino_t inode;
	struct buffer names; /* of the directories to go down to, each with its NUL */
	size_t next;
};

struct walk {
	struct frame *frames;
	size_t depth, room;
	size_t names; /* bytes that wait in all frames */
	char *chunk;
	bool unlock;
	walk_fn fn;
	void *arg;
	struct walk_gaps gaps;
};
DEFINE_CLEANUP(struct walk *, walk_free);

void walk_free(struct walk *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < w->depth; i++) {
		fd_close(w->frames[i].fd);
		buffer_free(&w->frames[i].names);
	}
	free(w->frames);
	free(w->chunk);
	free(w);
}

const struct walk_gaps *walk_gaps(const struct walk *w)
{
	return &w->gaps;
}

/* Takes fd over, also on failure. */
static int push(struct walk *w, int fd)
{
	_cleanup_close_ int owned = fd;
	struct stat st;

	if (fstat(owned, &st) < 0)
		return -errno;
	if (w->depth > 0 && st.st_dev != w->frames[0].device)
		return 0;
	if (w->depth == w->room) {
		size_t room = w->room ? 2 * w->room : 16;
		struct frame *more = reallocarray(w->frames, room, sizeof *more);

		if (!more)
			return -ENOMEM;
		w->frames = more;
		w->room = room;
	}
	w->frames[w->depth++] = (struct frame){
		.fd = TAKE_FD(owned),
		.device = st.st_dev,
		.inode = st.st_ino,
	};
	return 0;
}

/* Goes back up, to the nearest parent that is still where it was. */
static void pop(struct walk *w)
{
	_cleanup_close_ int child = -1;

	do {
		struct frame *f = &w->frames[--w->depth];
		struct frame *parent = f - 1;
		struct stat st;

		w->names -= f->names.size;
		w->gaps.lost |= f->next < f->names.size;
		buffer_free(&f->names);
		if (f->fd >= 0) {
			fd_close(child);
			child = f->fd;
		}
		if (w->depth == 0 || parent->fd >= 0)
			return;
		parent->fd = openat(child, "..", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (parent->fd >= 0 &&
		    (fstat(parent->fd, &st) < 0 || st.st_dev != parent->device || st.st_ino != parent->inode))
			parent->fd = fd_close(parent->fd);
	} while (w->frames[w->depth - 1].fd < 0);
}

/* Something is mounted there. A file of an overlay may have another device than the directory that it lies in, which a
 * directory never has. */
static bool is_mounted(struct walk *w, const struct frame *f, const char *name, const struct stat *st)
{
	struct statx x;
	bool mounted;

	if (st->st_dev == w->frames[0].device)
		return false;
	mounted = statx(f->fd, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_TYPE, &x) < 0 ||
		  x.stx_attributes & STATX_ATTR_MOUNT_ROOT;
	/* A subvolume: what lies in it counts for whoever made it. */
	w->gaps.hidden |= S_ISDIR(st->st_mode) && !mounted;
	return S_ISDIR(st->st_mode) || mounted;
}

static int remember(struct walk *w, struct frame *f, const char *name)
{
	size_t size = strlen(name) + 1;

	if (w->names + size > NAMES_MAX) {
		w->gaps.hidden = true;
		return 0;
	}
	w->names += size;
	return buffer_append(&f->names, name, size);
}

static int visit_entry(struct walk *w, struct frame *f, const char *name)
{
	struct stat st;
	int r;

	if (name_is_dots(name))
		return 0;
	if (fstatat(f->fd, name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0) {
		w->gaps.hidden |= errno == EACCES; /* read, but not searched */
		return errno == ENOENT || errno == EACCES ? 0 : -errno;
	}
	if (is_mounted(w, f, name, &st))
		return 0;
	r = w->fn(w->arg, f->fd, name, &st);
	return r == 0 && S_ISDIR(st.st_mode) ? remember(w, f, name) : r;
}

/* Reads on in the directory at the end of the stack. */
static int visit(struct walk *w)
{
	struct frame *f = &w->frames[w->depth - 1];
	ssize_t n = getdents64(f->fd, w->chunk, CHUNK_SIZE);
	int r = 0;

	/* ENOENT: the directory itself was removed meanwhile. */
	if (n < 0 && errno != ENOENT)
		return -errno;
	f->read = n <= 0;
	for (ssize_t at = 0; at < n && r == 0;) {
		const struct dirent64 *e = (const struct dirent64 *)(w->chunk + at);

		r = visit_entry(w, f, e->d_name);
		at += e->d_reclen;
	}
	/* Its parent is needed again only when we come back up. */
	if (f->read && w->depth > WALK_OPEN)
		f[-1].fd = fd_close(f[-1].fd);
	return r;
}

static int descend(struct walk *w)
{
	struct frame *f = &w->frames[w->depth - 1];
	const char *name = f->names.data + f->next;
	int fd;

	f->next += strlen(name) + 1;
	fd = w->unlock ? tree_open_directory(f->fd, name)
		       : file_open_beneath(f->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd >= 0)
		return push(w, fd);
	w->gaps.hidden |= fd == -EACCES || fd == -EPERM;
	return fd == -ENOMEM || fd == -EMFILE || fd == -ENFILE ? fd : 0;
}

int walk_open(int fd, bool unlock, walk_fn fn, void *arg, struct walk **ret)
{
	_cleanup_(walk_freep) struct walk *w = calloc(1, sizeof *w);
	int top, r;

	if (!w || !(w->chunk = malloc(CHUNK_SIZE)))
		return -ENOMEM;
	w->unlock = unlock;
	w->fn = fn;
	w->arg = arg;
	/* A description of its own: the caller's offset is the caller's. */
	top = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (top < 0 && errno == EACCES && fchmod(fd, 0700) == 0)
		top = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (top < 0)
		return -errno;
	r = push(w, top);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(w);
	return 0;
}

int walk_step(struct walk *w)
{
	const struct frame *f = &w->frames[w->depth - 1];
	int r = 0;

	if (w->depth == 0)
		return 0;
	if (!f->read)
		r = visit(w);
	else if (f->next < f->names.size)
		r = descend(w);
	else
		pop(w);
	return r < 0 ? r : r == 0 && w->depth > 0;
}

int tree_walk(int fd, bool unlock, walk_fn fn, void *arg)
{
	_cleanup_(walk_freep) struct walk *w = NULL;
	int r = walk_open(fd, unlock, fn, arg, &w);

	if (r < 0)
		return r;
	do
		r = walk_step(w);
	while (r > 0);
	return r;
}
