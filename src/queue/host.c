#include "host.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "macros.h"

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a == 0 || (b > 0 && b < a) ? b : a;
}

static uint64_t number_in(const char *path)
{
	unsigned long long n = 0;
	FILE *f = fopen(path, "re");

	if (!f)
		return 0;
	if (fscanf(f, "%llu", &n) != 1) /* "max" */
		n = 0;
	fclose(f);
	return n < LLONG_MAX / 4096 * 4096ULL ? n : 0;
}

/* The least limit on the way from our group up to the root of the hierarchy. */
static uint64_t limit_above(const char *root, const char *group, const char *file)
{
	char path[PATH_MAX], here[PATH_MAX];
	uint64_t least = 0;

	snprintf(here, sizeof here, "%s", group);
	for (;;) {
		char *slash;

		if (snprintf(path, sizeof path, "%s%s/%s", root, here, file) < (int)sizeof path)
			least = smaller(least, number_in(path));
		slash = strrchr(here, '/');
		if (!slash)
			return least;
		*slash = 0;
	}
}

static uint64_t cgroup_memory(void)
{
	_cleanup_free_ char *line = NULL;
	FILE *f = fopen("/proc/self/cgroup", "re");
	uint64_t least = 0;
	size_t room = 0;

	while (f && getline(&line, &room, f) > 0) {
		char *controllers = strchr(line, ':'), *group;

		group = controllers ? strchr(controllers + 1, ':') : NULL;
		if (!group)
			continue;
		*group++ = 0;
		group[strcspn(group, "\n")] = 0;
		if (strstr(controllers, ":memory") || strstr(controllers, ",memory"))
			least = smaller(least,
					limit_above("/sys/fs/cgroup/memory", group, "memory.limit_in_bytes"));
		else if (strcmp(controllers, ":") == 0)
			least = smaller(least, limit_above("/sys/fs/cgroup", group, "memory.max"));
	}
	if (f)
		fclose(f);
	return least;
}

uint64_t host_memory(void)
{
	unsigned long long kib = 0;
	char line[128];
	FILE *f = fopen("/proc/meminfo", "re");

	while (f && kib == 0 && fgets(line, sizeof line, f))
		if (sscanf(line, "MemTotal: %llu kB", &kib) != 1)
			kib = 0;
	if (f)
		fclose(f);
	return smaller(kib * 1024ULL, cgroup_memory());
}

int host_cpus(void)
{
	cpu_set_t set;

	/* More CPUs than fit into the set: all of them. */
	if (sched_getaffinity(0, sizeof set, &set) < 0) {
		long n = sysconf(_SC_NPROCESSORS_ONLN);

		return n > 0 ? (int)n : 1;
	}
	return CPU_COUNT(&set) > 0 ? CPU_COUNT(&set) : 1;
}
