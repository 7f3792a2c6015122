/*
 * Init where there are no namespaces (--strength landlock): Landlock and the filter are the walls, and init is not PID 1 but who
 * inherits the command's orphans. When it ends, nobody ends the others: it does so itself, and then waits until it has no child.
 *
 * From Landlock's ABI 6 on, init is in a domain of its own out of which no signal leads: its kill(-1) reaches whom it has started,
 * all of them at once, and nobody else; and the command, in a domain below, reaches neither init nor anybody outside. Before that
 * init kills its children until there are none: who has lost his parent becomes one.
 */
#include "fs.h"
#include "init.h"
#include "landlock.h"

#include <asm/signal.h>
#include <asm/stat.h>
#include <linux/fcntl.h>
#include <linux/openat2.h>
#include <linux/prctl.h>
#include <linux/time.h>
#include <linux/wait.h>

enum { CHILDREN_TEXT = 4096, PAUSE_NS = 50000 };

static int signals_are_scoped;
static int children = -1; /* the list of them; before ABI 6 */

/* As root somebody of its own, as everywhere; else who we are already. */
static void identity_take(void)
{
	long r = 0;

	if (SYS0(__NR_geteuid) != spec->uid) {
		/* As long as we may: without it, it is only no_new_privs that keeps them away. */
		for (int cap = 0; SYS5(__NR_prctl, PR_CAPBSET_DROP, cap, 0, 0, 0) >= 0;)
			cap++;
		r = SYS2(__NR_setgroups, 0, 0);
		if (r >= 0)
			r = SYS3(__NR_setresgid, spec->gid, spec->gid, spec->gid);
		if (r >= 0)
			r = SYS3(__NR_setresuid, spec->uid, spec->uid, spec->uid);
		layer(0, "user namespace", "none: a uid of its own");
	} else {
		layer(0, "user namespace", "none: it is who called it, with all groups");
	}
	if (r < 0)
		fail("take the analysis's identity", NULL, r);
}

static void rule_make(int ruleset, const struct spec_mount *m)
{
	const char *source = spec_string(m->kind == MOUNT_PROC ? m->target : m->source);
	long fd = open_how(AT_FDCWD, source, O_PATH, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS), r;
	struct stat st;

	if (fd == -ENOENT && m->flags & SPEC_OPTIONAL)
		return;
	if (fd < 0)
		fail("open", source, fd);
	r = SYS2(__NR_fstat, fd, &st);
	if (r < 0)
		fail("look at", source, r);
	if (m->inode && (st.st_ino != m->inode || st.st_dev != m->device))
		fail("use a path that was replaced by another file a moment ago:", source, -ESTALE);
	landlock_open(ruleset, (int)fd, source, is_directory((int)fd),
		      m->kind == MOUNT_DEVICE	 ? LANDLOCK_DEVICE
		      : m->flags & SPEC_WRITABLE ? LANDLOCK_WRITE
						 : LANDLOCK_READ);
	SYS1(__NR_close, fd);
}

static int rules_make(long abi)
{
	const struct spec_mount *m = spec_at(spec->mounts);
	int ruleset = landlock_closed(abi);

	for (uint32_t i = 0; i < spec->n_mounts; i++)
		rule_make(ruleset, &m[i]);
	landlock_say(abi);
	return ruleset;
}

static void children_open(void)
{
	long fd = SYS4(__NR_openat, AT_FDCWD, "/proc/thread-self/children", O_RDONLY | O_CLOEXEC, 0);

	if (fd < 0)
		fail("see its children in", "/proc/thread-self/children", fd);
	children = (int)fd;
}

int bare_begin(void)
{
	long abi = landlock_abi(), r;
	int ruleset;

	if (abi < 3)
		fail("do without namespaces: that needs Landlock of ABI 3", NULL, -EOPNOTSUPP);
	/* Out of the caller's group and terminal: what is typed there is not for us. */
	SYS0(__NR_setsid);
	r = SYS5(__NR_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	if (r < 0)
		fail("inherit the command's orphans", NULL, r);
	if (await_control() != CONTROL_GO)
		SYS1(__NR_exit_group, 1);
	ruleset = rules_make(abi);
	identity_take();
	SYS5(__NR_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (abi >= 6) {
		landlock_scope_signals();
		signals_are_scoped = 1;
	} else {
		children_open();
	}
	layer(signals_are_scoped, "signals",
	      signals_are_scoped
		      ? "to nobody but itself"
		      : "before Landlock's ABI 6: to every process of the same user, its keeper too");
	return ruleset;
}

/* Nobody but the supervisor and the clock ends us; who may has SIGKILL. */
void bare_settle(void)
{
	struct {
		void (*handler)(int);
		unsigned long flags;
		void (*restorer)(void);
		unsigned long mask;
	} ignore = {.handler = (void (*)(int))1 /* SIG_IGN */};

	for (int i = 1; i <= 64; i++)
		if (i != SIGCHLD)
			SYS4(__NR_rt_sigaction, i, &ignore, 0, 8);
}

static void children_kill(void)
{
	char text[CHILDREN_TEXT];
	long n = SYS4(__NR_pread64, children, text, sizeof text, 0), pid = 0;

	/* The last number may be cut off: then it comes again. */
	for (long i = 0; i < n; i++) {
		if (text[i] >= '0' && text[i] <= '9') {
			pid = pid * 10 + text[i] - '0';
			continue;
		}
		if (pid > 1)
			SYS2(__NR_kill, pid, SIGKILL);
		pid = 0;
	}
}

void bare_end(void)
{
	struct __kernel_timespec wait = {.tv_nsec = PAUSE_NS};
	long r;

	for (;;) {
		if (signals_are_scoped)
			SYS2(__NR_kill, -1, SIGKILL);
		else
			children_kill();
		do
			r = SYS4(__NR_wait4, -1, 0, WNOHANG | __WALL, 0);
		while (r > 0);
		if (r == -ECHILD)
			return;
		SYS5(__NR_ppoll, 0, 0, &wait, 0, 8);
	}
}
