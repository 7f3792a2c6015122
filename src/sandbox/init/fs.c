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

/* One directory after the other, each opened without following a link: what lies in an input or in a workspace may be
 * one, and leads to the host as long as its root is ours. */
static void directories_walk(const char *path)
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
		next = open_how((int)at, name, O_PATH | O_DIRECTORY,
				RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
		SYS1(__NR_close, at);
		at = next < 0 && is_full(made) ? made : next;
	}
	if (at < 0)
		fail("make a directory for", path, at);
	SYS1(__NR_close, at);
}

void directories_make(const char *path, int whole)
{
	char directory[4096];
	size_t n = strlen(path);
	long fd;

	while (!whole && n && path[n - 1] != '/')
		n--;
	if (n >= sizeof directory)
		fail("make a directory for", path, -ENAMETOOLONG);
	memcpy(directory, path, n);
	directory[n] = 0;
	fd = open_inside(directory, O_PATH | O_DIRECTORY); /* most are there */
	if (fd < 0)
		directories_walk(directory);
	else
		SYS1(__NR_close, fd);
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

/* Puts a detached mount on an existing target. Closes it. */
void attach(long mount, const char *target)
{
	long at = open_inside(target, O_PATH), r;

	if (at < 0)
		fail("open the mount point", target, at);
	r = SYS5(__NR_move_mount, mount, "", at, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
	if (r < 0)
		fail("mount", target, r);
	SYS1(__NR_close, at);
	SYS1(__NR_close, mount);
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
void target_make(const char *target, int source)
{
	long made;

	if (source < 0 || is_directory(source)) {
		directories_make(target, 1);
		return;
	}
	directories_make(target, 0);
	while (*target == '/')
		target++;
	made = SYS4(__NR_mknodat, root, target, S_IFREG | 0644, 0);
	if (is_full(made))
		fail("make the mount point", target, made);
}
