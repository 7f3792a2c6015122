/*
 * Processes: outliving the end. A survivor calls itself by a marker that the suite looks for in the host's /proc some
 * time after the run is over.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "act.h"
#include "stage.h"

/* The marker is an argument, so that it shows in /proc/PID/cmdline; the role "linger" only waits. */
static void become_survivor(const struct targets *t)
{
	char *argv[] = {(char *)"attacker", (char *)"linger", (char *)targets_text(t, "marker"), NULL};
	execv("/proc/self/exe", argv);
	_exit(127);
}

static void drop_streams(void)
{
	int null = open("/dev/null", O_RDWR);
	for (int fd = 0; fd < 3; fd++)
		dup2(null, fd);
}

static void ignore_signals(void)
{
	for (int sig = 1; sig < 32; sig++)
		signal(sig, SIG_IGN);
}

ACT(daemonize)
{
	if (fork())
		return 0;
	setsid();
	if (fork())
		_exit(0);
	drop_streams();
	become_survivor(t);
	return 0;
}

ACT(ignore_everything)
{
	if (fork())
		return 0;
	setsid();
	ignore_signals();
	drop_streams();
	become_survivor(t);
	return 0;
}

/* A supervisor that waits for end of file on its pipe waits for this one. */
ACT(hold_streams)
{
	if (fork())
		return 0;
	setsid();
	ignore_signals();
	become_survivor(t);
	return 0;
}

ACT(stay_stopped)
{
	pid_t child = fork();
	if (child) {
		linger(50);
		return result(kill(child, SIGSTOP));
	}
	setsid();
	drop_streams();
	become_survivor(t);
	return 0;
}

ACT(stay_sibling)
{
	pid_t child = (pid_t)syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
	if (child)
		return result(child);
	setsid();
	drop_streams();
	become_survivor(t);
	return 0;
}

/* A new pid with every hop: a killer that walks a list comes too late. */
ACT(keep_hopping)
{
	if (fork())
		return 0;
	setsid();
	drop_streams();
	for (int i = 0; i < 2000; i++)
		if (fork())
			_exit(0);
	become_survivor(t);
	return 0;
}

ACT(adopt_orphans)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	return daemonize(t, a);
}

ACT(many_survivors)
{
	for (int i = 0; i < 20; i++) {
		if (fork())
			continue;
		setsid();
		drop_streams();
		become_survivor(t);
	}
	return 0;
}

ACT(trace_each_other)
{
	pid_t child = fork();
	if (!child) {
		setsid();
		drop_streams();
		pid_t traced = fork();
		if (traced)
			ptrace(PTRACE_SEIZE, traced, NULL, NULL);
		become_survivor(t);
	}
	return result(child);
}

struct going_on {
	const struct targets *targets;
	int program; /* /proc/self is empty once the first thread has ended */
};

static void *thread_goes_on(void *arg)
{
	const struct going_on *g = arg;
	char *argv[] = {(char *)"attacker", (char *)"linger", (char *)targets_text(g->targets, "marker"),
			NULL};
	linger(20);
	fexecve(g->program, argv, (char *[]){NULL});
	return NULL;
}

/* The first thread ends, another one executes: the leader's pid lives on. */
ACT(leave_by_thread)
{
	if (fork())
		return 0;
	setsid();
	drop_streams();
	static struct going_on go;
	go = (struct going_on){.targets = t, .program = open("/proc/self/exe", O_RDONLY)};
	pthread_t thread;
	pthread_create(&thread, NULL, thread_goes_on, &go);
	pthread_exit(NULL);
}

#define SURVIVE(n, how, fn, ...)                                                                 \
	{                                                                                        \
		.name = n, .mechanism = how, .run = fn, .effect = EFFECT_HIT, .flags = OUTLIVES, \
		.judge = stage_judge_survivors, __VA_ARGS__                                      \
	}

static const struct attack table[] = {
	SURVIVE("survive-daemon", "fork, setsid, fork: a daemon", daemonize),
	SURVIVE("survive-signals", "a child that ignores every signal", ignore_everything),
	SURVIVE("survive-streams", "a child that keeps the supervisor's pipes open", hold_streams),
	SURVIVE("survive-stopped", "a child that is stopped", stay_stopped),
	SURVIVE("survive-sibling", "clone(CLONE_PARENT): a child of the supervisor", stay_sibling),
	SURVIVE("survive-hopping", "a chain of 2,000 forks", keep_hopping),
	SURVIVE("survive-subreaper", "PR_SET_CHILD_SUBREAPER, then a daemon", adopt_orphans),
	SURVIVE("survive-many", "twenty daemons at once", many_survivors),
	SURVIVE("survive-traced", "a child traced by its brother", trace_each_other),
	SURVIVE("survive-thread", "a process whose first thread has ended", leave_by_thread),
};

const struct attack_family processes_survive = {.name = "processes", .title = "processes", FAMILY(table)};
