/*
 * The walls around one command. Prepare in the parent, apply in the child: sandbox_start() turns the plan into a blob
 * without pointers, clones into new namespaces, executes init (init/init.h) and answers its questions until the
 * command runs; what truly stands is added to the receipt.
 *
 *   sandbox_start → (command runs) → sandbox_read_report when report_fd is readable → pidfd readable: all of it is
 *   dead → sandbox_free. sandbox_terminate asks for SIGTERM and grace; sandbox_kill ends everything now.
 *
 * If the caller dies, init sees it and the namespace is emptied by the kernel: nothing is left but what the
 * workspace's record names.
 */
#ifndef SANDBOX_SANDBOX_H
#define SANDBOX_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "filter.h"
#include "plan.h"
#include "process.h"
#include "receipt.h"
#include "verdict.h"

enum { SANDBOX_UID = 1000, SANDBOX_GID = 1000, SANDBOX_JOIN_MAX = 6 };

/* What was learned of a mount since the plan was made: which one it is now, and, of a disk, which device. */
struct mount_fact {
	const char *source; /* NULL: the plan's */
	uint64_t device, inode;
};

struct sandbox_options {
	uid_t host_uid; /* who the analysis is on the host: the slot's, or the caller */
	gid_t host_gid;
	int stdio[3];
	int join_fds[SANDBOX_JOIN_MAX]; /* files of its cgroups, to which "0" is written */
	int n_join;
	int slot_fd;	  /* kept open by init; -1: none */
	const void *cpus; /* affinity mask, NULL: as it is */
	size_t n_cpus;
	enum filter_kind listen; /* to what it is refused, or asks as well; not at all where that cannot be */
	struct stock *stock;	 /* what is made ahead, NULL: nothing is */
	struct spare **begun;	 /* one that was begun for this plan: it is taken; NULL: none */
	bool hold_mounts;	 /* sandbox.mounts_fd */
	const struct mount_fact
		*facts; /* one for each mount of the plan, zeros where nothing was learned; or NULL */
};

struct sandbox {
	struct process_id init; /* PID 1 as seen here */
	int pidfd;
	int report_fd;
	int control_fd;
	int listener_fd; /* readable: sandbox_hear(); -1: nobody is asked */
	/* The mount namespace: it is taken down by who closes this, once PID 1 is dead, not by PID 1 while its end is awaited. -1: not
	 * held */
	int mounts_fd;
	const struct filter *wall; /* what decides */
	const char *const *names;  /* of the calls */
	bool bare;		   /* no namespaces: init is no PID 1, and ends the others itself */
	int exec_errno;		   /* not 0: the walls stood, the command could not be executed */
};

/*
 * A system call about which the listener is asked. Its arguments are what the kernel has of it; what they point to, in the memory of
 * a hostile process that waits, or is killed and another by the time one looks: notice_is_valid() tells afterwards.
 */
struct notice {
	int number;
	const char *call;     /* its name */
	const uint64_t *args; /* 6 */
	pid_t pid;	      /* the thread, as seen here */
	int errnum;	      /* what it is refused with; 0: it goes on */
	int listener_fd;
	uint64_t id;
};
bool notice_is_valid(const struct notice *n);

/* What the caller does on the way; each may be NULL. */
struct sandbox_hooks {
	void *arg;
	/* PID 1 exists and waits, before anything else happens in it: the record can name it. */
	int (*on_init)(void *arg, const struct process_id *init, struct error *err);
	/* PID 1 is at work, and asks for nothing in the next milliseconds. The command may run before this returns. */
	void (*meanwhile)(void *arg);
	/* The analysis's own file system (MOUNT_DISK) is there, with "work" and "tmp": fill it. fd is the caller's. */
	int (*on_disk)(void *arg, int fd, struct error *err);
	/* With options.listen: while it starts, and from sandbox_hear(). */
	void (*on_notice)(void *arg, const struct notice *n);
	/* The command's own terminal (MOUNT_PTS) is there, nobody has it open yet: fd is the caller's, and is its master. */
	int (*on_terminal)(void *arg, int fd, struct error *err);
};

/* Returns 0 when the command runs or could not be executed (exec_errno); negative when a wall could not be raised,
 * with nothing left alive. */
int sandbox_start(const struct plan *plan, const struct sandbox_options *options,
		  const struct sandbox_hooks *hooks, struct receipt *receipt, struct sandbox **ret,
		  struct error *err);
void sandbox_free(struct sandbox *s); /* kills and awaits what is alive; NULL is fine */
DEFINE_CLEANUP(struct sandbox *, sandbox_free);
#define _cleanup_sandbox_ _cleanup_(sandbox_freep)

void sandbox_terminate(struct sandbox *s);
void sandbox_kill(struct sandbox *s);
/* Reaps PID 1 if nobody has; call when the pidfd is readable. */
void sandbox_reap(struct sandbox *s);

/* 1: a report; 0: nothing more (end of file); negative: nothing now, or it cannot be read. */
int sandbox_read_report(struct sandbox *s, struct command_report *ret);

/* Answers one question, as the policy does, when listener_fd is readable. 1: it was refused, 0: not, negative: nobody is left who
 * could ask. */
int sandbox_hear(struct sandbox *s, void (*on_notice)(void *arg, const struct notice *n), void *arg);

/* Landlock's ABI on this host, 0: none. Without namespaces it must be at least that: files could be truncated before. */
enum { SANDBOX_BARE_ABI = 3 };
int sandbox_landlock_abi(void);

#endif
