/*
 * A path below a directory that somebody else may have written: a ledger, a backup, a crate or a record said it. Only
 * relative_check() makes one, and what takes one follows no link, leaves no directory and changes no mode of what is there.
 */
#ifndef BASE_RELATIVE_H
#define BASE_RELATIVE_H

#include "file.h"

struct relative {
	const char *text; /* as long as what it was made of */
};

/* Plain names with one slash between each, all of it shorter than PATH_MAX; size: up to its NUL,
 * and none before that. Else ERROR_USAGE. */
int relative_check(const char *text, size_t size, struct relative *ret, struct error *err);

/* What a directory that is missing on the way becomes. */
struct relative_make {
	mode_t mode;
	bool is_exact; /* whatever the umask is, and uid's and gid's; else as mkdir makes it */
	uid_t uid;
	gid_t gid;
};
/* The directory that the last name of path lies in, below top; missing ones are made (NULL: none is). *ret_name: that name.
 * -errno: -ELOOP and -ENOTDIR for what is no directory, -ENOENT for what is missing. */
int relative_open_parent(int top, struct relative path, const struct relative_make *make,
			 const char **ret_name);

/* A new directory in at, with exactly this mode and owner, open. -EEXIST if there is one; -errno. */
int dir_make(int at, const char *name, mode_t mode, uid_t uid, gid_t gid);

/* A file of the user's below a directory of his. Refused: something is there and he has not said force, or what is on the way
 * is no directory. relative_look() makes nothing. */
int relative_look(int top, struct relative path, bool force, struct error *err);
/* fill writes a sibling of it: nobody sees it under its name before it is whole. Missing directories are made. */
typedef int (*relative_fill_fn)(void *arg, int fd, struct error *err);
int relative_write(int top, struct relative path, bool force, relative_fill_fn fill, void *arg,
		   struct error *err);

#endif
