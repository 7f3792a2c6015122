/*
 * Which program a command means, and what must be shown for it to run. `python3` may be a venv's, conda's, or a pyenv
 * shim: the real interpreter is found, and its prefix (a venv's and its base) is shown read-only by itself.
 */
#ifndef RUN_PROGRAM_H
#define RUN_PROGRAM_H

#include <stdbool.h>

#include "error.h"

struct hood;

struct program {
	char *path;	  /* absolute, on the host; NULL: relative to the workspace, staged */
	char *relative;	  /* as it was given, when it is staged: "./fit.sh" */
	char **prefixes;  /* canonical directories to show, and the program itself where only that is shown */
	char *user_base;  /* Python's, when packages of a user are shown: PYTHONUSERBASE; or NULL */
	char *note;	  /* for the receipt, or NULL */
	struct error why; /* why a prefix is not shown, if its message is not empty */
	const struct hood *hood;
};

void program_done(struct program *p);
#define _cleanup_program_ _cleanup_(program_done)

/* command is argv[0]; directory is where it was given; search is a PATH. Not found: ret->path stays NULL with relative
 * NULL too: that is the analysis's failure (127), not ours. */
int program_find(const struct hood *h, const char *command, const char *directory, const char *search,
		 struct program *ret, struct error *err);

/* The same for a name of which only the prefixes are of interest: what is the system's, a shim of nothing, or not there has
 * none. */
int program_find_language(const struct hood *h, const char *name, const char *directory, const char *search,
			  struct program *ret, struct error *err);
/* The prefix itself, canonical, and its base. */
int program_find_prefix(const struct hood *h, const char *prefix, struct program *ret, struct error *err);

/* prefix.c: is there a language's own library? */
bool prefix_has_language(const char *prefix);
/* 0, or why it is not shown unasked: as --ro, and no home, nor what lies in a dot-directory of one, unless that is the
 * caller's own and this is a virtual environment, conda's, or a whole Python. */
int prefix_check(const struct hood *h, const char *prefix, struct error *err);
/* The same of what the caller's environment names otherwise. */
int prefix_check_as(const struct hood *h, const char *path, const char *what, struct error *err);
/* A virtual environment, or conda's. */
bool prefix_is_environment(const char *prefix);

/* True for what every analysis sees without asking: /usr and its friends. */
bool path_is_system(const char *path);

#endif
