#include "ahead.h"
#include "content.h"

#include <errno.h>
#include <stdatomic.h>

enum { GRAIN = 16, FEW = 512, ROOM = 64 * 1024 };

void ahead_done(struct ahead *a)
{
	free(a->list);
	*a = (struct ahead){0};
}

int ahead_begin(struct ahead *a, size_t end)
{
	a->count = a->next = 0;
	a->end = end;
	if (!a->list)
		a->list = calloc(AHEAD_COUNT, sizeof *a->list);
	return a->list ? 0 : -ENOMEM;
}

void ahead_add(struct ahead *a, size_t index)
{
	if (a->count < AHEAD_COUNT)
		a->list[a->count++] = (struct glance){.index = (uint32_t)index};
}

struct look {
	struct ahead *ahead;
	int fd;
	const struct listing *listing;
	uid_t owner;
	uint64_t max;
	_Atomic uint64_t bytes; /* so far */
};

static void look_at(struct look *l, struct glance *g, char room[ROOM])
{
	const char *reason;
	struct stat st;
	_cleanup_close_ int fd =
		content_open(l->fd, listing_name(l->listing, g->index), l->owner, &st, &reason);

	if (fd < 0 || st.st_size > AHEAD_FILE_MAX)
		return;
	if (atomic_fetch_add(&l->bytes, (uint64_t)st.st_size) + (uint64_t)st.st_size > l->max)
		return;
	g->size = st.st_size;
	g->blocks = st.st_blocks;
	g->hashed = content_hash(fd, &st, room, ROOM, NULL, g->sha256) == 0;
}

static void look_at_some(void *arg, size_t from, size_t to)
{
	struct look *l = arg;
	char room[ROOM];

	for (size_t i = from; i < to; i++)
		look_at(l, &l->ahead->list[i], room);
}

void ahead_look(struct ahead *a, struct crew *crew, int fd, const struct listing *l, uid_t owner,
		uint64_t max)
{
	struct look look = {.ahead = a,
			    .fd = fd,
			    .listing = l,
			    .owner = owner,
			    .max = max < AHEAD_BYTES_MAX ? max : AHEAD_BYTES_MAX};

	/* To start the others costs more than it gains. */
	if (!crew || a->count < FEW) {
		a->count = 0;
		return;
	}
	crew_each(crew, a->count, GRAIN, look_at_some, &look);
}

const struct glance *ahead_find(struct ahead *a, size_t index)
{
	while (a->next < a->count && a->list[a->next].index < index)
		a->next++;
	if (a->next == a->count || a->list[a->next].index != index || !a->list[a->next].hashed)
		return NULL;
	return &a->list[a->next];
}
