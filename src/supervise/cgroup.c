/*
 * One analysis's cgroup, whichever way it is held.
 */
#include "cgroup_private.h"
#include "clock.h"
#include "file.h"
#include "text.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

const char *cgroup_way_name(enum cgroup_way way)
{
	switch (way) {
	case CGROUP_V1:
		return "v1";
	case CGROUP_V2:
		return "v2";
	case CGROUP_SYSTEMD:
		return "v2 (systemd)";
	case CGROUP_NONE:
		break;
	}
	return "none";
}

int cgroup_dir(const struct cgroup *c, enum controller controller)
{
	int group = c->group_of[controller];

	return group < 0 ? -1 : c->groups[group].dir;
}

static struct cgroup *cgroup_new(enum cgroup_way way)
{
	struct cgroup *c = calloc(1, sizeof *c);

	if (!c)
		return NULL;
	c->way = way;
	for (int i = 0; i < CONTROLLER_COUNT; i++)
		c->group_of[i] = -1;
	c->counters = calloc(COUNTER_FILES_MAX, sizeof *c->counters);
	if (!c->counters) {
		free(c);
		return NULL;
	}
	for (int i = 0; i < COUNTER_FILES_MAX; i++)
		c->counters[i] = -1;
	return c;
}

static void cgroup_free(struct cgroup *c)
{
	for (int i = 0; i < c->n_groups; i++) {
		fd_close(c->groups[i].dir);
		fd_close(c->groups[i].join);
		free(c->groups[i].path);
	}
	for (int i = 0; i < COUNTER_FILES_MAX; i++)
		fd_close(c->counters[i]);
	free(c->counters);
	strv_free(c->paths);
	free(c);
}

/* The group is counted as soon as its directory exists, so that a failure after that removes it. */
int cgroup_group_add(struct cgroup *c, const char *parent, const char *name, struct error *err)
{
	struct cgroup_group *group = &c->groups[c->n_groups];
	/* A thread of its own that joins by "tasks" does not wait for the lock of all thread groups, which costs an RCU grace
	 * period (6 ms) whenever nobody has joined a moment ago. v2 knows no such way from one domain to another. */
	const char *file = c->way == CGROUP_V1 ? "tasks" : "cgroup.procs";
	_cleanup_free_ char *path = NULL;
	int r;

	assert(c->n_groups < CONTROLLER_COUNT);
	r = text_print(&path, err, "%s/%s", parent, name);
	if (r < 0)
		return r;
	r = dir_make_own(AT_FDCWD, path, 0755);
	if (r < 0)
		return error_system(err, -r, "cannot make cgroup '%s'", path);
	*group = (struct cgroup_group){TAKE_PTR(path), -1, -1};
	c->n_groups++;
	group->dir = open(group->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (group->dir >= 0)
		group->join = file_open_beneath(group->dir, file, O_WRONLY, 0);
	if (group->join < 0)
		return error_system(err, errno, "cannot open cgroup '%s'", group->path);
	return c->n_groups - 1;
}

int cgroup_path_remember(struct cgroup *c, const char *path, struct error *err)
{
	return strv_append(&c->paths, path, err);
}

static int v2_make_and_remember(struct cgroup *c, const char *parent, const char *name, struct error *err)
{
	int r = cgroup_v2_make(c, parent, name, err);

	return r < 0 ? r : cgroup_path_remember(c, c->groups[0].path, err);
}

static int cgroup_make(struct cgroup *c, const struct cgroup_host *host, const char *name, struct error *err)
{
	switch (host->way) {
	case CGROUP_V1:
		return cgroup_v1_make(c, host, name, err);
	case CGROUP_V2:
		return v2_make_and_remember(c, host->v2_parent, name, err);
	case CGROUP_SYSTEMD:
		return cgroup_systemd_make(c, host, name, err);
	case CGROUP_NONE:
		break;
	}
	return 0;
}

static int name_format(char out[256], const char *name, struct error *err)
{
	if (!name[0] || strchr(name, '/') || strchr(name, '\n'))
		return error_set(err, ERROR_USAGE, "a cgroup's name may not be empty nor contain '/'");
	return cgroup_path_format(out, 256, err, CGROUP_PREFIX "%s", name);
}

static int foresee_one(char ***list, const char *parent, const char *full, struct error *err)
{
	char path[CGROUP_PATH_ROOM + 256];

	if (!parent[0])
		return 0;
	snprintf(path, sizeof path, "%s/%s", parent, full);
	return strv_append(list, path, err);
}

int cgroup_foresee(const struct cgroup_host *host, const char *name, char ***ret, struct error *err)
{
	_cleanup_strv_ char **list = calloc(1, sizeof *list);
	char full[256];
	int r;

	if (!list)
		return error_memory(err);
	if ((r = name_format(full, name, err)) < 0 ||
	    (host->way == CGROUP_V2 && (r = foresee_one(&list, host->v2_parent, full, err)) < 0) ||
	    /* pids comes first: see cgroup_v1_make() */
	    (host->way == CGROUP_V1 &&
	     (r = foresee_one(&list, host->v1_parent[CONTROLLER_PIDS], full, err)) < 0))
		return r;
	/* One hierarchy under two controllers is named twice, which is harmless. */
	for (int i = 0; host->way == CGROUP_V1 && i < CONTROLLER_COUNT; i++)
		if (i != CONTROLLER_PIDS && (r = foresee_one(&list, host->v1_parent[i], full, err)) < 0)
			return r;
	*ret = TAKE_PTR(list);
	return 0;
}

int cgroup_create(const struct cgroup_host *host, const char *name, const struct limits *limits,
		  bool allow_unlimited, struct receipt *receipt, struct cgroup **ret, struct error *err)
{
	struct error failed = ERROR_INIT;
	const char *why = host->why;
	struct cgroup *c;
	char full[256];
	int r = name_format(full, name, err);

	if (r < 0)
		return r;
	c = cgroup_new(host->way);
	if (!c)
		return error_memory(err);
	r = cgroup_make(c, host, full, &failed);
	if (r < 0 && host->way == CGROUP_SYSTEMD) {
		/* Whether systemd serves us is known only now: as good as a host without cgroups. */
		cgroup_remove(c, NULL);
		c = cgroup_new(CGROUP_NONE);
		if (!c)
			return error_memory(err);
		why = failed.message;
	} else if (r < 0) {
		if (err) {
			failed.stage = err->stage;
			*err = failed;
		}
		cgroup_remove(c, NULL);
		return r;
	}
	r = cgroup_limits_apply(c, limits, allow_unlimited, why, receipt, err);
	if (r < 0) {
		cgroup_remove(c, NULL);
		return r;
	}
	*ret = c;
	return 0;
}

char *const *cgroup_paths(const struct cgroup *c)
{
	static char *const none[] = {NULL};

	return c->paths ? c->paths : none;
}

int cgroup_join_fds(const struct cgroup *c, int fds[CGROUP_JOIN_MAX])
{
	for (int i = 0; i < c->n_groups; i++)
		fds[i] = c->groups[i].join;
	return c->n_groups;
}

int cgroup_adopt(const struct cgroup *c, pid_t pid, struct error *err)
{
	return c->scope ? cgroup_systemd_adopt(c, pid, err) : 0;
}

void cgroup_read(const struct cgroup *c, struct cgroup_counters *ret)
{
	cgroup_counters_read(c, ret, false);
}

void cgroup_sample(const struct cgroup *c, struct cgroup_counters *ret)
{
	cgroup_counters_read(c, ret, true);
}

int cgroup_remove(struct cgroup *c, struct error *err)
{
	uint64_t deadline = clock_now() + CGROUP_REMOVE_MS * NSEC_PER_MSEC;
	int worst = 0;

	for (int i = 0; i < c->n_groups; i++) {
		int r = cgroup_dir_remove(c->groups[i].path, deadline, worst < 0 ? NULL : err);

		if (r < 0)
			worst = r;
	}
	if (c->scope) {
		int r = cgroup_systemd_remove(c->scope, worst < 0 ? NULL : err);

		if (r < 0)
			worst = r;
	}
	cgroup_free(c);
	return worst;
}
