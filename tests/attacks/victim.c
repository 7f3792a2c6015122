/*
 * A process of the platform that holds the secret everywhere a process can, counts its signals and reports a
 * changed byte. It is a program of its own (the attacker's, in the role "victim"), so that /proc tells of its own
 * environment and arguments.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <poll.h>

#include "platform.h"
#include "roles.h"

static struct board *board;
static volatile char secret[64];

static void count_signal(int sig)
{
	char what[32];
	snprintf(what, sizeof(what), "signal %d to the victim", sig);
	board_hit(board, what);
}

/* argv: victim SECRET BOARD-FD SECRET-FD */
int role_victim(int argc, char **argv)
{
	if (argc < 4)
		return 2;
	int fd = atoi(argv[2]);
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (board == MAP_FAILED)
		return 1;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY); /* what Yama forbids is not ours to count */
	static const int signals[] = {SIGUSR1, SIGUSR2, SIGTERM, SIGHUP, SIGINT, SIGIO};
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		signal(signals[i], count_signal);
	strncpy((char *)secret, argv[1], sizeof(secret) - 1);
	board->memory = (uintptr_t)secret;
	board->scratch = (uintptr_t)&board->byte;
	board->ready = 1;
	for (;;)
		pause();
}

int victim_start(struct platform *p, struct error *err)
{
	int file = memfd_create("secret", 0), shared = dup(p->victim_fd);
	char number[16], file_number[16], token[64], program[300];
	if (file < 0 || shared < 0 || write(file, p->nonce, 32) != 32)
		return error_system(err, errno, "cannot make a secret file");
	snprintf(program, sizeof(program), "%s/attacker", p->root);
	snprintf(number, sizeof(number), "%d", shared);
	snprintf(file_number, sizeof(file_number), "%d", file);
	snprintf(token, sizeof(token), "API_TOKEN=%s", p->nonce);
	char *argv[] = {(char *)"plain", (char *)"victim", p->nonce, number, file_number, NULL};
	char *envp[] = {token, NULL};
	p->board->ready = 0;
	p->victim = fork();
	if (p->victim == 0) {
		setpgid(0, 0);
		execve(program, argv, envp);
		_exit(127);
	}
	close(file);
	close(shared);
	for (int i = 0; i < 400 && !p->board->ready; i++)
		poll(NULL, 0, 5);
	if (!p->board->ready)
		return error_set(err, ERROR_SYSTEM, "cannot start the victim '%s'", program);
	targets_set(&p->targets, "victim", "%d", p->victim);
	targets_set(&p->targets, "victim.group", "%d", p->victim);
	targets_set(&p->targets, "victim.fd", "%s", file_number);
	targets_set(&p->targets, "victim.memory", "%lu", (unsigned long)p->board->memory);
	targets_set(&p->targets, "victim.scratch", "%lu", (unsigned long)p->board->scratch);
	return 0;
}

static void read_number(pid_t pid, const char *name, char *out, size_t room)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, out, room - 1);
	out[n < 0 ? 0 : n] = '\0';
	out[strcspn(out, "\n")] = '\0';
}

/* Everything that another process could set from outside. */
void platform_describe_victim(struct platform *p, char *ret, size_t room)
{
	unsigned long cpus[16] = {0};
	char oom[32], filter[32];
	size_t at = 0;
	syscall(SYS_sched_getaffinity, p->victim, sizeof(cpus), cpus);
	read_number(p->victim, "oom_score_adj", oom, sizeof(oom));
	read_number(p->victim, "coredump_filter", filter, sizeof(filter));
	at += (size_t)snprintf(
		ret, room, "alive %d nice %d cpus %lx policy %d io %ld oom %s filter %s limits",
		waitpid(p->victim, NULL, WNOHANG) == 0, getpriority(PRIO_PROCESS, (id_t)p->victim), cpus[0],
		sched_getscheduler(p->victim), syscall(SYS_ioprio_get, 1, p->victim), oom, filter);
	for (int i = 0; i < RLIMIT_NLIMITS && at < room; i++) {
		struct rlimit limit = {0};
		prlimit(p->victim, i, NULL, &limit);
		at += (size_t)snprintf(ret + at, room - at, " %llx/%llx", (unsigned long long)limit.rlim_cur,
				       (unsigned long long)limit.rlim_max);
	}
}
