/*
 * A collection under way, for the files of this folder only: collect.c walks the tree in the order of its paths, candidate.c decides
 * about one file.
 */
#ifndef COLLECT_COLLECTOR_H
#define COLLECT_COLLECTOR_H

#include "ahead.h"
#include "collect.h"
#include "listing.h"

enum {
	DEPTH_MAX = 256, /* levels, each with a descriptor */
	REJECTED_MAX = 1000,
	PRESENT_MAX = 20,
	HASH_SIZE = 1024 * 1024,
	LISTED_MAX = 64 * 1024 * 1024, /* bytes of all listings that are open */
};

struct level {
	int fd;
	struct listing listing;
	size_t next;
	struct ahead ahead;
	size_t path_size; /* of the path up to here, its slash included */
};

struct collector {
	const struct collect_rules *rules;
	collect_put_fn put;
	void *arg;
	struct manifest manifest;
	char *hash_room;
	struct crew *crew; /* NULL: none yet, or nobody but us */
	bool has_crew;
	bool declared; /* any patterns at all */
	bool *matched; /* by rules->outputs */
	size_t n_present;
	uint64_t bytes_left, files_left, names_left;
	size_t listed_left; /* bytes */
	struct level levels[DEPTH_MAX];
	size_t depth;
	struct buffer path; /* of the entry in hand */
	bool measures;	    /* only adds up what there is to read */
	uint64_t measured;
	struct error *err;
};

/* What is said of the entry in hand, c->path: an error of ours, negative; or a reason to leave it out. */
int collector_fail(struct collector *c, int errnum);
int collector_reject(struct collector *c, const char *reason);

/* Takes the regular file that is entry i of this level, or rejects it. */
int candidate_collect(struct collector *c, struct level *l, size_t i);
/* Only counts it, as far as it will be read. */
void candidate_measure(struct collector *c, int dirfd, const char *name);

#endif
