#include "tree.h"
#include "macros.h"
#include "seen.h"
#include "walk.h"

struct measure {
	struct tree_size size, stop_at;
	struct seen seen;
};

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
	seen_done(&m.seen);
	if (r == 0)
		*ret = m.size;
	return r;
}
