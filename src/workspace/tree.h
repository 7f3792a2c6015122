/*
 * Trees that a stranger may have shaped: measured and removed by descriptor, following nothing, crossing no mount.
 * Survives mode 000, names of any bytes, trees deeper than PATH_MAX or the descriptor limit, 100,000 entries,
 * entries that vanish, and half-done earlier tries.
 */
#ifndef WORKSPACE_TREE_H
#define WORKSPACE_TREE_H

#include <stdint.h>
#include <sys/types.h>

#include "error.h"

/* Removes name in dirfd, whatever it is; a missing one is fine. If name is a path, what lies above its last component is
 * believed: it must be the caller's own. What cannot be removed (a mount point, an immutable
 * file) is left, the rest is removed all the same, and the first reason is returned. */
int tree_remove(int dirfd, const char *name, struct error *err);
/* Removes all that lies in the directory fd, not the directory itself. */
int tree_empty(int fd, struct error *err);

struct tree_size {
	uint64_t bytes; /* allocated: st_blocks × 512, each inode once */
	uint64_t files; /* entries below the top */
};
/* Stops early, with what it has, once either exceeds stop_at (UINT64_MAX: never; NULL likewise). May be called while
 * the analysis is alive: it changes nothing but the mode of a top that the analysis has locked, and what it cannot look into (mode 000 to an ordinary user, a branch that
 * is moved away under it) is counted only as far as it got. 0 or -errno. */
int tree_measure(int fd, const struct tree_size *stop_at, struct tree_size *ret);

/* Gives the directory and all below it to uid and gid. Links are given themselves, never what they point to; files
 * with a second name, which may lie elsewhere, are left as they are. */
int tree_chown(int fd, uid_t uid, gid_t gid, struct error *err);

/* Opens the directory name in dirfd, following nothing and crossing no mount, and makes it usable (mode 0700 added)
 * if its owner has locked it. The descriptor or -errno. */
int tree_open_directory(int dirfd, const char *name);

/* Copies what lies in one directory into another, empty one: files, directories and links as they are; sockets, FIFOs
 * and devices are left out, and so are directories deeper than 256 and all but one name of a file that has several. Holes
 * stay holes: the copy takes no more room than what is copied. For a workspace that is kept though its file system
 * goes. */
int tree_copy(int from, int to, struct error *err);

#endif
