/*
 * One program, each word a way to use too much: `bomb malloc`, `bomb fork`. Every loop has an end of its own, far beyond
 * the limits that the tests set, so that a limit that does not hold is exit status 99 and not a dead machine.
 *
 * Exit status: 99 not stopped; 12 no memory, 28 no space, 11 no process (the errno that it met); others as it says.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	MIB = 1 << 20,
	MOST_MIB = 256,
	MOST_PROCESSES = 100,
	MOST_FILES = 100000,
	NOT_STOPPED = 99,
	NOTICE_MS = 50
};

static int argument = 1; /* the number after the word */

static int met(int error)
{
	return error == ENOMEM || error == ENOSPC || error == EAGAIN ? error : 1;
}

static char *touch(size_t mib)
{
	char *p = mmap(NULL, mib * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		_exit(ENOMEM);
	memset(p, 1, mib * MIB);
	return p;
}

/* Writes until it is refused, or to the end. */
static int fill(int fd)
{
	static char block[MIB];

	memset(block, 1, sizeof block);
	for (int i = 0; fd >= 0 && i < MOST_MIB; i++)
		if (write(fd, block, sizeof block) < 0)
			return met(errno);
	return fd < 0 ? met(errno) : NOT_STOPPED;
}

static int nanoseconds_left(clockid_t clock, int64_t until)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec < until;
}

static void burn(int ms)
{
	while (nanoseconds_left(CLOCK_PROCESS_CPUTIME_ID, ms * 1000000LL))
		;
}

static void ignore_signals(void)
{
	for (int i = 1; i < NSIG; i++)
		signal(i, SIG_IGN);
}

/* The status of a child as a shell has it. */
static int await(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) < 0)
		return 1;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* --- memory --- */

static int do_malloc(void)
{
	touch(MOST_MIB);
	return NOT_STOPPED;
}

static int do_shm(void)
{
	return fill(open("/dev/shm/bomb", O_WRONLY | O_CREAT, 0600));
}

static int do_memfd(void)
{
	return fill(memfd_create("bomb", 0));
}

static int do_tmp(void)
{
	return fill(open("/tmp/bomb", O_WRONLY | O_CREAT, 0600));
}

/* Many small ones, none of which is worth a look by itself. */
static int do_children(void)
{
	for (int i = 0; i < MOST_PROCESSES; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return met(errno);
		if (pid == 0) {
			touch(1);
			pause();
		}
	}
	alarm(10);
	return wait(NULL) > 0 ? 9 : NOT_STOPPED;
}

/* Children that run out of memory, one after the other; the parent lives on, and ends well. */
static int do_child_memory(void)
{
	for (int i = 0; i < argument; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			touch(MOST_MIB);
			_exit(NOT_STOPPED);
		}
		if (await(pid) != 128 + SIGKILL)
			return NOT_STOPPED;
	}
	return 0;
}

/* --- processes --- */

static int do_fork(void)
{
	for (int i = 0; i < MOST_PROCESSES; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return met(errno);
		if (pid == 0)
			pause();
	}
	return NOT_STOPPED;
}

/* Every process makes others, and none gives up. */
static int do_fork_forever(void)
{
	while (nanoseconds_left(CLOCK_PROCESS_CPUTIME_ID, 20000000000LL))
		(void)!fork();
	return NOT_STOPPED;
}

static void *rest(void *arg)
{
	pause();
	return arg;
}

static int do_threads(void)
{
	for (int i = 0; i < MOST_PROCESSES; i++) {
		pthread_t thread;
		int r = pthread_create(&thread, NULL, rest, NULL);

		if (r)
			return met(r);
	}
	return NOT_STOPPED;
}

/* A refused fork that is handled: it waits for its own, and goes on. */
static int do_fork_patiently(void)
{
	for (int i = 0; i < MOST_PROCESSES; i++) {
		pid_t pid = fork();

		if (pid == 0)
			pause();
		if (pid < 0) {
			signal(SIGTERM, SIG_IGN);
			kill(0, SIGTERM);
			while (wait(NULL) > 0)
				;
			return 0;
		}
	}
	return NOT_STOPPED;
}

/* --- disk --- */

static int do_disk(void)
{
	return fill(open("bomb.data", O_WRONLY | O_CREAT, 0600));
}

static int do_files(void)
{
	for (int i = 0; i < MOST_FILES; i++) {
		char name[32];
		int fd;

		snprintf(name, sizeof name, "f%d", i);
		fd = open(name, O_WRONLY | O_CREAT, 0600);
		if (fd < 0)
			return met(errno);
		close(fd);
	}
	return NOT_STOPPED;
}

/* The space is free again when it ends; a program takes a moment to notice and to say so. */
static int nameless(int fd)
{
	int status = fill(fd);

	usleep(NOTICE_MS * 1000);
	return status;
}

static int do_tmpfile(void)
{
	return nameless(open(".", O_TMPFILE | O_RDWR, 0600));
}

static int do_deleted(void)
{
	int fd = open("bomb.data", O_WRONLY | O_CREAT, 0600);

	unlink("bomb.data");
	return nameless(fd);
}

static int do_disk_handled(void)
{
	int status = do_disk();

	if (status != ENOSPC)
		return status;
	return unlink("bomb.data") < 0;
}

/* --- output --- */

static int do_log(void)
{
	static char line[64];

	for (int i = 0; i < argument * MIB / 64; i++) {
		snprintf(line, sizeof line, "%062d", i);
		line[62] = i == 0 ? 'F' : i == argument * MIB / 64 - 1 ? 'L' : ' ';
		line[63] = '\n';
		if (write(1 + i % 2, line, sizeof line) != sizeof line)
			return 1;
	}
	return 0;
}

static int do_log_forever(void)
{
	static char block[MIB];

	memset(block, 'x', sizeof block);
	while (write(1, block, sizeof block) > 0 && write(2, block, sizeof block) > 0)
		;
	return 1;
}

/* --- time --- */

static int do_busy(void)
{
	for (int i = 1; i < argument; i++)
		if (fork() == 0)
			break;
	burn(20000);
	return NOT_STOPPED;
}

static int do_sleep(void)
{
	sleep(20);
	return NOT_STOPPED;
}

static int do_stop(void)
{
	raise(SIGSTOP);
	return do_sleep();
}

/* Twice forked, in sessions of their own, deaf to everything. */
static void daemons(int count)
{
	for (int i = 0; i < count; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			setsid();
			if (fork() == 0) {
				ignore_signals();
				sleep(20);
			}
			_exit(0);
		}
		await(pid);
	}
}

static int do_daemons(void)
{
	daemons(argument);
	return 0;
}

static int do_deaf(void)
{
	ignore_signals();
	daemons(3);
	return do_sleep();
}

/* --- PID 1, which keeps the time --- */

/* As slow as this user can make it, while the right to do so may still come. */
static void slow_down(pid_t pid)
{
	struct sched_param none = {0};
	cpu_set_t first;

	CPU_ZERO(&first);
	CPU_SET(0, &first);
	for (int i = 0; i < 100; i++) {
		sched_setaffinity(pid, sizeof first, &first);
		setpriority(PRIO_PROCESS, (id_t)pid, 19);
		if (sched_setscheduler(pid, SCHED_IDLE, &none) == 0)
			break;
		usleep(1000);
	}
}

/* So many busy ones, each in a session of its own, over a PID 1 that gets no CPU: says so once they run. */
static int do_smother(void)
{
	int start[2];
	char c;

	ignore_signals();
	slow_down(1);
	if (pipe(start) < 0)
		return 1;
	for (int i = 1; i < argument; i++)
		if (fork() == 0) {
			setsid();
			close(start[1]);
			(void)!read(start[0], &c, 1);
			burn(60000);
			return NOT_STOPPED;
		}
	close(start[1]);
	(void)!write(1, "ready\n", 6);
	burn(60000);
	return NOT_STOPPED;
}

/* Orphans, which come as fast as they can be made and are dead at once: somebody must reap them all. */
static int do_orphans(void)
{
	ignore_signals();
	for (int i = 1; i < argument && fork() > 0; i++)
		;
	while (nanoseconds_left(CLOCK_PROCESS_CPUTIME_ID, 60000000000LL))
		if (vfork() == 0) {
			for (int i = 0; i < 8; i++)
				if (fork() == 0)
					_exit(0);
			_exit(0);
		}
	return NOT_STOPPED;
}

/* --- known use --- */

static long long charged_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* So much CPU time and memory, no more; says what the kernel has charged to it in microseconds. Giving the memory back
 * takes time too. What the process used before this program began, while its walls went up, is not the program's. */
static int do_use(int cpu_ms, int mib)
{
	long long begun = charged_ns();
	char *memory = touch((size_t)mib);

	burn(cpu_ms / 2);
	munmap(memory, (size_t)mib * MIB);
	burn(cpu_ms);
	printf("%lld\n", (charged_ns() - begun) / 1000);
	return 0;
}

/* The same by orphans, which nobody waits for; it ends when the pipe that they hold is closed. */
static int do_use_orphans(int cpu_ms, int count)
{
	int ends[2];
	char c;

	if (pipe(ends) < 0)
		return 1;
	for (int i = 0; i < count; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			if (fork() == 0) {
				close(ends[0]);
				burn(cpu_ms);
			}
			_exit(0);
		}
		await(pid);
	}
	close(ends[1]);
	return read(ends[0], &c, 1) != 0;
}

static const struct {
	const char *word;
	int (*run)(void);
} bombs[] = {
	{"malloc", do_malloc},
	{"shm", do_shm},
	{"memfd", do_memfd},
	{"tmp", do_tmp},
	{"children", do_children},
	{"child-memory", do_child_memory},
	{"fork", do_fork},
	{"fork-forever", do_fork_forever},
	{"fork-patiently", do_fork_patiently},
	{"threads", do_threads},
	{"disk", do_disk},
	{"files", do_files},
	{"tmpfile", do_tmpfile},
	{"deleted", do_deleted},
	{"disk-handled", do_disk_handled},
	{"log", do_log},
	{"log-forever", do_log_forever},
	{"busy", do_busy},
	{"sleep", do_sleep},
	{"stop", do_stop},
	{"daemons", do_daemons},
	{"deaf", do_deaf},
	{"smother", do_smother},
	{"orphans", do_orphans},
};

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "use") == 0)
		return do_use(atoi(argv[2]), atoi(argv[3]));
	if (argc == 4 && strcmp(argv[1], "use-orphans") == 0)
		return do_use_orphans(atoi(argv[2]), atoi(argv[3]));
	if (argc == 3)
		argument = atoi(argv[2]);
	for (size_t i = 0; argc > 1 && i < sizeof bombs / sizeof *bombs; i++)
		if (strcmp(bombs[i].word, argv[1]) == 0)
			return bombs[i].run();
	return 2;
}
