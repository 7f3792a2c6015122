/*
 * The names in one directory, in the order that their full paths have: a directory sorts as if its name ended in '/',
 * so that walking the listings depth first gives all paths sorted.
 */
#ifndef COLLECT_LISTING_H
#define COLLECT_LISTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "buffer.h"

struct listed {
	uint32_t at; /* offset of the name */
	mode_t type; /* S_IFREG, S_IFDIR, … as the directory says */
};

struct listing {
	struct buffer names;
	struct listed *list;
	size_t count;
	bool cut; /* there was more than we are ready to hold */
};

/* Reads fd from its beginning, as far as it fits into max bytes. 0, -errno. */
int listing_read(struct listing *l, int fd, size_t max);
/* What it takes. */
size_t listing_size(const struct listing *l);
void listing_done(struct listing *l);
const char *listing_name(const struct listing *l, size_t i);

#endif
