/*
 * Where a name stands in a list that somebody else keeps: for lists of a hundred thousand names, which are otherwise
 * looked through once for each of them. Zero-initialise. The key of the hash is random, so that nobody can choose names
 * that all fall into one place.
 */
#ifndef BASE_LOOKUP_H
#define BASE_LOOKUP_H

#include <stddef.h>
#include <stdint.h>

struct lookup_slot {
	uint32_t hash, position; /* position + 1; 0: free */
};

struct lookup {
	struct lookup_slot *slots; /* open addressing, a power of two of them */
	size_t room, used;
	uint64_t key[2];
};

/* Whether the name at this position of the list is the one that is looked for. */
typedef int (*lookup_same_fn)(const void *arg, size_t position, const char *name);

/* The name stands at this position from now on; nothing is looked for first. -ENOMEM. */
int lookup_add(struct lookup *n, const char *name, size_t position);
/* The first position that is the same; SIZE_MAX: none. */
size_t lookup_find(const struct lookup *n, const char *name, lookup_same_fn same, const void *arg);
/* Forgets all. */
void lookup_done(struct lookup *n);

#endif
