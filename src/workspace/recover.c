#include "folder.h"
#include "file.h"
#include "text.h"
#include "tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

int workspace_take(const struct site *site, const char *id, workspace_recover_fn fn, void *arg,
		   struct error *err)
{
	_cleanup_workspace_ struct workspace w;
	const char *why;
	int r = id_check(id, err);

	workspace_blank(&w, site);
	if (r == 0)
		r = folder_lock(&w, id, false, err);
	if (r <= 0)
		return r;
	r = folder_load(&w, err);
	if (r == -EBADMSG)
		return folder_set_aside(&w, err);
	if (r < 0)
		return r;
	if (r == 0)
		return folder_remove(&w, err);
	if (folder_judge(&w, id, &why) == STANDING_FOREIGN)
		return error_set(err, ERROR_REFUSED, "the workspace of analysis '%s' is not ours: %s", id,
				 why);
	r = record_kill(&w.record, err);
	if (r == 0)
		r = folder_attach(&w, err);
	return r == 0 ? fn(arg, &w, err) : r;
}

/* The names first, all of them: the callbacks change the directory. */
static int list_names(int dirfd, char ***ret, struct error *err)
{
	_cleanup_close_ int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_strv_ char **names = NULL;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;
	size_t count = 0, room = 0;

	if (!dir)
		return error_system(err, errno, "cannot list the state directory");
	fd = -1;
	while ((e = readdir(dir))) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (count + 1 >= room) {
			char **more = reallocarray(names, room = 2 * room + 64, sizeof *more);

			if (!more)
				goto out_of_memory;
			names = more;
		}
		names[count] = strdup(e->d_name);
		names[count + 1] = NULL;
		if (!names[count++])
			goto out_of_memory;
	}
	closedir(dir);
	*ret = TAKE_PTR(names);
	return 0;

out_of_memory:
	closedir(dir);
	return error_memory(err);
}

enum outcome { ALIVE, FOREIGN, TAKEN, NOTHING };

static int settle_dead(struct workspace *w, workspace_recover_fn fn, void *arg, enum outcome *ret,
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
	if (r == 0)
		r = fn(arg, w, err);
	*ret = TAKEN;
	return r;
}

/* What became of one folder; an error's outcome does not count. */
static int settle_one(const struct site *site, const char *id, workspace_recover_fn fn, void *arg,
		      enum outcome *ret, struct error *err)
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
	if (r <= 0)
		return r;
	r = folder_load(&w, err);
	if (r == -EBADMSG)
		return folder_set_aside(&w, err);
	if (r < 0)
		return r;
	if (r == 0)
		return folder_remove(&w, err);
	switch (folder_judge(&w, id, &why)) {
	case STANDING_FOREIGN:
		*ret = FOREIGN;
		return 0;
	case STANDING_HELD:
		*ret = ALIVE;
		return 0;
	case STANDING_OVER:
		break;
	}
	return settle_dead(&w, fn, arg, ret, err);
}

static void count(struct workspace_gc_counts *counts, enum outcome outcome)
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
	for (size_t i = 0; names && names[i]; i++) {
		struct error why = ERROR_INIT;
		enum outcome outcome = NOTHING;

		if (strncmp(names[i], GONE_PREFIX, strlen(GONE_PREFIX)) == 0) {
			r = tree_remove(site->runs, names[i], &why);
		} else {
			counts.seen++;
			if (id_check(names[i], NULL) < 0)
				outcome = FOREIGN;
			else
				r = settle_one(site, names[i], fn, arg, &outcome, &why);
		}
		if (r == 0) {
			count(&counts, outcome);
			continue;
		}
		if (counts.failed++ == 0)
			first = why;
		r = 0;
	}
	if (counts.failed && err)
		*err = first;
	*ret = counts;
	return 0;
}
