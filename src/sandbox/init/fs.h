/*
 * What mounts.c builds the new root with. Everything inside is named by an absolute path in the new root and opened
 * without following a link. -errno on failure where a value is returned; the others end in fail().
 */
#ifndef INIT_FS_H
#define INIT_FS_H

#include <stdint.h>

extern int root;	/* the new root, before it is entered */
extern int empty_layer; /* a directory of it in which is nothing */

long open_how(int dirfd, const char *path, uint64_t flags, uint64_t resolve);
long open_inside(const char *path, uint64_t flags);
int is_directory(int fd);
/* Makes every directory of path below the new root. */
void directories_make(const char *path);
/* The directory in which path lies, made if it is missing, and its name there. It stays this module's, until the next call. */
int directory_of(const char *path, const char **ret_name);
/* A mount point: a directory, or an empty file. */
void target_make(const char *target, int directory);

/* fsopen … fsmount; data is a list of "key=value" or "flag" strings. The detached mount. */
long filesystem_make(const char *type, const char *data, uint64_t attributes);
long attributes_set(int fd, uint64_t set, int recursive);
/* A detached copy of the mount at fd. */
long tree_clone(int fd, int recursive);
/* Puts a detached mount on an existing target, which is no link, and closes it. */
void attach(long mount, const char *target);
/* Puts a detached mount where only we see it, and where it goes with the old root: a clone can be made only of what is
 * attached (before 6.15), and taking it away again by itself would cost an RCU grace period. Stays open. */
void attach_outside(int mount);
/* The root is whole: nothing of it is held open any more. */
void targets_done(void);

#endif
