/*
 * Inputs and files: every way to change a file, a name or an inode that one may only read. A row's arg is the target:
 * an input by its own path (data.file), the same input as data/ in the working directory (local.file), or a file
 * that is no input at all.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "act.h"
#include "stage.h"

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif
#ifndef SYS_setxattrat
#define SYS_setxattrat	  463
#define SYS_removexattrat 466
#endif
#ifndef SYS_file_getattr
#define SYS_file_getattr 468
#define SYS_file_setattr 469
#endif

#define PATH(t, a) targets_text(t, (a)->arg)

ACT(open_write)
{
	return spoil(PATH(t, a));
}

ACT(open_append)
{
	return spoil_at(AT_FDCWD, PATH(t, a), O_WRONLY | O_APPEND);
}

/* Linux truncates even when the file is opened for reading only. */
ACT(open_truncate)
{
	_cleanup_close_ int fd = open(PATH(t, a), O_RDONLY | O_TRUNC);
	return result(fd);
}

ACT(truncate_path)
{
	return result(truncate(PATH(t, a), 1));
}

ACT(map_shared)
{
	_cleanup_close_ int fd = open(PATH(t, a), O_RDWR);
	if (fd < 0)
		return -errno;
	char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return -errno;
	page[0] = '#';
	return result(msync(page, 4096, MS_SYNC));
}

/* A descriptor that was opened for reading, opened again through /proc. */
ACT(reopen_through_proc)
{
	_cleanup_close_ int fd = open(PATH(t, a), O_RDONLY);
	return fd < 0 ? -errno : spoil(text("/proc/self/fd/%d", fd));
}

ACT(punch_hole)
{
	_cleanup_close_ int fd = open(PATH(t, a), O_RDWR);
	if (fd < 0)
		return -errno;
	return result(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096));
}

ACT(copy_range)
{
	_cleanup_close_ int from = open("/proc/self/exe", O_RDONLY), to = open(PATH(t, a), O_WRONLY);
	if (from < 0 || to < 0)
		return -errno;
	return result(copy_file_range(from, NULL, to, NULL, 16, 0));
}

ACT(create_file)
{
	return spoil_at(AT_FDCWD, text("%s/planted", PATH(t, a)), O_WRONLY | O_CREAT);
}

ACT(link_temporary)
{
	_cleanup_close_ int fd = open(PATH(t, a), O_TMPFILE | O_RDWR, 0644);
	if (fd < 0)
		return -errno;
	char from[64];
	snprintf(from, sizeof(from), "/proc/self/fd/%d", fd);
	return result(linkat(AT_FDCWD, from, AT_FDCWD, text("%s/planted", PATH(t, a)), AT_SYMLINK_FOLLOW));
}

ACT(make_directory)
{
	return result(mkdir(text("%s/planted", PATH(t, a)), 0755));
}

ACT(make_node)
{
	return result(mknod(text("%s/planted", PATH(t, a)), (mode_t)a->number | 0644, 0));
}

ACT(make_link)
{
	return result(symlink("/etc/passwd", text("%s/planted", PATH(t, a))));
}

ACT(bind_socket)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	snprintf(at.sun_path, sizeof(at.sun_path), "%s/planted", PATH(t, a));
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	return fd < 0 ? -errno : result(bind(fd, (struct sockaddr *)&at, sizeof(at)));
}

ACT(remove_file)
{
	return result(unlink(PATH(t, a)));
}

ACT(remove_directory)
{
	return result(rmdir(PATH(t, a)));
}

ACT(rename_within)
{
	return result(rename(PATH(t, a), text("%s.renamed", PATH(t, a))));
}

ACT(rename_out)
{
	return result(rename(PATH(t, a), "stolen"));
}

ACT(rename_in)
{
	if (spoil_at(AT_FDCWD, "mine", O_WRONLY | O_CREAT))
		return -errno;
	return result(rename("mine", PATH(t, a)));
}

ACT(rename_exchange)
{
	if (spoil_at(AT_FDCWD, "mine", O_WRONLY | O_CREAT))
		return -errno;
	return result(renameat2(AT_FDCWD, "mine", AT_FDCWD, PATH(t, a), RENAME_EXCHANGE));
}

/* A second name of the input's inode in the workspace, which is writable. */
ACT(link_and_write)
{
	if (link(PATH(t, a), "mine"))
		return -errno;
	return spoil("mine");
}

ACT(change_mode)
{
	return result(chmod(PATH(t, a), 0640));
}

ACT(change_mode_by_descriptor)
{
	_cleanup_close_ int fd = open(PATH(t, a), O_RDONLY);
	return fd < 0 ? -errno : result(fchmod(fd, 0640));
}

ACT(change_mode_by_proc)
{
	_cleanup_close_ int fd = open(PATH(t, a), O_PATH);
	return fd < 0 ? -errno : result(chmod(text("/proc/self/fd/%d", fd), 0640));
}

ACT(change_mode_by_new_call)
{
	return result(syscall(SYS_fchmodat2, AT_FDCWD, PATH(t, a), 0640, 0));
}

/* To one's own group, which everybody may: the inode's change time tells. */
ACT(change_owner)
{
	return result(chown(PATH(t, a), (uid_t)-1, getgid()));
}

ACT(change_owner_by_descriptor)
{
	_cleanup_close_ int fd = open(PATH(t, a), O_RDONLY);
	return fd < 0 ? -errno : result(fchown(fd, (uid_t)-1, getgid()));
}

ACT(change_times)
{
	struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
	return result(utimensat(AT_FDCWD, PATH(t, a), times, 0));
}

ACT(change_times_by_descriptor)
{
	_cleanup_close_ int fd = open(PATH(t, a), O_RDONLY);
	return fd < 0 ? -errno : result(futimens(fd, NULL));
}

ACT(change_link_times)
{
	struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
	return result(utimensat(AT_FDCWD, PATH(t, a), times, AT_SYMLINK_NOFOLLOW));
}

ACT(set_attribute)
{
	return result(setxattr(PATH(t, a), "user.planted", "1", 1, 0));
}

ACT(set_attribute_by_descriptor)
{
	_cleanup_close_ int fd = open(PATH(t, a), O_RDONLY);
	return fd < 0 ? -errno : result(fsetxattr(fd, "user.planted", "1", 1, 0));
}

ACT(set_attribute_by_new_call)
{
	struct {
		unsigned long value;
		unsigned size, flags;
	} args = {.value = (unsigned long)"1", .size = 1};
	return result(syscall(SYS_setxattrat, AT_FDCWD, PATH(t, a), 0, "user.planted", &args, sizeof(args)));
}

ACT(remove_attribute)
{
	return result(removexattr(PATH(t, a), "user.origin"));
}

ACT(remove_attribute_by_new_call)
{
	return result(syscall(SYS_removexattrat, AT_FDCWD, PATH(t, a), 0, "user.origin"));
}

ACT(set_flags_by_new_call)
{
	struct {
		uint64_t flags;
		uint32_t extent_size, extents, project, cow_extent_size;
	} file = {0};
	if (syscall(SYS_file_getattr, AT_FDCWD, PATH(t, a), &file, sizeof(file), 0))
		return -errno;
	file.flags |= FS_XFLAG_NODUMP;
	return result(syscall(SYS_file_setattr, AT_FDCWD, PATH(t, a), &file, sizeof(file), 0));
}

/* Whoever may write to a device may set its times to now. */
ACT(touch_device)
{
	return result(utimensat(AT_FDCWD, a->arg, NULL, 0));
}

ACT(set_access_list)
{
	/* version 2: user:: rw-, user:65534:rwx, group:: r--, mask::rwx, other:: r-- */
	static const unsigned char acl[] = {2, 0,   0,	 0,   1,   0,	6,  0, 255, 255, 255, 255, 2,	0,  7,
					    0, 254, 255, 0,   0,   4,	0,  4, 0,   255, 255, 255, 255, 16, 0,
					    7, 0,   255, 255, 255, 255, 32, 0, 4,   0,	 255, 255, 255, 255};
	return result(setxattr(PATH(t, a), "system.posix_acl_access", acl, sizeof(acl), 0));
}

ACT(set_flags)
{
	_cleanup_close_ int fd = open(PATH(t, a), O_RDONLY);
	int flags;
	if (fd < 0 || ioctl(fd, FS_IOC_GETFLAGS, &flags))
		return -errno;
	flags |= FS_NODUMP_FL;
	return result(ioctl(fd, FS_IOC_SETFLAGS, &flags));
}

ACT(set_extended_flags)
{
	_cleanup_close_ int fd = open(PATH(t, a), O_RDONLY);
	struct fsxattr flags;
	if (fd < 0 || ioctl(fd, FS_IOC_FSGETXATTR, &flags))
		return -errno;
	flags.fsx_xflags |= FS_XFLAG_NODUMP;
	return result(ioctl(fd, FS_IOC_FSSETXATTR, &flags));
}

/* Reading makes the kernel write the time of access, unless the mount forbids it. */
ACT(touch_by_reading)
{
	_cleanup_close_ int fd = open(PATH(t, a), O_RDONLY);
	char byte;
	return fd < 0 ? -errno : result(read(fd, &byte, 1));
}

ACT(overwrite_program)
{
	return spoil_at(AT_FDCWD, targets_text(t, "system.file"), O_WRONLY | O_APPEND);
}

static struct timespec modified(const char *path)
{
	struct stat st = {0};
	stat(path, &st);
	return st.st_mtim;
}

static int remember_device(struct stage *s)
{
	s->before = modified(s->attack->arg);
	return 0;
}

static void judge_device(struct stage *s)
{
	struct timespec now = modified(s->attack->arg);
	if (now.tv_sec != s->before.tv_sec || now.tv_nsec != s->before.tv_nsec)
		stage_hit(s, "the times of the host's %s changed", s->attack->arg);
}

static int age_the_input(struct stage *s)
{
	struct timespec times[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
	utimensat(AT_FDCWD, stage_path(s, "data/read-me.csv"), times, 0);
	stage_remember(s);
	return 0;
}

static void judge_access_time(struct stage *s)
{
	struct stat st;
	if (!stat(stage_path(s, "data/read-me.csv"), &st) && st.st_atim.tv_sec != 1000000000)
		stage_hit(s, "the input's time of access changed");
}

#define CHANGE(n, how, fn, target, ...)                                                                   \
	{                                                                                                 \
		.name = n, .mechanism = how, .run = fn, .arg = target, .effect = EFFECT_TREE, __VA_ARGS__ \
	}

static const struct attack table[] = {
	CHANGE("data-open-write", "open(O_WRONLY) of an input by its own path", open_write, "data.file"),
	CHANGE("local-open-write", "open(O_WRONLY) of an input as data/ in the working directory", open_write,
	       "local.file"),
	CHANGE("docs-open-write", "open(O_WRONLY) of a document", open_write, "docs.file"),
	CHANGE("site-open-write", "open(O_WRONLY) of the web site", open_write, "site.file"),
	CHANGE("api-open-write", "open(O_WRONLY) of the platform's api.py", open_write, "api.file"),
	CHANGE("home-open-write", "open(O_WRONLY) of the supervisor's ~/.profile", open_write, "home.file"),
	CHANGE("dotdot-open-write", "open(O_WRONLY) of ../ of an input", open_write, "dotdot.file"),
	CHANGE("program-append", "append to a program on the supervisor's PATH", overwrite_program, ""),
	CHANGE("data-append", "open(O_WRONLY|O_APPEND)", open_append, "data.file"),
	CHANGE("data-open-truncate", "open(O_RDONLY|O_TRUNC)", open_truncate, "data.file"),
	CHANGE("data-truncate", "truncate(), which Landlock ABI 2 does not know", truncate_path, "data.file"),
	CHANGE("data-mmap", "a shared writable mapping", map_shared, "local.file"),
	CHANGE("data-reopen", "a read-only descriptor reopened through /proc/self/fd", reopen_through_proc,
	       "data.file"),
	CHANGE("data-punch-hole", "fallocate(FALLOC_FL_PUNCH_HOLE)", punch_hole, "data.file"),
	CHANGE("data-copy-range", "copy_file_range() into an input", copy_range, "data.file"),
	CHANGE("data-create", "a new file in data/", create_file, "data"),
	CHANGE("docs-create", "a new file in docs/", create_file, "docs"),
	CHANGE("data-tmpfile", "O_TMPFILE in data/, then linkat()", link_temporary, "data"),
	CHANGE("data-mkdir", "mkdir() in data/", make_directory, "data"),
	CHANGE("data-mkfifo", "mknod(S_IFIFO) in data/", make_node, "data", .number = S_IFIFO),
	CHANGE("data-mknod", "mknod(S_IFREG) in data/", make_node, "data", .number = S_IFREG),
	CHANGE("data-symlink", "symlink() in data/", make_link, "data"),
	CHANGE("data-bind-socket", "bind() of a unix socket in data/", bind_socket, "data"),
	CHANGE("data-unlink", "unlink() of an input", remove_file, "data.file"),
	CHANGE("data-rmdir", "rmdir() of an empty input directory", remove_directory, "data.empty"),
	CHANGE("data-rename", "rename() within data/", rename_within, "data.file"),
	CHANGE("data-rename-out", "rename() of an input into the workspace", rename_out, "local.file"),
	CHANGE("data-rename-in", "rename() of an own file over an input", rename_in, "local.file"),
	CHANGE("data-exchange", "renameat2(RENAME_EXCHANGE) with an own file", rename_exchange, "local.file"),
	CHANGE("data-hard-link", "a hard link of an input in the workspace, written to", link_and_write,
	       "local.file"),
	CHANGE("data-chmod", "chmod(), which no Landlock stops", change_mode, "data.file"),
	CHANGE("data-fchmod", "fchmod() of a descriptor opened for reading", change_mode_by_descriptor,
	       "data.file"),
	CHANGE("data-proc-chmod", "chmod() of /proc/self/fd/N of an O_PATH descriptor", change_mode_by_proc,
	       "data.file"),
	CHANGE("data-fchmodat2", "fchmodat2(), newer than many filters", change_mode_by_new_call,
	       "data.file"),
	CHANGE("data-chown", "chown() to one's own group", change_owner, "data.file"),
	CHANGE("data-fchown", "fchown() of a descriptor opened for reading", change_owner_by_descriptor,
	       "data.file"),
	CHANGE("data-utimes", "utimensat()", change_times, "data.file"),
	CHANGE("data-futimens", "futimens() of a descriptor opened for reading", change_times_by_descriptor,
	       "data.file"),
	CHANGE("data-lutimes", "utimensat(AT_SYMLINK_NOFOLLOW) of a link in data/", change_link_times,
	       "data.link"),
	CHANGE("data-setxattr", "setxattr(user.…)", set_attribute, "data.file"),
	CHANGE("data-fsetxattr", "fsetxattr() of a descriptor opened for reading",
	       set_attribute_by_descriptor, "data.file"),
	CHANGE("data-setxattrat", "setxattrat(), newer than many filters", set_attribute_by_new_call,
	       "data.file"),
	CHANGE("data-removexattr", "removexattr()", remove_attribute, "data.file"),
	CHANGE("data-removexattrat", "removexattrat(), newer than many filters", remove_attribute_by_new_call,
	       "data.file"),
	CHANGE("data-file-setattr", "file_setattr(), newer than many filters", set_flags_by_new_call,
	       "data.file"),
	CHANGE("data-acl", "setxattr(system.posix_acl_access)", set_access_list, "data.file"),
	CHANGE("data-setflags", "ioctl(FS_IOC_SETFLAGS)", set_flags, "data.file"),
	CHANGE("data-fssetxattr", "ioctl(FS_IOC_FSSETXATTR)", set_extended_flags, "data.file"),
	{.name = "device-utimes",
	 .mechanism = "utimensat() of the host's /dev/null",
	 .run = touch_device,
	 .arg = "/dev/null",
	 .effect = EFFECT_HIT,
	 .prepare = remember_device,
	 .judge = judge_device},
	{.name = "data-atime",
	 .mechanism = "the time of access, by reading",
	 .run = touch_by_reading,
	 .arg = "data.old",
	 .effect = EFFECT_HIT,
	 .prepare = age_the_input,
	 .judge = judge_access_time},
};

const struct attack_family inputs_change = {.name = "inputs", .title = "inputs and files", FAMILY(table)};
