/*
 * A queued analysis: what the submitter asked for, with everything in it that the worker cannot know any more (its files
 * are in the ledger, its paths absolute), and what the queue adds. Pure data.
 *
 * submit makes it and ledger_submit() stores it; ledger_claim() gives it to a worker with a token of its own, which
 * fences its commit.
 */
#ifndef MODEL_JOB_H
#define MODEL_JOB_H

#include <jansson.h>

#include "id.h"
#include "manifest.h"

enum job_state {
	JOB_WAITING,   /* for others (--after), or for its time to be tried again */
	JOB_QUEUED,    /* the next free worker may have it */
	JOB_RUNNING,   /* a worker has a lease on it */
	JOB_FINISHED,  /* its last attempt has a verdict that stays */
	JOB_CANCELLED, /* before it ran */
	JOB_RESTORED,  /* out of a backup, where it had not ended: nobody claims it before it is retried */
	JOB_STATES
};
const char *job_state_name(enum job_state s);		    /* "waiting" … */
int job_state_parse(const char *name, enum job_state *ret); /* -EINVAL */

enum { JOB_RETRIES_DEFAULT = 5, JOB_RETRIES_MAX = 100, JOB_PRIORITY_MAX = 1000 };

struct job {
	char id[ID_ROOM];
	char *owner;	 /* whose it is: given by the ledger, never by who submits */
	char *submitter; /* a name within the owner's */
	int priority; /* among the submitter's own; -JOB_PRIORITY_MAX..JOB_PRIORITY_MAX, higher is sooner */
	int retries;  /* at most so many more attempts, for what retrying can mend */
	unsigned
		retry_on; /* a bit 1 << verdict for each that is tried again besides "lost" and our own failures */
	char **after;			   /* ids that must have succeeded first */
	bool again;			   /* a known id is no reason to refuse it */
	json_t *request;		   /* as request_to_json: absolute paths, no files to stage */
	struct inputs inputs;		   /* what is staged: contents are in the ledger, by digest */
	char **notes;			   /* what who submits it should know; not stored */
	char *unreadable;		   /* why what its row says makes no sense; such a one is refused */
	uint64_t memory_bytes, cpus_milli; /* what a host must have free; 0: nothing in particular */

	/* Given by a claim. */
	int attempt;
	char token[TOKEN_SIZE];
	json_t *engine; /* taken (handover.h): what is known of it where it runs; the attempt's `engine`. NULL: nothing */
	int tries;	   /* attempts that were made before and did not count: lost, tried again */
	int64_t submitted; /* UTC ns */
};

void job_init(struct job *j);
void job_done(struct job *j);
#define _cleanup_job_ _cleanup_(job_done)

/* How long to wait before try number n (0: the first retry): 1 s, 2 s, 4 s … at most 5 minutes. ns. */
uint64_t job_back_off(int n);
/* What is in the way on a host is looked at again after that, however long it lasts. */
#define JOB_OBSTACLE_MAX_NS (60 * NSEC_PER_SEC)

#endif
