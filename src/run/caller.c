#include "caller.h"
#include "field.h"
#include "file.h"
#include "private.h"
#include "program.h"
#include "rights.h"
#include "text.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { SHOWN_MAX = 64 };

/* Lists of directories, and single ones. */
static const char *const list_names[] = {"PYTHONPATH", "R_LIBS", "R_LIBS_USER"};
static const char *const names[] = {"VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONUSERBASE",
				    "PYTHONPATH",  "R_LIBS",	   "R_LIBS_USER"};

struct looking {
	const struct hood *hood;
	struct request *request;
	struct plan *plan; /* for notes */
};

static bool has(char *const *list, const char *text)
{
	for (; list && *list; list++)
		if (strcmp(*list, text) == 0)
			return true;
	return false;
}

static int add_path(const struct looking *l, const char *path, struct error *err)
{
	struct request *r = l->request;

	if (has(r->shown, path) || strv_length(r->shown) >= SHOWN_MAX)
		return 0;
	return strv_append(&r->shown, path, err);
}

static int set_variable(const struct looking *l, const char *name, const char *value, struct error *err)
{
	_cleanup_free_ char *entry = NULL;
	int r = text_print(&entry, err, "%s=%s", name, value);

	return r < 0 ? r : strv_append(&l->request->shown_env, entry, err);
}

static void note_hidden(const struct looking *l, const char *path, const char *name, const char *why)
{
	char shown[512];

	text_escape_into(shown, sizeof shown, path, strlen(path));
	plan_note(l->plan, "'%s', from %s, is not shown to the analysis: %s; --ro %s shows it on purpose",
		  shown, name, why, shown);
}

/* ---- environments ---- */

static int take_prefixes(const struct looking *l, const struct program *p, const char *path, const char *name,
			 struct error *err)
{
	int r;

	for (size_t i = 0; p->prefixes && p->prefixes[i]; i++)
		if ((r = add_path(l, p->prefixes[i], err)) < 0)
			return r;
	if (p->why.message[0])
		note_hidden(l, path, name, p->why.message);
	return 0;
}

/* `python` as the caller's own shell finds it. */
static int look_for_python(const struct looking *l, struct error *err)
{
	static const char *const pythons[] = {"python3", "python"};
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(pythons); i++) {
		_cleanup_program_ struct program p = {0};

		if ((r = program_find_language(l->hood, pythons[i], l->request->directory, program_search(),
					       &p, err)) < 0 ||
		    (p.path && (r = take_prefixes(l, &p, p.path, "PATH", err)) < 0))
			return r;
	}
	return 0;
}

static int look_for_active(const struct looking *l, const char *name, struct error *err)
{
	_cleanup_program_ struct program p = {0};
	const char *value = getenv(name);
	char real[PATH_MAX];
	int r;

	if (!value || *value != '/' || !realpath(value, real) || !prefix_is_environment(real))
		return 0;
	if ((r = program_find_prefix(l->hood, real, &p, err)) < 0 ||
	    (r = take_prefixes(l, &p, real, name, err)) < 0)
		return r;
	return has(l->request->shown, real) ? set_variable(l, name, real, err) : 0;
}

/* ---- packages ---- */

/* What `pip install --user` made, and nothing else of ~/.local. */
static bool is_user_site(const char *path)
{
	_cleanup_free_ char *top = NULL;
	const char *home = getenv("HOME");
	char real[PATH_MAX];
	int minor, end = 0;

	if (!home || !realpath(home, real) || !(top = path_join(real, ".local/lib")) ||
	    !path_is_below(path, top))
		return false;
	return sscanf(path + strlen(top), "/python3.%d/site-packages%n", &minor, &end) == 1 && end > 0 &&
	       !path[strlen(top) + (size_t)end];
}

/* 1: it is shown; 0: a note says why not. */
static int look_at_packages(const struct looking *l, const char *real, const char *name, struct error *err)
{
	struct error why = ERROR_INIT;
	int r = is_user_site(real) ? input_check(l->hood, real, name, &why)
				   : prefix_check_as(l->hood, real, name, &why);

	if (r < 0) {
		note_hidden(l, real, name, why.message);
		return 0;
	}
	r = add_path(l, real, err);
	return r < 0 ? r : 1;
}

static int look_for_user_site(const struct looking *l, struct error *err)
{
	_cleanup_free_ char *base = NULL, *lib = NULL;
	_cleanup_dir_ DIR *versions = NULL;
	const struct dirent *e;
	const char *home = getenv("HOME");
	char real[PATH_MAX];
	bool found = false;
	int r;

	if (!home || getenv("PYTHONNOUSERSITE") || !realpath(home, real))
		return 0;
	base = path_join(real, ".local");
	lib = base ? path_join(base, "lib") : NULL;
	if (!lib)
		return error_memory(err);
	versions = opendir(lib);
	while (versions && (e = readdir(versions))) {
		_cleanup_free_ char *packages = NULL;

		if ((r = text_print(&packages, err, "%s/%s/site-packages", lib, e->d_name)) < 0)
			return r;
		/* Where a link leads is not what pip made. */
		if (!is_user_site(packages) || !realpath(packages, real) || strcmp(real, packages) != 0)
			continue;
		r = look_at_packages(l, real, "the user's site-packages", err);
		if (r < 0)
			return r;
		found |= r == 1;
	}
	return found ? set_variable(l, "PYTHONUSERBASE", base, err) : 0;
}

/* R's own default, which is in nobody's environment: ~/R/x86_64-pc-linux-gnu-library/4.2. R fills in %p and %v itself. */
static int look_for_r_library(const struct looking *l, struct error *err)
{
	_cleanup_free_ char *top = NULL, *value = NULL;
	_cleanup_dir_ DIR *platforms = NULL;
	const struct dirent *e, *v;
	const char *home = getenv("HOME");
	char real[PATH_MAX];
	bool found = false;
	int r;

	if (!home || getenv("R_LIBS_USER") || !realpath(home, real))
		return 0;
	top = path_join(real, "R");
	platforms = top ? opendir(top) : NULL;
	while (platforms && (e = readdir(platforms))) {
		_cleanup_free_ char *platform = path_join(top, e->d_name);
		size_t n = strlen(e->d_name);
		_cleanup_dir_ DIR *versions = platform && n > 8 && strcmp(e->d_name + n - 8, "-library") == 0
						      ? opendir(platform)
						      : NULL;

		while (versions && (v = readdir(versions))) {
			_cleanup_free_ char *library = path_join(platform, v->d_name);

			if (name_is_dots(v->d_name) || !library || !realpath(library, real) ||
			    strcmp(real, library) != 0)
				continue;
			r = look_at_packages(l, real, "R's user library", err);
			if (r < 0)
				return r;
			found |= r == 1;
		}
	}
	if (!found)
		return 0;
	value = path_join(top, "%p-library/%v");
	return value ? set_variable(l, "R_LIBS_USER", value, err) : error_memory(err);
}

/* Each entry by its canonical path, where it is shown; what is relative stays so: it begins in the workspace. */
static int look_at_entry(const struct looking *l, const char *entry, const char *name, struct buffer *value,
			 struct error *err)
{
	_cleanup_free_ char *real = NULL;
	int r;

	if (!*entry)
		return 0;
	if (*entry == '/') {
		real = path_real_trusted(entry);
		if (!real && errno == ENOENT)
			return 0;
		if (!real) {
			note_hidden(l, entry, name, strerror(errno));
			return 0;
		}
		if (!path_is_system(real) && (r = look_at_packages(l, real, name, err)) <= 0)
			return r;
	}
	buffer_printf(value, "%s%s", value->size ? ":" : "", real ? real : entry);
	return buffer_check(value, err);
}

static int look_at_list(const struct looking *l, const char *name, struct error *err)
{
	_cleanup_buffer_ struct buffer value = {0};
	const char *text = getenv(name);
	_cleanup_free_ char *copy = text && *text ? strdup(text) : NULL;
	char *rest = copy, *entry;
	int r;

	if (!text || !*text)
		return 0;
	if (!copy)
		return error_memory(err);
	while ((entry = strsep(&rest, ":")))
		if ((r = look_at_entry(l, entry, name, &value, err)) < 0)
			return r;
	return value.size ? set_variable(l, name, value.data, err) : 0;
}

int caller_look(const struct hood *h, struct request *r, struct plan *plan, struct error *err)
{
	const struct looking l = {.hood = h, .request = r, .plan = plan};
	const struct field *field = field_by_key("shown", FIELD_IN_STORE);
	int e;

	if (field_is_set(field, r))
		return 0;
	field_mark(field, r);
	if ((e = look_for_python(&l, err)) < 0 || (e = look_for_active(&l, "VIRTUAL_ENV", err)) < 0 ||
	    (e = look_for_active(&l, "CONDA_PREFIX", err)) < 0 || (e = look_for_user_site(&l, err)) < 0 ||
	    (e = look_for_r_library(&l, err)) < 0)
		return e;
	for (size_t i = 0; i < ARRAY_SIZE(list_names); i++)
		if ((e = look_at_list(&l, list_names[i], err)) < 0)
			return e;
	return 0;
}

/* ---- where it runs ---- */

char *caller_search(const struct request *r)
{
	_cleanup_buffer_ struct buffer b = {0};

	for (size_t i = 0; r->shown && r->shown[i]; i++)
		buffer_printf(&b, "%s/bin:", r->shown[i]);
	buffer_puts(&b, program_search());
	return b.failed ? NULL : buffer_take(&b);
}

static int add_prefix(struct plan *plan, const char *path, struct error *err)
{
	return has(plan->prefixes, path) ? 0 : strv_append(&plan->prefixes, path, err);
}

static void note_absent(struct plan *plan, const char *path, const char *why)
{
	plan_note(plan, "'%s' of the submitter's environment is not shown on this host: %s", SHOWN(512, path),
		  why);
}

/* Our own, or what we have submitted ourselves, perhaps elsewhere. */
static int show_own(const struct hood *h, const struct request *r, struct plan *plan, struct error *err)
{
	for (size_t i = 0; r->shown && r->shown[i]; i++) {
		const char *path = r->shown[i];
		struct error why = ERROR_INIT;
		char real[PATH_MAX];
		int e;

		errno = 0;
		if (*path != '/' || !realpath(path, real) || strcmp(real, path) != 0) {
			note_absent(plan, path, strerror(errno == 0 ? ENOENT : errno));
			continue;
		}
		if (input_check(h, path, "the environment", &why) < 0) {
			note_absent(plan, path, why.message);
			continue;
		}
		if ((e = add_prefix(plan, path, err)) < 0)
			return e;
	}
	return 0;
}

static int show_granted(const struct rights *rights, struct plan *plan, struct error *err)
{
	for (size_t i = 0; i < rights->n_places; i++) {
		const struct granted_place *p = &rights->places[i];
		int e;

		if (!p->optional)
			continue;
		if (!p->path)
			note_absent(plan, p->asked, p->why ? p->why : "?");
		else if ((e = add_prefix(plan, p->path, err)) < 0)
			return e;
	}
	return 0;
}

/* It is shown, or something below it is: of "~/R/%p-library/%v" what R will make of it. */
static bool is_of_use(const struct plan *plan, const char *entry)
{
	_cleanup_free_ char *top = strndup(entry, strcspn(entry, "%"));
	size_t n = top ? strlen(top) : 0;

	if (*entry != '/' || path_is_system(entry))
		return true;
	while (n > 1 && top[n - 1] == '/')
		top[--n] = 0;
	for (size_t i = 0; top && plan->prefixes && plan->prefixes[i]; i++)
		if (path_is_below(plan->prefixes[i], top) || path_is_below(entry, plan->prefixes[i]))
			return true;
	return false;
}

static int set_list(struct plan *plan, const char *name, const char *text, struct error *err)
{
	_cleanup_buffer_ struct buffer value = {0};
	_cleanup_free_ char *copy = strdup(text);
	char *rest = copy, *entry;

	if (!copy)
		return error_memory(err);
	while ((entry = strsep(&rest, ":")))
		if (*entry && is_of_use(plan, entry))
			buffer_printf(&value, "%s%s", value.size ? ":" : "", entry);
	if (buffer_check(&value, err) < 0)
		return -ENOMEM;
	if (value.size)
		plan_set_env(plan, name, value.data);
	return 0;
}

int caller_show(const struct hood *h, const struct request *r, const struct rights *rights, struct plan *plan,
		struct error *err)
{
	int e = rights && rights->is_bound ? show_granted(rights, plan, err) : show_own(h, r, plan, err);

	for (size_t i = 0; e == 0 && r->shown_env && r->shown_env[i]; i++)
		for (size_t k = 0; e == 0 && k < ARRAY_SIZE(names); k++) {
			size_t n = strlen(names[k]);

			if (strncmp(r->shown_env[i], names[k], n) == 0 && r->shown_env[i][n] == '=')
				e = set_list(plan, names[k], r->shown_env[i] + n + 1, err);
		}
	return e;
}
