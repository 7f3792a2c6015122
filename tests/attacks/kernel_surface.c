/*
 * Kernel surface: /proc and /sys, keyrings, cgroups and set-uid files. Control files are only opened for writing, or
 * get the value they have.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <linux/magic.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "act.h"
#include "stage.h"

#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

/* Covered by an empty file, it is no longer of /proc or /sys. Nothing is read: the kernel's log is read only once. */
static int reached_control(int fd, const char *path)
{
	struct statfs fs;
	if (fd < 0 || fstatfs(fd, &fs))
		return -errno;
	if (fs.f_type != PROC_SUPER_MAGIC && fs.f_type != SYSFS_MAGIC && fs.f_type != BINFMTFS_MAGIC)
		return -ENOENT;
	return reached("%s can be opened", path);
}

ACT(open_control)
{
	_cleanup_close_ int fd = open(a->arg, (int)a->number | O_CLOEXEC | O_NONBLOCK);
	return reached_control(fd, a->arg);
}

/* CVE-2025-52881 and its kin: a write meant for one file of /proc lands in another, by way of a link. */
ACT(open_control_by_link)
{
	if (symlink(a->arg, "control"))
		return -errno;
	_cleanup_close_ int fd = open("control", O_WRONLY | O_CLOEXEC);
	return reached_control(fd, a->arg);
}

/* Addresses are zero for those who may not see them. */
ACT(read_symbols)
{
	_cleanup_close_ int fd = open("/proc/kallsyms", O_RDONLY);
	char line[17] = "";
	if (fd < 0 || read(fd, line, 16) != 16)
		return fd < 0 ? -errno : -EIO;
	return strspn(line, "0") == 16 ? -EPERM : reached("the kernel's addresses");
}

static long keyctl(int operation, long a, long b, long c, long d)
{
	return syscall(SYS_keyctl, operation, a, b, c, d);
}

static int show_key(long key)
{
	char secret[256];
	long n = keyctl(KEYCTL_READ, key, (long)secret, sizeof(secret), 0);
	if (n < 0)
		return -errno;
	show(secret, (size_t)n);
	return 0;
}

ACT(read_key)
{
	long key = keyctl(KEYCTL_SEARCH, a->number, (long)"user", (long)targets_text(t, "key"), 0);
	return key < 0 ? -errno : show_key(key);
}

ACT(request_a_key)
{
	long key = syscall(SYS_request_key, "user", targets_text(t, "key"), NULL, 0);
	return key < 0 ? -errno : show_key(key);
}

/* A key needs no keyring: its number, as /proc/keys tells it, is enough. */
ACT(read_numbered_key)
{
	FILE *f = fopen("/proc/keys", "re");
	char line[512];
	int r = -ENOKEY;
	if (!f)
		return -errno;
	while (r && fgets(line, sizeof(line), f))
		if (strstr(line, targets_text(t, "key")))
			r = show_key((long)strtoul(line, NULL, 16));
	fclose(f);
	return r;
}

ACT(add_a_key)
{
	long key = syscall(SYS_add_key, "user", "fumehood-attack-planted", "x", 1, a->number);
	if (key < 0)
		return -errno;
	keyctl(KEYCTL_UNLINK, key, a->number, 0, 0);
	return reached("a key can be added");
}

/* CVE-2024-42318: a session keyring of one's own, then given to the parent, sheds what was bound to the old one. */
ACT(session_to_parent)
{
	if (keyctl(KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0) < 0)
		return -errno;
	return result(keyctl(KEYCTL_SESSION_TO_PARENT, 0, 0, 0, 0));
}

/* CVE-2022-0492: a cgroup v1 hierarchy mounted in namespaces of one's own, and its release_agent. */
ACT(release_agent)
{
	static const char *const hierarchies[] = {"memory", "pids",    "cpu",
						  "rdma",   "devices", "name=systemd,none"};
	if (unshare(CLONE_NEWNS | CLONE_NEWCGROUP) && unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWCGROUP))
		return -errno;
	mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
	mkdir("cgroup", 0755);
	int r = -ENODEV;
	for (size_t i = 0; r && i < ARRAY_SIZE(hierarchies); i++) {
		r = result(mount("cgroup", "cgroup", "cgroup", 0, hierarchies[i]));
		if (r)
			continue;
		_cleanup_close_ int fd = open("cgroup/release_agent", O_WRONLY);
		if (fd < 0)
			fd = open("cgroup/notify_on_release", O_WRONLY);
		r = fd < 0 ? -errno : reached("release_agent of %s", hierarchies[i]);
		umount2("cgroup", MNT_DETACH);
	}
	return r;
}

ACT(leave_cgroup)
{
	static const char *const roots[] = {
		"/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/unified/cgroup.procs",
		"/sys/fs/cgroup/pids/cgroup.procs", "/sys/fs/cgroup/memory/cgroup.procs"};
	for (size_t i = 0; i < ARRAY_SIZE(roots); i++) {
		_cleanup_close_ int fd = open(roots[i], O_WRONLY);
		if (fd >= 0)
			return reached("%s can be opened for writing", roots[i]);
	}
	return -errno;
}

/* A file that runs as the analysis's user, in a directory that everybody can enter. */
static int expose(int r)
{
	chmod(".", 0755);
	if (r >= 0)
		linger(150);
	return r;
}

static int make_plain(void)
{
	_cleanup_close_ int fd = open("setuid", O_WRONLY | O_CREAT, 0755);
	return result(fd);
}

ACT(setuid_chmod)
{
	return expose(make_plain() ?: result(chmod("setuid", 04755)));
}

ACT(setuid_fchmod)
{
	_cleanup_close_ int fd = open("setuid", O_WRONLY | O_CREAT, 0755);
	return expose(result(fchmod(fd, 06755)));
}

ACT(setuid_fchmodat2)
{
	return expose(make_plain() ?: result(syscall(SYS_fchmodat2, AT_FDCWD, "setuid", 04755, 0)));
}

ACT(setuid_open)
{
	_cleanup_close_ int fd = open("setuid", O_WRONLY | O_CREAT, 04755);
	return expose(result(fd));
}

ACT(setuid_openat2)
{
	struct {
		unsigned long long flags, mode, resolve;
	} how = {.flags = O_WRONLY | O_CREAT, .mode = 04755};
	_cleanup_close_ int fd = (int)syscall(SYS_openat2, AT_FDCWD, "setuid", &how, sizeof(how));
	return expose(result(fd));
}

ACT(setuid_mknod)
{
	return expose(result(mknod("setuid", S_IFREG | 04755, 0)));
}

ACT(file_capabilities)
{
	struct {
		unsigned magic, permitted, inheritable, permitted_high, inheritable_high;
	} caps = {.magic = 0x02000001, .permitted = 1U << 21};
	int r = make_plain() ?: result(setxattr("setuid", "security.capability", &caps, sizeof(caps), 0));
	return r ? r : expose(reached("a file with capabilities"));
}

static bool dangerous(const char *path)
{
	struct stat st;
	return !lstat(path, &st) && S_ISREG(st.st_mode) && (st.st_mode & (S_ISUID | S_ISGID));
}

static void look_for_setuid(struct stage *s)
{
	struct stat top;
	if (!stat(stage_workspace(s), &top) && (top.st_mode & 001) &&
	    dangerous(text("%s/setuid", stage_workspace(s))))
		stage_hit(s, "a set-uid file that every user of the host can execute");
}

static void look_for_setuid_output(struct stage *s)
{
	look_for_setuid(s);
	if (dangerous(text("%s/setuid", stage_into(s))))
		stage_hit(s, "an output came out with its set-uid bit");
}

#define WRITE(n, path, ...)                                                                           \
	{                                                                                             \
		.name = n, .mechanism = path " opened for writing", .run = open_control, .arg = path, \
		.number = O_WRONLY, .effect = EFFECT_CLAIM, __VA_ARGS__                               \
	}
#define READ(n, path, ...)                                                                            \
	{                                                                                             \
		.name = n, .mechanism = path " opened for reading", .run = open_control, .arg = path, \
		.number = O_RDONLY, .effect = EFFECT_CLAIM, __VA_ARGS__                               \
	}
#define SETUID(n, how, fn)                                                                                \
	{                                                                                                 \
		.name = n, .mechanism = "a set-uid file for other users of the host, by " how, .run = fn, \
		.effect = EFFECT_HIT, .flags = COLLECTED, .during = look_for_setuid,                      \
		.judge = look_for_setuid_output                                                           \
	}

static const struct attack table[] = {
	WRITE("core-pattern", "/proc/sys/kernel/core_pattern", .flags = ROOT_ONLY),
	{.name = "core-pattern-link",
	 .mechanism = "core_pattern by way of a link, mechanism of CVE-2025-31133 and CVE-2025-52881",
	 .run = open_control_by_link,
	 .arg = "/proc/sys/kernel/core_pattern",
	 .effect = EFFECT_CLAIM,
	 .flags = ROOT_ONLY},
	WRITE("modprobe", "/proc/sys/kernel/modprobe", .flags = ROOT_ONLY),
	WRITE("sysrq-trigger", "/proc/sysrq-trigger", .flags = ROOT_ONLY),
	WRITE("drop-caches", "/proc/sys/vm/drop_caches", .flags = ROOT_ONLY),
	WRITE("binfmt-misc", "/proc/sys/fs/binfmt_misc/register", .flags = ROOT_ONLY),
	WRITE("uevent-helper", "/sys/kernel/uevent_helper", .flags = ROOT_ONLY),
	WRITE("sys-power", "/sys/power/state", .flags = ROOT_ONLY),
	WRITE("cpu-online", "/sys/devices/system/cpu/cpu1/online", .flags = ROOT_ONLY),
	READ("kcore", "/proc/kcore", .flags = ROOT_ONLY),
	READ("kmsg", "/proc/kmsg", .flags = ROOT_ONLY),
	READ("proc-keys", "/proc/keys"),
	READ("timer-list", "/proc/timer_list", .flags = ROOT_ONLY),
	READ("sys-kernel", "/sys/kernel/vmcoreinfo"),
	READ("sys-firmware", "/sys/firmware/acpi/tables/DSDT", .flags = ROOT_ONLY),
	{.name = "kallsyms",
	 .mechanism = "the kernel's addresses in /proc/kallsyms",
	 .run = read_symbols,
	 .effect = EFFECT_CLAIM,
	 .flags = ROOT_ONLY},
	{.name = "key-session",
	 .mechanism = "the supervisor's session keyring",
	 .run = read_key,
	 .number = KEY_SPEC_SESSION_KEYRING,
	 .effect = EFFECT_SECRET},
	{.name = "key-user",
	 .mechanism = "the user's keyring",
	 .run = read_key,
	 .number = KEY_SPEC_USER_KEYRING,
	 .effect = EFFECT_SECRET},
	{.name = "key-request", .mechanism = "request_key()", .run = request_a_key, .effect = EFFECT_SECRET},
	{.name = "key-number",
	 .mechanism = "a key by its number",
	 .run = read_numbered_key,
	 .effect = EFFECT_SECRET},
	{.name = "key-add",
	 .mechanism = "add_key() to the user's keyring",
	 .run = add_a_key,
	 .number = KEY_SPEC_USER_KEYRING,
	 .effect = EFFECT_CLAIM},
	{.name = "key-session-to-parent",
	 .mechanism = "keyctl(KEYCTL_SESSION_TO_PARENT), CVE-2024-42318",
	 .run = session_to_parent,
	 .effect = EFFECT_HIT},
	{.name = "release-agent",
	 .mechanism = "a cgroup v1 release_agent, CVE-2022-0492",
	 .run = release_agent,
	 .effect = EFFECT_CLAIM,
	 .flags = ROOT_ONLY},
	{.name = "leave-cgroup",
	 .mechanism = "cgroup.procs of the root cgroup",
	 .run = leave_cgroup,
	 .effect = EFFECT_CLAIM,
	 .flags = ROOT_ONLY},
	SETUID("setuid-chmod", "chmod()", setuid_chmod),
	SETUID("setuid-fchmod", "fchmod()", setuid_fchmod),
	SETUID("setuid-fchmodat2", "fchmodat2()", setuid_fchmodat2),
	SETUID("setuid-open", "the mode of open()", setuid_open),
	SETUID("setuid-openat2", "the mode of openat2(), hidden in memory", setuid_openat2),
	SETUID("setuid-mknod", "the mode of mknod()", setuid_mknod),
	{.name = "file-capabilities",
	 .mechanism = "a file with capabilities",
	 .run = file_capabilities,
	 .effect = EFFECT_CLAIM,
	 .flags = ROOT_ONLY},
};

const struct attack_family kernel_surface = {.name = "kernel", .title = "kernel surface", FAMILY(table)};
