/*
 * older_landlock ABI -- COMMAND…: the command on a host whose Landlock says that it is of that ABI. Who asks for the version is
 * answered by us; what a newer one can do it still can, and is not used.
 */
#include <err.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* landlock_create_ruleset(…, LANDLOCK_CREATE_RULESET_VERSION) */
static struct sock_filter code[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_landlock_create_ruleset, 0, 3),
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 1),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

static void answer(int listener, int abi)
{
	struct seccomp_notif asked = {0};
	struct seccomp_notif_resp reply = {.val = abi};

	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) < 0)
		return;
	reply.id = asked.id;
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &reply) < 0 && errno != ENOENT)
		err(1, "cannot answer");
}

int main(int argc, char **argv)
{
	struct sock_fprog program = {sizeof code / sizeof code[0], code};
	int abi = argc > 3 ? atoi(argv[1]) : 0, said[2], listener, status = 0;
	struct pollfd p = {.events = POLLIN};
	pid_t pid;

	if (!abi || pipe(said) < 0)
		errx(2, "usage: older_landlock ABI -- COMMAND…");
	/* One table of descriptors until it executes: its listener is ours. */
	pid = (pid_t)syscall(SYS_clone, CLONE_FILES | SIGCHLD, NULL, NULL, NULL, NULL);
	if (pid == 0) {
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
			err(1, "no_new_privs");
		listener = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
					SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
		if (listener < 0 || write(said[1], &listener, sizeof listener) != sizeof listener)
			err(1, "cannot listen");
		execvp(argv[3], argv + 3);
		err(127, "%s", argv[3]);
	}
	if (pid < 0 || read(said[0], &p.fd, sizeof p.fd) != sizeof p.fd)
		err(1, "cannot start");
	close(said[0]);
	close(said[1]);
	while (poll(&p, 1, -1) >= 0 && !(p.revents & POLLHUP))
		answer(p.fd, abi);
	if (waitpid(pid, &status, 0) < 0)
		err(1, "cannot wait");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
