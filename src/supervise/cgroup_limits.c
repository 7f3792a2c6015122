/*
 * Which limits hold, and what the receipt says of them: one policy for every way.
 */
#include "cgroup_private.h"
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

/* What a cgroup can hold. The rest of limit_table is held by others. */
static const struct {
	enum limit which;
	const char *v1_file, *v2_file;
	enum controller controller;
} table[] = {
	{LIMIT_MEMORY, "memory.limit_in_bytes", "memory.max", CONTROLLER_MEMORY},
	{LIMIT_PIDS, "pids.max", "pids.max", CONTROLLER_PIDS},
	{LIMIT_CPUS, "cpu.cfs_quota_us", "cpu.max", CONTROLLER_CPU},
};

enum { CPU_PERIOD_US = 100000, CPU_PERIOD_MAX_US = 1000000, CPU_QUOTA_MIN_US = 1000 };

void cgroup_cpu_quota(uint64_t millicpus, uint64_t *quota_us, uint64_t *period_us)
{
	/* The kernel takes no quota below 1 ms: very small shares need a longer period. */
	*period_us = millicpus < 10 ? CPU_PERIOD_MAX_US : CPU_PERIOD_US;
	*quota_us = millicpus * (*period_us / 1000);
	if (*quota_us < CPU_QUOTA_MIN_US)
		*quota_us = CPU_QUOTA_MIN_US;
}

/* --- enclosing limits --- */

static const char *limit_file(bool v2, enum limit which)
{
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (table[i].which == which)
			return v2 ? table[i].v2_file : table[i].v1_file;
	return NULL;
}

/* In the limit's unit; LIMIT_NONE for "max", -1 and v1's huge numbers too. */
uint64_t cgroup_limit_here(const char *dir, bool v2, enum limit which)
{
	const char *file = limit_file(v2, which);
	_cleanup_close_ int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	uint64_t period = CPU_PERIOD_US;
	char text[64], *end;
	int64_t value;

	if (fd < 0 || !file || file_read_small(fd, file, text, sizeof text) <= 0)
		return LIMIT_NONE;
	value = strtoll(text, &end, 10);
	if (end == text || value < 0 || value >= INT64_MAX / 2)
		return LIMIT_NONE;
	if (which != LIMIT_CPUS)
		return (uint64_t)value;
	if (*end == ' ')
		period = strtoull(end, NULL, 10);
	else if (file_read_small(fd, "cpu.cfs_period_us", text, sizeof text) > 0)
		period = strtoull(text, NULL, 10);
	return period ? (uint64_t)value * 1000 / period : LIMIT_NONE;
}

uint64_t cgroup_enclosing(const struct cgroup_place *place, bool v2, enum limit which)
{
	char dir[CGROUP_PATH_ROOM];
	uint64_t least = LIMIT_NONE;

	if (!place->known)
		return LIMIT_NONE;
	memcpy(dir, place->dir, sizeof dir);
	do {
		uint64_t here = cgroup_limit_here(dir, v2, which);

		if (here < least)
			least = here;
	} while (cgroup_dir_up(dir, place->root_length));
	return least;
}

uint64_t cgroup_cpu_list_count(const char *list)
{
	uint64_t count = 0;

	while (*list >= '0' && *list <= '9') {
		char *end;
		unsigned long first = strtoul(list, &end, 10), last = first;

		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		if (last >= first)
			count += last - first + 1;
		list = *end == ',' ? end + 1 : end;
	}
	return count;
}

/* How many cpus there are for us at all: what the machine and, in a batch job, its cpuset have. An affinity mask does
 * not count, since its owner may widen it. */
static uint64_t available_millicpus(const struct cgroup_places *places)
{
	const struct {
		const struct cgroup_place *place;
		const char *file;
	} sets[] = {{&places->v1_cpuset, "cpuset.effective_cpus"}, {&places->v2, "cpuset.cpus.effective"}};
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t least = online > 0 ? (uint64_t)online : LIMIT_NONE / 1000;

	for (size_t i = 0; i < ARRAY_SIZE(sets); i++) {
		char path[CGROUP_PATH_ROOM + 32], text[1024];
		uint64_t count;

		snprintf(path, sizeof path, "%s/%s", sets[i].place->dir, sets[i].file);
		if (!sets[i].place->known || file_read_small(AT_FDCWD, path, text, sizeof text) <= 0)
			continue;
		count = cgroup_cpu_list_count(text);
		if (count > 0 && count < least)
			least = count;
	}
	return least * 1000;
}

/* The tightest limit that holds whatever we do. */
static uint64_t limit_around(const struct cgroup *c, enum limit which, enum controller controller)
{
	uint64_t least = LIMIT_NONE, v1, v2;
	struct cgroup_places places;

	if (cgroup_places_read(&places, NULL) < 0)
		return least;
	if (which == LIMIT_CPUS)
		least = available_millicpus(&places);
	/* systemd has made a place that is not below our own. */
	if (c->way == CGROUP_SYSTEMD && places.v2.known)
		snprintf(places.v2.dir, sizeof places.v2.dir, "%s", c->groups[0].path);
	v1 = cgroup_enclosing(&places.v1[controller], false, which);
	v2 = cgroup_enclosing(&places.v2, true, which);
	if (v1 < least)
		least = v1;
	return v2 < least ? v2 : least;
}

/* "oom_kill 3", in v1's memory.oom_control and in v2's memory.events. */
static int64_t oom_kills_here(const char *dir, const char *file)
{
	char path[CGROUP_PATH_ROOM + 32], text[1024];
	const char *at;

	snprintf(path, sizeof path, "%s/%s", dir, file);
	if (file_read_small(AT_FDCWD, path, text, sizeof text) <= 0)
		return -1;
	at = strstr(text, "oom_kill ");
	return at ? strtoll(at + strlen("oom_kill "), NULL, 10) : -1;
}

void cgroup_memory_around(uint64_t *ret_limit, int64_t *ret_oom_kills)
{
	struct cgroup_places places;
	const struct cgroup_place *v1 = &places.v1[CONTROLLER_MEMORY], *v2 = &places.v2;
	uint64_t least;

	*ret_limit = LIMIT_NONE;
	*ret_oom_kills = -1;
	if (cgroup_places_read(&places, NULL) < 0)
		return;
	*ret_limit = cgroup_enclosing(v1, false, LIMIT_MEMORY);
	least = cgroup_enclosing(v2, true, LIMIT_MEMORY);
	if (least < *ret_limit)
		*ret_limit = least;
	if (v1->known)
		*ret_oom_kills = oom_kills_here(v1->dir, "memory.oom_control");
	else if (v2->known)
		*ret_oom_kills = oom_kills_here(v2->dir, "memory.events");
}

/* --- the policy --- */

/* Is it held? Then the receipt says by what. */
static bool limit_hold(const struct cgroup *c, enum limit which, enum controller controller, uint64_t value,
		       const char *name, struct receipt *receipt, const char **why)
{
	char text[LIMIT_TEXT_SIZE];
	uint64_t around;

	if (c->dialect && c->dialect->limit(c, which, value, why) == 0) {
		receipt_add(receipt, name, true, "cgroup %s, %s", cgroup_way_name(c->way),
			    limit_format(which, value, text));
		return true;
	}
	around = limit_around(c, which, controller);
	if (around > value)
		return false;
	receipt_add(receipt, name, true, "already limited around us, %s", limit_format(which, around, text));
	return true;
}

static int limit_refuse(enum limit which, uint64_t value, const char *why, struct error *err)
{
	char text[LIMIT_TEXT_SIZE];

	return error_set(err, ERROR_REFUSED,
			 "the %s limit of %s cannot be held: %s; or pass --allow-unlimited",
			 limit_table[which].name, limit_format(which, value, text), why);
}

int cgroup_limits_apply(const struct cgroup *c, const struct limits *limits, bool allow_unlimited,
			const char *why, struct receipt *receipt, struct error *err)
{
	char dropped[64] = "", dropped_why[512] = "";

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		enum limit which = table[i].which;
		uint64_t value = limits->value[which];
		const char *reason = why;
		char name[64];
		size_t n;

		if (limits->origin[which] == LIMIT_UNSET || value == LIMIT_NONE)
			continue;
		snprintf(name, sizeof name, "limit %s", limit_table[which].name);
		if (limit_hold(c, which, table[i].controller, value, name, receipt, &reason))
			continue;
		if (limits->origin[which] == LIMIT_ASKED && !allow_unlimited)
			return limit_refuse(which, value, reason, err);
		receipt_add(receipt, name, false, "%s", reason);
		n = strlen(dropped);
		snprintf(dropped + n, sizeof dropped - n, "%s%s", n ? ", " : "", limit_table[which].name);
		snprintf(dropped_why, sizeof dropped_why, "%s", reason);
	}
	if (dropped[0])
		receipt_warn(receipt, "not limited: %s: %s", dropped, dropped_why);
	return receipt_check(receipt, err);
}
