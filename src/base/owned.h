/*
 * Root opens only what nobody else can change: a ledger, a store, a state directory, a backup, a configuration. A path is walked from
 * "/", descriptor by descriptor. Every directory on it is root's, and written by nobody else; a sticky one (/tmp) will do above a
 * directory, but neither around a file, beside which others could put theirs (SQLite's journal, what a post-process runs), nor around
 * a link. What was judged so stays as it is, whoever else is on this host: it can then be opened by its path.
 */
#ifndef BASE_OWNED_H
#define BASE_OWNED_H

#include <stdbool.h>
#include <sys/types.h>

#include "error.h"

enum owned_flags {
	OWNED_FILE = 1,	   /* else it is a directory */
	OWNED_MAKE = 2,	   /* directories that are not there, 0700 whatever the umask */
	OWNED_AS_ROOT = 4, /* judged as root would */
	OWNED_AS_SELF = 8, /* so that nobody but root and we can change it */
};
#define NO_GROUP ((gid_t)-1)

/* An O_PATH descriptor of what root may open; everybody else may open what he can, by no link of others than root. group: it and
 * the directory around it may be written by that one, and it may be a member's. -ENOENT, with nothing said: it is not there, and
 * could be made. Else refused in one sentence, with the command that does it as whoever could change it. */
int owned_open(const char *what, const char *path, unsigned flags, gid_t group, struct error *err);
/* Files of root's are at stake: it is uid 0 of the host, whatever capabilities it has. */
bool owned_matters(void);
/* Of root, only asked: 0 or negative. What is missing is refused, too (by now its path may lead elsewhere), unless OWNED_MAKE. */
int owned_check(const char *what, const char *path, unsigned flags, struct error *err);
/* mkdir -p for our own directories (state, ledger), by the same rule. */
int dir_make_private(const char *path, struct error *err);

/* A user's name, or the uid as text where there is none. */
enum { USER_ROOM = 256 };
const char *user_name(uid_t uid, char out[USER_ROOM]);

#endif
