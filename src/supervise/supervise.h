/*
 * Watches one running command until nothing of it is alive: one event loop over its output, init's reports, its
 * pidfd, timers and the caller's cancel descriptor. Knows nothing of namespaces or directories: run introduces them
 * through the functions below.
 *
 * Wall time is kept by init; the supervisor only notes it, and kills if init should fail to. CPU time and disk use
 * are watched here.
 */
#ifndef SUPERVISE_SUPERVISE_H
#define SUPERVISE_SUPERVISE_H

#include "attempt.h"
#include "capture.h"
#include "cgroup.h"
#include "pty.h"
#include "usage.h"
#include "verdict.h"

/* What came of a look at the disk. */
enum look {
	LOOK_WHOLE,
	LOOK_HIDDEN,  /* there is more that cannot be looked into, which counts as over the limit */
	LOOK_MISSED,  /* what was seen is not all: things were moved under it, or it failed */
	LOOK_STARVED, /* it failed for want of memory or descriptors of ours, which is nobody's fault */
	LOOK_GOES_ON, /* not done, to be called again soon */
};

enum { CANCEL_FDS = 2 };

struct supervise_job {
	int pidfd;
	int report_fd;
	int out_fd[STREAM_COUNT];  /* read ends, non-blocking; -1: none */
	int log_fd[STREAM_COUNT];  /* where captured bytes go */
	int cancel_fd[CANCEL_FDS]; /* on any of them a byte with a signal's number; -1: none */
	int listener_fd;	   /* readable: somebody asks, and waits for `hear`; -1: none */
	int stdin_from,
		stdin_to; /* what is poured into the command's stdin; -1: nothing. stdin_to becomes ours */
	const struct pty_job
		*pty; /* out_fd of stdout, and stdin_to, are its master; NULL: it has no terminal */
	const struct limits *limits;
	const struct cgroup *cgroup; /* NULL: no counters */
	uint64_t started;	     /* clock_now() */

	void *arg;
	int (*read_report)(void *arg, struct command_report *ret); /* 1, 0 at the end, negative: none now */
	/* One question. 1: it was refused, 0: not, negative: nobody is left who could ask. */
	int (*hear)(void *arg);
	void (*terminate)(void *arg); /* SIGTERM, grace, then the end */
	void (*kill)(void *arg);      /* the end */
	/* Bytes and files in use, stopping early beyond the limits; NULL: not watched. */
	enum look (*measure)(void *arg, uint64_t *ret_bytes, uint64_t *ret_files);
	bool disk_is_held; /* by the file system itself: looked at, but nothing is ended for it */
	void (*output)(void *arg, int stream, const char *data, size_t size); /* NULL: log only */
	void (*progress)(void *arg, const struct sample *now, int64_t files); /* NULL: none */
	int progress_interval_ms;
};

struct supervise_result {
	struct evidence evidence;
	struct usage usage;
	struct captured logs[STREAM_COUNT];
	int read_errno[STREAM_COUNT]; /* why what it wrote was not read to its end; 0 */
	int log_errno[STREAM_COUNT];  /* why a log is not whole, that among others; 0 */
	struct timeline *timeline;
	uint64_t disk_bytes_seen, disk_files_seen; /* at the most, when measured */
	bool disk_was_hidden;			   /* it was ended for what could not be looked into */
};

void supervise_result_done(struct supervise_result *r);

/* Returns when all of it is dead and every byte of output is read. Negative: our own failure; all is dead then too, *ret has
 * what is known, and its evidence says unwatched unless the command had ended by itself. */
int supervise(const struct supervise_job *job, struct supervise_result *ret, struct error *err);

#endif
