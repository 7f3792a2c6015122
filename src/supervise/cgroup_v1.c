/*
 * cgroup v1: a directory in each hierarchy, below our own there.
 */
#include "cgroup_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* cpuacct.stat counts in USER_HZ, which is 100 for every program on Linux. */
enum { NSEC_PER_TICK = 10000000 };

/* The peak includes the page cache that the analysis's reading filled: the kernel gives no other; that of its sockets is
 * counted by itself, and may have been at another time. v1 does not count peak swap, nor writes, which it charges to nobody
 * when they reach the disk; reads only where Linux is older than 6.10 or the device is throttled: no line for a device is
 * "not counted", not 0. */
static const struct counter_file counters[] = {
	COUNTER_ONE(CONTROLLER_CPUACCT, "cpuacct.usage", true, NULL, cpu_ns, 1),
	COUNTER_ONE(CONTROLLER_MEMORY, "memory.usage_in_bytes", true, NULL, memory_bytes, 1),
	COUNTER_ONE(CONTROLLER_MEMORY, "memory.kmem.tcp.usage_in_bytes", true, NULL, memory_bytes, 1),
	COUNTER_ONE(CONTROLLER_MEMORY, "memory.stat", true, "total_rss", memory_anon_bytes, 1),
	COUNTER_ONE(CONTROLLER_PIDS, "pids.current", true, NULL, pids, 1),
	{CONTROLLER_CPUACCT,
	 "cpuacct.stat",
	 false,
	 false,
	 {{"user", COUNTER_FIELD(cpu_user_ns), NSEC_PER_TICK},
	  {"system", COUNTER_FIELD(cpu_system_ns), NSEC_PER_TICK}},
	 2},
	COUNTER_ONE(CONTROLLER_CPU, "cpu.stat", false, "throttled_time", throttled_ns, 1),
	COUNTER_ONE(CONTROLLER_MEMORY, "memory.max_usage_in_bytes", false, NULL, memory_peak_bytes, 1),
	COUNTER_ONE(CONTROLLER_MEMORY, "memory.kmem.tcp.max_usage_in_bytes", false, NULL, memory_peak_bytes,
		    1),
	COUNTER_ONE(CONTROLLER_MEMORY, "memory.oom_control", false, "oom_kill", oom_kills, 1),
	COUNTER_ONE(CONTROLLER_PIDS, "pids.peak", false, NULL, pids_peak, 1), /* since Linux 6.1 */
	COUNTER_ONE(CONTROLLER_PIDS, "pids.events", false, "max", pids_hits, 1),
	COUNTER_ONE(CONTROLLER_BLKIO, "blkio.throttle.io_service_bytes_recursive", false, "Read", read_bytes,
		    1),
};

/* A group in the hierarchy of one controller; hierarchies that carry several ("cpu,cpuacct") get one group. */
static int controller_add(struct cgroup *c, const struct cgroup_host *host, enum controller controller,
			  const char *name, struct error *err)
{
	const char *parent = host->v1_parent[controller];

	if (!parent[0])
		return 0;
	for (int i = 0; i < CONTROLLER_COUNT; i++)
		if (c->group_of[i] >= 0 && strcmp(host->v1_parent[i], parent) == 0) {
			c->group_of[controller] = c->group_of[i];
			return 0;
		}
	c->group_of[controller] = cgroup_group_add(c, parent, name, err);
	return c->group_of[controller];
}

int cgroup_v1_make(struct cgroup *c, const struct cgroup_host *host, const char *name, struct error *err)
{
	/* pids comes first in the record: whoever removes the directories stops the forking before all else. The
	 * freezer is only for hosts where forking cannot be stopped by pids.max. */
	static const enum controller order[] = {CONTROLLER_PIDS,    CONTROLLER_MEMORY, CONTROLLER_CPU,
						CONTROLLER_CPUACCT, CONTROLLER_BLKIO,  CONTROLLER_FREEZER};

	c->dialect = &cgroup_dialect_v1;
	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		int r;

		if (order[i] == CONTROLLER_FREEZER && c->group_of[CONTROLLER_PIDS] >= 0)
			continue;
		r = controller_add(c, host, order[i], name, err);
		if (r < 0)
			return r;
	}
	for (int i = 0; i < c->n_groups; i++) {
		int r = cgroup_path_remember(c, c->groups[i].path, err);

		if (r < 0)
			return r;
	}
	return 0;
}

static int number_write(int dir, const char *file, uint64_t value)
{
	char text[32];

	snprintf(text, sizeof text, "%" PRIu64, value);
	return cgroup_file_write(dir, file, text);
}

/* Memory and swap together may not pass the limit. Where the kernel does not count swap, none is used at all. What sockets of the
 * internet's kinds hold is counted beside it, and only if it is limited: once more as much. */
static int memory_limit(int dir, uint64_t bytes)
{
	int r = number_write(dir, "memory.limit_in_bytes", bytes);

	if (r < 0)
		return r;
	r = number_write(dir, "memory.memsw.limit_in_bytes", bytes);
	if (r == -ENOENT)
		r = cgroup_file_write(dir, "memory.swappiness", "0");
	if (r < 0)
		return r;
	r = number_write(dir, "memory.kmem.tcp.limit_in_bytes", bytes);
	return r == -ENOENT ? 0 : r;
}

static int cpus_limit(int dir, uint64_t millicpus)
{
	uint64_t quota, period;
	int r;

	cgroup_cpu_quota(millicpus, &quota, &period);
	r = number_write(dir, "cpu.cfs_period_us", period);
	return r < 0 ? r : number_write(dir, "cpu.cfs_quota_us", quota);
}

static int limit_write(const struct cgroup *c, enum limit which, uint64_t value, const char **why UNUSED)
{
	static const enum controller controllers[LIMIT_COUNT] = {[LIMIT_MEMORY] = CONTROLLER_MEMORY,
								 [LIMIT_PIDS] = CONTROLLER_PIDS,
								 [LIMIT_CPUS] = CONTROLLER_CPU};
	int dir = cgroup_dir(c, controllers[which]);

	if (dir < 0)
		return -EOPNOTSUPP;
	switch (which) {
	case LIMIT_MEMORY:
		return memory_limit(dir, value);
	case LIMIT_PIDS:
		return number_write(dir, "pids.max", value);
	case LIMIT_CPUS:
		return cpus_limit(dir, value);
	default:
		return -EOPNOTSUPP;
	}
}

const struct cgroup_dialect cgroup_dialect_v1 = {counters, ARRAY_SIZE(counters), limit_write};
