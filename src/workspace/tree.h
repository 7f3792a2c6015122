/*
 * Trees that a stranger may have shaped: measured and removed by descriptor, following nothing, crossing no mount.
 * Survives mode 000, names of any bytes, trees deeper than PATH_MAX or the descriptor limit, 100,000 entries,
 * entries that vanish, and half-done earlier tries.
 */
#ifndef WORKSPACE_TREE_H
#define WORKSPACE_TREE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "error.h"

/* Removes name in dirfd, whatever it is; a missing one is fine. What cannot be removed (a mount point, an immutable
 * file) is left, the rest is removed all the same, and the first reason is returned. */
int tree_remove(int dirfd, const char *name, struct error *err);
/* Removes all that lies in the directory fd, not the directory itself. */
int tree_empty(int fd, struct error *err);

struct tree_size {
	uint64_t bytes; /* allocated: st_blocks × 512, each inode once */
	uint64_t files; /* entries below the top, and what has no name */
	bool hidden; /* there is more that cannot be looked into: a directory of mode 0300 to an ordinary user */
	bool lost; /* there is or was more, which was moved away while we looked */
};
/* How large several directories are together, in slices: however wide they are, the caller has its hands free now and
 * then. Stops early, with what it has, once either exceeds stop_at (UINT64_MAX: never; NULL likewise). The analysis may be
 * alive: nothing is changed but the mode of a top that it has locked. One of fds that is negative is passed over. They may
 * be closed as soon as tree_look_open returns. -errno. */
struct tree_look;
int tree_look_open(const int *fds, size_t n, const struct tree_size *stop_at, struct tree_look **ret);
/* And what this process, its children and theirs have open that has no name any more, or never had: on the file system of the first of
 * fds, as far as we may look. */
void tree_look_at_held(struct tree_look *l, pid_t pid);
/* Goes on until clock_now() is `until`. 1: there is more to look at; 0: done, and *ret is filled; or -errno. */
int tree_look_on(struct tree_look *l, uint64_t until, struct tree_size *ret);
void tree_look_free(struct tree_look *l);

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
