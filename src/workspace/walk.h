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

/* What the walk has not seen, though it is or was there. */
struct walk_gaps {
	bool hidden; /* a directory that cannot be read or searched, or more names of directories than we hold */
	bool lost; /* a branch that was moved away while the walk was in it */
};

/* In pieces: a step is at most one chunk of a directory, some thousand entries. 1: there is more, 0: it is done, or
 * -errno. The walk has a description of its own of the directory fd. */
struct walk;
int walk_open(int fd, bool unlock, walk_fn fn, void *arg, struct walk **ret);
int walk_step(struct walk *w);
const struct walk_gaps *walk_gaps(const struct walk *w);
void walk_free(struct walk *w);

/* unlock: directories that cannot be read are made so; else they are gaps. 0, or -errno. */
int tree_walk(int fd, bool unlock, walk_fn fn, void *arg);

#endif
