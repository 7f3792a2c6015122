/*
 * cgroup v2: one leaf in a subtree that is ours. A cgroup that has limited children may hold no process itself, so if
 * we alone live in the subtree's root, we step into a leaf of it first.
 */
#include "cgroup_private.h"
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* The peak includes the page cache that the analysis's reading filled: the kernel gives no other. */
static const struct counter_file counters[] = {
	{CONTROLLER_CPUACCT,
	 "cpu.stat",
	 true,
	 false,
	 {{"usage_usec", COUNTER_FIELD(cpu_ns), 1000},
	  {"user_usec", COUNTER_FIELD(cpu_user_ns), 1000},
	  {"system_usec", COUNTER_FIELD(cpu_system_ns), 1000},
	  {"throttled_usec", COUNTER_FIELD(throttled_ns), 1000}},
	 4},
	COUNTER_ONE(CONTROLLER_MEMORY, "memory.current", true, NULL, memory_bytes, 1),
	COUNTER_ONE(CONTROLLER_MEMORY, "memory.stat", true, "anon", memory_anon_bytes, 1),
	COUNTER_ONE(CONTROLLER_PIDS, "pids.current", true, NULL, pids, 1),
	COUNTER_ONE(CONTROLLER_MEMORY, "memory.peak", false, NULL, memory_peak_bytes, 1),    /* 5.19 */
	COUNTER_ONE(CONTROLLER_MEMORY, "memory.swap.peak", false, NULL, swap_peak_bytes, 1), /* 6.5 */
	COUNTER_ONE(CONTROLLER_MEMORY, "memory.events", false, "oom_kill", oom_kills, 1),
	COUNTER_ONE(CONTROLLER_PIDS, "pids.peak", false, NULL, pids_peak, 1), /* 6.1 */
	COUNTER_ONE(CONTROLLER_PIDS, "pids.events", false, "max", pids_hits, 1),
	{CONTROLLER_BLKIO,
	 "io.stat",
	 false,
	 true,
	 {{"rbytes", COUNTER_FIELD(read_bytes), 1}, {"wbytes", COUNTER_FIELD(written_bytes), 1}},
	 2},
};

static const struct {
	enum controller controller;
	const char *name, *enable;
} wanted[] = {{CONTROLLER_MEMORY, "memory", "+memory"},
	      {CONTROLLER_PIDS, "pids", "+pids"},
	      {CONTROLLER_CPU, "cpu", "+cpu"},
	      {CONTROLLER_BLKIO, "io", "+io"}};

static bool holds_only_us(int dir)
{
	char procs[64], us[16];

	snprintf(us, sizeof us, "%d\n", (int)getpid());
	return file_read_small(dir, "cgroup.procs", procs, sizeof procs) > 0 && strcmp(procs, us) == 0;
}

static int own_leaf_enter(int parent)
{
	int r = dir_make_own(parent, CGROUP_OWN_LEAF, 0755);

	if (r < 0 && r != -EEXIST)
		return r;
	return cgroup_file_write(parent, CGROUP_OWN_LEAF "/cgroup.procs", "0");
}

/* Each for itself: one that is missing, or that somebody else still uses, must not take the others with it. */
void cgroup_v2_enable(int dir)
{
	char available[256], enabled[256];

	if (file_read_small(dir, "cgroup.controllers", available, sizeof available) < 0 ||
	    file_read_small(dir, "cgroup.subtree_control", enabled, sizeof enabled) < 0)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		int r;

		if (cgroup_list_has(enabled, wanted[i].name) || !cgroup_list_has(available, wanted[i].name))
			continue;
		r = cgroup_file_write(dir, "cgroup.subtree_control", wanted[i].enable);
		if (r != -EBUSY)
			continue;
		/* Another thread of ours may have moved us already: then there is only the write to be repeated. */
		if (holds_only_us(dir))
			own_leaf_enter(dir);
		cgroup_file_write(dir, "cgroup.subtree_control", wanted[i].enable);
	}
}

static bool controllers_missing(const char *have)
{
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		if (!cgroup_list_has(have, wanted[i].name))
			return true;
	return false;
}

int cgroup_v2_make(struct cgroup *c, const char *parent, const char *name, struct error *err)
{
	int index = cgroup_group_add(c, parent, name, err);
	char have[256];

	if (index < 0)
		return index;
	c->dialect = &cgroup_dialect_v2;
	if (file_read_small(c->groups[index].dir, "cgroup.controllers", have, sizeof have) < 0)
		have[0] = 0;
	if (controllers_missing(have)) {
		_cleanup_close_ int dir = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);

		if (dir >= 0)
			cgroup_v2_enable(dir);
		if (file_read_small(c->groups[index].dir, "cgroup.controllers", have, sizeof have) < 0)
			have[0] = 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		if (cgroup_list_has(have, wanted[i].name))
			c->group_of[wanted[i].controller] = index;
	c->group_of[CONTROLLER_CPUACCT] = c->group_of[CONTROLLER_FREEZER] = index;
	return 0;
}

static bool swap_is_on(void)
{
	char text[512], *second;

	if (file_read_small(AT_FDCWD, "/proc/swaps", text, sizeof text) < 0)
		return false;
	second = strchr(text, '\n');
	return second && second[1];
}

/* Memory and swap together may not pass the limit: no swap is simplest. */
static int memory_limit(int dir, uint64_t bytes, const char **why)
{
	char text[32];
	int r;

	snprintf(text, sizeof text, "%" PRIu64, bytes);
	r = cgroup_file_write(dir, "memory.max", text);
	if (r < 0)
		return r;
	r = cgroup_file_write(dir, "memory.swap.max", "0");
	if (r != -ENOENT)
		return r;
	if (!swap_is_on())
		return 0;
	*why = "swap is on, but the kernel does not count it (booted with swapaccount=0); switch it off";
	return -EOPNOTSUPP;
}

static int limit_write(const struct cgroup *c, enum limit which, uint64_t value, const char **why)
{
	uint64_t quota, period;
	char text[64];
	int dir = c->groups[0].dir;

	switch (which) {
	case LIMIT_MEMORY:
		return memory_limit(dir, value, why);
	case LIMIT_PIDS:
		snprintf(text, sizeof text, "%" PRIu64, value);
		return cgroup_file_write(dir, "pids.max", text);
	case LIMIT_CPUS:
		cgroup_cpu_quota(value, &quota, &period);
		snprintf(text, sizeof text, "%" PRIu64 " %" PRIu64, quota, period);
		return cgroup_file_write(dir, "cpu.max", text);
	default:
		return -EOPNOTSUPP;
	}
}

const struct cgroup_dialect cgroup_dialect_v2 = {counters, ARRAY_SIZE(counters), limit_write};
