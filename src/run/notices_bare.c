/*
 * Without namespaces (--strength landlock): what Landlock does not open, and what the filter refuses there and nowhere else. Paths
 * mean the same inside and outside, so where one leads is looked up as it is.
 */
#include "file.h"
#include "hints.h"
#include "notices.h"
#include "text.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

const char *notices_bare_hint(const char *call)
{
	static const struct call_hint hints[] = {
		{"socket connect bind listen accept",
		 "with --strength landlock there are no sockets but unix stream pairs; --strength full has them, within the "
		 "analysis"},
		{"chmod fchmod chown fchown lchown utime futime setxattr lsetxattr fsetxattr removexattr lremovexattr fremovexattr",
		 "with --strength landlock nobody changes modes, owners, times or attributes, of its own files either; "
		 "--strength full allows it in the workspace"},
		{"flock",
		 "with --strength landlock no file is locked as a whole; ranges of it (fcntl) can be"},
		{"fcntl",
		 "with --strength landlock there are no leases, no owners of descriptors, and no hints for a file"},
		{"shm sem msg mq_",
		 "with --strength landlock there is no System V IPC and no message queue; --strength full has them"},
		{"sched_set setpriority ioprio",
		 "only of the calling thread itself, with --strength landlock"},
		{NULL, NULL},
	};

	return call_hint(hints, call);
}

/* Below what the plan opens; to be written: below what it opens for that. */
static bool is_open(const struct plan *p, const char *path, bool writes)
{
	for (size_t i = 0; i < p->n_mounts; i++) {
		const struct mount *m = &p->mounts[i];

		if ((!writes || m->writable || m->kind == MOUNT_DEVICE) && path_is_below(path, m->target))
			return true;
	}
	return false;
}

/* Where the path leads, or, if nothing is there yet, its directory. 0, or -errno. What is not ours to know: only what the path says,
 * so that what is there and what is not are told alike. */
static int lead(const struct notices *x, const char *path, char real[PATH_MAX])
{
	char parent[PATH_MAX * 2], *slash;

	if (!x->looks_outside)
		return snprintf(real, PATH_MAX, "%s", path) < PATH_MAX ? 0 : -ENAMETOOLONG;
	if (realpath(path, real))
		return 0;
	if (errno != ENOENT)
		return -errno;
	snprintf(parent, sizeof parent, "%s", path);
	slash = strrchr(parent, '/');
	slash[slash == parent] = 0;
	return realpath(parent, real) ? 0 : -errno;
}

/* `mkdir -p` asks for every directory on the way: one that is there is no refusal. What the plan opens is there, and so is what that
 * lies in. */
static bool is_there(const struct notices *x, const char *path)
{
	struct stat st;

	for (size_t i = 0; i < x->plan->n_mounts; i++)
		if (path_is_below(x->plan->mounts[i].target, path))
			return true;
	return x->looks_outside && lstat(path, &st) == 0;
}

static void not_read(struct notices *x, const struct notice *n, const char *path)
{
	const char *operation = strncmp(n->call, "exec", 4) == 0 ? "execute" : "read";
	char real[PATH_MAX];
	struct stat st;

	if (!x->looks_outside || !realpath(path, real) || is_open(x->plan, real, false) ||
	    !notice_is_valid(n))
		return;
	if (path_is_machine(real))
		notices_add(x, "landlock", operation, path, path, EACCES,
			    "it is the machine's, and not shown");
	else if (path_is_readable(real, &st))
		notices_add(x, "landlock", operation, path, path, EACCES, "add --ro %s", SHOWN(800, real));
	else
		notices_add(x, "landlock", operation, path, path, EACCES, "you cannot read it either");
}

void notices_bare_path(struct notices *x, const struct notice *n, const char *path, bool writes)
{
	bool opens = strncmp(n->call, "open", 4) == 0 || strncmp(n->call, "exec", 4) == 0;
	char real[PATH_MAX];

	/* What is only looked at, Landlock does not refuse. */
	if (!writes && opens)
		not_read(x, n, path);
	if (strncmp(n->call, "mkdir", 5) == 0 && is_there(x, path))
		return;
	if (!writes || lead(x, path, real) < 0 || is_open(x->plan, real, true) || !notice_is_valid(n))
		return;
	notices_add(x, "landlock", "write", path, path, EACCES,
		    "only the workspace is writable, and $TMPDIR for what need not be kept");
}
