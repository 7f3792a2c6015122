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
		{"fcntl", "with --strength landlock there are no leases, and no owners of descriptors"},
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

/* Where the path leads, or, if nothing is there yet, its directory. 0, or -errno. */
static int lead(const char *path, char real[PATH_MAX])
{
	char parent[PATH_MAX * 2], *slash;

	if (realpath(path, real))
		return 0;
	if (errno != ENOENT)
		return -errno;
	snprintf(parent, sizeof parent, "%s", path);
	slash = strrchr(parent, '/');
	slash[slash == parent] = 0;
	return realpath(parent, real) ? 0 : -errno;
}

/* data and docs in the working directory are links. */
static bool is_linked(const struct plan *p, const char *path)
{
	_cleanup_free_ char *data = path_join(p->workspace, "data"), *docs = path_join(p->workspace, "docs");

	return (data && path_is_below(path, data) && strcmp(path, data) != 0) ||
	       (docs && path_is_below(path, docs) && strcmp(path, docs) != 0);
}

/* `mkdir -p` asks for every directory on the way. What the plan opens is there, and so is what that lies in. */
static bool is_on_the_way(const struct plan *p, const char *path)
{
	for (size_t i = 0; i < p->n_mounts; i++)
		if (path_is_below(p->mounts[i].target, path))
			return true;
	return false;
}

static const char not_writable[] = "only the workspace is writable, and $TMPDIR for what need not be kept";

/* What only its words tell; where it leads is looked up when all is over. */
void notices_bare_path(struct notices *x, const struct notice *n, const char *path, bool writes)
{
	bool executes = strncmp(n->call, "exec", 4) == 0,
	     opens = executes || strncmp(n->call, "open", 4) == 0;
	bool makes = strncmp(n->call, "mkdir", 5) == 0;
	bool leads_out = writes && is_linked(x->plan, path);

	/* What is only looked at, Landlock does not refuse. */
	if ((!writes && !opens) || (is_open(x->plan, path, writes) && !leads_out) ||
	    (makes && is_on_the_way(x->plan, path)) || !notice_is_valid(n))
		return;
	if (x->looks_outside && !leads_out)
		outside_note(&x->outside,
			     !writes ? OUTSIDE_BARE_READ
			     : makes ? OUTSIDE_BARE_MAKE
				     : OUTSIDE_BARE_WRITE,
			     writes	? "write"
			     : executes ? "execute"
					: "read",
			     path, NULL, EACCES);
	/* Not ours to know: what is there and what is not are told alike. */
	else if (writes)
		notices_add(x, "landlock", "write", path, path, EACCES, "%s", not_writable);
}

enum outside_found notices_bare_judge(const struct notices *x, const struct outside_path *p)
{
	bool writes = p->kind != OUTSIDE_BARE_READ;
	char real[PATH_MAX];
	struct stat st;

	/* A directory that is there already is not made, and nothing is refused. */
	if (p->kind == OUTSIDE_BARE_MAKE && stat(p->path, &st) == 0)
		return FOUND_NOTHING;
	if (writes)
		return lead(p->path, real) < 0 || is_open(x->plan, real, true) ? FOUND_NOTHING : FOUND_THERE;
	if (!realpath(p->path, real) || is_open(x->plan, real, false))
		return FOUND_NOTHING;
	return path_is_machine(real) ? FOUND_MACHINE : path_is_readable(real, &st) ? FOUND_FAR : FOUND_CLOSED;
}

void notices_bare_found(struct notices *x, const struct outside_path *p)
{
	if (p->kind != OUTSIDE_BARE_READ)
		notices_add_found(x, "landlock", p, p->path, "%s", not_writable);
	else if (p->found == FOUND_MACHINE)
		notices_add_found(x, "landlock", p, p->path, "it is the machine's, and not shown");
	else if (p->found == FOUND_FAR)
		notices_add_found(x, "landlock", p, p->path, "add --ro %s", WORD(800, p->path));
	else
		notices_add_found(x, "landlock", p, p->path, "you cannot read it either");
}
