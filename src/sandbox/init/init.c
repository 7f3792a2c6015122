#include "init.h"

#include <asm/signal.h>
#include <linux/close_range.h>
#include <linux/fcntl.h>
#include <linux/mman.h>
#include <linux/poll.h>
#include <linux/prctl.h>
#include <linux/resource.h>
#include <linux/sched.h>
#include <linux/signalfd.h>
#include <linux/stat.h>
#include <linux/time.h>
#include <linux/wait.h>

const struct spec *spec;

/* The child that becomes the command shares our memory until it has executed it: how far it came. */
static struct {
	int failed; /* a wall could not be raised, and has been reported */
	int exec_errno;
} outcome;

void *memset(void *to, int c, size_t n)
{
	char *p = to;

	while (n--)
		*p++ = (char)c;
	return to;
}

void *memcpy(void *to, const void *from, size_t n)
{
	char *p = to;
	const char *q = from;

	while (n--)
		*p++ = *q++;
	return to;
}

size_t strlen(const char *s)
{
	size_t n = 0;

	while (s[n])
		n++;
	return n;
}

void die(int status)
{
	for (;;)
		SYS1(__NR_exit_group, status);
}

/* What stands is told together with what is told next: each message wakes the supervisor up. */
static struct report waiting[REPORTS_MAX];
static uint32_t n_waiting;

static void report_later(const struct report *r)
{
	if (n_waiting == REPORTS_MAX - 1) {
		SYS3(__NR_write, INIT_FD_REPORT, waiting, n_waiting * sizeof *r);
		n_waiting = 0;
	}
	waiting[n_waiting++] = *r;
}

void report(const struct report *r)
{
	report_later(r);
	SYS3(__NR_write, INIT_FD_REPORT, waiting, n_waiting * sizeof *r);
	n_waiting = 0;
}

/* Appends s to text at *at, as much as fits. */
static void put(char *text, size_t room, size_t *at, const char *s)
{
	while (s && *s && *at + 1 < room)
		text[(*at)++] = *s++;
	text[*at] = 0;
}

void layer(int held, const char *name, const char *detail)
{
	struct report r = {.kind = REPORT_LAYER, .value = held};
	size_t at = 0;

	put(r.text, sizeof r.text, &at, name);
	at++;
	put(r.text, sizeof r.text, &at, detail);
	report_later(&r);
}

void fail(const char *what, const char *name, long error)
{
	struct report r = {.kind = REPORT_FAILED, .errnum = (int32_t)-error};
	size_t at = 0;

	put(r.text, sizeof r.text, &at, "cannot ");
	put(r.text, sizeof r.text, &at, what);
	if (name) {
		put(r.text, sizeof r.text, &at, " '");
		put(r.text, sizeof r.text, &at, name);
		put(r.text, sizeof r.text, &at, "'");
	}
	report(&r);
	outcome.failed = 1;
	die(1);
}

void fail_overlay(uint32_t index, long error)
{
	struct report r = {.kind = REPORT_NO_OVERLAY, .value = (int32_t)index, .errnum = (int32_t)-error};

	report(&r);
	die(1);
}

/* Its end of the channel may outlive the supervisor, in a child that it has forked. */
void await_word(void)
{
	struct pollfd fds[] = {
		{.fd = INIT_FD_CONTROL, .events = POLLIN},
		{.fd = INIT_FD_SUPERVISOR, .events = POLLIN},
	};
	long n;

	do
		n = SYS5(__NR_ppoll, fds, 2, NULL, NULL, 8);
	while (n == -EINTR);
	if (n < 0 || fds[1].revents)
		die(1);
}

char await_control(void)
{
	char c;
	long n;

	await_word();
	do
		n = SYS3(__NR_read, INIT_FD_CONTROL, &c, 1);
	while (n == -EINTR);
	if (n != 1)
		die(1);
	return c;
}

char ask(uint32_t kind, int32_t value, long error)
{
	struct report r = {.kind = kind, .value = value, .errnum = (int32_t)-error};

	report(&r);
	return await_control();
}

/* struct msghdr and struct cmsghdr with one descriptor, as the kernel wants them. */
struct descriptor_message {
	size_t length;
	int level, type;
	int fd, pad;
};

void descriptor_send(uint32_t kind, int fd)
{
	struct report r = {.kind = kind};
	struct message_part part = {waiting, 0};
	struct descriptor_message control = {.length = sizeof(size_t) + 3 * sizeof(int),
					     .level = 1 /* SOL_SOCKET */,
					     .type = 1 /* SCM_RIGHTS */,
					     .fd = fd};
	struct message message = {
		.parts = &part, .n_parts = 1, .control = &control, .control_size = sizeof control};
	long n;

	report_later(&r);
	part.size = n_waiting * sizeof r;
	n = SYS3(__NR_sendmsg, INIT_FD_REPORT, &message, 0);
	n_waiting = 0;
	if (n < 0)
		fail("hand over a descriptor", NULL, n);
}

void spec_map(void)
{
	long size = SYS3(__NR_lseek, INIT_FD_SPEC, 0, 2 /* SEEK_END */);
	long at = SYS6(__NR_mmap, 0, size, PROT_READ, MAP_PRIVATE, INIT_FD_SPEC, 0);

	if (size < L(sizeof *spec) || at <= 0)
		die(2);
	spec = (const struct spec *)at;
	if (spec->magic != SPEC_MAGIC || spec->size != (uint64_t)size)
		die(2);
}

/* The network namespace is new and empty; only its loopback is switched on. */
static void loopback_up(void)
{
	/* struct ifreq; the kernel's own header would bring in the C library's. IFF_UP | IFF_RUNNING. */
	struct {
		char name[16];
		short flags;
		char rest[22];
	} request = {.name = "lo", .flags = 0x41};
	long fd = SYS3(__NR_socket, 2 /* AF_INET */, 2 /* SOCK_DGRAM */ | 02000000 /* SOCK_CLOEXEC */, 0), r;

	if (fd < 0)
		fail("open a socket for the loopback interface", NULL, fd);
	r = SYS3(__NR_ioctl, fd, 0x8914 /* SIOCSIFFLAGS */, &request);
	if (r < 0)
		fail("switch on the loopback interface", NULL, r);
	SYS1(__NR_close, fd);
}

/* What the supervisor's host ignores survives an exec: SIGCHLD, without which we would never see the command's end, and
 * whatever else the command would wonder about. */
static void signals_reset(void)
{
	struct {
		void (*handler)(int);
		unsigned long flags;
		void (*restorer)(void);
		unsigned long mask;
	} action = {0};

	for (int i = 1; i <= 64; i++)
		SYS4(__NR_rt_sigaction, i, &action, 0, 8);
}

static void limits_apply(void)
{
	const struct spec_rlimit *limit = spec_at(spec->rlimits);

	for (uint32_t i = 0; i < spec->n_rlimits; i++) {
		uint64_t pair[2] = {limit[i].value, limit[i].value};
		long r = SYS4(__NR_prlimit64, 0, limit[i].resource, pair, 0);

		if (r < 0)
			fail("set a resource limit", NULL, r);
	}
	if (spec->cpus) {
		long r = SYS3(__NR_sched_setaffinity, 0, spec->n_cpus, spec_at(spec->cpus));

		if (r < 0)
			fail("set the CPU affinity", NULL, r);
	}
}

/* "0" means the writer. The files were opened by the supervisor, and its rights count. */
static void cgroups_join(void)
{
	for (uint32_t i = 0; i < spec->n_join; i++) {
		long r = SYS3(__NR_write, INIT_FD_JOIN + i, "0", 1);

		if (r < 0)
			fail("join the cgroup", NULL, r);
	}
	if (spec->n_join && !spec->bare) {
		long r = SYS1(__NR_unshare, CLONE_NEWCGROUP);

		if (r < 0)
			fail("make a cgroup namespace", NULL, r);
	}
}

/* Its own /dev/null, not the host's: as root not even a lock on it is shared. */
static void stdin_from_null(void)
{
	long fd = SYS4(__NR_openat, AT_FDCWD, "/dev/null", O_RDONLY, 0), r;

	r = fd < 0 ? fd : SYS3(__NR_dup3, fd, 0, 0);
	if (r < 0)
		fail("open", "/dev/null", r);
	SYS1(__NR_close, fd);
}

static void pointers(char **out, uint32_t offset, uint32_t count)
{
	const uint32_t *list = spec_at(offset);

	for (uint32_t i = 0; i < count; i++)
		out[i] = (char *)spec_string(list[i]);
	out[count] = NULL;
}

/* From here on it is the command's own process: every wall goes up, then the command. */
static void command_become(int ruleset, char **argv, char **env) __attribute__((noreturn, noinline));
static void command_become(int ruleset, char **argv, char **env)
{
	unsigned long none = 0;
	long r;

	SYS0(__NR_setsid);
	terminal_enter();
	cgroups_join();
	limits_apply();
	SYS4(__NR_rt_sigprocmask, 2 /* SIG_SETMASK */, &none, 0, 8);
	if (spec->stdin_null)
		stdin_from_null();
	SYS1(__NR_umask, 022);
	r = SYS1(__NR_chdir, spec_string(spec->directory));
	if (r < 0)
		fail("enter the workspace", spec_string(spec->directory), r);
	landlock_apply(ruleset);
	privileges_drop();
	filter_apply();
	/* Every descriptor but stdin, stdout and stderr closes as the command is executed. */
	r = SYS3(__NR_execve, spec_string(spec->program), argv, env);
	outcome.exec_errno = (int)-r;
	die(127);
}

/*
 * As vfork does: memory and stack are shared, nothing is copied, and we go on when the child has executed or ended. It only calls
 * further down, and never comes back to this frame, of which nothing but the result is used afterwards.
 */
static long __attribute__((noinline)) command_clone(int ruleset, char **argv, char **env)
{
	long pid = SYS5(__NR_clone, CLONE_VM | CLONE_VFORK | SIGCHLD, 0, 0, 0, 0);

	if (pid == 0)
		command_become(ruleset, argv, env);
	return pid;
}

static int command_start(int ruleset)
{
	uint64_t room = ((uint64_t)spec->n_argv + spec->n_env + 2) * sizeof(char *);
	char **argv =
		(char **)SYS6(__NR_mmap, 0, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char **env = argv + spec->n_argv + 1;
	long pid;

	if (L(argv) < 0 && L(argv) > -4096)
		fail("get memory for the command's arguments", NULL, L(argv));
	pointers(argv, spec->argv, spec->n_argv);
	pointers(env, spec->env, spec->n_env);
	pid = command_clone(ruleset, argv, env);
	if (pid < 0)
		fail("start a process for the command", NULL, pid);
	return (int)pid;
}

/* If the whole machine runs out of memory, the analysis goes first: it inherits this from us, and we take it back. */
static void oom_score(int fd, const char *value)
{
	if (fd >= 0)
		SYS3(__NR_write, fd, value, strlen(value));
}

static uint64_t now(void)
{
	struct __kernel_timespec t = {0};

	SYS2(__NR_clock_gettime, 7 /* CLOCK_BOOTTIME */, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

static uint64_t later(uint64_t start, uint64_t duration)
{
	return duration > UINT64_MAX - start ? UINT64_MAX : start + duration;
}

/* What is dead is reaped a few at a time: those who come faster than that must not keep us from looking at the clock. */
enum { REAP_TURN = 64 };
enum reaped { REAPED_ALL, REAPED_SOME, REAPED_COMMAND };

static enum reaped reap(int command)
{
	for (int i = 0; i < REAP_TURN; i++) {
		struct {
			struct {
				int64_t seconds, micro;
			} user, system;
			int64_t other[14];
		} usage;
		int status;
		long pid = SYS4(__NR_wait4, -1, &status, WNOHANG | __WALL, &usage);
		struct report r = {.kind = REPORT_ENDED};

		if (pid <= 0)
			return REAPED_ALL;
		if (pid != command)
			continue;
		r.value = status;
		r.cpu_user_us = (uint64_t)(usage.user.seconds * 1000000 + usage.user.micro);
		r.cpu_system_us = (uint64_t)(usage.system.seconds * 1000000 + usage.system.micro);
		report(&r);
		return REAPED_COMMAND;
	}
	return REAPED_SOME;
}

/* Nothing but SIGCHLD is blocked while we wait: a blocked signal is queued, and the queue is the user's; without a handler
 * PID 1 ignores what comes from inside. */
static const uint64_t child_mask = 1UL << (SIGCHLD - 1);

/* Before there are any: without it nobody would hear of the command's end. */
static int children_open(void)
{
	long fd = SYS4(__NR_signalfd4, -1, &child_mask, 8, 02000000 | 04000 /* CLOEXEC | NONBLOCK */);

	/* Not where the command's own three are, or were not: those are closed. */
	if (fd >= 0 && fd <= 2)
		fd = SYS3(__NR_fcntl, fd, F_DUPFD_CLOEXEC, 3);
	if (fd < 0)
		fail("watch for the command's end", NULL, fd);
	return (int)fd;
}

/*
 * Waits for the end: of the command, of its time, of the supervisor. When it returns, init exits, and the kernel
 * kills everything that is left in the namespace. The wall clock is kept here, so that it holds even while the
 * supervisor is stopped.
 */
static void command_await(int command, int children, uint64_t started)
{
	uint64_t deadline = later(started, spec->wall_ns);
	enum reaped reaped = REAPED_ALL;
	int terminated = 0;

	SYS4(__NR_rt_sigprocmask, 2 /* SIG_SETMASK */, &child_mask, 0, 8);
	for (;;) {
		struct pollfd fds[] = {
			{.fd = children, .events = POLLIN},
			{.fd = INIT_FD_CONTROL, .events = POLLIN},
			{.fd = INIT_FD_SUPERVISOR, .events = POLLIN},
		};
		struct signalfd_siginfo discard;
		uint64_t t = now(), left = deadline > t ? deadline - t : 0;
		uint64_t pause = reaped == REAPED_SOME ? 0 : left;
		int forever = deadline == UINT64_MAX && reaped == REAPED_ALL;
		struct __kernel_timespec wait = {.tv_sec = (long long)(pause / 1000000000),
						 .tv_nsec = (long long)(pause % 1000000000)};
		int terminate = 0;
		char c;

		if (deadline != UINT64_MAX && left == 0) {
			struct report r = {.kind = REPORT_DEADLINE};

			if (terminated)
				return;
			report(&r);
			terminate = 1;
		} else {
			SYS5(__NR_ppoll, fds, 3, forever ? NULL : &wait, NULL, 8);
		}
		/* Once: it is pending or not, however many have died. */
		SYS3(__NR_read, children, &discard, sizeof discard);
		reaped = reap(command);
		if (reaped == REAPED_COMMAND)
			return;
		if (fds[2].revents)
			return;
		if (fds[1].revents &&
		    (SYS3(__NR_read, INIT_FD_CONTROL, &c, 1) != 1 || c != CONTROL_TERMINATE))
			return;
		else if (fds[1].revents)
			terminate = 1;
		if (terminate && !terminated) {
			terminated = 1;
			deadline = later(now(), spec->grace_ns);
			SYS2(__NR_kill, command, SIGTERM);
		}
	}
}

/* They are new and empty: what is in them, and who we are there. network: 0, or why there is none of its own, which is said
 * when we may speak. The ruleset's descriptor. */
static int namespaces_furnish(long network)
{
	int ruleset;

	SYS2(__NR_sethostname, spec_string(spec->hostname), strlen(spec_string(spec->hostname)));
	if (network == 0)
		loopback_up();
	/* Before this we have touched only what dies with us, and a spare has nothing else. From here on the supervisor's record
	 * names us, so that whoever removes the workspace after a crash first waits for our end. */
	if (!spec->userns_first && !spec->spare && await_control() != CONTROL_GO)
		die(1);
	if (network < 0)
		fail("make a network namespace", NULL, network);
	mounts_begin();
	mounts_add();
	if (spec->spare) {
		spare_wait();
		mounts_add();
	}
	mounts_end();
	layer(1, "network namespace", "loopback only");
	identity_assume();
	ruleset = landlock_prepare();
	layer(1, "pid, ipc and uts namespaces", "the command is not PID 1");
	return ruleset;
}

__attribute__((used)) void init_main(void);
__attribute__((used)) void init_main(void)
{
	uint64_t mask = ~0UL, started;
	struct report r = {0};
	long network;
	int command, children, ruleset, oom;

	SYS4(__NR_rt_sigprocmask, 2 /* SIG_SETMASK */, &mask, 0, 8);
	signals_reset();
	SYS1(__NR_umask, 0); /* the modes of the new root are ours to choose, not the caller's */
	SYS3(__NR_close_range, INIT_FD_CONTROL, ~0U, CLOSE_RANGE_CLOEXEC);
	spec_map();
	network = spec->bare ? 0 : SYS1(__NR_unshare, CLONE_NEWNET);
	if (spec->userns_first && await_control() != CONTROL_GO)
		die(1);
	oom = (int)SYS4(__NR_openat, AT_FDCWD, "/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC, 0);
	ruleset = spec->bare ? bare_begin() : namespaces_furnish(network);
	SYS2(__NR_prctl, PR_SET_DUMPABLE, 0);
	SYS5(__NR_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	children = children_open();
	started = now();
	privileges_bound();
	oom_score(oom, "1000");
	command = command_start(ruleset);
	oom_score(oom, "0");
	if (outcome.failed)
		die(1);
	r.kind = outcome.exec_errno ? REPORT_EXEC : REPORT_STARTED;
	r.errnum = outcome.exec_errno;
	r.value = command;
	report(&r);
	if (outcome.exec_errno)
		die(0);
	/* Its stdin, stdout, stderr are not ours to hold open; nor are rights that are not needed any more. */
	SYS3(__NR_close_range, 0, 2, 0);
	SYS1(__NR_close, oom);
	privileges_drop();
	if (spec->bare)
		bare_settle();
	command_await(command, children, started);
	if (spec->bare)
		bare_end();
	die(0);
}

#if defined(__x86_64__)
__asm__(".globl _start\n_start:\n\txor %ebp, %ebp\n\tand $-16, %rsp\n\tcall init_main\n\thlt\n");
#elif defined(__aarch64__)
__asm__(".globl _start\n_start:\n\tmov x29, #0\n\tmov x30, #0\n\tbl init_main\n\tbrk #0\n");
#endif
