#include "probe.h"
#include "error.h"
#include "file.h"
#include "idmap.h"
#include "sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- here: calls that change nothing ---- */

/* Whether the call is there is asked, not how it ends: a table of files that is full is another matter. */
static int refused(long r)
{
	return r < 0 && (errno == EPERM || errno == EACCES || errno == ENOSYS) ? errno : 0;
}

static int refused_fd(long fd)
{
	int errnum = refused(fd);

	fd_close((int)fd);
	return errnum;
}

static int try_openat2(void)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS};

	return refused_fd(syscall(SYS_openat2, AT_FDCWD, "/", &how, sizeof how));
}

static int try_pidfd_open(void)
{
	return refused_fd(syscall(SYS_pidfd_open, getpid(), 0));
}

/* Of no descriptor that there can be. */
static int try_close_range(void)
{
	return refused(syscall(SYS_close_range, ~0U, ~0U, 0));
}

static int try_prlimit(void)
{
	struct rlimit64 now;

	return refused(syscall(SYS_prlimit64, 0, RLIMIT_CORE, NULL, &now));
}

/* Executes nothing: it finds no such descriptor. */
static int try_execveat(void)
{
	static char *const none[] = {NULL};

	return refused(syscall(SYS_execveat, -1, "", none, none, AT_EMPTY_PATH));
}

static int try_signalfd(void)
{
	uint64_t none = 0;

	return refused_fd(syscall(SYS_signalfd4, -1, &none, sizeof none, SFD_CLOEXEC));
}

static int try_memory(void)
{
	struct error ignored = ERROR_INIT;
	int fd = file_in_memory("fumehood-probe", "", 1, true, &ignored);

	fd_close(fd);
	return fd < 0 ? -fd : 0;
}

static int try_landlock(void)
{
	return syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) < 0 ? errno : 0;
}

/* ---- in the child: system calls, and nothing that a thread of the parent could have locked ---- */

static int done(long r)
{
	return r < 0 ? errno : 0;
}

static int try_nothing(void)
{
	return 0;
}

static int try_capset(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct same[2];

	return syscall(SYS_capget, &header, same) < 0 ? errno : done(syscall(SYS_capset, &header, same));
}

static int try_setgroups(void)
{
	return done(syscall(SYS_setgroups, 0, NULL));
}

static int try_unshare(void)
{
	return done(syscall(SYS_unshare, CLONE_NEWUSER));
}

static int try_loopback(void)
{
	struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return fd < 0 ? errno : done(ioctl(fd, SIOCSIFFLAGS, &request));
}

/* A file system of this type, with one option and one flag; its descriptor, or -1. */
static int make(const char *type, const char *key, const char *value, const char *flag)
{
	int context = (int)syscall(SYS_fsopen, type, FSOPEN_CLOEXEC);

	if (context < 0 || (flag && syscall(SYS_fsconfig, context, FSCONFIG_SET_FLAG, flag, NULL, 0) < 0) ||
	    (key && syscall(SYS_fsconfig, context, FSCONFIG_SET_STRING, key, value, 0) < 0) ||
	    syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -1;
	return (int)syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC, 0);
}

static int mount_private(void)
{
	return (int)syscall(SYS_mount, NULL, "/", NULL, 0x4000 /* MS_REC */ | 0x40000 /* MS_PRIVATE */, NULL);
}

/* At /tmp, as init has it; its descriptor, or -1. */
static int mount_tmpfs(void)
{
	int fd = mount_private() < 0 ? -1 : make("tmpfs", "mode", "0700", NULL);

	if (fd < 0 || syscall(SYS_move_mount, fd, "", AT_FDCWD, "/tmp", MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return -1;
	return fd;
}

static int try_mounts(void)
{
	return done(mount_tmpfs());
}

static int try_root(void)
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};
	int fd = mount_tmpfs();

	if (fd < 0 || fchdir(fd) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 ||
	    syscall(SYS_umount2, ".", 2 /* MNT_DETACH */) < 0)
		return errno;
	return done(syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH, &attr, sizeof attr));
}

static int try_proc(void)
{
	return mount_private() < 0 ? errno : done(make("proc", NULL, NULL, NULL));
}

static int try_overlay(void)
{
	if (mount_tmpfs() < 0 || mkdir("/tmp/a", 0700) < 0 || mkdir("/tmp/b", 0700) < 0)
		return errno;
	return done(make("overlay", "lowerdir", "/tmp/a:/tmp/b", "userxattr"));
}

static int try_seccomp(void)
{
	struct sock_filter allow[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	struct sock_fprog program = {.len = 1, .filter = allow};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return errno;
	return done(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program));
}

/* ---- the table ---- */

static const struct {
	const char *name;
	int (*in_child)(void);
	int (*here)(void); /* instead */
	int flags;	   /* namespaces of that child, beside the user namespace */
	bool alone;	   /* no namespace is needed */
} rows[PROBE_COUNT] = {
	[PROBE_OPENAT2] = {"system call openat2", .here = try_openat2},
	[PROBE_PIDFD_OPEN] = {"system call pidfd_open", .here = try_pidfd_open},
	[PROBE_CLOSE_RANGE] = {"system call close_range", .here = try_close_range},
	[PROBE_PRLIMIT] = {"system call prlimit64", .here = try_prlimit},
	[PROBE_EXECVEAT] = {"system call execveat", .here = try_execveat},
	[PROBE_SIGNALFD] = {"system call signalfd4", .here = try_signalfd},
	[PROBE_CAPSET] = {"system call capset", try_capset, .alone = true},
	[PROBE_SETGROUPS] = {"system call setgroups", try_setgroups, .alone = true},
	[PROBE_MEMORY] = {"programs in memory", .here = try_memory},
	[PROBE_USER] = {"user namespace", try_nothing},
	[PROBE_UNSHARE] = {"system call unshare", try_unshare, .alone = true},
	[PROBE_IDENTITY] = {"identity", try_nothing},
	[PROBE_PROCESSES] = {"pid, ipc and uts namespaces", try_nothing,
			     .flags = CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS},
	[PROBE_NETWORK] = {"network namespace", try_loopback, .flags = CLONE_NEWNET},
	[PROBE_MOUNTS] = {"mount namespace", try_mounts, .flags = CLONE_NEWNS},
	[PROBE_ROOT] = {"root directory", try_root, .flags = CLONE_NEWNS},
	[PROBE_PROC] = {"fresh /proc", try_proc, .flags = CLONE_NEWNS | CLONE_NEWPID},
	[PROBE_OVERLAY] = {"overlays", try_overlay, .flags = CLONE_NEWNS},
	[PROBE_SECCOMP] = {"seccomp", try_seccomp, .alone = true},
	[PROBE_LANDLOCK] = {"landlock", .here = try_landlock},
};

const char *probe_name(enum probe which)
{
	return rows[which].name;
}

bool probe_is_required(enum probe which, bool bare)
{
	if (which == PROBE_LANDLOCK)
		return bare;
	return !bare || which < PROBE_USER || which > PROBE_OVERLAY;
}

/* ---- in the parent ---- */

struct talk {
	int go[2], answer[2];
};

__attribute__((noreturn)) static void child_main(enum probe which, const struct talk *t)
{
	int errnum;
	char c;

	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	close(t->go[1]);
	if (read(t->go[0], &c, 1) != 1)
		_exit(1);
	errnum = rows[which].in_child();
	(void)!write(t->answer[1], &errnum, sizeof errnum);
	_exit(0);
}

/* As fork(), into new namespaces, without the handlers of a fork: what it does is system calls. Without an exit signal: a host
 * program that waits for its own children does not meet it. */
static pid_t child_start(enum probe which, bool userns, const struct talk *t)
{
	int flags = rows[which].flags |
		    (which == PROBE_USER || (userns && !rows[which].alone) ? CLONE_NEWUSER : 0);
	sigset_t all, before;
	pid_t pid;
	int saved;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pid = (pid_t)syscall(SYS_clone, flags, NULL, NULL, NULL, NULL);
	if (pid == 0)
		child_main(which, t);
	saved = errno;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = saved;
	return pid;
}

static int child_ask(enum probe which, const struct probe_identity *who, const struct talk *t)
{
	struct error ignored = ERROR_INIT;
	pid_t pid = child_start(which, who->userns, t);
	int errnum, r = 0;

	if (pid < 0)
		return errno;
	if (who->userns && !rows[which].alone && which != PROBE_USER)
		r = identity_map(pid, SANDBOX_UID, who->uid, SANDBOX_GID, who->gid, &ignored);
	if (r < 0 || write(t->go[1], "", 1) != 1)
		kill(pid, SIGKILL);
	/* It has answered when it is gone, or died of what it tried. */
	while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	if (r < 0)
		return -r;
	return read(t->answer[0], &errnum, sizeof errnum) == sizeof errnum ? errnum : EIO;
}

static int try_in_child(enum probe which, const struct probe_identity *who)
{
	struct talk t;
	int errnum;

	if (pipe2(t.go, O_CLOEXEC) < 0)
		return errno;
	if (pipe2(t.answer, O_CLOEXEC | O_NONBLOCK) < 0) {
		errnum = errno;
	} else {
		errnum = child_ask(which, who, &t);
		fd_close(t.answer[0]);
		fd_close(t.answer[1]);
	}
	fd_close(t.go[0]);
	fd_close(t.go[1]);
	return errnum;
}

int probe_try_here(enum probe which)
{
	return rows[which].here ? rows[which].here() : 0;
}

int probe_try(enum probe which, const struct probe_identity *who)
{
	if (rows[which].here)
		return rows[which].here();
	if (which == PROBE_SETGROUPS && who->uid == geteuid())
		return 0;
	/* As root the analysis enters one in the end, with a uid that can always be mapped; anybody else is born in it. */
	if (which == (who->userns ? PROBE_UNSHARE : PROBE_IDENTITY))
		return 0;
	return try_in_child(which, who);
}
