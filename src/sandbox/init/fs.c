/*
 * The few things that are done with mounts, over and over: the system calls of the new mount interface.
 */
#include "fs.h"
#include "init.h"

#include <linux/fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <asm/stat.h>
#include <linux/stat.h>

int root = -1;
int empty_layer = -1;

long open_how(int dirfd, const char *path, uint64_t flags, uint64_t resolve)
{
	struct open_how how = {.flags = flags | O_CLOEXEC, .resolve = resolve};
	long fd;

	do
		fd = SYS4(__NR_openat2, dirfd, path, &how, sizeof how);
	while (fd == -EAGAIN /* a rename elsewhere */ || fd == -EINTR);
	return fd;
}

long open_inside(const char *path, uint64_t flags)
{
	while (*path == '/')
		path++;
	return open_how(root, *path ? path : ".", flags,
			RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
}

/* A disk that is full is a reason to wait, and must not be told as something that is missing. */
static int is_full(long r)
{
	return r == -ENOSPC || r == -EDQUOT || r == -ENOMEM;
}

static long open_directory(int at, const char *name)
{
	return open_how(at, name, O_PATH | O_DIRECTORY,
			RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
}

/* Made, or there already: what lies in an input or in a workspace may be a link, which leads to the host as long as its root
 * is ours. */
static void directory_settle(int at, const char *name, const char *path)
{
	long made = SYS3(__NR_mkdirat, at, name, 0755), fd;

	if (made == 0)
		return;
	fd = open_directory(at, name);
	if (fd < 0)
		fail("make a directory for", path, is_full(made) ? made : fd);
	SYS1(__NR_close, fd);
}

/* One directory after the other, each opened without following a link. */
static long directories_walk(const char *path)
{
	char name[256];
	long at = SYS3(__NR_fcntl, root, F_DUPFD_CLOEXEC, 64), next, made;
	const char *rest = path;

	while (at >= 0 && *rest) {
		size_t n = 0;

		while (*rest == '/')
			rest++;
		while (rest[n] && rest[n] != '/')
			n++;
		if (n >= sizeof name)
			fail("make a directory for", path, -ENAMETOOLONG);
		memcpy(name, rest, n);
		name[n] = 0;
		rest += n;
		if (n == 0)
			break;
		made = SYS3(__NR_mkdirat, at, name, 0755);
		next = open_directory((int)at, name);
		SYS1(__NR_close, at);
		at = next < 0 && is_full(made) ? made : next;
	}
	if (at < 0)
		fail("make a directory for", path, at);
	return at;
}

/* Targets come in the order of their directories: the last one stays open until something is put upon it, or above it. */
static struct {
	char path[4096];
	size_t length;
	int fd;
} beside = {.fd = -1};

static void beside_forget(void)
{
	if (beside.fd >= 0)
		SYS1(__NR_close, beside.fd);
	beside.fd = -1;
}

static int is_beside(const char *path, size_t length)
{
	if (beside.fd < 0 || length != beside.length)
		return 0;
	for (size_t i = 0; i < length; i++)
		if (path[i] != beside.path[i])
			return 0;
	return 1;
}

/* Is target the directory that is open, or one above it? */
static int is_covered_by(const char *target)
{
	size_t n = 0;

	while (n < beside.length && target[n] && target[n] == beside.path[n])
		n++;
	return !target[n] && (n == beside.length || beside.path[n] == '/');
}

int directory_of(const char *path, const char **ret_name)
{
	const char *name = path + strlen(path);
	size_t n;
	long fd;

	while (name > path && name[-1] != '/')
		name--;
	*ret_name = name;
	n = (size_t)(name - path);
	while (n && path[n - 1] == '/')
		n--;
	if (n == 0)
		return root;
	if (is_beside(path, n))
		return beside.fd;
	if (n >= sizeof beside.path)
		fail("make a directory for", path, -ENAMETOOLONG);
	beside_forget();
	memcpy(beside.path, path, n);
	beside.path[n] = 0;
	beside.length = n;
	fd = open_inside(beside.path, O_PATH | O_DIRECTORY); /* most are there */
	beside.fd = (int)(fd < 0 ? directories_walk(beside.path) : fd);
	return beside.fd;
}

void directories_make(const char *path)
{
	const char *name;
	int at = directory_of(path, &name);

	if (*name)
		directory_settle(at, name, path);
}

/* fsopen … fsmount; data is a list of "key=value" or "flag" strings. Returns the detached mount or -errno. */
long filesystem_make(const char *type, const char *data, uint64_t attributes)
{
	long fs = SYS2(__NR_fsopen, type, FSOPEN_CLOEXEC), r = 0, fd;

	if (fs < 0)
		return fs;
	for (; data && *data && r >= 0; data += strlen(data) + 1) {
		char key[32];
		size_t n = 0;

		while (data[n] && data[n] != '=' && n + 1 < sizeof key) {
			key[n] = data[n];
			n++;
		}
		key[n] = 0;
		if (data[n] == '=')
			r = SYS5(__NR_fsconfig, fs, FSCONFIG_SET_STRING, key, data + n + 1, 0);
		else
			r = SYS5(__NR_fsconfig, fs, FSCONFIG_SET_FLAG, key, 0, 0);
	}
	if (r >= 0)
		r = SYS5(__NR_fsconfig, fs, FSCONFIG_CMD_CREATE, 0, 0, 0);
	fd = r < 0 ? r : SYS3(__NR_fsmount, fs, FSMOUNT_CLOEXEC, attributes);
	SYS1(__NR_close, fs);
	return fd;
}

long attributes_set(int fd, uint64_t set, int recursive)
{
	struct mount_attr attr = {.attr_set = set};

	return SYS5(__NR_mount_setattr, fd, "", AT_EMPTY_PATH | (recursive ? 0x8000 /* AT_RECURSIVE */ : 0),
		    &attr, sizeof attr);
}

/* Puts a detached mount on an existing target, which is no link. Closes it. */
void attach(long mount, const char *target)
{
	const char *name;
	int at = directory_of(target, &name);
	long r = SYS5(__NR_move_mount, mount, "", at, name, MOVE_MOUNT_F_EMPTY_PATH);

	if (r < 0)
		fail("mount", target, r);
	SYS1(__NR_close, mount);
	if (is_covered_by(target))
		beside_forget();
}

/* Any directory would do that is on every host, and in which we look for nothing. */
void attach_outside(int mount)
{
	static const char place[] = "/proc/fs";
	long r = SYS5(__NR_move_mount, mount, "", AT_FDCWD, place, MOVE_MOUNT_F_EMPTY_PATH);

	if (r < 0)
		fail("put a layer aside at", place, r);
}

void targets_done(void)
{
	beside_forget();
	SYS1(__NR_close, empty_layer);
}

long tree_clone(int fd, int recursive)
{
	return SYS3(__NR_open_tree, fd, "",
		    AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | (recursive ? 0x8000 : 0));
}

int is_directory(int fd)
{
	struct stat st;

	return SYS2(__NR_fstat, fd, &st) == 0 && (st.st_mode & S_IFMT) == S_IFDIR;
}

/* A mount point of the source's own kind. */
void target_make(const char *target, int directory)
{
	const char *name;
	long made, fd;
	int at;

	if (directory) {
		directories_make(target);
		return;
	}
	at = directory_of(target, &name);
	made = SYS4(__NR_mknodat, at, name, S_IFREG | 0644, 0);
	if (made == 0)
		return;
	fd = open_how(at, name, O_PATH, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
	if (fd < 0)
		fail("make the mount point", target, is_full(made) ? made : fd);
	SYS1(__NR_close, fd);
}
