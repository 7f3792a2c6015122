#include "holder.h"
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { HELD_FD = 3, GONE_WAIT_MS = 10000 };

/* Nothing here but system calls: the caller may have threads. */
static _Noreturn void hold(int fd, int tell)
{
	pid_t self;
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	if (setsid() < 0 || chdir("/") < 0)
		_exit(1);
	if (fork() != 0)
		_exit(0);
	prctl(PR_SET_NAME, "fumehood-holder");
	/* Where it is looked for, and nothing else with it. The pipe may be in the way. */
	if (tell == HELD_FD && (tell = dup(tell)) < 0)
		_exit(1);
	if (dup2(fd, HELD_FD) < 0)
		_exit(1);
	self = getpid();
	if (write(tell, &self, sizeof self) != sizeof self)
		_exit(1);
	close_range(0, HELD_FD - 1, 0);
	close_range(HELD_FD + 1, ~0U, 0);
	for (;;)
		pause();
}

int holder_start(int fd, struct process_id *ret, struct error *err)
{
	int tell[2], status;
	pid_t child, pid = 0;
	ssize_t n;

	if (pipe2(tell, O_CLOEXEC) < 0)
		return error_system(err, errno, "cannot make a pipe for the holder of a disk");
	child = fork();
	if (child == 0)
		hold(fd, tell[1]);
	n = child < 0 ? -errno : 0;
	fd_close(tell[1]);
	while (n == 0 && (n = read(tell[0], &pid, sizeof pid)) < 0 && errno == EINTR)
		n = 0;
	fd_close(tell[0]);
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (n != sizeof pid || process_identify(pid, ret) < 0)
		return error_system(err, n < 0 ? (int)-n : ESRCH, "cannot start a process that holds a disk");
	return 0;
}

int holder_open(const struct process_id *holder, int *ret_fd, struct error *err)
{
	_cleanup_close_ int pidfd = process_open(holder), fd = -1;
	char path[64];
	int errnum;

	if (pidfd == -ESRCH)
		return 0;
	if (pidfd < 0)
		return error_system(err, -pidfd, "cannot reach the holder of a disk, process %d",
				    (int)holder->pid);
	snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)holder->pid, HELD_FD);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	errnum = errno;
	/* A pid may be another's as soon as its process is reaped, pidfd or not: the path was its own only if it lives. */
	if (pidfd_wait(pidfd, 0) != -ETIMEDOUT)
		return 0;
	if (fd < 0)
		return error_system(err, errnum, "cannot open the disk that process %d holds",
				    (int)holder->pid);
	*ret_fd = TAKE_FD(fd);
	return 1;
}

void holder_end(const struct process_id *holder)
{
	_cleanup_close_ int pidfd = holder->pid > 0 ? process_open(holder) : -1;

	if (pidfd >= 0 && pidfd_kill(pidfd, SIGKILL) == 0)
		(void)pidfd_wait(pidfd, GONE_WAIT_MS);
}
