/*
 * How root gives an ordinary user a place for limits.
 *
 * v1: a directory of his own in each hierarchy, which the probe finds there. v2:
 * the same, but nobody may step into a subtree that he does not come from, so root must start him in it. systemd: his
 * manager is given the controllers, and lives without a login.
 */
#include "cgroup_private.h"
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define UNIT_DIR   "/etc/systemd/system"
#define DROP_IN	   "fumehood.conf"
#define LINGER_DIR "/var/lib/systemd/linger"

static int own_file(int dir, const char *file, uid_t uid, gid_t gid)
{
	return fchownat(dir, file, uid, gid, 0) < 0 && errno != ENOENT ? -errno : 0;
}

/* Makes parent/name and gives it to the user with what he needs of it: to make children and to put processes in. */
static int directory_give(const char *parent, const char *name, uid_t uid, gid_t gid, struct error *err)
{
	static const char *const files[] = {".", "cgroup.procs", "tasks", "cgroup.threads",
					    "cgroup.subtree_control"};
	_cleanup_close_ int dir = -1;
	char path[CGROUP_PATH_ROOM];
	int r = cgroup_path_format(path, sizeof path, err, "%s/%s", parent, name);

	if (r < 0)
		return r;
	r = dir_make_own(AT_FDCWD, path, 0755);
	if (r < 0 && r != -EEXIST)
		return error_system(err, -r, "cannot make cgroup '%s'", path);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return error_system(err, errno, "cannot open cgroup '%s'", path);
	r = 0;
	for (size_t i = 0; i < ARRAY_SIZE(files) && r == 0; i++)
		r = own_file(dir, files[i], uid, gid);
	return r < 0 ? error_system(err, -r, "cannot give cgroup '%s' away", path) : 0;
}

/* --- v1 --- */

static bool is_unit(const char *dir)
{
	static const char *const endings[] = {".slice", ".scope", ".service"};
	size_t n = strlen(dir);

	for (size_t i = 0; i < ARRAY_SIZE(endings); i++) {
		size_t length = strlen(endings[i]);

		if (n > length && strcmp(dir + n - length, endings[i]) == 0)
			return true;
	}
	return false;
}

/* Our own cgroup, or, since those of systemd come and go, the nearest above that is none of its; never out of a limit. */
static void v1_place(const struct cgroup_place *place, enum controller controller, char out[CGROUP_PATH_ROOM])
{
	memcpy(out, place->dir, CGROUP_PATH_ROOM);
	while (is_unit(out) && cgroup_limit_here(out, false, controller_limits[controller]) == LIMIT_NONE &&
	       cgroup_dir_up(out, place->root_length))
		;
}

static int v1_delegate(const struct cgroup_places *places, const char *name, uid_t uid, gid_t gid,
		       struct error *err)
{
	for (enum controller i = 0; i < CONTROLLER_COUNT; i++) {
		char top[CGROUP_PATH_ROOM];
		int r;

		if (!places->v1[i].known)
			continue;
		v1_place(&places->v1[i], i, top);
		r = directory_give(top, name, uid, gid, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* --- v2 without systemd --- */

static int v2_delegate(const char *parent, const char *name, uid_t uid, gid_t gid, struct error *err)
{
	_cleanup_close_ int parent_dir = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC), dir = -1;
	char path[CGROUP_PATH_ROOM];
	int r;

	if ((r = directory_give(parent, name, uid, gid, err)) < 0 ||
	    (r = cgroup_path_format(path, sizeof path, err, "%s/%s", parent, name)) < 0)
		return r;
	dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (parent_dir < 0 || dir < 0)
		return error_system(err, errno, "cannot open cgroup '%s'", path);
	cgroup_v2_enable(parent_dir);
	cgroup_v2_enable(dir);
	return directory_give(path, CGROUP_OWN_LEAF, uid, gid, err);
}

/* --- systemd --- */

static int user_name(uid_t uid, char *out, size_t room, struct error *err)
{
	struct passwd entry, *found = NULL;
	char text[4096];

	if (getpwuid_r(uid, &entry, text, sizeof text, &found) != 0 || !found)
		return error_set(err, ERROR_NOT_FOUND, "there is no user with the uid %u", (unsigned)uid);
	if (strchr(found->pw_name, '/'))
		return error_set(err, ERROR_REFUSED, "the name of uid %u contains a '/'", (unsigned)uid);
	return cgroup_path_format(out, room, err, "%s", found->pw_name);
}

static int public_directory(const char *path, struct error *err)
{
	int r = dir_make_own(AT_FDCWD, path, 0755);

	return r < 0 && r != -EEXIST ? error_system(err, -r, "cannot make '%s'", path) : 0;
}

static int file_put(const char *dir, const char *name, const char *text, struct error *err)
{
	_cleanup_close_ int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return error_system(err, errno, "cannot open '%s'", dir);
	return file_replace(fd, name, text, strlen(text), 0644, true, err);
}

static int systemd_delegate(uid_t uid, struct error *err)
{
	char name[256], drop_in_dir[64], unit[64];
	int r;

	snprintf(drop_in_dir, sizeof drop_in_dir, UNIT_DIR "/user@%u.service.d", (unsigned)uid);
	snprintf(unit, sizeof unit, "user@%u.service", (unsigned)uid);
	if ((r = user_name(uid, name, sizeof name, err)) < 0 ||
	    (r = public_directory(drop_in_dir, err)) < 0 ||
	    (r = file_put(drop_in_dir, DROP_IN, "[Service]\nDelegate=cpu io memory pids\n", err)) < 0 ||
	    (r = public_directory(LINGER_DIR, err)) < 0 || (r = file_put(LINGER_DIR, name, "", err)) < 0 ||
	    (r = cgroup_bus_reload(false, err)) < 0)
		return r;
	return cgroup_bus_unit_start(false, unit, err);
}

/* --- all --- */

int cgroup_delegate(uid_t uid, gid_t gid, char done[CGROUP_DONE_ROOM], struct error *err)
{
	struct cgroup_places places;
	struct cgroup_host host;
	char name[32];
	int r = cgroup_places_read(&places, err);

	if (r < 0)
		return r;
	if (geteuid() != 0)
		return error_set(err, ERROR_REFUSED, "only root can delegate a cgroup");
	cgroup_host_choose(&places, &host);
	snprintf(name, sizeof name, CGROUP_DELEGATE_FORMAT, (unsigned)uid);
	if (host.way == CGROUP_V1) {
		r = v1_delegate(&places, name, uid, gid, err);
		snprintf(
			done, CGROUP_DONE_ROOM,
			"the limits of uid %u's analyses can be held until the next boot; repeat it at every boot",
			(unsigned)uid);
	} else if (host.way != CGROUP_NONE && cgroup_systemd_booted()) {
		r = systemd_delegate(uid, err);
		snprintf(
			done, CGROUP_DONE_ROOM,
			"the manager of uid %u has the controllers cpu, io, memory and pids, and runs without a login; if it "
			"was running before, it has them after 'systemctl restart user@%u.service'",
			(unsigned)uid, (unsigned)uid);
	} else if (host.way == CGROUP_V2) {
		r = v2_delegate(host.v2_parent, name, uid, gid, err);
		snprintf(
			done, CGROUP_DONE_ROOM,
			"until the next boot, limits can be held for what uid %u starts in '%s/%s/" CGROUP_OWN_LEAF
			"'; move the user's shell there as root: echo PID > cgroup.procs",
			(unsigned)uid, host.v2_parent, name);
	} else {
		r = error_set(err, ERROR_REFUSED, "nothing can be delegated: %s", host.why);
	}
	return r;
}
