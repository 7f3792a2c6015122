/*
 * What is kept has a budget, keep.max_bytes: as much as lies on disk in all kept workspaces of this state directory together. When
 * one more is to be kept, and in gc, those that expire first go first; before all others one that has grown larger than all of it. One
 * that is larger from the start is not kept. What cannot be looked into counts as larger, too.
 */
#include "private.h"
#include "array.h"
#include "clock.h"
#include "tree.h"

#include <stdlib.h>
#include <string.h>

/* More than any budget, and not so much that a sum of them would be less. */
#define TOO_LARGE (UINT64_MAX / 1024)

struct kept {
	char folder[FOLDER_ROOM];
	int64_t until;
	uint64_t bytes;
	bool too_large; /* by itself */
};

struct kept_list {
	uint64_t max;
	struct kept *list;
	size_t count;
	uint64_t bytes;
};

static uint64_t measure(int fd)
{
	const struct tree_size all = {.bytes = UINT64_MAX, .files = UINT64_MAX};
	struct tree_size size = {0};
	struct tree_look *look = NULL;

	if (tree_look_open(&fd, 1, &all, &look) < 0 || tree_look_on(look, UINT64_MAX, &size) < 0)
		size.hidden = true;
	tree_look_free(look);
	return size.hidden ? TOO_LARGE : size.bytes;
}

int keep_can_fit(const struct hood *h, int workspace_fd, uint64_t *ret_bytes)
{
	*ret_bytes = measure(workspace_fd);
	return *ret_bytes <= h->config.keep_max_bytes;
}

static int note(void *arg, struct workspace *w, struct error *err)
{
	struct kept_list *l = arg;
	struct kept *k = ARRAY_ADD(l->list, l->count);

	if (!k)
		return error_memory(err);
	*k = (struct kept){.until = w->record.until, .bytes = measure(w->fd)};
	k->too_large = k->bytes > l->max;
	memcpy(k->folder, w->folder, sizeof k->folder);
	l->bytes += k->bytes;
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct kept *x = a, *y = b;

	if (x->too_large != y->too_large)
		return x->too_large ? -1 : 1;
	return x->until != y->until ? (x->until > y->until) - (x->until < y->until)
				    : strcmp(x->folder, y->folder);
}

/* Somebody may have opened it meanwhile, or it may be held now: then it is not ours to remove. */
static int remove_kept(void *arg, struct workspace *w, struct error *err)
{
	bool *removed = arg;
	int r;

	if (w->record.owner != OWNER_KEPT)
		return 0;
	r = cgroups_remove(&w->record, err);
	r = r < 0 ? r : workspace_remove(w, err);
	*removed = r == 0;
	return r;
}

int keep_fit(struct hood *h, uint64_t more, unsigned *ret_removed, struct error *err)
{
	uint64_t max = h->config.keep_max_bytes;
	struct kept_list l = {.max = max, .bytes = more};
	struct site *site = NULL;
	int r = max == LIMIT_NONE ? 0 : hood_site(h, &site, err);

	if (max == LIMIT_NONE || r < 0)
		return r;
	r = workspace_each_kept(site, note, &l, err);
	if (l.count)
		qsort(l.list, l.count, sizeof *l.list, compare);
	for (size_t i = 0; r == 0 && i < l.count && l.bytes > max; i++) {
		bool removed = false;

		r = workspace_take(site, l.list[i].folder, remove_kept, &removed, err);
		if (r < 0 && err->kind == ERROR_BUSY)
			r = 0;
		l.bytes -= removed ? l.list[i].bytes : 0;
		*ret_removed += removed;
	}
	free(l.list);
	return r;
}

int64_t keep_until(const struct hood *h)
{
	uint64_t time = h->config.keep_for_ns;
	int64_t until;

	if (time >= INT64_MAX || __builtin_add_overflow(clock_utc(), (int64_t)time, &until))
		return INT64_MAX;
	return until;
}
