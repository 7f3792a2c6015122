#include "launch.h"
#include "clone.h"
#include "embedded.h"
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Everything between clone and exec: shared memory, so only system calls, no lock is ever taken, and the child writes
 * to nothing but error. */
struct launch {
	int init;	   /* memfd */
	const int *source; /* descriptor that becomes number i, or -1 */
	bool keep_capabilities;
	int error;
};

static long child_keep_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	/* In the new user namespace we have every capability, but no uid 0: only ambient ones survive the exec. */
	if (syscall(SYS_capget, &header, data) < 0)
		return -1;
	data[0].inheritable = data[0].permitted;
	data[1].inheritable = data[1].permitted;
	if (syscall(SYS_capset, &header, data) < 0)
		return -1;
	for (int cap = 0; cap < 64; cap++)
		if (data[cap / 32].permitted & 1U << cap % 32 &&
		    syscall(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0) < 0)
			return -1;
	return 0;
}

static long child_place_descriptors(const struct launch *l)
{
	int source[INIT_FD_END];
	long init;

	/* First out of the way of every target, then into place. */
	for (int i = 0; i < INIT_FD_END; i++) {
		source[i] = -1;
		if (l->source[i] >= 0 &&
		    (source[i] = (int)syscall(SYS_fcntl, l->source[i], F_DUPFD, INIT_FD_END + 1)) < 0)
			return -1;
	}
	init = syscall(SYS_fcntl, l->init, F_DUPFD, INIT_FD_END + 1);
	for (int i = 0; i < INIT_FD_END; i++) {
		if (source[i] < 0)
			syscall(SYS_close, i);
		else if (syscall(SYS_dup3, source[i], i, 0) < 0)
			return -1;
	}
	if (init < 0 || syscall(SYS_dup3, init, INIT_FD_END, O_CLOEXEC) < 0)
		return -1;
	return syscall(SYS_close_range, INIT_FD_END + 1, ~0U, 0);
}

__attribute__((no_sanitize("address", "undefined", "thread"))) static int child_main(void *arg)
{
	static char *const argv[] = {(char *)"fumehood-init", NULL}, *const env[] = {NULL};
	struct launch *l = arg;

	if ((!l->keep_capabilities || child_keep_capabilities() == 0) && child_place_descriptors(l) == 0)
		syscall(SYS_execveat, INIT_FD_END, "", argv, env, AT_EMPTY_PATH);
	l->error = errno;
	syscall(SYS_exit, 127);
	return 127;
}

/*
 * CLONE_VM | CLONE_VFORK: nothing of a large caller is copied, and we go on when init has been executed. No exit signal
 * until then; an exec makes it SIGCHLD again, so that the caller's own waitpid(-1) may meet it, and may have it: what we
 * need to know comes from the pidfd and from init's report.
 */
static int launch_clone(struct launch *l, int namespaces, pid_t *ret_pid, int *ret_pidfd, struct error *err)
{
	enum { STACK = 64 * 1024 };
	int flags = CLONE_VM | CLONE_VFORK | CLONE_PIDFD | namespaces;
	bool userns = namespaces & CLONE_NEWUSER;
	char *stack =
		mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	sigset_t all, before;
	int pidfd = -1, saved;
	pid_t pid;

	if (stack == MAP_FAILED)
		return error_memory(err);
	l->keep_capabilities = userns;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pid = clone(child_main, stack + STACK, flags, l, &pidfd);
	saved = errno;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	munmap(stack, STACK);
	if (pid < 0)
		return error_system(err, saved, "cannot start a process in new namespaces");
	if (l->error) {
		waitpid(pid, NULL, __WALL);
		fd_close(pidfd);
		return error_system(err, l->error, "cannot execute init from memory");
	}
	*ret_pid = pid;
	*ret_pidfd = pidfd;
	return 0;
}

static int namespaces_of(const struct sandbox *s, bool userns)
{
	if (s->bare)
		return 0;
	/* The network namespace, which costs more than all the others together, init makes itself: meanwhile we go on. */
	return CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | (userns ? CLONE_NEWUSER : 0);
}

/* A socket pair: the end that stays is the sandbox's own. */
static int channel_open(int type, int *ret_ours, int *ret_inits, struct error *err)
{
	int pair[2];

	if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, pair) < 0)
		return error_system(err, errno, "cannot make a socket pair");
	*ret_ours = pair[0];
	*ret_inits = pair[1];
	return 0;
}

int init_launch(struct sandbox *s, bool userns, int source[INIT_FD_END], const struct buffer *spec,
		struct error *err)
{
	_cleanup_close_ int init = -1, blob = -1, self = -1, control_end = -1, report_end = -1;
	struct launch l = {.source = source};
	int r;

	blob = file_in_memory("fumehood-spec", spec->data, spec->size, false, err);
	if (blob < 0)
		return blob;
	init = file_in_memory("fumehood-init", embedded_init, embedded_init_size, true, err);
	if (init < 0)
		return init;
	self = (int)syscall(SYS_pidfd_open, getpid(), 0);
	if (self < 0)
		return error_system(err, errno, "cannot open a descriptor of this process");
	/* Sockets: a descriptor may come through the second, which keeps messages apart as well; and writing to the first
	 * when init is dead is no SIGPIPE for our caller. */
	r = channel_open(SOCK_STREAM, &s->control_fd, &control_end, err);
	if (r < 0)
		return r;
	r = channel_open(SOCK_SEQPACKET, &s->report_fd, &report_end, err);
	if (r < 0)
		return r;
	l.init = init;
	source[INIT_FD_CONTROL] = control_end;
	source[INIT_FD_REPORT] = report_end;
	source[INIT_FD_SPEC] = blob;
	source[INIT_FD_SUPERVISOR] = self;
	/* Its ends of the channels are closed here as we return: only init has them then. */
	return launch_clone(&l, namespaces_of(s, userns), &s->init.pid, &s->pidfd, err);
}

int init_tell(const struct sandbox *s, char byte)
{
	ssize_t n;

	do
		n = send(s->control_fd, &byte, 1, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n == 1 ? 0 : -errno;
}

int init_let_go(const struct sandbox *s, struct error *err)
{
	int r = init_tell(s, CONTROL_GO);

	return r < 0 ? error_system(err, -r, "cannot speak to init") : 0;
}
