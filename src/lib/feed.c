#include "feed.h"

#include <stdlib.h>
#include <string.h>

enum { FEED_FIRST_ROOM = 4096 };

void feed_done(struct feed *f)
{
	free(f->ring);
	*f = (struct feed){0};
}

static void copy_out(const struct feed *f, char *data, size_t size)
{
	size_t first = f->room - f->start < size ? f->room - f->start : size;

	memcpy(data, f->ring + f->start, first);
	memcpy(data + first, f->ring, size - first);
}

/* Room for so many more, if that can be had; what is there becomes one piece again. */
static void grow(struct feed *f, size_t more)
{
	size_t room = f->room ? f->room : FEED_FIRST_ROOM;
	char *ring;

	while ((f->whole || room < FEED_ROOM) && room - f->size < more)
		room *= 2;
	if (room == f->room)
		return;
	ring = malloc(room);
	if (!ring)
		return;
	if (f->size)
		copy_out(f, ring, f->size);
	free(f->ring);
	f->ring = ring;
	f->room = room;
	f->start = 0;
}

static void drop(struct feed *f, size_t size)
{
	f->start = (f->start + size) % f->room;
	f->size -= size;
	f->dropped += size;
}

void feed_put(struct feed *f, const char *data, size_t size)
{
	size_t end, first;

	if (f->room - f->size < size)
		grow(f, size);
	if (size > f->room) {
		f->dropped += size - f->room;
		data += size - f->room;
		size = f->room;
	}
	if (size == 0)
		return;
	if (f->room - f->size < size)
		drop(f, size - (f->room - f->size));
	end = (f->start + f->size) % f->room;
	first = f->room - end < size ? f->room - end : size;
	memcpy(f->ring + end, data, first);
	memcpy(f->ring, data + first, size - first);
	f->size += size;
}

size_t feed_take(struct feed *f, void *data, size_t size, uint64_t *ret_dropped)
{
	if (ret_dropped)
		*ret_dropped = f->dropped;
	f->dropped = 0;
	if (size > f->size)
		size = f->size;
	if (size == 0)
		return 0;
	copy_out(f, data, size);
	f->start = (f->start + size) % f->room;
	f->size -= size;
	return size;
}
