/*
 * A step with a disk of its own: what lies in the held workspace is copied onto it, counts to its limit, and what lies there
 * when the step has ended comes home. Until the step is written down (step_save) the workspace is as it was before; after
 * that, whoever finds the copy in the scratch brings it home, as often as it takes:
 *
 *   SCRATCH/home    all that came from the disk; complete if there is the step
 *   SCRATCH/empty   what lay in the workspace before is gone
 */
#include "file.h"
#include "steps.h"
#include "text.h"
#include "tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

static const char home_name[] = "home", empty_name[] = "empty";

static int open_scratch(const struct workspace *w, struct error *err)
{
	const char *name = strrchr(w->record.scratch, '/') + 1;
	int fd = tree_open_directory(w->site->root_fd, name);

	return fd < 0 && fd != -ENOENT ? error_system(err, -fd, "cannot open '%s'", w->record.scratch) : fd;
}

int step_move_in(const struct workspace *w, int host, uid_t uid, gid_t gid, struct error *err)
{
	struct statvfs before, now;
	int r;

	if (fstatvfs(w->fd, &before) < 0)
		return error_system(err, errno, "cannot look at the disk of '%s'", w->record.id);
	r = tree_copy(host, w->fd, err);
	/* Root writes into what is kept free, too. */
	if (r == 0 && fstatvfs(w->fd, &now) == 0 && now.f_bfree < before.f_bfree - before.f_bavail)
		r = -ENOSPC;
	if (r == -ENOSPC || r == -EDQUOT)
		return error_set(
			err, ERROR_REFUSED,
			"what lies in the workspace of '%s' does not fit its disk: give it more (--disk, "
			"--files), or remove some of it",
			w->record.id);
	return r < 0 || uid == geteuid() ? r : tree_chown(w->fd, uid, gid, err);
}

int step_copy_home(const struct workspace *w, int disk, struct error *err)
{
	_cleanup_close_ int scratch = open_scratch(w, err), home = -1;
	int r;

	if (scratch < 0)
		return scratch == -ENOENT ? error_system(err, ENOENT, "cannot open '%s'", w->record.scratch)
					  : scratch;
	if ((r = tree_remove(scratch, home_name, err)) < 0 || (r = tree_remove(scratch, empty_name, err)) < 0)
		return r;
	r = dir_make_own(scratch, home_name, 0700);
	if (r < 0)
		return error_system(err, -r, "cannot make a place for the files of '%s'", w->record.id);
	home = tree_open_directory(scratch, home_name);
	return home < 0 ? error_system(err, -home, "cannot open the files of '%s'", w->record.id)
			: tree_copy(disk, home, err);
}

/* What lay there before is worth nothing any more; and that is said before the first file comes. */
static int make_way(const struct workspace *w, int scratch, int host, struct error *err)
{
	int r;

	if (faccessat(scratch, empty_name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	r = tree_empty(host, err);
	if (r < 0)
		return r;
	r = dir_make_own(scratch, empty_name, 0700);
	return r < 0 ? error_system(err, -r, "cannot note that '%s' is empty", w->record.path) : 0;
}

/* Its holder may have put something there meanwhile: what the step has made counts. */
static int move_one(int home, int host, const char *name, struct error *err)
{
	int r;

	if (renameat(home, name, host, name) == 0)
		return 0;
	r = tree_remove(host, name, err);
	if (r < 0)
		return r;
	return renameat(home, name, host, name) < 0
		       ? error_system(err, errno, "cannot bring '%s' to the workspace", SHOWN(256, name))
		       : 0;
}

static int move_all(const struct workspace *w, int home, int host, struct error *err)
{
	_cleanup_dir_ DIR *dir = dir_list(home);
	const struct dirent *e;
	int r = 0;

	if (!dir)
		return error_system(err, errno, "cannot list the files of '%s'", w->record.id);
	while (r == 0 && (e = readdir(dir)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			r = move_one(home, host, e->d_name, err);
	return r;
}

int step_bring_home(const struct workspace *w, int host, struct error *err)
{
	_cleanup_close_ int scratch = open_scratch(w, err), home = -1;
	int r;

	if (scratch < 0)
		return scratch == -ENOENT ? 0 : scratch;
	home = tree_open_directory(scratch, home_name);
	if (home == -ENOENT)
		return 0;
	if (home < 0)
		return error_system(err, -home, "cannot open the files of '%s'", w->record.id);
	if ((r = make_way(w, scratch, host, err)) < 0 || (r = move_all(w, home, host, err)) < 0)
		return r;
	return tree_remove(scratch, home_name, err);
}

/* ---- the limits that a workspace is made with ---- */

static const char limits_name[] = "limits.json";
static const struct {
	enum limit limit;
	const char *name;
} kept[] = {{LIMIT_DISK, "disk"}, {LIMIT_FILES, "files"}};
enum { LIMITS_MAX = 4096 };

static int open_folder(int runs, const char *id)
{
	return file_open_beneath(runs, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
}

int held_limits_save(const struct site *site, const char *id, const struct limits *l, struct error *err)
{
	_cleanup_close_ int fd = open_folder(site->runs, id);
	json_auto_t *json = json_object();
	_cleanup_free_ char *text = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		if (l->origin[kept[i].limit] != LIMIT_UNSET)
			json_object_set_new(json, kept[i].name,
					    json_integer((json_int_t)l->value[kept[i].limit]));
	text = json_dumps(json, 0);
	if (!text)
		return error_memory(err);
	if (fd < 0)
		return error_system(err, -fd, "cannot open the record of '%s'", id);
	return file_replace(fd, limits_name, text, strlen(text), 0600, true, err);
}

/* Only looks: a plan may be made where there is no state directory yet, and makes none. */
int held_limits_load(const char *state_dir, const char *id, struct limits *l, struct error *err)
{
	_cleanup_close_ int state = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
			    runs = state < 0 ? -1
					     : file_open_beneath(state, "runs", O_RDONLY | O_DIRECTORY, 0),
			    fd = runs < 0 ? -1 : open_folder(runs, id);
	_cleanup_buffer_ struct buffer text = {0};
	json_auto_t *json = NULL;
	int r;

	if (fd < 0 || faccessat(fd, limits_name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	r = file_load(fd, limits_name, LIMITS_MAX, &text, err);
	if (r < 0)
		return r;
	json = json_loadb(text.data ? text.data : "", text.size, 0, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
		const json_t *value = json_object_get(json, kept[i].name);

		if (!json_is_integer(value) || l->origin[kept[i].limit] != LIMIT_UNSET)
			continue;
		l->value[kept[i].limit] = (uint64_t)json_integer_value(value);
		l->origin[kept[i].limit] = LIMIT_ASKED;
	}
	return 0;
}
