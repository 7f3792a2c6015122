/*
 * A kept workspace makes room for the next attempt of its analysis, and is found there.
 *
 *   record.json   says where it will be, forced to the disk
 *   workspace     renamed, never over anything
 *   runs/{id}     renamed, never over anything: from here on the id is free
 *
 * Whoever finds a record that says so in a folder of the old name goes on where the dead one stopped.
 */
#include "folder.h"
#include "array.h"
#include "file.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PLACES_MAX = 1000 };

bool folder_name_is_one(const char *name)
{
	size_t n = strcspn(name, "@");
	char id[ID_ROOM];

	if (n >= sizeof id)
		return false;
	snprintf(id, sizeof id, "%.*s", (int)n, name);
	if (id_check(id, NULL) < 0)
		return false;
	name += n;
	return !*name ||
	       (name[1] && strlen(name) <= ASIDE_ROOM && name[1 + strspn(name + 1, "0123456789.")] == 0);
}

bool folder_is_on_its_way(const struct workspace *w)
{
	return w->record.aside[0] && !strchr(w->folder, '@') && !folder_is_gone(w);
}

static int attempt_of(const struct record *r)
{
	json_int_t n = json_integer_value(json_object_get(r->extra, "attempt"));

	return n < 1 || n > INT32_MAX ? 1 : (int)n;
}

static void folder_name(const struct record *r, char out[FOLDER_ROOM])
{
	snprintf(out, FOLDER_ROOM, "%s@%s", r->id, r->aside);
}

static bool exists(int dirfd, const char *name)
{
	struct stat st;

	return fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Noted before anything has that name. */
static int note_place(struct workspace *w, int *try, struct error *err)
{
	struct record *r = &w->record;
	char folder[FOLDER_ROOM];
	struct names n;
	char *path;

	for (; *try < PLACES_MAX; ++*try) {
		snprintf(r->aside, sizeof r->aside, *try ? "%d.%d" : "%d", attempt_of(r), *try + 1);
		folder_name(r, folder);
		names_of(&n, w->site, r);
		if (exists(w->site->runs, folder) || exists(w->site->root_fd, n.final))
			continue;
		path = path_join(w->site->root, n.final);
		if (!path)
			return error_memory(err);
		free(r->path);
		r->path = path;
		++*try;
		return folder_save(w, true, err);
	}
	return error_refuse_here(
		err,
		"the kept workspace of '%s' cannot make room, since every name for it is taken: remove it with: "
		"fumehood workspace cleanup %s",
		r->id, r->id);
}

/* 1: something else has got that name meanwhile. */
static int move_directory(struct workspace *w, struct error *err)
{
	int root = w->site->root_fd, r = folder_attach(w, err);
	struct names plain, aside;

	if (r < 0 || w->fd < 0)
		return r;
	names_make(&plain, w->site, w->record.id, w->record.token);
	names_of(&aside, w->site, &w->record);
	if (exists(root, aside.final)) {
		struct stat st;

		return fstatat(root, aside.final, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		       st.st_ino != w->record.inode;
	}
	if (renameat2(root, plain.final, root, aside.final, RENAME_NOREPLACE) == 0)
		return 0;
	return errno == EEXIST ? 1
			       : error_system(err, errno, "cannot move the kept workspace of '%s' aside",
					      w->record.id);
}

static int move_folder(struct workspace *w, struct error *err)
{
	char folder[FOLDER_ROOM];
	int runs = w->site->runs;

	folder_name(&w->record, folder);
	if (renameat2(runs, w->folder, runs, folder, RENAME_NOREPLACE) < 0)
		return error_system(err, errno, "cannot move the record of the kept '%s' aside",
				    w->record.id);
	snprintf(w->folder, sizeof w->folder, "%s", folder);
	(void)fsync(runs);
	return 0;
}

int folder_move_aside(struct workspace *w, struct error *err)
{
	int try = 0, r = w->record.aside[0] ? 0 : note_place(w, &try, err);

	while (r == 0 && (r = move_directory(w, err)) == 1)
		r = note_place(w, &try, err);
	return r < 0 ? r : move_folder(w, err);
}

/* ---- found again ---- */

static int compare_places(const void *a, const void *b)
{
	const char *x = strchr(*(char *const *)a, '@'), *y = strchr(*(char *const *)b, '@');
	long n = x ? strtol(x + 1, NULL, 10) : INT32_MAX, m = y ? strtol(y + 1, NULL, 10) : INT32_MAX;

	return n != m ? (n < m) - (n > m) : -strcmp(*(char *const *)a, *(char *const *)b);
}

/* Of one id, or of all (NULL). */
static int list_folders(int runs, const char *id, char ***ret, struct error *err)
{
	_cleanup_dir_ DIR *dir = dir_list(runs);
	_cleanup_strv_ char **names = NULL;
	size_t n = id ? strlen(id) : 0, count = 0;
	const struct dirent *e;

	if (!dir)
		return error_system(err, errno, "cannot list the state directory");
	while ((e = readdir(dir)))
		if (folder_name_is_one(e->d_name) &&
		    (!id || (strncmp(e->d_name, id, n) == 0 && (!e->d_name[n] || e->d_name[n] == '@'))) &&
		    strv_push(&names, &count, e->d_name, err) < 0)
			return -ENOMEM;
	if (count)
		qsort(names, count, sizeof *names, compare_places);
	*ret = names ? TAKE_PTR(names) : calloc(1, sizeof **ret);
	return *ret ? 0 : error_memory(err);
}

int workspace_folders(const struct site *site, const char *id, char ***ret, struct error *err)
{
	return list_folders(site->runs, id, ret, err);
}

/* 1: it is kept, and locked. 0: it is not. */
static int take_kept(struct workspace *w, const char *folder, struct error *err)
{
	const char *why;
	int r = folder_lock(w, folder, false, err);

	if (r <= 0 || (r = folder_load(w, err)) <= 0)
		return r;
	if (folder_judge(w, &why) == STANDING_FOREIGN ||
	    (w->record.owner != OWNER_KEPT && w->record.held.owner != OWNER_KEPT))
		return 0;
	/* Somebody who looked around in it has died, or who was moving it. */
	if ((r = record_kill(&w->record, err)) < 0 ||
	    (folder_is_on_its_way(w) && (r = folder_move_aside(w, err)) < 0) ||
	    (r = folder_attach(w, err)) < 0 || w->fd < 0)
		return r;
	r = w->record.owner == OWNER_KEPT ? 0 : workspace_give_back(w, err);
	return r < 0 ? r : 1;
}

int workspace_reopen(const struct site *site, const char *id, int attempt, const char *token, uid_t uid,
		     gid_t gid, struct workspace *ret, struct error *err)
{
	_cleanup_strv_ char **folders = NULL;
	bool busy = false;
	int r = id_check(id, err);

	workspace_blank(ret, site);
	if (r < 0 || (r = list_folders(site->runs, id, &folders, err)) < 0)
		return r;
	for (size_t i = 0; folders[i]; i++) {
		const char *place = strchr(folders[i], '@');

		if (attempt && place && strtol(place + 1, NULL, 10) != attempt)
			continue;
		r = take_kept(ret, folders[i], err);
		if (r == 1 && (!attempt || attempt_of(&ret->record) == attempt)) {
			r = workspace_adopt(ret, token, uid, gid, err);
			if (r < 0)
				workspace_close(ret);
			return r;
		}
		workspace_close(ret);
		workspace_blank(ret, site);
		/* Which attempt one is that somebody uses is not known: it may be the one that was asked for, unless that is found. */
		if (r < 0 && (!attempt || err->kind != ERROR_BUSY))
			return r;
		busy = busy || r < 0;
	}
	return busy ? -1 : error_set(err, ERROR_NOT_FOUND, "no workspace of '%s' is kept", id);
}

int workspace_each_kept(const struct site *site, workspace_recover_fn fn, void *arg, struct error *err)
{
	_cleanup_strv_ char **folders = NULL;
	int r = list_folders(site->runs, NULL, &folders, err);

	for (size_t i = 0; r == 0 && folders[i]; i++) {
		_cleanup_workspace_ struct workspace w;
		struct error ignored = ERROR_INIT;

		workspace_blank(&w, site);
		if (take_kept(&w, folders[i], &ignored) == 1)
			r = fn(arg, &w, err);
	}
	return r;
}
