/*
 * What mounts.c builds the new root with. Everything inside is named by an absolute path in the new root and opened
 * without following a link. -errno on failure where a value is returned; the others end in fail().
 */
#ifndef INIT_FS_H
#define INIT_FS_H

#include <stdint.h>

extern int root; /* the new root, before it is entered */

long open_how(int dirfd, const char *path, uint64_t flags, uint64_t resolve);
long open_inside(const char *path, uint64_t flags);
int is_directory(int fd);
/* Makes every directory of path below the new root; the last one too if whole. */
void directories_make(const char *path, int whole);
/* A mount point of the source's own kind: a directory, or an empty file. */
void target_make(const char *target, int source);

/* fsopen … fsmount; data is a list of "key=value" or "flag" strings. The detached mount. */
long filesystem_make(const char *type, const char *data, uint64_t attributes);
long attributes_set(int fd, uint64_t set, int recursive);
/* A detached copy of the mount at fd. */
long tree_clone(int fd, int recursive);
/* Puts a detached mount on an existing target and closes it. */
void attach(long mount, const char *target);

#endif
