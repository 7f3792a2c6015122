/* What the files of the worker share. */
#ifndef QUEUE_WORKER_PRIVATE_H
#define QUEUE_WORKER_PRIVATE_H

#include "loop.h"
#include "queue.h"
#include "slurm_node.h"
#include "tally.h"
#include "worker.h"

enum held_state {
	HELD_RUNNING, /* the engine has it */
	HELD_RELEASE, /* to be handed back, as soon as the ledger hears us */
	HELD_UNSETTLED, /* pending: it waits on disk for the ledger, or for room; it keeps its seat until then */
};

/* A lease of ours. */
struct held {
	struct held *next;
	enum held_state state;
	char id[ID_ROOM];
	char token[TOKEN_SIZE];
	uint64_t memory_bytes, cpus_milli;
	uint64_t delay_ns;   /* RELEASE */
	char *reason;	     /* RELEASE: why, or NULL */
	bool cancelled;	     /* the engine was told */
	bool is_confirmed;   /* by the heartbeat that is going on */
	bool is_lost;	     /* somebody else's, or it has just been committed */
	uint64_t claimed_at; /* clock_now() */
};

/* One that something of this host's is in the way of: the longer, the rarer it is tried here. */
struct obstacle {
	struct obstacle *next;
	char id[ID_ROOM];
	int count;
};

struct worker_counters {
	uint64_t claimed, handed_back, lost, expired, away;
	uint64_t claims, claims_ns; /* calls, and how long they took */
	uint64_t ended[VERDICT_COUNT];
};

struct worker {
	const struct worker_options *options;
	struct hood *hood;
	struct lending *lending; /* of what it runs */
	struct ledger *ledger;
	struct engine *engine;
	struct loop *loop;
	struct source *tick, *watchdog, *bell;
	int bell_fd; /* what `bell` watches; -1: none */
	char name[256], host[65];
	uint64_t lease_ns, memory_total, cpus_total;
	int cap;
	bool keeps_house; /* the configuration has a `retain` */
	struct held *held;
	struct obstacle *obstacles;

	bool is_recovered; /* what was left here before is finished: claims may begin */
	bool recovering;   /* an engine_recover() is going on */
	bool stopping;	   /* no more claims */
	bool hands_back;   /* what runs was told to end */
	bool is_deaf;	   /* the ledger has no bell */
	bool has_rung;	   /* since the last tick */
	bool wants_claim;  /* something has changed since the last claim that found nothing */
	bool is_full;	   /* the next one waits for room */
	bool has_signed;   /* the ledger lists it among its workers, maybe */
	uint64_t heartbeat_at, looked_at, expire_at, recover_at, metrics_at, house_at; /* clock_now() */
	struct lease_watch watch;						       /* those of others */
	int64_t next_due; /* as ledger_expire said; 0: nothing is due any more */

	char pending_said[1024]; /* why some are pending: said once */

	struct error why; /* it gives up */
	bool is_away;	  /* the ledger cannot be reached */
	int tries;
	uint64_t try_at;

	struct slurm_node node; /* options->take: what it runs in */
	bool has_taken;		/* it takes no more */
	bool is_unsettled;	/* what it took is another's to run */

	struct worker_counters counters;
	struct tally *tally; /* NULL: nobody wants to know */
};

void worker_say(const struct worker *w, const char *format, ...) PRINTF_LIKE(2, 3);
int worker_running(const struct worker *w);
/* Taken by what runs, and by what is pending: a worker that cannot finish anything takes no more than it has seats. */
int worker_seats_taken(const struct worker *w);
uint64_t worker_memory_used(const struct worker *w);
uint64_t worker_cpus_used(const struct worker *w);

/* worker_lease.c: all that is said to the ledger. Negative: it did not answer. */
int lease_heartbeat(struct worker *w, struct error *err); /* and a sign of life */
void lease_sign_off(struct worker *w);			  /* a clean end */
int lease_look(struct worker *w, struct error *err);	  /* which are to be cancelled */
int lease_expire(struct worker *w, unsigned *ret_expired, struct error *err);
int lease_claim(struct worker *w, unsigned *ret_claimed, struct error *err);
int lease_release(struct worker *w, struct error *err);		     /* those that are to be */
int lease_start(struct worker *w, struct job *j, struct error *err); /* it is ours: the engine gets it */
struct held *lease_find(struct worker *w, const char *token);
void lease_forget(struct worker *w, struct held *h);
void lease_adopt(struct worker *w, const char *id, const char *token);
/* Something was in its way here, for so many times now: how long it waits, and that it does not any more. */
uint64_t obstacle_wait(struct worker *w, const char *id);
void obstacle_forget(struct worker *w, const char *id); /* NULL: all */

/* worker_take.c: the one that was handed over, in the place of lease_claim(). */
int lease_take(struct worker *w, unsigned *ret_claimed, struct error *err);

/* metrics.c */
int metrics_write(struct worker *w, struct error *err);

#endif
