/*
 * What a dispatcher has given to Slurm, and what became of each: the middle between the ledger (store/handover.h), which says what is
 * whose, and Slurm (slurm.h), which says what happened to its jobs. One thread's; engine_slurm.c has it.
 *
 *     new ──► handed over in the ledger ──► sbatch ──► pending … taken by a node … ──► settled by the node
 *                      ▲                      │                     │
 *                      └── Slurm said no ─────┘                     └──► settled here, when Slurm tells how it ended
 *
 * The ledger is asked after Slurm, always: a job that has ended, and whose row is still as it was, did not settle it. Nothing is kept
 * on disk: after a crash dispatch_adopt() has it all from the ledger, and finds its jobs again by their names.
 */
#ifndef QUEUE_DISPATCH_H
#define QUEUE_DISPATCH_H

#include "engine.h"
#include "handover.h"
#include "slurm.h"

/* One that is not settled. */
struct entry {
	char id[ID_ROOM];
	char token[TOKEN_SIZE]; /* as the worker knows it */
	char now[TOKEN_SIZE];	/* that it has now: a node gets another when it takes it */
	struct job job;		/* as claimed; of one that was adopted loaded when it is needed */
	bool is_loaded;
	char **options; /* sbatch's; NULL: not made yet */
	bool has_options;
	char batch[TOKEN_SIZE]; /* "": not handed over */
	int index;
	bool is_sent;  /* sbatch was told, as far as we know */
	bool is_taken; /* a node has it */
	bool cancelling;
	bool was_seen; /* by the look that is going on: in Slurm, in the ledger */
	bool is_listed;
	uint64_t known_at;	/* clock_now(): when Slurm last had it */
	int puzzles;		/* how often Slurm did not take it, in words that we do not know */
	int missing;		/* looks that did not find it in Slurm, one after the other */
	int retries;		/* as submitted */
	uint64_t try_at;	/* clock_now(): not before that */
	uint64_t cancel_at;	/* clock_now(): scancel, if it is still there then; 0: not asked */
	struct slurm_seen seen; /* what Slurm said last; job "": nothing yet */
	bool is_noted;		/* the ledger knows that */
};

/* No node could start it, so many times. */
struct stumble {
	char id[ID_ROOM];
	int count;
};

/* Slurm's failures, one after the other, and the last of them: each is said once. */
struct trouble {
	int tries;
	char said[1024];
};

struct dispatch {
	struct slurm *slurm;
	struct hood *hood; /* its own: with a connection */
	const char *worker;
	struct entry **entries;
	size_t n;
	struct stumble *stumbles;
	size_t n_stumbles;
	uint64_t look_at, try_at; /* clock_now(): Slurm is asked, the ledger is tried again */
	uint64_t listed_at;	  /* clock_now() of the last look at the ledger */
	char **arrays;		  /* the names of those that Slurm knows something of, during a look */
	size_t n_arrays;
	bool is_poked; /* something has changed there */
	struct trouble asking, submitting, puzzling;
	size_t batch_max; /* so many at once, since Slurm had no room for more; 0: any number */
	void (*tell)(void *arg, struct engine_end *end); /* takes what it has over */
	void *arg;
};

/* What this worker had handed over before. */
int dispatch_adopt(struct dispatch *d, struct error *err);
/* Moves the job out of *job. */
int dispatch_start(struct dispatch *d, struct job *job, struct error *err);
void dispatch_cancel(struct dispatch *d, const char *token, enum engine_cancel how);
/* All that is due. */
void dispatch_turn(struct dispatch *d);
/* clock_now() of the next turn; UINT64_MAX: nothing is due. */
uint64_t dispatch_due(const struct dispatch *d);
void dispatch_done(struct dispatch *d);

/* ---- between its files ---- */

struct entry *dispatch_find(struct dispatch *d, const char *id);
void entry_forget(struct dispatch *d, struct entry *e);
/* What is told of it: which it is, and where it ran. */
void entry_describe(const struct dispatch *d, const struct entry *e, enum outcome outcome,
		    struct engine_end *ret);
/* It is told, and forgotten. format NULL: no words. */
void entry_end(struct dispatch *d, struct entry *e, enum outcome outcome, const char *format, ...)
	PRINTF_LIKE(4, 5);
/* The verdict is committed, through the fence of the token that it has now, and told. 0; 1: it is not that token's any more;
 * negative: the ledger did not answer. */
int entry_settle(struct dispatch *d, struct entry *e, enum verdict verdict, struct error *err,
		 const char *format, ...) PRINTF_LIKE(5, 6);
/* A batch of its own, once more: what Slurm has of the old one finds nothing to take. */
void entry_again(struct entry *e, uint64_t at);
/* {"engine": "slurm", …}, allocated; NULL if memory is out. */
char *entry_handle(const struct dispatch *d, const struct entry *e);
/* The value of the last of sbatch's options with this name ("--mem="), or NULL. */
const char *entry_option(struct dispatch *d, struct entry *e, const char *name);
int entry_load(struct dispatch *d, struct entry *e, struct error *err);
void dispatch_say(struct dispatch *d, const char *format, ...) PRINTF_LIKE(2, 3);
/* Slurm did not do what it was asked. When to try again, clock_now(). */
uint64_t dispatch_fail(struct dispatch *d, struct trouble *t, const struct error *why);
/* The words of it, unless they were the last. */
void dispatch_complain(struct dispatch *d, struct trouble *t, const struct error *why);
void dispatch_answered(struct dispatch *d, struct trouble *t);
/* Those whose words have changed, in one statement. */
int dispatch_note(struct dispatch *d, struct ledger *l, struct error *err);

/* dispatch_submit.c, dispatch_watch.c, dispatch_cancel.c */
int dispatch_submit(struct dispatch *d, struct ledger *l, struct error *err);
int dispatch_look(struct dispatch *d, struct ledger *l, struct error *err); /* Slurm, then the ledger */
int dispatch_list(struct dispatch *d, struct ledger *l, struct error *err); /* only the ledger */
int dispatch_scancel(struct dispatch *d, struct error *err);

#endif
