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
	while (fd == -11 /* EAGAIN: a rename elsewhere */ || fd == -4);
	return fd;
}

long open_inside(const char *path, uint64_t flags)
{
	while (*path == '/')
		path++;
	return open_how(root, *path ? path : ".", flags,
			RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
}

/* Makes every directory of path below the new root; the last one too if whole. */
void directories_make(const char *path, int whole)
{
	char part[4096];
	size_t n = 0;

	for (; *path; path++) {
		if (n + 1 >= sizeof part)
			fail("make a directory for", path, -36);
		if (*path == '/' && n) {
			part[n] = 0;
			SYS3(__NR_mkdirat, root, part, 0755);
		}
		if (*path != '/' || n)
			part[n++] = *path;
	}
	part[n] = 0;
	if (whole && n)
		SYS3(__NR_mkdirat, root, part, 0755);
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
