/*
 * Which CPUs an analysis runs on that may use fewer than there are. Its cgroup's quota is what holds the limit; but a
 * quota is time, on whichever CPU, and many threads of one analysis can crowd out another that has its share left. And
 * programs count the CPUs of their mask to decide how many threads they start.
 *
 * So each gets CPUs for itself, as far as there are any: a lock on a file for each CPU says which are taken by analyses
 * of the same state directory. When too few are free it runs on all of them. The locks go with the supervisor; nothing
 * is left but empty files.
 */
#ifndef SUPERVISE_AFFINITY_H
#define SUPERVISE_AFFINITY_H

#include <sched.h>
#include <stdint.h>

#include "error.h"

struct affinity {
	cpu_set_t cpus; /* meaningful where count is not 0 */
	int count;	/* 0: all that we may use ourselves */
	int *locks;
};

/* millicpus: the limit, rounded up to whole CPUs. Only memory and a broken directory are errors. */
int affinity_take(int dirfd, uint64_t millicpus, struct affinity *ret, struct error *err);
void affinity_release(struct affinity *a); /* zeros are fine */

#endif
