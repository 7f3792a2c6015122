/*
 * What the files of the queue share: the database's clock, many ids at once; and the fence, which commit.c holds.
 *
 * Locks are taken in one order: a queue row, its analysis, the rows that wait for it.
 */
#ifndef STORE_QUEUE_PRIVATE_H
#define STORE_QUEUE_PRIVATE_H

#include "buffer.h"
#include "queue.h"
#include "store.h"

/* Now, UTC ns, by the clock that all who share this ledger go by. */
int queue_now(struct ledger *l, int64_t *ret, struct error *err);

/* In this transaction a lock that somebody keeps is ERROR_LOCKED after so long: submitters can lock rows of their own, and who has the
 * leases must not wait for them. SQLite has no locks of rows. */
enum { LOCK_BRIEF_MS = 10 };
int queue_lock_for(struct ledger *l, unsigned ms, struct error *err);

static inline int queue_ring(struct ledger *l, struct error *err)
{
	return l->backend->ops->ring(l->backend, err);
}

/* Something else may be first in line now: the next claim looks again. */
void claim_memory_forget(struct ledger *l);

/* A growing list of ids, each checked by id_check or made by us. */
struct ids {
	char **list;
	size_t count;
};
void ids_done(struct ids *ids);
#define _cleanup_ids_ _cleanup_(ids_done)
int ids_add(struct ids *ids, const char *id, struct error *err);
/* row_fn that adds the first column. */
int ids_take(void *arg, const struct value *row, struct error *err);

/* A statement whose first parameter is a list of ids, some thousands of them at a time; extra: the second, or NULL. */
int queue_run_ids(struct ledger *l, enum sql which, char *const *ids, size_t n, const struct value *extra,
		  row_fn fn, void *arg, struct error *err);

/* queue_worker.c: within a transaction, at the database's time. */
int worker_sign(struct ledger *l, const struct worker_sign *s, int64_t now, struct error *err);

/* queue_due.c: what a wrong clock has put off. dues_look() finds it, dues_wake() queues what has waited long enough; ret_any: there
 * was some. dues_wait(): until then; negative: there is none. */
int dues_look(struct ledger *l, struct lease_watch *w, int64_t now, struct error *err);
int dues_wake(struct ledger *l, struct lease_watch *w, bool *ret_any, struct error *err);
int64_t dues_wait(const struct lease_watch *w);
void dues_done(struct lease_watch *w);

/* The ids of an array lie after from and before to. */
struct array_range {
	char from[ID_ROOM + 2], to[ID_ROOM + 2];
};
void array_range_of(const char *name, struct array_range *ret);

/* What the queue and the ledger know of an id. Rows of the queue are locked; of what it does not know any more, or never
 * did, the latest attempt says it. list is sorted by id, and has each once. stamp 0: nothing is ours. */
enum standing { STANDING_UNKNOWN, STANDING_SUCCEEDED, STANDING_ENDED, STANDING_ACTIVE };
struct known {
	const char *id;
	enum standing standing;
	bool is_mine;	       /* in the queue since stamp: from an earlier try of ours */
	char witness[ID_ROOM]; /* of an array that has not ended: array_witness(); else "" */
};
int known_compare(const void *a, const void *b);
int queue_know(struct ledger *l, struct known *list, size_t n, int64_t stamp, struct error *err);

/* "sweep" for "sweep.17"; false: of no array. */
bool array_of(const char *id, char out[ID_ROOM]);
/* Of all its tasks: one that did not succeed is STANDING_ENDED, else one that has not ended STANDING_ACTIVE. */
int array_standing(struct ledger *l, const char *name, enum standing *ret, struct error *err);
/* Who comes after an array waits for its name, and beside that for one task that has not ended, its witness. Only when
 * that one has succeeded is another looked for, always further down in the order of ids: what is above has ended. So the end of
 * a task costs the same however many there are, and all the looking together is one walk through them. The witness is
 * locked: one that is ending at this moment has either ended then, or will find who waits for it. "": none. */
int array_witness(struct ledger *l, const char *name, const char *below, char ret[ID_ROOM],
		  struct error *err);
/* id has succeeded: those whose witness it was get another, or have waited enough. */
int array_pass_on(struct ledger *l, const char *id, struct error *err);

/* A row of queue's columns. ret is initialized, and the caller's to be done in any case. */
int queue_job_load(struct job *ret, const struct value *row, struct error *err);

/* The row as the fence sees it, locked. */
struct queue_row {
	bool found, cancelling;
	enum job_state state;
	char token[TOKEN_SIZE];
	int retries, tries;
	unsigned retry_on;
	enum verdict verdict;
};
int queue_lock(struct ledger *l, const char *id, struct queue_row *ret, struct error *err);

/* Within the transaction that commits a, after queue_lock(): ERROR_LEASE unless it is ours; else what becomes of it. */
int queue_settle(struct ledger *l, const struct queue_row *row, const struct attempt *a, int number,
		 struct error *err);
/* Its token is in the ledger already: 0 if we have put it there, ERROR_LEASE if it was given up as lost. */
int queue_committed(struct ledger *l, const struct attempt *a, struct error *err);

/* What was claimed and did not run: as if it had not been claimed, from due on (0: at once); cancelling: it is cancelled instead. Its row is locked. */
int queue_put_back(struct ledger *l, const char *id, bool cancelling, int64_t due, const char *reason,
		   struct error *err);

/* handover.c: a row whose lease somebody has; zero at first. handed_row_take() is a row_fn. */
struct handed_row {
	struct job job;
	char *worker, *dispatcher; /* dispatcher NULL: it was not to be handed over */
	json_t *handle;
	bool found, cancelling;
};
void handed_row_done(struct handed_row *r);
int handed_row_take(void *arg, const struct value *row, struct error *err);
bool handed_row_is_taken(const struct handed_row *r); /* somebody runs it */
/* All that can be said from here of an attempt. */
void handed_row_describe(const struct handed_row *r, struct attempt *a, int64_t now);

/* Cancels whoever waits for one of ids, and who waits for those. */
int queue_cancel_after(struct ledger *l, char *const *ids, size_t n, const char *reason, struct error *err);

#endif
