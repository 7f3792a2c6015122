#include "cause.h"
#include "ability.h"
#include "file.h"
#include "mountinfo.h"
#include "sandbox.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

/* ---- what the host says of itself; absent: not so ---- */

enum { FACT_ROOM = 128 };

/* The first line of a small file. */
static bool fact_read(const char *path, char out[FACT_ROOM])
{
	ssize_t n = file_read_small(AT_FDCWD, path, out, FACT_ROOM);

	if (n <= 0)
		return false;
	out[strcspn(out, "\n")] = 0;
	return true;
}

static bool sysctl_is(const char *path, char value)
{
	char text[FACT_ROOM];

	return fact_read(path, text) && text[0] == value && !text[1];
}

static bool always(UNUSED char out[FACT_ROOM])
{
	return true;
}

static bool userns_are_none(UNUSED char out[FACT_ROOM])
{
	return sysctl_is("/proc/sys/user/max_user_namespaces", '0');
}

static bool userns_are_counted(char out[FACT_ROOM])
{
	return fact_read("/proc/sys/user/max_user_namespaces", out);
}

/* Debian's own switch. */
static bool userns_are_off(UNUSED char out[FACT_ROOM])
{
	return sysctl_is("/proc/sys/kernel/unprivileged_userns_clone", '0');
}

/* Ubuntu's, since 23.10. Who has a profile is named in it; "unconfined" has none. */
static bool apparmor_restricts(UNUSED char out[FACT_ROOM])
{
	return sysctl_is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", '1');
}

/* "docker-default (enforce)". */
static bool apparmor_confines(char out[FACT_ROOM])
{
	char *mode;

	if (!fact_read("/proc/self/attr/apparmor/current", out) && !fact_read("/proc/self/attr/current", out))
		return false;
	mode = strstr(out, " (enforce)");
	if (mode)
		*mode = 0;
	return mode;
}

static bool seccomp_filters(UNUSED char out[FACT_ROOM])
{
	char status[4096];
	const char *line;

	if (file_read_small(AT_FDCWD, "/proc/self/status", status, sizeof status) <= 0)
		return false;
	line = strstr(status, "\nSeccomp:\t");
	return line && line[10] == '2';
}

/* Is it in no line of the map, "FIRST OUTSIDE COUNT"? Then it is the number that everybody without one has. */
static bool id_is_unmapped(const char *path, unsigned id)
{
	char text[4096], *lines = text, *line;
	unsigned first, outside, count;

	if (file_read_small(AT_FDCWD, path, text, sizeof text) < 0)
		return false;
	while ((line = strsep(&lines, "\n")))
		if (sscanf(line, "%u %u %u", &first, &outside, &count) == 3 && id >= first &&
		    id - first < count)
			return false;
	return true;
}

static bool caller_is_unmapped(UNUSED char out[FACT_ROOM])
{
	return id_is_unmapped("/proc/self/uid_map", geteuid()) ||
	       id_is_unmapped("/proc/self/gid_map", getegid());
}

static bool root_lacks_setfcap(UNUSED char out[FACT_ROOM])
{
	return geteuid() == 0 && !ability_has(CAP_SETFCAP);
}

static bool proc_is_masked(char out[FACT_ROOM])
{
	_cleanup_mountinfo_ struct mountinfo mounts = {0};
	struct error ignored = ERROR_INIT;
	const struct mount_point *below;
	size_t at = 0;

	if (mountinfo_load(&mounts, &ignored) < 0 || !(below = mountinfo_below(&mounts, "/proc", &at)))
		return false;
	text_escape_into(out, FACT_ROOM, below->path, strlen(below->path));
	return true;
}

static bool memory_is_noexec(UNUSED char out[FACT_ROOM])
{
	return sysctl_is("/proc/sys/vm/memfd_noexec", '2');
}

static bool kernel_name(char out[FACT_ROOM])
{
	struct utsname u;

	return uname(&u) == 0 && snprintf(out, FACT_ROOM, "%.100s", u.release) > 0;
}

/* Than 5.minor. */
static bool kernel_is_before(int minor, char out[FACT_ROOM])
{
	int major, its_minor;

	return kernel_name(out) && sscanf(out, "%d.%d", &major, &its_minor) == 2 &&
	       (major < 5 || (major == 5 && its_minor < minor));
}

static bool kernel_is_before_5_3(char out[FACT_ROOM])
{
	return kernel_is_before(3, out);
}

static bool kernel_is_before_5_6(char out[FACT_ROOM])
{
	return kernel_is_before(6, out);
}

static bool kernel_is_before_5_9(char out[FACT_ROOM])
{
	return kernel_is_before(9, out);
}

/* ---- the table ---- */

#define ON(which)  (1U << PROBE_##which)
#define NAMESPACES (ON(USER) | ON(IDENTITY) | ON(PROCESSES) | ON(NETWORK) | ON(MOUNTS))
#define MOUNTING   (ON(MOUNTS) | ON(ROOT) | ON(PROC) | ON(OVERLAY))
#define ONE_CALL                                                                                      \
	(ON(OPENAT2) | ON(PIDFD_OPEN) | ON(CLOSE_RANGE) | ON(PRLIMIT) | ON(EXECVEAT) | ON(SIGNALFD) | \
	 ON(CAPSET) | ON(SETGROUPS) | ON(UNSHARE))
#define CALLS (NAMESPACES | MOUNTING | ON(MEMORY) | ON(SECCOMP))

enum { FORBIDDEN = -1, ANY = 0 }; /* for an errno: EPERM or EACCES, whatever it is */

static const char newer_kernel[] = "boot Linux 5.12 or newer";
static const char our_profile[] =
	"start the container with `--security-opt seccomp=seccomp.json`, the file of packaging/containers (docs/HOSTS.md)";
static const char allow_call[] =
	"start the container with `--security-opt seccomp=seccomp.json`, the file of packaging/containers (docs/HOSTS.md), "
	"or allow it where the profile comes from: SystemCallFilter= of a systemd unit";

/* The first that fits counts. {} is what `holds` found. */
static const struct row {
	unsigned probes;
	int errnum;
	bool (*holds)(char out[FACT_ROOM]);
	const char *what, *remedy;
} table[] = {
	{ON(PIDFD_OPEN), ENOSYS, kernel_is_before_5_3,
	 "this kernel ({}) is older than it: it came with Linux 5.3", newer_kernel},
	{ON(OPENAT2), ENOSYS, kernel_is_before_5_6,
	 "this kernel ({}) is older than it: it came with Linux 5.6", newer_kernel},
	{ON(CLOSE_RANGE), ENOSYS, kernel_is_before_5_9,
	 "this kernel ({}) is older than it: it came with Linux 5.9", newer_kernel},
	{ONE_CALL, FORBIDDEN, seccomp_filters,
	 "a seccomp profile forbids it, as an old container runtime's may", allow_call},
	{ONE_CALL, ENOSYS, seccomp_filters, "a seccomp profile hides it, as an old container runtime's may",
	 allow_call},
	{ONE_CALL, ENOSYS, kernel_name, "this kernel ({}) has none", newer_kernel},
	{ONE_CALL, FORBIDDEN, always, "something around this process forbids it, such as a security module",
	 "ask the administrator of this host to allow it (docs/HOSTS.md)"},
	{ON(USER), EPERM, caller_is_unmapped,
	 "the uid or the gid of this process is not mapped in the user namespace that it is in, and who has none makes no other",
	 "map it where that one is made: `unshare -Ur` or `unshare --map-current-user`, not `unshare -U`"},
	{ON(USER), ENOSPC, userns_are_none,
	 "user namespaces are switched off here: user.max_user_namespaces is 0",
	 "as root `sysctl -w user.max_user_namespaces=15000`, and the same line in /etc/sysctl.d for the next boot"},
	{ON(USER), ENOSPC, userns_are_counted,
	 "as many user namespaces as are allowed here or around here are in use: user.max_user_namespaces is {}",
	 "as root raise it with `sysctl -w user.max_user_namespaces=15000`, or wait until some are gone"},
	{ON(USER), EUSERS, always, "user namespaces are nested too deeply",
	 "start fumehood in fewer containers"},
	{NAMESPACES, ENOSPC, always, "this host's limit of namespaces is used up",
	 "as root raise the sysctls user.max_*_namespaces, or wait until some are gone"},
	{ON(USER), FORBIDDEN, userns_are_off,
	 "ordinary users may make no user namespaces here: kernel.unprivileged_userns_clone is 0",
	 "as root `sysctl -w kernel.unprivileged_userns_clone=1`, and the same line in /etc/sysctl.d for the next boot"},
	{NAMESPACES | MOUNTING, FORBIDDEN, apparmor_restricts,
	 "AppArmor lets only programs with a profile use user namespaces here: "
	 "kernel.apparmor_restrict_unprivileged_userns is 1",
	 "install one as root: `fumehood doctor --apparmor >/etc/apparmor.d/fumehood && apparmor_parser -r "
	 "/etc/apparmor.d/fumehood`"},
	{ON(IDENTITY), FORBIDDEN, root_lacks_setfcap,
	 "this root may map no identity into a user namespace without CAP_SETFCAP",
	 "start the container with `--cap-add SETFCAP`, or as an ordinary user (`--user 1000:1000`)"},
	{MOUNTING, FORBIDDEN, apparmor_confines, "the AppArmor profile '{}' forbids to mount",
	 "start the container with `--security-opt apparmor=unconfined`, or allow mount, umount and pivot_root there"},
	{ON(MEMORY), EACCES, memory_is_noexec, "programs in memory are forbidden here: vm.memfd_noexec is 2",
	 "as root `sysctl -w vm.memfd_noexec=1`"},
	/* Before seccomp: under a profile that allows mounts, this is what is left of a container. */
	{ON(PROC), EPERM, proc_is_masked,
	 "/proc is masked, as in a container ('{}' is covered), and then the kernel gives no user namespace a fresh one",
	 "start the container with `--security-opt systempaths=unconfined` (Docker), `--security-opt unmask=ALL` (Podman), "
	 "or `procMount: Unmasked` with `hostUsers: false` (Kubernetes)"},
	{CALLS, FORBIDDEN, seccomp_filters,
	 "a seccomp profile forbids what it takes, as Docker's default does", our_profile},
	{CALLS, ENOSYS, seccomp_filters,
	 "a seccomp profile hides what it takes, as an old container runtime's does", our_profile},
	{ON(USER), FORBIDDEN, always, "this host does not let ordinary users make user namespaces",
	 "ask its administrator to allow them (docs/HOSTS.md), or run as root"},
	{ON(OVERLAY), ENODEV, always, "this kernel has no overlays, through which inputs are shown",
	 "as root `modprobe overlay`, and `overlay` in /etc/modules-load.d for the next boot"},
	{ON(OVERLAY), EPERM, kernel_name,
	 "this kernel ({}) lets no user namespace make overlays, through which inputs are shown",
	 "boot Linux 5.12 or newer"},
	{ON(OVERLAY), EINVAL, kernel_name,
	 "the overlays of this kernel ({}), through which inputs are shown, are too old",
	 "boot Linux 5.12 or newer"},
	{ON(USER), EINVAL, always, "this kernel has no user namespaces",
	 "boot one with CONFIG_USER_NS, or run as root"},
	{NAMESPACES, EINVAL, always, "this kernel lacks a kind of namespace",
	 "boot one with CONFIG_PID_NS, CONFIG_IPC_NS, CONFIG_UTS_NS and CONFIG_NET_NS"},
	{CALLS, ENOSYS, kernel_name, "this kernel ({}) is too old", "boot Linux 5.12 or newer"},
	{ON(LANDLOCK), EOPNOTSUPP, always, "this kernel has it, switched off",
	 "add landlock to lsm= on the kernel's command line, before the others that are there"},
	{ON(LANDLOCK), ANY, seccomp_filters, "a seccomp profile hides it, or this kernel has none",
	 our_profile},
	{ON(LANDLOCK), ANY, always, "this kernel has none",
	 "boot a kernel with CONFIG_SECURITY_LANDLOCK and landlock in lsm="},
	{NAMESPACES, FORBIDDEN, always, "this process may not make namespaces",
	 "give it CAP_SYS_ADMIN and CAP_NET_ADMIN, or let an ordinary user run it"},
};

static bool fits(const struct row *row, enum probe which, int errnum, char fact[FACT_ROOM])
{
	if (!(row->probes & 1U << which))
		return false;
	if (row->errnum == FORBIDDEN ? errnum != EPERM && errnum != EACCES
				     : row->errnum != ANY && row->errnum != errnum)
		return false;
	return row->holds(fact);
}

/* With what was found in the place of {}. */
static void fill(char *out, size_t room, const char *text, const char *fact)
{
	const char *hole = strstr(text, "{}");

	if (hole)
		snprintf(out, room, "%.*s%s%s", (int)(hole - text), text, fact, hole + 2);
	else
		snprintf(out, room, "%s", text);
}

/* What needs none of it, for who asks for it. */
static void offer_less(enum probe which, struct cause *c)
{
	size_t n = strlen(c->remedy);

	if (which >= PROBE_USER && which <= PROBE_OVERLAY && sandbox_landlock_abi() >= SANDBOX_BARE_ABI)
		snprintf(c->remedy + n, sizeof c->remedy - n,
			 "; --strength landlock needs none of that, and holds less");
}

void cause_find(enum probe which, int errnum, const struct probe_identity *who, struct cause *ret)
{
	char fact[FACT_ROOM] = "";

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (fits(&table[i], which, errnum, fact)) {
			fill(ret->what, sizeof ret->what, table[i].what, fact);
			fill(ret->remedy, sizeof ret->remedy, table[i].remedy, fact);
			offer_less(which, ret);
			return;
		}
	snprintf(ret->what, sizeof ret->what, "it cannot be raised here: %s", strerror(errnum));
	snprintf(ret->remedy, sizeof ret->remedy, "%s",
		 who->userns ? "see docs/HOSTS.md, or run as root" : "see docs/HOSTS.md");
}

static int refuse(enum probe which, int errnum, const struct probe_identity *who, struct error *err)
{
	struct cause cause;

	cause_find(which, errnum, who, &cause);
	return error_refuse_here(err, "no %s: %s; %s", probe_name(which), cause.what, cause.remedy);
}

int cause_check(const struct probe_identity *who, struct error *err)
{
	for (int i = 0; i < PROBE_COUNT; i++) {
		enum probe which = (enum probe)i;
		int errnum = probe_is_required(which, who->bare) ? probe_try(which, who) : 0;

		if (errnum)
			return refuse(which, errnum, who, err);
	}
	return 0;
}

int cause_explain_call(int r, struct error *err)
{
	const struct probe_identity nobody = {0};

	if (!err || (err->kind != ERROR_REFUSED && err->kind != ERROR_SYSTEM))
		return r;
	for (int i = 0; i < PROBE_MEMORY; i++) {
		int errnum = probe_try_here((enum probe)i);

		if (errnum) {
			(void)refuse((enum probe)i, errnum, &nobody, err);
			break;
		}
	}
	return r;
}

int cause_explain(const struct probe_identity *who, int r, struct error *err)
{
	if (err && (err->kind == ERROR_REFUSED || err->kind == ERROR_SYSTEM))
		(void)cause_check(who, err);
	return r;
}
