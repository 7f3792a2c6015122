/*
 * Small files of one directory, hashed by several hands before the walk comes to them. It is only a guess at what the walk will want:
 * what is found here was judged as content.h does, and whatever is not found here, for any reason, the walk looks at by itself.
 */
#ifndef COLLECT_AHEAD_H
#define COLLECT_AHEAD_H

#include "crew.h"
#include "digest.h"
#include "listing.h"

#include <sys/stat.h>

/* So much may be read for nothing, should the walk want none of it. */
enum { AHEAD_COUNT = 1024, AHEAD_FILE_MAX = 128 * 1024, AHEAD_BYTES_MAX = 16 * 1024 * 1024 };

struct glance {
	uint32_t index; /* in the listing */
	bool hashed;	/* opened, an output by itself, and as it was when it was opened */
	off_t size;
	blkcnt_t blocks;
	uint8_t sha256[DIGEST_SIZE];
};

struct ahead {
	struct glance *list; /* of rising index */
	size_t count, next;
	size_t end; /* entries before this one were thought of */
};

void ahead_done(struct ahead *a);
/* To be looked at. Those that came before are forgotten with the first of a new round: ahead_begin. 0, -ENOMEM. */
int ahead_begin(struct ahead *a, size_t end);
void ahead_add(struct ahead *a, size_t index);
/* Looks: regular files of owner in the directory fd, at most max bytes together. */
void ahead_look(struct ahead *a, struct crew *crew, int fd, const struct listing *l, uid_t owner,
		uint64_t max);
/* What is known of this one, asked for in rising order; or NULL. */
const struct glance *ahead_find(struct ahead *a, size_t index);

#endif
