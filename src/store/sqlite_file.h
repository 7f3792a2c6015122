/*
 * The file that SQLite is about to open: made with the right mode, and refused where it would not be safe. name is
 * the path as messages show it.
 */
#ifndef STORE_SQLITE_FILE_H
#define STORE_SQLITE_FILE_H

#include <stdbool.h>
#include <sys/stat.h>

#include "error.h"

/* An empty file, 0600, in directories of 0700, whatever the umask; one that is there stays as it is. */
int sqlite_file_make(const char *path, const char *name, bool anywhere, struct error *err);
/* ERROR_NOT_FOUND if it is not there; refused if it is a directory, or, unless it may lie anywhere, on a file system that
 * other machines may write, too. */
int sqlite_file_check(const char *path, const char *name, bool anywhere, struct error *err);

/* Is it ours, and its directory ours or root's, and can nobody else write to either? What its rows say is only what its owner says. */
bool sqlite_file_is_own(const char *path, const struct stat *st);

/* Can neither it nor its -wal beside it be written, by anybody or by us? */
bool sqlite_file_read_only(const char *path);

/* A file system that other machines write too: SQLite's locks and shared memory do not hold there. Its name, or
 * NULL. magic as in statfs(2). */
const char *filesystem_network_name(unsigned long magic);
/* Of FUSE statfs does not tell what it is, the mount table does: "fuse.sshfs". */
bool filesystem_fuse_is_local(const char *type);

/* As SQLite opens files, but no super-journal: a stranger's journal names any file for one, which SQLite would delete. */
const char *sqlite_vfs_name(void);

#endif
