#include "tree.h"
#include "array.h"
#include "clock.h"
#include "file.h"
#include "seen.h"
#include "walk.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	TREES_MAX = 2,
	SEEN_MAX = 1 << 20, /* inodes with several names; beyond them each name counts */
};

struct tree_look {
	struct walk *walks[TREES_MAX];
	size_t count, next;
	struct tree_size size, stop_at;
	struct seen seen;
	dev_t device; /* of the first */
	pid_t *holders;
	size_t n_holders, next_holder;
};
DEFINE_CLEANUP(struct tree_look *, tree_look_free);

void tree_look_free(struct tree_look *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->count; i++)
		walk_free(l->walks[i]);
	seen_done(&l->seen);
	free(l->holders);
	free(l);
}

static bool is_enough(const struct tree_look *l)
{
	return l->size.files > l->stop_at.files || l->size.bytes > l->stop_at.bytes;
}

static int measure_entry(void *arg, int dirfd UNUSED, const char *name UNUSED, const struct stat *st)
{
	struct tree_look *l = arg;
	int fresh = 1;

	if (st->st_nlink != 1 && !S_ISDIR(st->st_mode) && l->seen.used < SEEN_MAX)
		fresh = seen_add(&l->seen, st->st_ino);
	if (fresh < 0)
		return fresh;
	l->size.files += fresh || st->st_nlink > 0;
	if (fresh)
		l->size.bytes += (uint64_t)st->st_blocks * 512;
	return is_enough(l);
}

int tree_look_open(const int *fds, size_t n, const struct tree_size *stop_at, struct tree_look **ret)
{
	_cleanup_(tree_look_freep) struct tree_look *l = calloc(1, sizeof *l);

	assert(n <= TREES_MAX);
	if (!l)
		return -ENOMEM;
	l->stop_at = stop_at ? *stop_at : (struct tree_size){.bytes = UINT64_MAX, .files = UINT64_MAX};
	for (size_t i = 0; i < n; i++) {
		struct stat st;
		int r = fds[i] < 0 ? 0 : walk_open(fds[i], false, measure_entry, l, &l->walks[l->count]);

		if (r < 0)
			return r;
		l->count += fds[i] >= 0;
		if (l->device == 0 && fds[i] >= 0 && fstat(fds[i], &st) == 0)
			l->device = st.st_dev;
	}
	*ret = TAKE_PTR(l);
	return 0;
}

void tree_look_at_held(struct tree_look *l, pid_t pid)
{
	pid_t *more = ARRAY_ADD(l->holders, l->n_holders);

	if (more)
		*more = pid;
}

/* Only what is deleted is looked at, as far as its path can be told: others may lie where nobody answers. */
static void measure_held(struct tree_look *l, int dirfd, const char *name)
{
	char path[PATH_MAX];
	ssize_t n = readlinkat(dirfd, name, path, sizeof path);
	struct stat st;

	if (n >= 10 && n < PATH_MAX && memcmp(path + n - 10, " (deleted)", 10) != 0)
		return;
	if (fstatat(dirfd, name, &st, 0) == 0 && st.st_nlink == 0 && st.st_dev == l->device)
		(void)measure_entry(l, dirfd, name, &st);
}

static void add_children(struct tree_look *l, int dirfd, const char *thread)
{
	_cleanup_buffer_ struct buffer text = {0};
	char path[300], *at, *end;

	snprintf(path, sizeof path, "%s/children", thread);
	if (file_load(dirfd, path, SEEN_MAX, &text, NULL) < 0 || buffer_append(&text, "", 1) < 0)
		return;
	for (at = text.data; strtol(at, &end, 10) > 0; at = end)
		tree_look_at_held(l, (pid_t)strtol(at, NULL, 10));
}

static void look_at_holder(struct tree_look *l, pid_t pid, const char *what,
			   void (*fn)(struct tree_look *, int, const char *))
{
	_cleanup_dir_ DIR *dir = NULL;
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, what);
	dir = opendir(path);
	for (struct dirent *e; dir && (e = readdir(dir));)
		fn(l, dirfd(dir), e->d_name);
}

int tree_look_on(struct tree_look *l, uint64_t until, struct tree_size *ret)
{
	/* First: what is deleted meanwhile is not met twice. */
	while (l->next_holder < l->n_holders && !is_enough(l)) {
		look_at_holder(l, l->holders[l->next_holder], "fd", measure_held);
		look_at_holder(l, l->holders[l->next_holder++], "task", add_children);
		if (until != UINT64_MAX && clock_now() >= until)
			return 1;
	}
	while (l->next < l->count && !is_enough(l)) {
		int r = walk_step(l->walks[l->next]);

		if (r < 0)
			return r;
		l->next += r == 0;
		if (r > 0 && until != UINT64_MAX && clock_now() >= until)
			return 1;
	}
	*ret = l->size;
	for (size_t i = 0; i < l->count; i++) {
		ret->hidden |= walk_gaps(l->walks[i])->hidden;
		ret->lost |= walk_gaps(l->walks[i])->lost;
	}
	return 0;
}
