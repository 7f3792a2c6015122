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

static bool is_writable(const struct plan *p, const char *path)
{
	static const char *const always[] = {"/tmp",	  "/dev/shm", "/dev/null", "/dev/zero",
					     "/dev/full", "/dev/tty", "/dev/pts",  "/dev/ptmx"};
	size_t longest = 0;
	bool is = path_is_below(path, p->workspace);

	for (size_t i = 0; i < ARRAY_SIZE(always); i++)
		is = is || path_is_below(path, always[i]);
	for (size_t i = 0; is && i < p->n_mounts; i++) {
		const struct mount *m = &p->mounts[i];
		size_t n = strlen(m->target);

		if (n < longest || !path_is_below(path, m->target) || m->kind == MOUNT_DIR)
			continue;
		longest = n;
		is = m->writable || m->kind == MOUNT_DISK || m->kind == MOUNT_DEVICE;
	}
	return is;
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

/* Not there under the hood. In the working directory: what lies in the caller's. */
static void not_there(struct notices *x, const char *operation, const char *path, int errnum)
{
	const char *rest = in_workspace(x->plan, path);
	_cleanup_free_ char *outside = rest && x->directory ? path_join(x->directory, rest) : NULL;
	struct stat st;

	if (!x->looks_outside)
		return;
	if (rest) {
		if (!outside || is_a_tools(rest) || plan_has_stage(x->plan, NULL, rest) ||
		    !path_is_readable(outside, &st))
			return;
		notices_add(x, "mounts", operation, path, rest, errnum, "./%s exists outside; add --input %s",
			    SHOWN(400, rest), SHOWN(400, rest));
		return;
	}
	if (lstat(path, &st) < 0)
		return;
	if (strcmp(path, "/dev/tty") == 0)
		notices_add(x, "mounts", operation, path, path, errnum,
			    "an analysis has no terminal: -t gives it one of its own, -i its standard input");
	else if (path_is_machine(path))
		notices_add(x, "mounts", operation, path, path, errnum,
			    "exists outside; it is the machine's, and not shown");
	else if (path_is_readable(path, &st))
		notices_add(x, "mounts", operation, path, path, errnum, "exists outside; add --ro %s",
			    SHOWN(800, path));
	else
		notices_add(x, "mounts", operation, path, path, errnum,
			    "exists outside, where you cannot read it either");
}

static void to_be_read(struct notices *x, const struct notice *n, const char *path)
{
	mode_t mode;
	int r = notices_look(x, n, path, &mode);

	if ((r == -ENOENT || r == -ENOTDIR) && notice_is_valid(n))
		not_there(x, strncmp(n->call, "exec", 4) == 0 ? "execute" : "read", path, -r);
}

/* The nearest directory that is there decides how a write ends. */
static void to_be_written(struct notices *x, const struct notice *n, const char *path)
{
	const char *rest = in_workspace(x->plan, path);
	char parent[PATH_MAX * 2], *slash;
	mode_t mode;
	int r;

	snprintf(parent, sizeof parent, "%s", path);
	slash = strrchr(parent, '/');
	slash[slash == parent] = 0;
	r = notices_look(x, n, parent, &mode);
	if ((r < 0 && r != -ENOENT && r != -ENOTDIR) || !notice_is_valid(n))
		return;
	if (is_writable(x->plan, path)) {
		_cleanup_free_ char *outside = rest && r < 0 && x->looks_outside && x->directory
						       ? path_join(x->directory, rest)
						       : NULL;

		/* It means the caller's directory, which is not there. */
		if (outside && (slash = strrchr(outside, '/')) && (*slash = 0, access(outside, F_OK) == 0))
			notices_add(
				x, "mounts", "write", path, rest, -r,
				"not visible; only the workspace is writable: write the file there, and take it "
				"from the outputs");
		return;
	}
	notices_add(x, "mounts", "write", path, rest ? rest : path, r < 0 ? -r : EROFS,
		    "only the workspace is writable, and /tmp for what need not be kept");
}

static void judge(struct notices *x, const struct notice *n, const struct path_call *c)
{
	char path[PATH_MAX * 2];
	bool writes = c->use == USE_WRITE;

	if (notice_path(n, c->directory, c->path, path, sizeof path) < 0 || is_of_a_process(path))
		return;
	if (c->use == USE_OPEN) {
		int flags = (int)n->args[c->flags];

		writes = (flags & O_ACCMODE) != O_RDONLY || flags & (O_CREAT | O_TRUNC);
	}
	if (x->plan->strength == STRENGTH_LANDLOCK)
		notices_bare_path(x, n, path, writes);
	if (writes && x->plan->strength == STRENGTH_FULL)
		to_be_written(x, n, path);
	else if (!writes)
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
