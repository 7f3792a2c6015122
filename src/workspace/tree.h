/*
 * Trees that a stranger may have shaped: measured and removed by descriptor, following nothing, crossing no mount.
 * Survives mode 000, names of any bytes, trees deeper than PATH_MAX or the descriptor limit, 100,000 entries,
 * entries that vanish, and half-done earlier tries.
 */
#ifndef WORKSPACE_TREE_H
#define WORKSPACE_TREE_H

#include <stdint.h>

#include "error.h"

/* Removes name in dirfd, whatever it is; a missing one is fine. Directories are entered only if they lie on the
 * same file system and belong to one of us or the analysis. */
int tree_remove(int dirfd, const char *name, struct error *err);

struct tree_size {
	uint64_t bytes; /* allocated: st_blocks × 512, each inode once */
	uint64_t files; /* entries below the top */
};
/* Stops early, with what it has, once either exceeds stop_at (LIMIT_NONE-like UINT64_MAX: never). */
int tree_measure(int fd, const struct tree_size *stop_at, struct tree_size *ret);

#endif
