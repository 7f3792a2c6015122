/*
 * Who a process is. A pid alone names nobody: it is used again. A process is its pid with its start time, on
 * this boot of this machine; while one works with it, it is a pidfd.
 */
#ifndef BASE_PROCESS_H
#define BASE_PROCESS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "error.h"

struct process_id {
	pid_t pid;
	uint64_t start; /* field 22 of /proc/PID/stat, clock ticks since boot */
};

enum { BOOT_ID_SIZE = 37, MACHINE_ID_SIZE = 33 };

int process_identify(pid_t pid, struct process_id *ret); /* -ESRCH if it is gone */
/* A pidfd for exactly this process, or -ESRCH if it is gone or the pid belongs to another now; -errno. A zombie
 * counts as gone. */
int process_open(const struct process_id *id);
/* Is it? Not if that cannot be told. */
bool process_is_gone(const struct process_id *id);
/* How many processes and threads this user has on the host, as far as we can see; 0 if that cannot be told. */
uint64_t process_count(uid_t uid);
int pidfd_kill(int pidfd, int signal); /* 0, -ESRCH, -errno */
/* Waits until every process of it is gone; 0, -ETIMEDOUT, -errno. timeout_ms -1: for ever. */
int pidfd_wait(int pidfd, int timeout_ms);

void boot_id(char out[BOOT_ID_SIZE]); /* "" where the kernel does not tell */
/* /etc/machine-id, else the host name's digest. -errno: it is there, and cannot be read now; out has the digest then. */
int machine_id(char out[MACHINE_ID_SIZE]);
char *host_name(void); /* allocated; NULL: memory is out */

int random_bytes(void *out, size_t size); /* at most 256; never fails in practice; -errno */

/* A thread of ours, with every signal blocked: they are for who has the loop. stack 0: as the system has it. -errno. */
int thread_start(pthread_t *ret, size_t stack, void *(*body)(void *arg), void *arg);

#endif
