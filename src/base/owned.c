#include "owned.h"
#include "ability.h"
#include "file.h"
#include "text.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

enum { SHOWN_ROOM = 256 };

struct walk {
	const char *what, *path;
	unsigned flags;
	gid_t group;
	struct error *err;
	bool judges, is_refused;
	struct stat seen; /* what the last step has come to; behind a link it is not known */
};

const char *user_name(uid_t uid, char out[USER_ROOM])
{
	struct passwd entry, *found = NULL;
	char room[16384];

	snprintf(out, USER_ROOM, "%u", (unsigned)uid);
	if (getpwuid_r(uid, &entry, room, sizeof room, &found) == 0 && found && *entry.pw_name)
		snprintf(out, USER_ROOM, "%s", entry.pw_name);
	return out;
}

bool owned_matters(void)
{
	return geteuid() == 0 && ability_sees_all_ids();
}

static int refuse(struct walk *w, int fd, const struct stat *st, bool is_it)
{
	_cleanup_free_ char *at = fd_path(fd);
	char place[SHOWN_ROOM + 16] = "it", why[SHOWN_ROOM + 64], how[SHOWN_ROOM + 128], user[USER_ROOM];

	w->is_refused = true;
	if (!at)
		return error_memory(w->err);
	if (!is_it)
		snprintf(place, sizeof place, "the directory '%s'", SHOWN(SHOWN_ROOM, at));
	snprintf(why, sizeof why, "is %s's", user_name(st->st_uid, user));
	snprintf(how, sizeof how,
		 strspn(user, "0123456789") ? "`sudo -u '#%s' fumehood …` does it as that user"
					    : "`runuser -u %s -- fumehood …` does it as that user",
		 user);
	if (st->st_uid == 0) {
		snprintf(why, sizeof why, "can be written by others (mode %o)", st->st_mode & 07777);
		snprintf(how, sizeof how, "name a place in a directory of root's alone%s",
			 st->st_mode & S_ISVTX ? "" : ", or `chmod go-w` this one");
	}
	return error_refuse_here(
		w->err, "cannot open the %s '%s': %s %s, and root opens only what nobody else can change; %s",
		w->what, SHOWN(SHOWN_ROOM, w->path), place, why, how);
}

/* is_dir: what lies in it is a directory, too; is_last: it is what was asked for, and lies there. */
static int judge(struct walk *w, int fd, bool is_dir, bool is_last, bool is_it)
{
	struct stat st = w->seen;
	mode_t others;

	if (!w->judges || (!st.st_ino && fstat(fd, &st) < 0))
		return w->judges ? -errno : 0;
	others = S_IWOTH | (is_last && st.st_gid == w->group ? 0 : S_IWGRP);
	if ((st.st_uid == 0 ||
	     (w->flags & OWNED_AS_SELF && (st.st_uid == geteuid() || !ability_sees_all_ids())) ||
	     (is_it && st.st_gid == w->group)) &&
	    (!(st.st_mode & others) || (is_dir && st.st_mode & S_ISVTX)))
		return 0;
	return refuse(w, fd, &st, is_it);
}

static int on_step(void *arg, int at, int next, const struct stat *st, const char *name, bool is_last)
{
	struct walk *w = arg;
	bool is_dir = next >= 0 ? S_ISDIR(st->st_mode) : !is_last || !(w->flags & OWNED_FILE);
	int r = next < 0 && next != -ENOENT ? next : judge(w, at, is_dir, is_dir && is_last, false);

	w->seen = next >= 0 && !S_ISLNK(st->st_mode) ? *st : (struct stat){0};
	if (r < 0 || next >= 0)
		return r;
	if (!is_dir || !(w->flags & OWNED_MAKE))
		return -ENOENT;
	r = dir_make_own(at, name, 0700);
	return r < 0 && r != -EEXIST ? r : 1;
}

int owned_open(const char *what, const char *path, unsigned flags, gid_t group, struct error *err)
{
	struct walk w = {what,	path, flags,
			 group, err,  flags & (OWNED_AS_ROOT | OWNED_AS_SELF) || owned_matters(),
			 false, {0}};
	_cleanup_free_ char *here = *path == '/' ? NULL : getcwd(NULL, 0),
			    *full = here || *path == '/' ? path_from(here, path) : NULL;
	_cleanup_close_ int fd = full ? file_walk(full, true, on_step, &w) : -errno;
	int r = fd < 0 ? fd : judge(&w, fd, false, true, true);

	if (r < 0 && r != -ENOENT && !w.is_refused)
		error_system(err, -r, "cannot open the %s '%s'%s", what, SHOWN(SHOWN_ROOM, path),
			     r == -ELOOP ? ", for a link of another user's leads there" : "");
	return r < 0 ? r : TAKE_FD(fd);
}

int owned_check(const char *what, const char *path, unsigned flags, struct error *err)
{
	_cleanup_close_ int fd = -1;

	if (!owned_matters())
		return 0;
	fd = owned_open(what, path, flags | OWNED_AS_ROOT, NO_GROUP, err);
	if (fd == -ENOENT && !(flags & OWNED_MAKE))
		error_system(err, ENOENT, "cannot open the %s '%s'", what, SHOWN(SHOWN_ROOM, path));
	return fd < 0 && (fd != -ENOENT || !(flags & OWNED_MAKE)) ? fd : 0;
}

int dir_make_private(const char *path, struct error *err)
{
	_cleanup_close_ int fd = -1;

	if (!owned_matters() && access(path, F_OK) == 0)
		return 0;
	fd = owned_open("directory", path, OWNED_MAKE, NO_GROUP, err);
	if (fd == -ENOENT)
		return error_system(err, ENOENT, "cannot make the directory '%s'", SHOWN(SHOWN_ROOM, path));
	return fd < 0 ? fd : 0;
}
