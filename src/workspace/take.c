#include "folder.h"
#include "array.h"
#include "file.h"
#include "text.h"

#include <errno.h>
#include <string.h>

int workspace_take(const struct site *site, const char *id, workspace_recover_fn fn, void *arg,
		   struct error *err)
{
	_cleanup_workspace_ struct workspace w;
	const char *why;
	int r = folder_name_is_one(id) ? 0 : id_check(id, err);

	workspace_blank(&w, site);
	if (r < 0 || (r = folder_lock(&w, id, false, err)) <= 0 || (r = folder_recall(&w, err)) <= 0)
		return r;
	if (folder_judge(&w, &why) == STANDING_FOREIGN)
		return error_set(err, ERROR_REFUSED, "the workspace of analysis '%s' is not ours: %s", id,
				 why);
	if ((r = record_kill(&w.record, err)) < 0 || (r = folder_attach(&w, err)) < 0)
		return r;
	return fn(arg, &w, err);
}

/* The names first, all of them: the callbacks change the directory. */
static int list_names(int dirfd, char ***ret, struct error *err)
{
	_cleanup_dir_ DIR *dir = dir_list(dirfd);
	_cleanup_strv_ char **names = NULL;
	const struct dirent *e;
	size_t count = 0; /* with the NULL at the end */

	if (!dir)
		return error_system(err, errno, "cannot list the state directory");
	if (!ARRAY_ADD(names, count))
		return error_memory(err);
	while ((e = readdir(dir)))
		if (!name_is_dots(e->d_name) &&
		    (!ARRAY_ADD(names, count) || !(names[count - 2] = strdup(e->d_name))))
			return error_memory(err);
	*ret = TAKE_PTR(names);
	return 0;
}

enum settled { ALIVE, FOREIGN, TAKEN, NOTHING };

static int settle_dead(struct workspace *w, workspace_recover_fn fn, void *arg, enum settled *ret,
		       struct error *err)
{
	int r = record_kill(&w->record, err);

	if (r < 0)
		return r;
	r = folder_attach(w, err);
	if (r < 0 && err->kind == ERROR_REFUSED) {
		*ret = FOREIGN;
		return 0;
	}
	*ret = TAKEN;
	return r < 0 ? r : fn(arg, w, err);
}

/* What became of one folder; an error's outcome does not count. */
static int settle_one(const struct site *site, const char *id, workspace_recover_fn fn, void *arg,
		      enum settled *ret, struct error *err)
{
	_cleanup_workspace_ struct workspace w;
	const char *why;
	int r;

	workspace_blank(&w, site);
	*ret = NOTHING;
	r = folder_lock(&w, id, false, err);
	if (r < 0 && err->kind == ERROR_BUSY) {
		*ret = ALIVE;
		return 0;
	}
	if (r < 0 && err->kind == ERROR_REFUSED) {
		*ret = FOREIGN;
		return 0;
	}
	if (r <= 0 || (r = folder_recall(&w, err)) <= 0)
		return r;
	switch (folder_judge(&w, &why)) {
	case STANDING_FOREIGN:
		*ret = FOREIGN;
		return 0;
	case STANDING_HELD:
		*ret = ALIVE;
		return folder_is_on_its_way(&w) ? folder_move_aside(&w, err) : 0;
	case STANDING_OVER:
		break;
	}
	return settle_dead(&w, fn, arg, ret, err);
}

/* One that its supervisor did not come to remove, or that somebody removes just now. Its analysis is settled. */
static int settle_gone(const struct site *site, const char *name, enum settled *ret, struct error *err)
{
	_cleanup_workspace_ struct workspace w;
	const char *why;
	int r;

	workspace_blank(&w, site);
	*ret = NOTHING;
	r = folder_lock(&w, name, false, err);
	if (r < 0 && (err->kind == ERROR_BUSY || err->kind == ERROR_REFUSED)) {
		*ret = err->kind == ERROR_BUSY ? NOTHING : FOREIGN;
		return 0;
	}
	if (r <= 0)
		return r;
	r = folder_load(&w, err);
	/* It was on its way out when its supervisor died, with nothing but itself left. */
	if (r == 0 || (r < 0 && err->is_damaged))
		return folder_remove(&w, err);
	if (r < 0)
		return r;
	if (folder_judge(&w, &why) == STANDING_FOREIGN) {
		*ret = FOREIGN;
		return 0;
	}
	return (r = folder_attach(&w, err)) < 0 ? r : workspace_remove(&w, err);
}

static void count(struct workspace_gc_counts *counts, enum settled outcome)
{
	counts->alive += outcome == ALIVE;
	counts->foreign += outcome == FOREIGN;
	counts->taken += outcome == TAKEN;
}

int workspace_each_dead(const struct site *site, workspace_recover_fn fn, void *arg,
			struct workspace_gc_counts *ret, struct error *err)
{
	struct workspace_gc_counts counts = {0};
	_cleanup_strv_ char **names = NULL;
	struct error first = ERROR_INIT;
	int r = list_names(site->runs, &names, err);

	if (r < 0)
		return r;
	for (char **name = names; *name; name++) {
		struct error why = ERROR_INIT;
		enum settled outcome = NOTHING;

		r = 0;
		if (strncmp(*name, GONE_PREFIX, strlen(GONE_PREFIX)) == 0) {
			r = settle_gone(site, *name, &outcome, &why);
		} else {
			counts.seen++;
			if (!folder_name_is_one(*name))
				outcome = FOREIGN;
			else
				r = settle_one(site, *name, fn, arg, &outcome, &why);
		}
		if (r < 0 && counts.failed++ == 0)
			first = why;
		if (r == 0)
			count(&counts, outcome);
	}
	if (counts.failed && err)
		*err = first;
	*ret = counts;
	return 0;
}
