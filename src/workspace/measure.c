#include "tree.h"
#include "clock.h"
#include "macros.h"
#include "seen.h"
#include "walk.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

enum {
	TREES_MAX = 2,
	SEEN_MAX = 1 << 20, /* inodes with several names; beyond them each name counts */
};

struct tree_look {
	struct walk *walks[TREES_MAX];
	size_t count, next;
	struct tree_size size, stop_at;
	struct seen seen;
};
DEFINE_CLEANUP(struct tree_look *, tree_look_free);

void tree_look_free(struct tree_look *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->count; i++)
		walk_free(l->walks[i]);
	seen_done(&l->seen);
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

	l->size.files++;
	if (st->st_nlink > 1 && !S_ISDIR(st->st_mode) && l->seen.used < SEEN_MAX)
		fresh = seen_add(&l->seen, st->st_ino);
	if (fresh < 0)
		return fresh;
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
		int r = fds[i] < 0 ? 0 : walk_open(fds[i], false, measure_entry, l, &l->walks[l->count]);

		if (r < 0)
			return r;
		l->count += fds[i] >= 0;
	}
	*ret = TAKE_PTR(l);
	return 0;
}

int tree_look_on(struct tree_look *l, uint64_t until, struct tree_size *ret)
{
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
