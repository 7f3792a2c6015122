/*
 * Files by descriptor. A path is a directory descriptor plus a relative name, and what a stranger may have left
 * there is opened beneath it, following no link.
 */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "buffer.h"
#include "error.h"

/* openat2() beneath dirfd: no "..", no link, no magic link, no other mount (RESOLVE_BENEATH | NO_SYMLINKS |
 * NO_MAGICLINKS | NO_XDEV). O_CLOEXEC is added. Returns the descriptor or -errno, which errno is as well. */
int file_open_beneath(int dirfd, const char *path, int flags, mode_t mode);

/* openat2() with RESOLVE_NO_SYMLINKS | NO_MAGICLINKS only: for canonical absolute paths. -errno. */
int file_open_nolinks(int dirfd, const char *path, int flags);

/* An O_PATH descriptor of a path, component by component. A link on the way is followed only if it is root's or our own:
 * nobody else leads us anywhere, now or by swapping a directory for a link; nor does one of /proc, which is root's as soon as
 * its process says so, and leads where that one goes. So is the last component with follow; else it may be a link itself.
 * -ELOOP for such a link; -errno. */
int file_open_trusted(const char *path, bool follow);
/* The same, with a word at each step: next is what name is in the directory at (O_PATH descriptors), or -errno. 0: on; 1: look
 * again; negative ends it. */
typedef int (*file_judge_fn)(void *arg, int at, int next, const struct stat *st, const char *name,
			     bool is_last);
int file_walk(const char *path, bool follow, file_judge_fn judge, void *arg);
/* realpath() by the same rule; newly allocated, or NULL with errno. */
char *path_real_trusted(const char *path);

/* openat2() beneath dirfd with RESOLVE_BENEATH | NO_MAGICLINKS: links and other mounts, as long as they stay there. -errno. */
int file_open_within(int dirfd, const char *path, int flags);

/* What its owner has locked gets a mode, by its name beneath dirfd and without being opened. 0, -errno. */
int file_unlock(int dirfd, const char *name, int flags, mode_t mode);

int file_write_all(int fd, const void *data, size_t size);	    /* -errno */
int file_write_at(int fd, const void *data, size_t size, off_t at); /* likewise */
/* A small file of the kernel's in one read, NUL-terminated; its length or -errno. */
ssize_t file_read_small(int dirfd, const char *path, char *out, size_t room);
/* A sealed memory file with this content, close-on-exec, executable wherever the host lets memory be. A descriptor. */
int file_in_memory(const char *name, const void *data, size_t size, bool executable, struct error *err);
/* Exactly size bytes from where from stands to where to does, by the kernel. -ENODATA if there are fewer; -errno. */
int file_send(int from, int to, uint64_t size);
int file_read_all(int fd, struct buffer *b,
		  size_t max); /* appends; -EFBIG if there is more than max; -errno */

/* Reads a whole small file. Error message names the path. */
int file_load(int dirfd, const char *path, size_t max, struct buffer *b, struct error *err);

/* Writes name in dirfd whole or not at all: a temporary sibling, then rename. With sync, fsync of file and
 * directory. A crash leaves at most "name.tmp~", which the next call removes. */
int file_replace(int dirfd, const char *name, const void *data, size_t size, mode_t mode, bool sync,
		 struct error *err);

/* The same, the content being written by fn to fd: 0, or -errno. */
typedef int (*file_fill_fn)(void *arg, int fd);
int file_replace_with(int dirfd, const char *name, file_fill_fn fill, void *arg, mode_t mode, bool sync,
		      struct error *err);

/* Its name becomes another one, which must be new. -EEXIST if it is not; -errno. */
int file_name_new(int from_dir, const char *from, int to_dir, const char *to);

/* What we make for ourselves, and open again later: mkdirat, and openat with flags, O_CREAT and 0600, of which no umask
 * takes anything away. 0 or the descriptor; -errno, so -EEXIST for a directory that was there. */
int dir_make_own(int dirfd, const char *name, mode_t mode);
int file_open_own(int dirfd, const char *name, int flags);

/* The entries of a directory, by a description of its own; NULL with errno. */
DIR *dir_list(int dirfd);
void dir_unlist(DIR *dir); /* NULL is fine */
DEFINE_CLEANUP(DIR *, dir_unlist);
#define _cleanup_dir_ _cleanup_(dir_unlistp)
bool name_is_dots(const char *name); /* "." and ".." */

/* The path that fd is open at, as the kernel tells it; newly allocated or NULL. For messages and mounts. */
char *fd_path(int fd);

/* Text joined: "a" + "/" + "b"; NULL if memory is out. */
char *path_join(const char *a, const char *b);
/* A copy of path, which starts in directory unless it is absolute; NULL if memory is out. */
char *path_from(const char *directory, const char *path);
/* True if path is base or lies below it; both canonical and absolute. */
bool path_is_below(const char *path, const char *base);
bool path_has_dot_dot(const char *path); /* one of its parts is ".." */

#endif
