/*
 * Paths that are not there under the hood, or not to be written: what of that exists outside, and the option that would show it.
 */
#include "file.h"
#include "hints.h"
#include "notices.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

enum use { USE_READ, USE_WRITE, USE_OPEN /* the flags tell */ };

/* Arguments: the directory's (-1: it is where the process is), the path's, the flags'. */
static const struct path_call {
	const char *name;
	enum use use;
	int directory, path, flags;
} path_calls[] = {
	{"open", USE_OPEN, -1, 0, 1},	{"openat", USE_OPEN, 0, 1, 2},	{"creat", USE_WRITE, -1, 0},
	{"stat", USE_READ, -1, 0},	{"lstat", USE_READ, -1, 0},	{"newfstatat", USE_READ, 0, 1},
	{"statx", USE_READ, 0, 1},	{"access", USE_READ, -1, 0},	{"faccessat", USE_READ, 0, 1},
	{"faccessat2", USE_READ, 0, 1}, {"readlink", USE_READ, -1, 0},	{"readlinkat", USE_READ, 0, 1},
	{"chdir", USE_READ, -1, 0},	{"execve", USE_READ, -1, 0},	{"execveat", USE_READ, 0, 1},
	{"mkdir", USE_WRITE, -1, 0},	{"mkdirat", USE_WRITE, 0, 1},	{"rmdir", USE_WRITE, -1, 0},
	{"unlink", USE_WRITE, -1, 0},	{"unlinkat", USE_WRITE, 0, 1},	{"rename", USE_WRITE, -1, 0},
	{"rename", USE_WRITE, -1, 1},	{"renameat", USE_WRITE, 0, 1},	{"renameat", USE_WRITE, 2, 3},
	{"renameat2", USE_WRITE, 0, 1}, {"renameat2", USE_WRITE, 2, 3}, {"link", USE_READ, -1, 0},
	{"link", USE_WRITE, -1, 1},	{"linkat", USE_READ, 0, 1},	{"linkat", USE_WRITE, 2, 3},
	{"symlink", USE_WRITE, -1, 1},	{"symlinkat", USE_WRITE, 1, 2}, {"truncate", USE_WRITE, -1, 0},
};

/* Where links are that only their process can follow. */
static bool is_of_a_process(const char *path)
{
	return path_is_below(path, "/proc") || path_is_below(path, "/dev/fd") ||
	       strncmp(path, "/dev/std", 8) == 0;
}

/* The mount that a path lies in; NULL: none, it is in the root's own directories, in which is nothing. */
static const struct mount *covering(const struct plan *p, const char *path)
{
	const struct mount *found = NULL;
	size_t longest = 0;

	for (size_t i = 0; i < p->n_mounts; i++) {
		const struct mount *m = &p->mounts[i];
		size_t n = strlen(m->target);

		if (n < longest || m->kind == MOUNT_DIR || !path_is_below(path, m->target))
			continue;
		longest = n;
		found = m;
	}
	return found;
}

/* It shows what the host has there: what is not there is not outside either, and looking would be on the host's own file system,
 * which may not answer. */
static bool is_shown(const struct mount *m)
{
	return m && !m->writable && m->kind != MOUNT_DISK && m->kind != MOUNT_TMPFS && m->kind != MOUNT_LINK;
}

static bool is_writable(const struct plan *p, const char *path)
{
	static const char *const always[] = {"/tmp",	  "/dev/shm", "/dev/null", "/dev/zero",
					     "/dev/full", "/dev/tty", "/dev/pts",  "/dev/ptmx"};
	const struct mount *m = covering(p, path);

	if (is_shown(m))
		return m->kind == MOUNT_DEVICE;
	if (m && (m->writable || m->kind == MOUNT_DISK))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(always); i++)
		if (path_is_below(path, always[i]))
			return true;
	return path_is_below(path, p->workspace);
}

/* What the caller's tools keep in his home, and look for in the workspace since that is HOME here. */
static bool is_a_tools(const char *rest)
{
	static const char *const tools[] = {".local", ".config", ".cache"};

	for (size_t i = 0; i < ARRAY_SIZE(tools); i++)
		if (path_is_below(rest, tools[i]))
			return true;
	return false;
}

/* A path in the working directory, from there; NULL: it lies elsewhere. */
static const char *in_workspace(const struct plan *p, const char *path)
{
	size_t n = strlen(p->workspace);

	return path_is_below(path, p->workspace) && path[n] == '/' ? path + n + 1 : NULL;
}

/* Where the caller has what the analysis looks for in its working directory; NULL: nowhere that is to be told. */
static char *near_of(const struct notices *x, const char *rest)
{
	if (!rest || !x->directory || is_a_tools(rest) || plan_has_stage(x->plan, NULL, rest))
		return NULL;
	return path_join(x->directory, rest);
}

static void note(struct notices *x, enum outside_kind kind, const char *operation, const char *path,
		 int errnum)
{
	const char *rest = in_workspace(x->plan, path);
	_cleanup_free_ char *near = near_of(x, rest);

	if (x->looks_outside && (near || !rest))
		outside_note(&x->outside, kind, operation, path, near, errnum);
}

static void to_be_read(struct notices *x, const struct notice *n, const char *path)
{
	const struct mount *m = covering(x->plan, path);
	mode_t mode;
	int r = is_shown(m) ? 0 : notices_look(x, n, path, &mode);

	if ((r == -ENOENT || r == -ENOTDIR) && notice_is_valid(n))
		note(x, OUTSIDE_READ, strncmp(n->call, "exec", 4) == 0 ? "execute" : "read", path, -r);
}

/* 0, or -errno, of the directory that it is to be made in. */
static int look_above(struct notices *x, const struct notice *n, const char *path)
{
	char parent[PATH_MAX * 2], *slash;
	mode_t mode;

	snprintf(parent, sizeof parent, "%s", path);
	slash = strrchr(parent, '/');
	slash[slash == parent] = 0;
	return is_shown(covering(x->plan, parent)) ? 0 : notices_look(x, n, parent, &mode);
}

static bool is_made_already(struct notices *x, const struct notice *n, const char *path)
{
	mode_t mode;

	return strncmp(n->call, "mkdir", 5) == 0 && notices_look(x, n, path, &mode) == 0;
}

static void to_be_written(struct notices *x, const struct notice *n, const char *path)
{
	const char *rest = in_workspace(x->plan, path);
	/* Of two places that are not in one file system, and the like: which error that is, is not known. */
	bool moves = strncmp(n->call, "rename", 6) == 0 || strncmp(n->call, "link", 4) == 0;
	int r = look_above(x, n, path);

	if ((r < 0 && r != -ENOENT && r != -ENOTDIR) || is_made_already(x, n, path) || !notice_is_valid(n))
		return;
	/* It means the caller's directory, which is not there. */
	if (is_writable(x->plan, path) && rest && r < 0)
		note(x, OUTSIDE_WRITE, "write", path, -r);
	else if (!is_writable(x->plan, path))
		notices_add(x, "mounts", "write", path, rest ? rest : path,
			    moves   ? 0
			    : r < 0 ? -r
				    : EROFS,
			    "only the workspace is writable, and /tmp for what need not be kept");
}

/* ---- when it has ended ---- */

static enum outside_found judge_read(const struct outside_path *p)
{
	struct stat st;

	if (p->near)
		return path_is_readable(p->near, &st) ? FOUND_NEAR : FOUND_NOTHING;
	if (lstat(p->path, &st) < 0)
		return FOUND_NOTHING;
	return path_is_machine(p->path)		? FOUND_MACHINE
	       : path_is_readable(p->path, &st) ? FOUND_FAR
						: FOUND_CLOSED;
}

static enum outside_found judge_write(const struct outside_path *p)
{
	char *slash = p->near ? strrchr(p->near, '/') : NULL;
	_cleanup_free_ char *parent = slash ? strndup(p->near, (size_t)(slash - p->near)) : NULL;

	return parent && access(parent, F_OK) == 0 ? FOUND_THERE : FOUND_NOTHING;
}

enum outside_found notices_judge_path(const void *arg, const struct outside_path *p)
{
	struct stat st;

	switch (p->kind) {
	case OUTSIDE_READ:
		return judge_read(p);
	case OUTSIDE_WRITE:
		return judge_write(p);
	case OUTSIDE_SOCKET:
		return lstat(p->path, &st) == 0 ? FOUND_THERE : FOUND_NOTHING;
	case OUTSIDE_BARE_READ:
	case OUTSIDE_BARE_WRITE:
	case OUTSIDE_BARE_MAKE:
		return notices_bare_judge(arg, p);
	}
	return FOUND_NOTHING;
}

void notices_found_path(struct notices *x, const struct outside_path *p)
{
	const char *rest = in_workspace(x->plan, p->path);

	if (p->kind == OUTSIDE_WRITE)
		notices_add_found(
			x, "mounts", p, rest,
			"not visible; only the workspace is writable: write the file there, and take it "
			"from the outputs");
	else if (p->found == FOUND_NEAR && strchr(rest, ':'))
		notices_add_found(
			x, "mounts", p, rest,
			"./%s exists outside; --input cannot name it, for its ':': take the directory that it "
			"lies in, or give it another name",
			SHOWN(400, rest));
	else if (p->found == FOUND_NEAR)
		notices_add_found(x, "mounts", p, rest, "./%s exists outside; add --input %s",
				  SHOWN(400, rest), WORD(400, rest));
	else if (strcmp(p->path, "/dev/tty") == 0)
		notices_add_found(
			x, "mounts", p, p->path,
			"an analysis has no terminal: -t gives it one of its own, -i its standard input");
	else if (p->found == FOUND_MACHINE)
		notices_add_found(x, "mounts", p, p->path,
				  "exists outside; it is the machine's, and not shown");
	else if (p->found == FOUND_FAR && strchr(p->path, ':'))
		notices_add_found(
			x, "mounts", p, p->path,
			"exists outside; --ro cannot name it, for its ':': show the directory that it lies in");
	else if (p->found == FOUND_FAR)
		notices_add_found(x, "mounts", p, p->path, "exists outside; add --ro %s", WORD(800, p->path));
	else
		notices_add_found(x, "mounts", p, p->path, "exists outside, where you cannot read it either");
}

static void judge(struct notices *x, const struct notice *n, const struct path_call *c)
{
	char path[PATH_MAX * 2];
	bool writes = c->use == USE_WRITE;

	if (notice_path(x, n, c->directory, c->path, path, sizeof path) < 0 || is_of_a_process(path))
		return;
	if (c->use == USE_OPEN) {
		int flags = (int)n->args[c->flags];

		writes = (flags & O_ACCMODE) != O_RDONLY || flags & (O_CREAT | O_TRUNC);
	}
	if (x->plan->strength == STRENGTH_LANDLOCK)
		notices_bare_path(x, n, path, writes);
	else if (writes)
		to_be_written(x, n, path);
	if (!writes && (x->plan->strength == STRENGTH_FULL || in_workspace(x->plan, path)))
		to_be_read(x, n, path);
}

bool notices_path(struct notices *x, const struct notice *n)
{
	bool known = false;

	for (size_t i = 0; i < ARRAY_SIZE(path_calls); i++)
		if (strcmp(path_calls[i].name, n->call) == 0) {
			judge(x, n, &path_calls[i]);
			known = true;
		}
	return known;
}
