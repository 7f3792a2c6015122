/*
 * What this host lets us do with cgroups: which way, where, with which controllers, and, for what is missing, why and
 * what to do. Nothing is changed here.
 *
 * The rule for where: never out of a limit that already holds us, and never into a part of the tree that somebody
 * else manages. So: below our own cgroup; or beside it, if it has no limit itself; or, on a host with systemd, where
 * only systemd may make cgroups outside of what it has delegated, in a scope that it makes.
 */
#include "cgroup_private.h"
#include "ability.h"
#include "file.h"
#include "owned.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static bool can_write(const char *dir, const char *file)
{
	char path[CGROUP_PATH_ROOM + 32];

	snprintf(path, sizeof path, "%s/%s", dir, file);
	return faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0;
}

static bool exists(const char *dir, const char *file)
{
	char path[CGROUP_PATH_ROOM + 32];

	snprintf(path, sizeof path, "%s/%s", dir, file);
	return access(path, F_OK) == 0;
}

static ssize_t read_in(const char *dir, const char *file, char *out, size_t room)
{
	char path[CGROUP_PATH_ROOM + 32];
	ssize_t n;

	snprintf(path, sizeof path, "%s/%s", dir, file);
	n = file_read_small(AT_FDCWD, path, out, room);
	if (n < 0)
		out[0] = 0;
	return n;
}

/* The first reason stays: it is the nearest to the cause. */
PRINTF_LIKE(2, 3) static void because(struct cgroup_host *host, const char *format, ...)
{
	va_list args;

	if (host->why[0])
		return;
	va_start(args, format);
	vsnprintf(host->why, sizeof host->why, format, args);
	va_end(args);
}

static void because_not_ours(struct cgroup_host *host, const struct cgroup_place *place, bool slurm)
{
	char user[USER_ROOM];

	if (place->read_only)
		because(host,
			"the cgroup file system at '%.*s' is mounted read-only, as in a container; start the container "
			"with its own writable cgroup tree",
			(int)place->root_length, place->dir);
	else if (slurm)
		because(host,
			"cgroup '%.300s' belongs to the Slurm job and is not delegated to it; let Slurm hold the limit "
			"(--mem, --cpus-per-task)",
			place->dir);
	else
		because(host,
			"cgroup '%.300s' is not delegated to this user; run 'fumehood doctor --delegate %s' as root once",
			place->dir, user_name(ability_outer_uid(), user));
}

/* --- v1 --- */

/* Below our own cgroup, or, for an ordinary user, in the directory that `doctor --delegate` made for him below it or
 * further up, as long as no limit lies in between. */
static bool v1_parent_find(const struct cgroup_place *place, enum limit which, char out[CGROUP_PATH_ROOM])
{
	struct cgroup_place here = *place;

	if (can_write(place->dir, ".")) {
		memcpy(out, place->dir, CGROUP_PATH_ROOM);
		return true;
	}
	do {
		if (cgroup_path_format(out, CGROUP_PATH_ROOM, NULL, "%s/" CGROUP_DELEGATE_FORMAT, here.dir,
				       (unsigned)ability_outer_uid()) == 0 &&
		    can_write(out, "."))
			return true;
		if (cgroup_limit_here(here.dir, false, which) != LIMIT_NONE)
			break;
	} while (cgroup_dir_up(here.dir, here.root_length));
	out[0] = 0;
	return false;
}

static void v1_choose(const struct cgroup_places *places, struct cgroup_host *ret)
{
	bool any = false;

	for (int i = 0; i < CONTROLLER_COUNT; i++) {
		const struct cgroup_place *place = &places->v1[i];

		if (!place->known && i <= CONTROLLER_CPU)
			because(ret,
				"no cgroup hierarchy with the controller '%s' is mounted; mount it as root",
				controller_names_v1[i]);
		if (!place->known)
			continue;
		if (!place->read_only && v1_parent_find(place, controller_limits[i], ret->v1_parent[i]))
			any = true;
		else if (i <= CONTROLLER_CPU)
			because_not_ours(ret, place, places->slurm);
	}
	ret->way = any ? CGROUP_V1 : CGROUP_NONE;
	ret->memory = ret->v1_parent[CONTROLLER_MEMORY][0] != 0;
	ret->pids = ret->v1_parent[CONTROLLER_PIDS][0] != 0;
	ret->cpu = ret->v1_parent[CONTROLLER_CPU][0] != 0;
	ret->swap = ret->memory && exists(ret->v1_parent[CONTROLLER_MEMORY], "memory.memsw.limit_in_bytes");
}

/* --- v2 --- */

static bool is_real_root(const char *dir)
{
	return !exists(dir, "cgroup.type"); /* every other cgroup has it, a namespace's root too */
}

static bool v2_is_ours(const char *dir)
{
	return can_write(dir, ".") && can_write(dir, "cgroup.procs") &&
	       can_write(dir, "cgroup.subtree_control") &&
	       (!cgroup_systemd_booted() || cgroup_systemd_delegated(dir));
}

/* Can have limited children: has some already, is exempt, or holds nobody but, at most, us. */
static bool v2_can_have_children(const char *dir)
{
	char text[256], us[16];

	if (is_real_root(dir))
		return true;
	if (read_in(dir, "cgroup.subtree_control", text, sizeof text) > 0 && cgroup_list_has(text, "memory"))
		return true;
	snprintf(us, sizeof us, "%d\n", (int)getpid());
	return read_in(dir, "cgroup.procs", text, sizeof text) >= 0 && (!text[0] || strcmp(text, us) == 0);
}

static bool v2_is_unlimited(const char *dir)
{
	return cgroup_limit_here(dir, true, LIMIT_MEMORY) == LIMIT_NONE &&
	       cgroup_limit_here(dir, true, LIMIT_PIDS) == LIMIT_NONE &&
	       cgroup_limit_here(dir, true, LIMIT_CPUS) == LIMIT_NONE;
}

static bool v2_parent_find(const struct cgroup_place *place, struct cgroup_host *ret)
{
	char *dir = ret->v2_parent;

	memcpy(dir, place->dir, CGROUP_PATH_ROOM);
	if (v2_is_ours(dir) && v2_can_have_children(dir))
		return true;
	if (v2_is_unlimited(dir) && cgroup_dir_up(dir, place->root_length) && v2_is_ours(dir) &&
	    v2_can_have_children(dir))
		return true;
	dir[0] = 0;
	return false;
}

static void controllers_note(struct cgroup_host *ret, const char *dir)
{
	char list[256];

	read_in(dir, "cgroup.controllers", list, sizeof list);
	ret->memory = cgroup_list_has(list, "memory");
	ret->pids = cgroup_list_has(list, "pids");
	ret->cpu = cgroup_list_has(list, "cpu");
	if (!ret->memory || !ret->pids || !ret->cpu)
		because(ret,
			"the cgroup controller '%s' is not passed on to '%.300s'; enable it as root in "
			"cgroup.subtree_control above, or with Delegate= of its systemd unit",
			!ret->memory ? "memory"
			: !ret->pids ? "pids"
				     : "cpu",
			dir);
}

/* The manager's own cgroup limits what it can delegate: the root for the system's, user@UID.service for a user's. */
static void systemd_note(const struct cgroup_place *place, struct cgroup_host *ret)
{
	char dir[CGROUP_PATH_ROOM], user[USER_ROOM];
	unsigned uid = (unsigned)geteuid();

	ret->way = CGROUP_SYSTEMD;
	ret->user_manager = uid != 0;
	if (uid == 0) {
		snprintf(dir, sizeof dir, "%.*s", (int)place->root_length, place->dir);
	} else {
		snprintf(dir, sizeof dir, "%.*s/user.slice/user-%u.slice/user@%u.service",
			 (int)place->root_length, place->dir, uid, uid);
		if (!exists(dir, "cgroup.controllers")) /* not where it usually is: the scope will tell */
			snprintf(dir, sizeof dir, "%.*s", (int)place->root_length, place->dir);
	}
	ret->why[0] = 0;
	controllers_note(ret, dir);
	if (ret->why[0] && uid != 0)
		snprintf(
			ret->why, sizeof ret->why,
			"the user manager is not given all of the controllers memory, pids and cpu; run 'fumehood "
			"doctor --delegate %s' as root once",
			user_name(ability_outer_uid(), user));
}

static void v2_choose(const struct cgroup_places *places, struct cgroup_host *ret)
{
	const struct cgroup_place *place = &places->v2;
	char socket[CGROUP_PATH_ROOM];

	ret->swap = exists(place->dir, "memory.swap.max") || is_real_root(place->dir);
	if (!place->read_only && v2_parent_find(place, ret)) {
		ret->way = CGROUP_V2;
		controllers_note(ret, ret->v2_parent);
		return;
	}
	if (place->read_only || places->slurm || !v2_is_ours(place->dir))
		because_not_ours(ret, place, places->slurm);
	else
		because(ret,
			"cgroup '%.300s' holds other processes, so that it can have no limited children; start fumehood "
			"alone in a delegated cgroup of its own",
			place->dir);
	/* Out of a Slurm job's cgroup would be out of the job's limits and accounts. */
	cgroup_systemd_socket(geteuid() != 0, socket);
	if (cgroup_systemd_booted() && socket[0] && !places->slurm && !place->read_only)
		systemd_note(place, ret);
}

/* Hybrid hosts mount v2 as well, with no controller of use in it. */
static bool v2_has_controllers(const struct cgroup_place *place)
{
	char root[CGROUP_PATH_ROOM], list[256];

	if (!place->known)
		return false;
	snprintf(root, sizeof root, "%.*s", (int)place->root_length, place->dir);
	read_in(root, "cgroup.controllers", list, sizeof list);
	return cgroup_list_has(list, "memory") || cgroup_list_has(list, "pids");
}

void cgroup_host_choose(const struct cgroup_places *places, struct cgroup_host *ret)
{
	bool v1 = false;

	*ret = (struct cgroup_host){.way = CGROUP_NONE};
	for (int i = 0; i < CONTROLLER_COUNT; i++)
		v1 |= places->v1[i].known;
	if (v2_has_controllers(&places->v2))
		v2_choose(places, ret);
	else if (v1)
		v1_choose(places, ret);
	else if (places->v2.known)
		controllers_note(ret, places->v2.dir);
	else
		because(ret, "no cgroup file system is mounted; mount cgroup2 at /sys/fs/cgroup as root");
}

int cgroup_host_probe(struct cgroup_host *ret, struct error *err)
{
	struct cgroup_places places;
	int r = cgroup_places_read(&places, err);

	if (r == 0)
		cgroup_host_choose(&places, ret);
	return r;
}
