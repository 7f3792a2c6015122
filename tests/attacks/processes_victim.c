/*
 * Processes: one of the same user that holds the secret in its memory, its environment, its arguments and behind a
 * descriptor, and counts the signals it gets. The suite compares its nice value, limits, affinity and the like
 * before and after.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <mqueue.h>
#include <unistd.h>

#include "act.h"
#include "stage.h"

#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif

static pid_t victim(const struct targets *t)
{
	return (pid_t)targets_number(t, "victim");
}

ACT(signal_by_kill)
{
	return result(kill(victim(t), SIGUSR1));
}

ACT(signal_by_group)
{
	return result(kill(-(pid_t)targets_number(t, "victim.group"), SIGUSR1));
}

ACT(signal_own_group)
{
	signal(SIGUSR1, SIG_IGN);
	return result(kill(0, SIGUSR1));
}

ACT(signal_parent)
{
	pid_t parent = getppid();
	if (parent <= 0 || kill(parent, SIGUSR1))
		return parent <= 0 ? -ESRCH : -errno;
	return 0;
}

ACT(signal_by_tgkill)
{
	return result(syscall(SYS_tgkill, victim(t), victim(t), SIGUSR1));
}

ACT(signal_by_tkill)
{
	return result(syscall(SYS_tkill, victim(t), SIGUSR1));
}

ACT(signal_by_queue)
{
	return result(sigqueue(victim(t), SIGUSR1, (union sigval){.sival_int = 7}));
}

ACT(signal_by_pidfd)
{
	_cleanup_close_ int fd = (int)syscall(SYS_pidfd_open, victim(t), 0);
	return fd < 0 ? -errno : result(syscall(SYS_pidfd_send_signal, fd, SIGUSR1, NULL, 0));
}

/* A pipe whose owner, told of its events, is somebody else. */
ACT(signal_by_owner)
{
	int ends[2];
	if (pipe(ends) || fcntl(ends[0], F_SETOWN, victim(t)) || fcntl(ends[0], F_SETSIG, SIGUSR1) ||
	    fcntl(ends[0], F_SETFL, O_ASYNC))
		return -errno;
	return write(ends[1], "x", 1) == 1 ? 0 : -errno;
}

ACT(read_memory_by_call)
{
	char secret[64];
	struct iovec here = {secret, sizeof(secret)};
	struct iovec there = {(void *)targets_number(t, "victim.memory"), sizeof(secret)};
	if (process_vm_readv(victim(t), &here, 1, &there, 1, 0) < 0)
		return -errno;
	show(secret, sizeof(secret));
	return 0;
}

ACT(write_memory_by_call)
{
	struct iovec here = {(void *)"x", 1};
	struct iovec there = {(void *)targets_number(t, "victim.scratch"), 1};
	return result(process_vm_writev(victim(t), &here, 1, &there, 1, 0));
}

ACT(read_memory_by_proc)
{
	char secret[64];
	_cleanup_close_ int fd = open(text("/proc/%d/mem", victim(t)), O_RDONLY);
	if (fd < 0 || pread(fd, secret, sizeof(secret), targets_number(t, "victim.memory")) < 0)
		return -errno;
	show(secret, sizeof(secret));
	return 0;
}

ACT(write_memory_by_proc)
{
	_cleanup_close_ int fd = open(text("/proc/%d/mem", victim(t)), O_RDWR);
	return fd < 0 ? -errno : result(pwrite(fd, "x", 1, targets_number(t, "victim.scratch")));
}

ACT(trace_attach)
{
	if (ptrace(PTRACE_ATTACH, victim(t), NULL, NULL))
		return -errno;
	waitpid(victim(t), NULL, __WALL);
	long words[8];
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		words[i] = ptrace(PTRACE_PEEKDATA, victim(t),
				  targets_number(t, "victim.memory") + (long)(8 * i), NULL);
	show(words, sizeof(words));
	return result(ptrace(PTRACE_DETACH, victim(t), NULL, NULL));
}

ACT(trace_seize)
{
	if (ptrace(PTRACE_SEIZE, victim(t), NULL, NULL))
		return -errno;
	return reached("the victim can be traced");
}

ACT(read_proc_file)
{
	return show_file(text("/proc/%d/%s", victim(t), a->arg));
}

ACT(read_proc_descriptor)
{
	return show_file(text("/proc/%d/fd/%ld", victim(t), targets_number(t, "victim.fd") + 0 * a->number));
}

ACT(steal_descriptor)
{
	_cleanup_close_ int process = (int)syscall(SYS_pidfd_open, victim(t), 0);
	if (process < 0)
		return -errno;
	_cleanup_close_ int fd = (int)syscall(SYS_pidfd_getfd, process, targets_number(t, "victim.fd"), 0);
	if (fd < 0)
		return -errno;
	char secret[64] = "";
	ssize_t n = pread(fd, secret, sizeof(secret), 0);
	show(secret, n > 0 ? (size_t)n : 0);
	return 0;
}

ACT(read_parents_environment)
{
	return show_file(text("/proc/%d/environ", getppid()));
}

ACT(change_limit)
{
	struct rlimit limit = {.rlim_cur = 100, .rlim_max = 100};
	return result(prlimit(victim(t), RLIMIT_NOFILE, &limit, NULL));
}

ACT(change_priority)
{
	return result(setpriority(PRIO_PROCESS, (id_t)victim(t), 15));
}

ACT(change_affinity)
{
	unsigned long first = 1;
	return result(syscall(SYS_sched_setaffinity, victim(t), sizeof(first), &first));
}

ACT(change_scheduler)
{
	struct sched_param none = {0};
	return result(sched_setscheduler(victim(t), SCHED_BATCH, &none));
}

ACT(change_io_priority)
{
	return result(syscall(SYS_ioprio_set, 1, victim(t), 3 << 13 | 0));
}

ACT(write_proc_file)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/%s", victim(t), a->arg);
	_cleanup_close_ int fd = open(path, O_WRONLY);
	char value[16];
	int n = snprintf(value, sizeof(value), "%ld", a->number);
	return fd < 0 ? -errno : result(write(fd, value, (size_t)n));
}

ACT(compare_kernel)
{
	if (syscall(SYS_kcmp, getpid(), victim(t), KCMP_FS, 0, 0) < 0)
		return -errno;
	return reached("kcmp() with the victim");
}

ACT(list_processes)
{
	_cleanup_close_ int fd = open(text("/proc/%d", victim(t)), O_PATH);
	if (fd < 0)
		return -errno;
	return show_file_at(fd, "cmdline");
}

ACT(attach_shared_memory)
{
	int id = shmget((key_t)targets_number(t, "ipc.key"), 0, 0);
	const char *page = id < 0 ? (void *)-1 : shmat(id, NULL, SHM_RDONLY);
	if (page == (void *)-1)
		return -errno;
	show(page, 64);
	return 0;
}

ACT(receive_message)
{
	struct {
		long type;
		char text[64];
	} message = {0};
	int id = msgget((key_t)targets_number(t, "ipc.key"), 0);
	if (id < 0 || msgrcv(id, &message, sizeof(message.text), 0, IPC_NOWAIT) < 0)
		return -errno;
	show(message.text, sizeof(message.text));
	return 0;
}

ACT(take_semaphore)
{
	struct sembuf take = {.sem_op = -1, .sem_flg = IPC_NOWAIT};
	int id = semget((key_t)targets_number(t, "ipc.key"), 0, 0);
	if (id < 0 || semop(id, &take, 1))
		return -errno;
	return reached("the platform's semaphore is taken");
}

ACT(receive_queue)
{
	struct mq_attr attributes;
	char message[8192];
	mqd_t queue = mq_open(targets_text(t, "queue"), O_RDONLY | O_NONBLOCK);
	if (queue < 0 || mq_getattr(queue, &attributes))
		return -errno;
	ssize_t n = mq_receive(queue, message, sizeof(message), NULL);
	if (n < 0)
		return -errno;
	show(message, (size_t)n);
	return 0;
}

ACT(open_shared_memory)
{
	return show_file(targets_text(t, a->arg));
}

#define HIT(n, how, fn, ...)                                                              \
	{                                                                                 \
		.name = n, .mechanism = how, .run = fn, .effect = EFFECT_HIT, __VA_ARGS__ \
	}
#define SECRET(n, how, fn, ...)                                                              \
	{                                                                                    \
		.name = n, .mechanism = how, .run = fn, .effect = EFFECT_SECRET, __VA_ARGS__ \
	}
#define CLAIM(n, how, fn, ...)                                                              \
	{                                                                                   \
		.name = n, .mechanism = how, .run = fn, .effect = EFFECT_CLAIM, __VA_ARGS__ \
	}

static const struct attack table[] = {
	HIT("kill", "kill() of a process outside", signal_by_kill),
	HIT("kill-group", "kill() of a process group outside", signal_by_group),
	HIT("kill-own-group", "kill(0), where the supervisor shares the process group", signal_own_group),
	HIT("kill-parent", "kill() of the parent: the supervisor", signal_parent),
	HIT("tgkill", "tgkill()", signal_by_tgkill),
	HIT("tkill", "tkill()", signal_by_tkill),
	HIT("sigqueue", "rt_sigqueueinfo()", signal_by_queue),
	HIT("pidfd-signal", "pidfd_send_signal()", signal_by_pidfd),
	HIT("setown-signal", "fcntl(F_SETOWN): the kernel sends the signal", signal_by_owner),
	HIT("vm-write", "process_vm_writev()", write_memory_by_call),
	HIT("mem-write", "a write to /proc/PID/mem", write_memory_by_proc),
	HIT("prlimit", "prlimit() of another process", change_limit),
	HIT("setpriority", "setpriority() of another process", change_priority),
	HIT("setaffinity", "sched_setaffinity() of another process", change_affinity),
	HIT("setscheduler", "sched_setscheduler() of another process", change_scheduler),
	HIT("ioprio", "ioprio_set() of another process", change_io_priority),
	HIT("oom-score", "/proc/PID/oom_score_adj of another process", write_proc_file,
	    .arg = "oom_score_adj", .number = 900),
	HIT("coredump-filter", "/proc/PID/coredump_filter of another process", write_proc_file,
	    .arg = "coredump_filter", .number = 1),
	SECRET("vm-read", "process_vm_readv()", read_memory_by_call),
	SECRET("mem-read", "a read of /proc/PID/mem", read_memory_by_proc),
	SECRET("ptrace-attach", "ptrace(PTRACE_ATTACH)", trace_attach),
	CLAIM("ptrace-seize", "ptrace(PTRACE_SEIZE)", trace_seize),
	SECRET("proc-environ", "/proc/PID/environ of a process outside", read_proc_file, .arg = "environ"),
	SECRET("proc-cmdline", "/proc/PID/cmdline of a process outside", read_proc_file, .arg = "cmdline"),
	SECRET("proc-visible", "a process outside found by its directory in /proc", list_processes),
	SECRET("proc-fd", "/proc/PID/fd/N of a process outside", read_proc_descriptor),
	SECRET("pidfd-getfd", "pidfd_getfd(): a descriptor of a process outside", steal_descriptor),
	SECRET("parent-environ", "/proc/PPID/environ: the supervisor's tokens", read_parents_environment),
	CLAIM("kcmp", "kcmp() with a process outside", compare_kernel),
	SECRET("sysv-shm", "System V shared memory", attach_shared_memory),
	SECRET("sysv-msg", "a System V message queue", receive_message),
	CLAIM("sysv-sem", "a System V semaphore", take_semaphore),
	SECRET("posix-queue", "a POSIX message queue", receive_queue),
	SECRET("posix-shm", "a POSIX shared memory object", open_shared_memory, .arg = "shm.file"),
};

const struct attack_family processes_victim = {.name = "processes", .title = "processes", FAMILY(table)};
