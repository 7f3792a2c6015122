/*
 * Words of the command that name a file of the caller's which the analysis will not see: told before it starts, since
 * otherwise it is only a "No such file" from inside. A hint, never a refusal: the word may mean something else. What a
 * Python program imports is hints_import.c.
 */
#include "hints.h"
#include "private.h"
#include "file.h"
#include "program.h"
#include "staging.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

bool path_is_readable(const char *path, struct stat *st)
{
	if (stat(path, st) < 0 || !(S_ISREG(st->st_mode) || S_ISDIR(st->st_mode)))
		return false;
	return access(path, S_ISDIR(st->st_mode) ? R_OK | X_OK : R_OK) == 0;
}

static bool is_staged(const struct plan *p, const char *as)
{
	size_t n = strlen(as);

	for (size_t i = 0; i < p->n_stages; i++)
		if (strncmp(p->stages[i].as, as, n) == 0 &&
		    (!p->stages[i].as[n] || p->stages[i].as[n] == '/'))
			return true;
	return false;
}

bool hints_in_workspace(const struct plan *p, const char *as)
{
	_cleanup_free_ char *path = path_join(p->workspace, as);

	return !*as || is_staged(p, as) || (p->data && path_is_below(as, "data")) ||
	       (p->docs && path_is_below(as, "docs")) || !path || access(path, F_OK) == 0;
}

/* The last mount that covers it decides; a place of its own that is empty at first (/tmp) hides what the host has there. */
static bool is_mounted(const struct plan *p, const char *path)
{
	bool is_shown = false;
	size_t longest = 0;

	for (size_t i = 0; i < p->n_mounts; i++) {
		const struct mount *m = &p->mounts[i];
		size_t n = strlen(m->target);

		if (m->kind == MOUNT_DIR || n < longest || !path_is_below(path, m->target))
			continue;
		longest = n;
		is_shown = !m->writable && m->kind != MOUNT_TMPFS && m->kind != MOUNT_DISK &&
			   m->kind != MOUNT_LINK;
	}
	return is_shown;
}

bool path_is_machine(const char *path)
{
	static const char *const machine[] = {"/proc", "/sys", "/dev", "/etc", "/run"};

	for (size_t i = 0; i < ARRAY_SIZE(machine); i++)
		if (path_is_below(path, machine[i]))
			return true;
	return path_is_system(path) || strcmp(path, "/") == 0;
}

/* By an absolute path, or one that climbs out: it would have to be shown at its own place. */
static bool hint_far(struct plan *p, const char *word, const char *path)
{
	char real[PATH_MAX];
	struct stat st;

	if (path_is_machine(path) || is_mounted(p, path) || !path_is_readable(path, &st) ||
	    !realpath(path, real) || path_is_machine(real))
		return false;
	if (*word != '/')
		plan_note(p,
			  "%s exists here but is not shown to the analysis; add --input %s, and name it %s",
			  SHOWN(256, word), WORD(256, word), SHOWN(256, strrchr(real, '/') + 1));
	else if (path_is_below(path, p->workspace))
		return false;
	else
		plan_note(p, "%s exists here but is not shown to the analysis; add --ro %s", SHOWN(256, word),
			  WORD(256, word));
	return true;
}

static bool hint_near(const struct request *r, struct plan *p, const char *word)
{
	_cleanup_free_ char *path = path_join(r->directory, word);
	char as[PATH_MAX];
	struct stat st;

	if (!path || !path_clean_relative(word, as, sizeof as) || hints_in_workspace(p, as) ||
	    !path_is_readable(path, &st))
		return false;
	plan_note(p, "%s exists here but is not shown to the analysis; add --input %s", SHOWN(256, word),
		  WORD(256, as));
	return true;
}

static bool hint(const struct request *r, struct plan *p, const char *word)
{
	_cleanup_free_ char *path = NULL;

	/* A file named as an option is would be a strange one; the text after -c is a program, not a name. */
	if (!*word || *word == '-' || strlen(word) >= PATH_MAX || strchr(word, '\n') ||
	    word[strspn(word, "./")] == 0)
		return false;
	if (*word == '/')
		return p->n_mounts && hint_far(p, word, word);
	if (!path_has_dot_dot(word))
		return hint_near(r, p, word);
	path = path_join(r->directory, word);
	return path && p->n_mounts && hint_far(p, word, path);
}

int plan_add_hints(const struct request *r, struct plan *plan, struct error *err)
{
	size_t found = 0;

	for (size_t i = 1; r->command[0] && r->command[i] && found < HINTS_MAX; i++)
		if (strcmp(r->command[i - 1], "-c") != 0)
			found += hint(r, plan, r->command[i]);
	if (found < HINTS_MAX)
		hints_add_imports(r, plan, HINTS_MAX - found);
	return plan_check(plan, err);
}
