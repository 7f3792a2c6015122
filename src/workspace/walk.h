/*
 * A walk over a tree of any depth with a bounded number of descriptors, private to this folder. Each directory is read
 * to its end before the walk goes down, so that only names wait, not positions. Beyond WALK_OPEN levels a parent is
 * closed on the way down and opened again as ".." on the way up; if that is another directory by then, somebody has
 * moved the branch, and the walk goes on from the deepest parent that it still holds.
 */
#ifndef WORKSPACE_WALK_H
#define WORKSPACE_WALK_H

#include <stdbool.h>
#include <sys/stat.h>

enum { WALK_OPEN = 64 };

/* Called for each entry below the top, a directory before what is in it. 0: go on, 1: stop, negative: stop with it. */
typedef int (*walk_fn)(void *arg, int dirfd, const char *name, const struct stat *st);

/* unlock: directories that cannot be read are made so; else they are only passed over. 0, or -errno. */
int tree_walk(int fd, bool unlock, walk_fn fn, void *arg);

#endif
