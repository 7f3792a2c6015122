#include "tree.h"
#include "macros.h"
#include "walk.h"

#include <errno.h>

/* Inodes with several names that were counted already: open addressing, a power of two of slots. */
struct seen {
	ino_t *slots; /* 0: free */
	size_t room, used;
};

struct measure {
	struct tree_size size, stop_at;
	struct seen seen;
};

static size_t slot_of(const struct seen *s, ino_t inode)
{
	size_t i = (size_t)(inode * 0x9e3779b97f4a7c15ULL >> 20) & (s->room - 1);

	while (s->slots[i] && s->slots[i] != inode)
		i = (i + 1) & (s->room - 1);
	return i;
}

static int seen_grow(struct seen *s)
{
	struct seen more = {.room = s->room ? 2 * s->room : 1024, .used = s->used};

	more.slots = calloc(more.room, sizeof *more.slots);
	if (!more.slots)
		return -ENOMEM;
	for (size_t i = 0; i < s->room; i++)
		if (s->slots[i])
			more.slots[slot_of(&more, s->slots[i])] = s->slots[i];
	free(s->slots);
	*s = more;
	return 0;
}

/* 1 if it is new, 0 if it was there. */
static int seen_add(struct seen *s, ino_t inode)
{
	size_t i;

	if (s->used >= s->room / 2 && seen_grow(s) < 0)
		return -ENOMEM;
	i = slot_of(s, inode);
	if (s->slots[i])
		return 0;
	s->slots[i] = inode;
	s->used++;
	return 1;
}

static int measure_entry(void *arg, int dirfd UNUSED, const char *name UNUSED, const struct stat *st)
{
	struct measure *m = arg;
	int fresh = 1;

	m->size.files++;
	if (st->st_nlink > 1 && !S_ISDIR(st->st_mode))
		fresh = seen_add(&m->seen, st->st_ino);
	if (fresh < 0)
		return fresh;
	if (fresh)
		m->size.bytes += (uint64_t)st->st_blocks * 512;
	return m->size.files > m->stop_at.files || m->size.bytes > m->stop_at.bytes;
}

int tree_measure(int fd, const struct tree_size *stop_at, struct tree_size *ret)
{
	struct measure m = {.stop_at = {UINT64_MAX, UINT64_MAX}};
	int r;

	if (stop_at)
		m.stop_at = *stop_at;
	r = tree_walk(fd, false, measure_entry, &m);
	free(m.seen.slots);
	if (r == 0)
		*ret = m.size;
	return r;
}
