/*
 * Analyses that one worker, the dispatcher, has claimed, and that others run: on the nodes of a cluster.
 *
 *     claim ──► hand over ──► (the engine is told) ──► take ──► … heartbeats of who has taken it … ──► commit
 *                   │                                   │  ▲
 *                   └── lease over: queued again        └──┘ taken again: the first attempt is lost
 *
 * What is handed over is named in the ledger, as an index in a batch, before anybody is told to run it. Who runs it takes it by that
 * name, and with it a token of its own: whoever had it before, the dispatcher or somebody who took it earlier, commits nothing any
 * more. A batch that is known to nobody, or whose row went another way since, is nothing to take. So it does not matter where a
 * dispatcher dies, nor how often what it started is started.
 *
 * A row is the dispatcher's until it is taken: its heartbeats prolong the lease, and if they stay away the row is queued again as if it
 * had not been claimed. From then on the lease is that of who has taken it.
 */
#ifndef STORE_HANDOVER_H
#define STORE_HANDOVER_H

#include "queue.h"

/* Those of list are the batch from now on, each at its place there: index 0, 1, … They are the worker's own: claimed with
 * claim_order.hands_over, or handed over before and taken by nobody, who then finds nothing under its old name. ret_kept (room for n):
 * which of them are. The others are somebody else's by now, or locked by their owner at this moment: to be handed back. batch: as made by
 * token_make(). */
struct handed {
	const char *id, *token;
};
int ledger_hand_over(struct ledger *l, const char *worker, const char *batch, const struct handed *list,
		     size_t n, bool *ret_kept, struct error *err);

struct take_order {
	const char *batch;
	int index;
	const char *worker; /* who takes it */
	uint64_t lease_ns;
	const char *handle; /* what is known of it now, JSON; NULL: as it was */
	const char *
		lost; /* why an attempt that is taken away from another is lost: "Slurm started it again on node2"; NULL: something general */
};
/* *ret is filled as by a claim, to be job_done(): 0. 1: there is nothing to take, why says it in a sentence; *ret is not touched. One that somebody has
 * taken before is lost to him, and recorded as such; it may have been its last try. One that is to be cancelled, and did not run, is. */
int ledger_take(struct ledger *l, const struct take_order *o, struct job *ret, struct error *why,
		struct error *err);

/* What the engine knows of many, in one statement. One that is not under this name any more, or locked by its owner: nothing. */
struct handle_note {
	const char *batch;
	int index;
	const char *handle; /* JSON, an object */
};
int ledger_handles_set(struct ledger *l, const struct handle_note *list, size_t n, struct error *err);

/* All that this worker has claimed to hand it over and that has not ended, taken or not, in one query. fn must not use the ledger. */
struct handed_seen {
	const char *id, *token; /* the token that it has now */
	const char *batch;	/* NULL: not handed over yet */
	int index;
	const char *handle; /* NULL: nothing is known yet */
	const char *worker; /* whose it is now */
	bool is_taken, cancelling;
	int tries, retries;
};
typedef int (*handed_fn)(void *arg, const struct handed_seen *h, struct error *err);
int ledger_handed(struct ledger *l, const char *dispatcher, handed_fn fn, void *arg, struct error *err);

/* Ends one with a verdict that was learned from outside, through the fence of the token that it has now: an attempt is recorded, and it
 * is finished, or tried again as any (`lost` always, `refused` never). 1: it is not that token's any more, and nothing has happened. */
struct handed_end {
	const char *id, *token;
	enum verdict verdict;
	const char *reason; /* one line for people */
	const char *handle; /* JSON; NULL: as it was noted last */
};
int ledger_handed_end(struct ledger *l, const struct handed_end *e, struct error *err);

#endif
