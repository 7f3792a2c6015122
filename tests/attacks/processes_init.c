/*
 * Processes: the one that keeps the time. Whoever is over the analysis has its uid, in the hood PID 1: slowed down, stopped
 * or bound to a busy CPU it would keep no deadline, and would not notice that its supervisor is dead. And the limits
 * that an analysis has of its own: one that can be changed is none.
 *
 * Without the hood the parent is the platform's own launcher. What is set is hardly felt: the priority and the
 * CPUs that it has.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "act.h"
#include "stage.h"

enum { WHO_PROCESS = 1, WHO_GROUP, WHO_USER }; /* of ioprio_set() */
enum { BEST_EFFORT_LOW = 2 << 13 | 7, NO_SUCH_USER = 0x7ffffffd };

#ifndef PR_SCHED_CORE
#define PR_SCHED_CORE 62
#endif

/* ESRCH comes after every check: the call would have been done, had there been somebody. */
static int done(const struct attack *a, long r)
{
	return r < 0 && errno != ESRCH ? -errno : reached("%s", a->name);
}

ACT(set_scheduler)
{
	struct sched_param none = {0};
	return done(a, syscall(SYS_sched_setscheduler, (long)getppid() | a->number, SCHED_BATCH, &none));
}

ACT(set_parameter)
{
	struct sched_param none = {0};
	return done(a, syscall(SYS_sched_setparam, getppid(), &none));
}

ACT(set_attributes)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} attributes = {.size = sizeof(attributes),
			.policy = SCHED_BATCH,
			.nice = getpriority(PRIO_PROCESS, (id_t)getppid())};
	return done(a, syscall(SYS_sched_setattr, getppid(), &attributes, 0));
}

ACT(set_affinity)
{
	cpu_set_t cpus;
	if (sched_getaffinity(getppid(), sizeof(cpus), &cpus))
		return -errno;
	return done(a, syscall(SYS_sched_setaffinity, (long)getppid() | a->number, sizeof(cpus), &cpus));
}

/* Of a whole user only one without processes is tried: the rest of the host belongs to others. */
ACT(set_priority)
{
	long who = a->number == PRIO_PROCESS ? getppid() : a->number == PRIO_PGRP ? 0 : NO_SUCH_USER;
	int same = getpriority(PRIO_PROCESS, (id_t)getppid()); /* a higher one only root may have */
	return done(a, syscall(SYS_setpriority, a->number, who, same));
}

ACT(set_io_priority)
{
	long who = a->number == WHO_PROCESS ? getppid() : a->number == WHO_GROUP ? 0 : NO_SUCH_USER;
	return done(a, syscall(SYS_ioprio_set, a->number, who, BEST_EFFORT_LOW));
}

ACT(set_limit)
{
	struct rlimit64 limit;
	if (getrlimit64(RLIMIT_CPU, &limit))
		return -errno;
	return done(a, syscall(SYS_prlimit64, getppid(), RLIMIT_CPU, &limit, NULL));
}

/* A cookie of one's own keeps everybody else off the other half of every core that one runs on. */
ACT(share_no_core)
{
	return done(a, prctl(PR_SCHED_CORE, 1 /* create */, 0, 0, 0));
}

/* Whether it said so or not: what counts is the limit afterwards. */
static int look_at_core_limit(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_CORE, &limit))
		return -errno;
	return limit.rlim_cur ? -EPERM : reached("RLIMIT_CORE is 0, and a crash goes to the host's handler");
}

ACT(lower_by_setrlimit)
{
	uint64_t none[2] = {0, 0};
	syscall(SYS_setrlimit, RLIMIT_CORE | a->number, none);
	return look_at_core_limit();
}

ACT(lower_by_prlimit)
{
	uint64_t none[2] = {0, 0}, old[2];
	syscall(SYS_prlimit64, 0, RLIMIT_CORE | a->number, none, NULL);
	syscall(SYS_prlimit64, 0, RLIMIT_CORE | a->number, none, old);
	return look_at_core_limit();
}

ACT(lower_by_pid)
{
	uint64_t none[2] = {0, 0};
	syscall(SYS_prlimit64, getpid(), RLIMIT_CORE, none, NULL);
	return look_at_core_limit();
}

static void *lower_in_thread(void *arg)
{
	uint64_t none[2] = {0, 0};
	syscall(SYS_prlimit64, (long)gettid() | 1L << 32, RLIMIT_CORE, none, NULL);
	syscall(SYS_setrlimit, RLIMIT_CORE, none);
	return arg;
}

ACT(lower_by_thread)
{
	pthread_t thread;
	int r = pthread_create(&thread, NULL, lower_in_thread, NULL);
	if (r)
		return -r;
	pthread_join(thread, NULL);
	return look_at_core_limit();
}

/* A child's: it is the child that would crash. */
ACT(lower_for_child)
{
	uint64_t none[2] = {0, 0};
	struct rlimit limit = {.rlim_cur = 1};
	pid_t child = fork();
	if (!child)
		for (;;)
			pause();
	if (child < 0)
		return -errno;
	syscall(SYS_prlimit64, child, RLIMIT_CORE, none, NULL);
	prlimit(child, RLIMIT_CORE, NULL, &limit);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return limit.rlim_cur ? -EPERM : reached("a child's RLIMIT_CORE is 0");
}

#define INIT(n, how, fn, ...)                                                                 \
	{                                                                                     \
		.name = n, .mechanism = how " of the process that keeps the time", .run = fn, \
		.effect = EFFECT_CLAIM, __VA_ARGS__                                           \
	}
#define CORE(n, how, fn, ...)                                                                       \
	{                                                                                           \
		.name = n, .mechanism = "RLIMIT_CORE lowered for the host's core handler, by " how, \
		.run = fn, .effect = EFFECT_CLAIM, __VA_ARGS__                                      \
	}

static const struct attack table[] = {
	INIT("init-scheduler", "sched_setscheduler()", set_scheduler),
	INIT("init-scheduler-high", "sched_setscheduler(PID | 1 << 32)", set_scheduler, .number = 1L << 32),
	INIT("init-parameter", "sched_setparam()", set_parameter),
	INIT("init-attributes", "sched_setattr()", set_attributes),
	INIT("init-affinity", "sched_setaffinity()", set_affinity),
	INIT("init-affinity-high", "sched_setaffinity(PID | 1 << 32)", set_affinity, .number = 1L << 32),
	INIT("init-priority", "setpriority(PRIO_PROCESS)", set_priority, .number = PRIO_PROCESS),
	INIT("init-priority-group", "setpriority(PRIO_PGRP)", set_priority, .number = PRIO_PGRP),
	INIT("init-priority-user", "setpriority(PRIO_USER)", set_priority, .number = PRIO_USER),
	INIT("init-io-priority", "ioprio_set(IOPRIO_WHO_PROCESS)", set_io_priority, .number = WHO_PROCESS),
	INIT("init-io-priority-group", "ioprio_set(IOPRIO_WHO_PGRP)", set_io_priority, .number = WHO_GROUP),
	INIT("init-io-priority-user", "ioprio_set(IOPRIO_WHO_USER)", set_io_priority, .number = WHO_USER),
	INIT("init-limit", "prlimit(RLIMIT_CPU)", set_limit),
	{.name = "core-scheduling",
	 .mechanism = "prctl(PR_SCHED_CORE): cores that nobody else may share",
	 .run = share_no_core,
	 .effect = EFFECT_CLAIM},
	CORE("core-limit-setrlimit", "setrlimit()", lower_by_setrlimit),
	CORE("core-limit-setrlimit-high", "setrlimit(RLIMIT_CORE | 1 << 32)", lower_by_setrlimit,
	     .number = 1L << 32),
	CORE("core-limit-prlimit", "prlimit()", lower_by_prlimit),
	CORE("core-limit-prlimit-high", "prlimit(RLIMIT_CORE | 1 << 32)", lower_by_prlimit,
	     .number = 1L << 32),
	CORE("core-limit-pid", "prlimit() of its own pid", lower_by_pid),
	CORE("core-limit-thread", "a thread", lower_by_thread),
	CORE("core-limit-child", "prlimit() of a child", lower_for_child),
};

const struct attack_family processes_init = {.name = "processes", .title = "processes", FAMILY(table)};
