/*
 * What runs an analysis for a worker: the seam between the queue and a machine. The local engine calls hood_run() in a
 * thread of its own for each; Slurm's hands the job to a cluster. docs/ENGINES.md tells how to make a third.
 *
 * engine_start gives it a claimed job. Whatever becomes of that is told once, by engine_reap(), when `fd` is readable.
 * The engine commits what came to a verdict, through the fence of the job's token; leases are the worker's business.
 * One thread calls, and must not wait: an engine that talks to others has a thread of its own for it. A crash leaves what the job's
 * record on disk names: engine_recover() finishes it.
 *
 * An engine that hands over (`hands_over`) gives the job to somebody on another host, who takes it from the ledger (store/handover.h)
 * with a token and a lease of his own. The worker keeps the lease until then; that it is gone is no end, and the engine is told to look.
 * What an earlier life of the same worker had handed over goes on: engine_adopted() tells it.
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
	OUTCOME_LEFT,	   /* handed over: it goes on without us, or is queued again. Nothing is to be done */
	OUTCOME_SAID,	   /* nothing has ended: what an operator wants to know, in why */
};

struct engine_end {
	enum outcome outcome;
	char id[ID_ROOM];
	char token[TOKEN_SIZE];
	struct attempt attempt; /* SETTLED, UNSETTLED */
	struct error why; /* LOST, HANDED_BACK, BUSY, UNSETTLED, LEFT, SAID; RECOVERED: the first failure */
	/* Handed over: "node1, Slurm job 12_3 of main"; of the attempt only the verdict is known then. Else "". */
	char where[400];
	struct gc_report recovered; /* RECOVERED */
};
void engine_end_done(struct engine_end *e);

enum engine_cancel {
	ENGINE_CANCEL,	  /* its verdict is cancelled */
	ENGINE_HAND_BACK, /* it ends without one */
};

enum engine_kind { ENGINE_LOCAL, ENGINE_SLURM };
int engine_kind_parse(const char *name, enum engine_kind *ret); /* "local", "slurm"; -EINVAL */

struct engine;
struct engine_ops {
	int (*start)(struct engine *e, struct job *job, struct error *err);
	void (*cancel)(struct engine *e, const char *token, enum engine_cancel how);
	int (*recover)(struct engine *e, bool keeps_house, struct error *err);
	int (*reap)(struct engine *e, struct engine_end *ret);
	void (*close)(struct engine *e);
	/* Those that hand over; else NULL. */
	void (*look)(struct engine *e);
	int (*adopted)(struct engine *e, void (*fn)(void *arg, const char *id, const char *token), void *arg,
		       struct error *err);
};
struct engine {
	const struct engine_ops *ops;
	const char *name; /* "local": for people */
	int fd;		  /* readable: something has ended */
	int slots;	  /* how many at once */
	bool hands_over;
	const char *place;  /* hands_over: "Slurm", for people; else NULL */
	const char *worker; /* hands_over: the name of its worker, the same in its next life; else NULL */
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

/* Something of its own may have changed in the ledger. */
static inline void engine_look(struct engine *e)
{
	if (e->ops->look)
		e->ops->look(e);
}

/* What it has from before: fn for each, as if it had been started. Once, before anything else. */
static inline int engine_adopted(struct engine *e, void (*fn)(void *arg, const char *id, const char *token),
				 void *arg, struct error *err)
{
	return e->ops->adopted ? e->ops->adopted(e, fn, arg, err) : 0;
}

/* Waits for what is still running; what was handed over is left. NULL is fine; returns NULL. */
static inline struct engine *engine_close(struct engine *e)
{
	if (e)
		e->ops->close(e);
	return NULL;
}

/* In a job of a batch system: who is asked why an analysis has ended (hood.h). Before the first start; it outlives the engine. */
void engine_local_managed(struct engine *e, const struct run_manager *m);
/* options->lending: what its analyses have of the ledger; recovery has a connection of its own. */
int engine_local_open(const struct hood_options *options, int slots, struct engine **ret, struct error *err);
/* slots 0: the configuration's. lease_ns 0: the nodes go by their own configuration. */
int engine_slurm_open(const struct hood_options *options, int slots, uint64_t lease_ns, struct engine **ret,
		      struct error *err);

#endif
