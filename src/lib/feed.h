/*
 * What an analysis writes, on its way to a host that may not be reading: the newest FEED_ROOM bytes of a stream, and how
 * many older ones nobody has read; or, if it is to be whole, all of them. Zero-initialise. Not locked: that is the run's
 * business.
 */
#ifndef LIB_FEED_H
#define LIB_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FEED_ROOM = 1 << 20 };

struct feed {
	bool whole; /* set before the first byte: nothing is dropped; who fills it has a bound of his own */
	char *ring; /* grows by doubling up to FEED_ROOM */
	size_t room;
	size_t start, size;
	uint64_t dropped;
};

/* Memory that is out drops bytes, too. */
void feed_put(struct feed *f, const char *data, size_t size);
/* As many as there are, at most size. *ret_dropped: so many before them are gone. */
size_t feed_take(struct feed *f, void *data, size_t size, uint64_t *ret_dropped);
void feed_done(struct feed *f);

#endif
