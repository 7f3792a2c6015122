/*
 * How an attempt ended, and what that means for the exit status. The decision is one pure function over the
 * evidence that the kernel gave, so that it can be tested as a table.
 */
#ifndef MODEL_VERDICT_H
#define MODEL_VERDICT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "error.h"

/*
 * X(NAME, name). The number is the place in this list: ledgers and programs have kept it, so it grows only at its end. What
 * other texts say of verdicts comes from here or is held to it by scripts/texts.
 */
#define VERDICTS(X)                                         \
	X(NONE, none) /* still running, or never started */ \
	X(SUCCEEDED, succeeded)                             \
	X(FAILED, failed)                                   \
	X(TIMED_OUT, timed_out)                             \
	X(OUTPUT_MISSING, output_missing)                   \
	X(POST_PROCESS_FAILED, post_process_failed)         \
	X(OUT_OF_MEMORY, out_of_memory)                     \
	X(OUT_OF_DISK, out_of_disk)                         \
	X(OUT_OF_PROCESSES, out_of_processes)               \
	X(CANCELLED, cancelled)                             \
	X(LOST, lost)                                       \
	X(REFUSED, refused)

#define VERDICT_MEMBER(NAME, name) VERDICT_##NAME,
enum verdict { VERDICTS(VERDICT_MEMBER) VERDICT_COUNT };
#undef VERDICT_MEMBER

enum { STATUS_OURS = 125 }; /* the exit status of what was refused, not committed, or failed by us */

const char *verdict_name(enum verdict v);		/* "succeeded", …; "none" */
int verdict_parse(const char *name, enum verdict *ret); /* -EINVAL */

/* What was seen of the end. Counters are -1 where the host cannot count. Of cancel_signal, wall_reached, cpu_reached
 * and disk_killed only what came first is set: what the analysis was ended for. */
struct evidence {
	bool started;	   /* the command was executed */
	int exec_errno;	   /* why it was not: ENOENT → 127, else 126; 0 */
	int exit_code;	   /* -1 unless it exited */
	int signal;	   /* 0 unless a signal ended it */
	int cancel_signal; /* SIGINT, SIGTERM, SIGHUP that we were sent; 0 */
	bool wall_reached; /* the deadline ended it */
	bool cpu_reached;  /* cpu time ended it */
	bool disk_killed;  /* we killed it for its disk use */
	int64_t oom_kills; /* kernel counter */
	int64_t pids_hits; /* kernel counter: forks refused */
	int64_t disk_hits; /* ENOSPC was certain: the file system is full at the end, 0/1; -1 unknown */
	bool output_missing;
	bool post_process_failed;
	bool unwatched;	 /* we failed while it ran, and ended it */
	bool by_manager; /* the batch system around us ended it, and the attempt's reason says how */
};

/* What PID 1 tells of the command while that is watched. */
struct command_report {
	bool deadline; /* the wall clock ran out, SIGTERM was sent */
	bool ended;
	int status;			    /* wait status */
	int64_t cpu_user_ns, cpu_system_ns; /* of it, and of what it waited for */
};

/* Inverse, for whoever decides later. */
json_t *evidence_to_json(const struct evidence *e);
int evidence_from_json(struct evidence *e, const json_t *json, struct error *err);

enum verdict verdict_decide(const struct evidence *e);
/* Exit status of `run` for a verdict (committed or not is the caller's business: 125 if not). */
int verdict_exit_status(enum verdict v, const struct evidence *e);

#endif
