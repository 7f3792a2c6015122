/*
 * What runs an analysis for a worker: the seam between the queue and a machine. The local engine calls hood_run() in a
 * thread of its own for each; another might hand the job to a cluster.
 *
 * engine_start gives it a claimed job. Whatever becomes of that is told once, by engine_reap(), when `fd` is readable.
 * The engine commits what came to a verdict, through the fence of the job's token; leases are the worker's business.
 * One thread calls. A crash leaves what the job's record on disk names: engine_recover() finishes it.
 */
#ifndef QUEUE_ENGINE_H
#define QUEUE_ENGINE_H

#include "hood.h"

enum outcome {
	OUTCOME_SETTLED,     /* committed: the queue knows */
	OUTCOME_LOST,	     /* the lease was over: nothing was committed, nothing is left */
	OUTCOME_HANDED_BACK, /* as was asked: nothing was recorded. To be released */
	OUTCOME_BUSY,	     /* something is in the way here and now. To be released, for later */
	OUTCOME_UNSETTLED, /* pending: its command has ended, the rest waits on disk. engine_recover() tries again */
	OUTCOME_RECOVERED, /* an engine_recover() has ended: no job */
};

struct engine_end {
	enum outcome outcome;
	char id[ID_ROOM];
	char token[TOKEN_SIZE];
	struct attempt attempt;	    /* SETTLED, UNSETTLED */
	struct error why;	    /* LOST, HANDED_BACK, BUSY, UNSETTLED; RECOVERED: the first failure */
	struct gc_report recovered; /* RECOVERED */
};
void engine_end_done(struct engine_end *e);

enum engine_cancel {
	ENGINE_CANCEL,	  /* its verdict is cancelled */
	ENGINE_HAND_BACK, /* it ends without one */
};

struct engine;
struct engine_ops {
	int (*start)(struct engine *e, struct job *job, struct error *err);
	void (*cancel)(struct engine *e, const char *token, enum engine_cancel how);
	int (*recover)(struct engine *e, bool keeps_house, struct error *err);
	int (*reap)(struct engine *e, struct engine_end *ret);
	void (*close)(struct engine *e);
};
struct engine {
	const struct engine_ops *ops;
	const char *name; /* "local": for people */
	int fd;		  /* readable: something has ended */
	int slots;	  /* how many at once */
};

/* Moves the job out of *job on success. At most `slots` at once. */
static inline int engine_start(struct engine *e, struct job *job, struct error *err)
{
	return e->ops->start(e, job, err);
}

/* What is not running any more is no matter. */
static inline void engine_cancel(struct engine *e, const char *token, enum engine_cancel how)
{
	e->ops->cancel(e, token, how);
}

/* Finishes or removes what dead workers left on this host. It takes its time; its end is told as all others. */
/* keeps_house: also what the configuration's `retain` says, which may take minutes. */
static inline int engine_recover(struct engine *e, bool keeps_house, struct error *err)
{
	return e->ops->recover(e, keeps_house, err);
}

/* 1 with the next end, to be engine_end_done(); 0: no more. */
static inline int engine_reap(struct engine *e, struct engine_end *ret)
{
	return e->ops->reap(e, ret);
}

/* Waits for what is still running. NULL is fine; returns NULL. */
static inline struct engine *engine_close(struct engine *e)
{
	if (e)
		e->ops->close(e);
	return NULL;
}

/* options->lending: what its analyses have of the ledger; recovery has a connection of its own. */
int engine_local_open(const struct hood_options *options, int slots, struct engine **ret, struct error *err);

#endif
