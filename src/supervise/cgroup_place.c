/*
 * Where we live: our own cgroup in each hierarchy, from /proc/self/cgroup and /proc/self/mountinfo. The two are needed
 * together: one names the cgroup inside its hierarchy, the other says which part of a hierarchy is mounted where, and
 * in a container the mounted part may begin anywhere.
 */
#include "cgroup_private.h"
#include "file.h"
#include "mountinfo.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *const controller_names_v1[CONTROLLER_COUNT] = {"memory",  "pids",	 "cpu",
							   "cpuacct", "freezer", "blkio"};

const enum limit controller_limits[CONTROLLER_COUNT] = {LIMIT_MEMORY, LIMIT_PIDS,  LIMIT_CPUS,
							LIMIT_CPUS,   LIMIT_COUNT, LIMIT_COUNT};

enum { PROC_TEXT_MAX = 1 << 20 };

int cgroup_file_write(int dirfd, const char *name, const char *text)
{
	_cleanup_close_ int fd = file_open_beneath(dirfd, name, O_WRONLY, 0);

	if (fd < 0)
		return -errno;
	return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

int cgroup_path_format(char *out, size_t room, struct error *err, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(out, room, format, args);
	va_end(args);
	if (n < 0 || (size_t)n >= room) {
		out[0] = 0;
		return error_system(err, ENAMETOOLONG, "cannot name a cgroup");
	}
	return 0;
}

/* True if word is one of the words of list, which are separated by spaces, commas or a newline. */
bool cgroup_list_has(const char *list, const char *word)
{
	size_t length = strlen(word);

	while (*list) {
		size_t n = strcspn(list, " ,\n");

		if (n == length && memcmp(list, word, n) == 0)
			return true;
		list += n + strspn(list + n, " ,\n");
	}
	return false;
}

/* The directory of the cgroup `path` under the mount m, unless it lies outside of what is mounted. A writable mount
 * that was seen before stays, unless this one covers it. */
static void place_set(struct cgroup_place *place, const struct mountinfo_line *m, const char *path)
{
	const char *below = path;
	size_t n = strlen(m->root);
	bool read_only = cgroup_list_has(m->options, "ro") || cgroup_list_has(m->super_options, "ro");
	bool covers = place->known && strlen(m->point) == place->root_length &&
		      strncmp(place->dir, m->point, place->root_length) == 0;

	if (place->known && !covers && (!place->read_only || read_only))
		return;
	if (strcmp(m->root, "/") != 0) {
		if (strncmp(path, m->root, n) != 0 || (path[n] && path[n] != '/'))
			return;
		below = path + n;
	}
	if (strncmp(below, "/..", 3) == 0)
		return;
	if (strcmp(below, "/") == 0)
		below = "";
	if (cgroup_path_format(place->dir, sizeof place->dir, NULL, "%s%s", m->point, below) < 0)
		return;
	place->known = true;
	place->read_only = read_only;
	place->root_length = strlen(m->point);
}

/* What /proc/self/cgroup says, line by line. */
struct paths {
	const char *v1[CONTROLLER_COUNT], *v1_cpuset, *v2;
};

static void mount_use(const struct mountinfo_line *m, const struct paths *paths, struct cgroup_places *ret)
{
	if (strcmp(m->type, "cgroup2") == 0 && paths->v2)
		place_set(&ret->v2, m, paths->v2);
	if (strcmp(m->type, "cgroup") != 0)
		return;
	for (int i = 0; i < CONTROLLER_COUNT; i++)
		if (paths->v1[i] && cgroup_list_has(m->super_options, controller_names_v1[i]))
			place_set(&ret->v1[i], m, paths->v1[i]);
	if (paths->v1_cpuset && cgroup_list_has(m->super_options, "cpuset"))
		place_set(&ret->v1_cpuset, m, paths->v1_cpuset);
}

/* "4:memory:/box/7", "0::/" */
static void path_use(char *line, struct paths *paths, struct cgroup_places *ret)
{
	char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;

	if (!path)
		return;
	*path++ = 0;
	list++;
	ret->slurm |= strstr(path, "/slurm") != NULL;
	if (*list == 0)
		paths->v2 = path;
	for (int i = 0; i < CONTROLLER_COUNT; i++)
		if (cgroup_list_has(list, controller_names_v1[i]))
			paths->v1[i] = path;
	if (cgroup_list_has(list, "cpuset"))
		paths->v1_cpuset = path;
}

void cgroup_places_parse(const char *cgroup, const char *mountinfo, struct cgroup_places *ret)
{
	_cleanup_free_ char *lines = strdup(cgroup), *mounts = strdup(mountinfo);
	struct paths paths = {0};
	char *save = NULL;

	*ret = (struct cgroup_places){0};
	if (!lines || !mounts)
		return;
	for (char *line = strtok_r(lines, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		path_use(line, &paths, ret);
	for (char *line = strtok_r(mounts, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		struct mountinfo_line m;

		if (mountinfo_parse_line(line, &m))
			mount_use(&m, &paths, ret);
	}
}

static int places_of(const char *cgroup_file, struct cgroup_places *ret, struct error *err)
{
	_cleanup_buffer_ struct buffer cgroup = {0}, mounts = {0};
	int r;

	if ((r = file_load(AT_FDCWD, cgroup_file, PROC_TEXT_MAX, &cgroup, err)) < 0 ||
	    (r = file_load(AT_FDCWD, "/proc/self/mountinfo", PROC_TEXT_MAX, &mounts, err)) < 0)
		return r;
	cgroup_places_parse(cgroup.data ? cgroup.data : "", mounts.data ? mounts.data : "", ret);
	return 0;
}

int cgroup_places_read(struct cgroup_places *ret, struct error *err)
{
	return places_of("/proc/self/cgroup", ret, err);
}

int cgroup_place_of(pid_t pid, struct cgroup_place *ret)
{
	struct cgroup_places places;
	char file[64];

	snprintf(file, sizeof file, "/proc/%d/cgroup", (int)pid);
	if (places_of(file, &places, NULL) < 0 || !places.v2.known)
		return -ESRCH;
	*ret = places.v2;
	return 0;
}

bool cgroup_dir_up(char *dir, size_t root_length)
{
	char *slash;

	if (strlen(dir) <= root_length)
		return false;
	slash = strrchr(dir, '/');
	if (!slash || (size_t)(slash - dir) < root_length)
		return false;
	*slash = 0;
	return true;
}
