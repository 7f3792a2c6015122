/*
 * May the prefix of an interpreter be shown though nobody named it? Whoever says `python3` means Python, not his home and
 * what else lies around its bin/. What is refused here can still be shown on purpose, with --ro.
 */
#include "program.h"
#include "file.h"
#include "private.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

static bool has(const char *directory, const char *name)
{
	_cleanup_free_ char *path = path_join(directory, name);

	return path && access(path, F_OK) == 0;
}

bool prefix_is_environment(const char *prefix)
{
	return has(prefix, "pyvenv.cfg") || has(prefix, "conda-meta");
}

/* A Python as it is installed: what pyenv's versions are, and the base of a virtual environment. */
static bool is_python(const char *prefix)
{
	char name[64];

	for (int minor = 0; minor < 40; minor++) {
		snprintf(name, sizeof name, "lib/python3.%d/os.py", minor);
		if (has(prefix, name))
			return true;
	}
	return false;
}

bool prefix_has_language(const char *prefix)
{
	static const char *const marks[] = {"lib/R",	   "lib/node_modules", "share/julia",
					    "lib/python3", "lib/perl5",	       "lib/ruby"};

	for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
		if (has(prefix, marks[i]))
			return true;
	return prefix_is_environment(prefix) || is_python(prefix);
}

static int refuse_home(const char *prefix, const char *home, struct error *err)
{
	return error_set(err, ERROR_REFUSED, "'%s' is or holds the home directory '%s'", prefix, home);
}

/* Is it a home, above one, or in one of its dot-directories, where keys and mail are? */
static int check_home(const char *prefix, const char *home, bool own, struct error *err)
{
	char real[PATH_MAX];
	size_t n;

	if (!home || *home != '/' || !realpath(home, real) || strcmp(real, "/") == 0 || path_is_system(real))
		return 0;
	if (path_is_below(real, prefix))
		return refuse_home(prefix, real, err);
	n = strlen(real);
	if (!path_is_below(prefix, real) || prefix[n + 1] != '.')
		return 0;
	if (own && (prefix_is_environment(prefix) || is_python(prefix)))
		return 0;
	return error_set(err, ERROR_REFUSED, "'%s' lies in a dot-directory of the home '%s'", prefix, real);
}

static int check_homes(const char *prefix, struct error *err)
{
	FILE *f = fopen("/etc/passwd", "re");
	struct passwd entry, *found;
	char room[4096];
	int r = check_home(prefix, getenv("HOME"), true, err);

	while (r == 0 && f && fgetpwent_r(f, &entry, room, sizeof room, &found) == 0) {
		bool own = entry.pw_uid == geteuid();

		r = check_home(prefix, entry.pw_dir, own, err);
	}
	if (f)
		fclose(f);
	/* Homes that no file lists. */
	if (r == 0 && path_is_below(prefix, "/home") && (strlen(prefix) < 7 || !strchr(prefix + 6, '/')))
		r = refuse_home(prefix, prefix, err);
	return r;
}

int prefix_check_as(const struct hood *h, const char *path, const char *what, struct error *err)
{
	int r = input_check(h, path, what, err);

	return r < 0 ? r : check_homes(path, err);
}

int prefix_check(const struct hood *h, const char *prefix, struct error *err)
{
	return prefix_check_as(h, prefix, "the interpreter's directory", err);
}
