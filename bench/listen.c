/*
 * What it costs that somebody listens: the same calls under the filter that refuses by itself and under the one that asks, in turn, each
 * in a child of its own with a listener that nobody else has. Prints nanoseconds a call, the least of all rounds (a busy
 * machine only adds), and their ratio.
 *
 *   listen [ROUNDS]
 */
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "filter.h"

enum { CALLS = 200000, REFUSED = 20000, ROUNDS_MAX = 1001 };

static const char *const names[] = {"getppid", "openat and close", "start and end of a program",
				    "a refused call"};
enum { CASES = sizeof names / sizeof names[0] };

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double measure(int which)
{
	double start = now();
	int n = which == 0 ? CALLS : which == 1 ? CALLS / 4 : which == 2 ? 50 : REFUSED;

	for (int i = 0; i < n; i++) {
		pid_t pid;

		switch (which) {
		case 0:
			syscall(SYS_getppid);
			break;
		case 1:
			close(open("/dev/null", O_RDONLY | O_CLOEXEC));
			break;
		case 2:
			pid = vfork();
			if (pid == 0) {
				execl("/bin/true", "true", (char *)NULL);
				_exit(127);
			}
			waitpid(pid, NULL, 0);
			break;
		default:
			syscall(SYS_unshare, 0x10000000);
		}
	}
	return (now() - start) / n;
}

/* Refuses everything that it is asked about, until nobody can ask. */
static void answer(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	while (poll(&p, 1, -1) > 0 && p.revents & POLLIN) {
		union {
			struct seccomp_notif notif;
			char room[512];
		} q = {.room = {0}};
		struct seccomp_notif_resp a = {.error = -1};

		if (ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &q.notif) < 0)
			continue;
		a.id = q.notif.id;
		ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &a);
	}
}

static void child(const struct filter *f, bool listens, int which, double *out, int to)
{
	struct sock_fprog program = {.len = f->length, .filter = (struct sock_filter *)(uintptr_t)f->code};
	long fd;

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, listens ? SECCOMP_FILTER_FLAG_NEW_LISTENER : 0,
		     &program);
	if (fd < 0)
		_exit(1);
	if (listens) {
		int number = (int)fd;

		if (write(to, &number, sizeof number) != sizeof number)
			_exit(1);
	}
	*out = measure(which);
	_exit(0);
}

static double round_of(enum filter_kind kind, int which)
{
	double *out = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), result;
	bool listens = kind != FILTER_SILENT;
	int numbers[2], pidfd, number, status;
	pid_t pid;

	if (out == MAP_FAILED || pipe(numbers) < 0 || (pid = fork()) < 0)
		exit(1);
	if (pid == 0)
		child(&filters[kind], listens, which, out, numbers[1]);
	if (listens) {
		pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
		if (read(numbers[0], &number, sizeof number) != sizeof number)
			exit(1);
		number = (int)syscall(SYS_pidfd_getfd, pidfd, number, 0);
		close(pidfd);
		if (number < 0) {
			perror("pidfd_getfd");
			exit(1);
		}
		answer(number);
		close(number);
	}
	if (waitpid(pid, &status, 0) != pid || status != 0) {
		fprintf(stderr, "the child ended with %d\n", status);
		exit(1);
	}
	result = *out;
	munmap(out, 4096);
	close(numbers[0]);
	close(numbers[1]);
	return result;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	static double silent[ROUNDS_MAX], tell[ROUNDS_MAX];
	int rounds = argc > 1 ? atoi(argv[1]) : 21;

	if (rounds < 1 || rounds > ROUNDS_MAX)
		return 2;
	for (int which = 0; which < CASES; which++) {
		for (int i = 0; i < rounds; i++) {
			silent[i] = round_of(FILTER_SILENT, which);
			tell[i] = round_of(FILTER_TELL, which);
		}
		qsort(silent, (size_t)rounds, sizeof silent[0], compare);
		qsort(tell, (size_t)rounds, sizeof tell[0], compare);
		printf("%-28s %10.0f ns, listened to %10.0f ns: %.3f x\n", names[which], silent[0], tell[0],
		       tell[0] / silent[0]);
	}
	return 0;
}
