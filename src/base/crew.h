/*
 * Hands for work that comes in many pieces which do not depend on each other: the caller, and a thread beside him for each further
 * CPU that he may use. crew_new, crew_each …, crew_free; threads are started by the first crew_each that has work for them, take no
 * signals, and act with the rights that their maker had then.
 */
#ifndef BASE_CREW_H
#define BASE_CREW_H

#include <stddef.h>

#include "macros.h"

enum { CREW_MAX = 8 }; /* hands, the caller's included */

struct crew;
/* NULL, for want of memory or of CPUs, is a crew of the caller alone. */
struct crew *crew_new(void);
void crew_free(struct crew *c);
DEFINE_CLEANUP(struct crew *, crew_free);
#define _cleanup_crew_ _cleanup_(crew_freep)

/* Pieces from `from` up to but without `to`. */
typedef void (*crew_fn)(void *arg, size_t from, size_t to);
/* fn for all of 0 … count - 1, each once, at most grain of them at a time, in rising order as far as one hand sees it. Returns when
 * all is done, and all that was written by it is seen. */
void crew_each(struct crew *c, size_t count, size_t grain, crew_fn fn, void *arg);

/* How many CPUs we may use; at least 1. */
int crew_cpus(void);

#endif
