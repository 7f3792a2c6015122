/*
 * The queue, in the ledger beside what became of others. One row per queued analysis:
 *
 *     waiting ──► queued ──► running ──► finished
 *        │  ▲        │          │
 *        │  └────────┼──────────┘  lost, handed back, to be tried again
 *        └──────► cancelled
 *
 * What had not ended when a backup was made is `restored` out of it: nobody claims it, and a retry lets it go.
 *
 * A claim makes it running, with a worker's name, a lease and a new token. Only the commit that has this token ends it
 * (commit.c asks queue_settle() inside its transaction): a worker that was asleep past its lease, and comes back when
 * somebody else has claimed it, commits nothing. Time is the database's own, so that the clocks of hosts do not matter.
 * No transaction stays open between calls. A crash at any instant leaves at most a lease, which ends by itself.
 */
#ifndef STORE_QUEUE_H
#define STORE_QUEUE_H

#include "job.h"
#include "ledger.h"
#include "tasks.h"

/* ---- for submitters ---- */

enum submit_flags { SUBMIT_IF_ABSENT = 1 /* a known id is the same analysis */ };

/* All of them or none, in one transaction. open gives the contents of inputs (by path and digest in struct output form:
 * o->path is the input's source) that the ledger does not have yet; it is called at most once per content. ret_new
 * (NULL, or room for n): which of them are new. Refused: an id that is known (queued, or with attempts) unless
 * SUBMIT_IF_ABSENT or job->again; one that is waiting, queued or running now even with job->again; the same id twice,
 * unless SUBMIT_IF_ABSENT; an `after` that nobody knows, that did not succeed, or that comes later among these. */
int ledger_submit(struct ledger *l, const struct job *jobs, size_t n, unsigned flags, content_open_fn open,
		  void *arg, bool *ret_new, struct error *err);

/* An array: one for each of its tasks. All is as in job, but that mark, a number that occurs nowhere else,
 * stands in its id and its request where the task's number belongs. job's after is the same for all. */
struct job_array {
	const struct job *job;
	const char *name; /* for messages */
	const char *mark;
	const struct tasks *tasks;
};
size_t job_array_count(const struct job_array *a);
void job_array_id(const struct job_array *a, size_t i, char out[ID_ROOM]); /* of its i-th task */
/* The same as ledger_submit() for every task; ret_new has room for each. Their rows are never all in memory. */
int ledger_submit_array(struct ledger *l, const struct job_array *a, unsigned flags, content_open_fn open,
			void *arg, bool *ret_new, struct error *err);

/* Waiting, queued or restored: cancelled at once, and with it whatever waits for it. Running: the worker is told. Ended already:
 * nothing. *ret_state is the state before. ERROR_NOT_FOUND: not a queued analysis. */
int ledger_cancel(struct ledger *l, const char *id, enum job_state *ret_state, struct error *err);
/* The same for many, each of them there once: some thousands to a transaction. fn is called for each, in their order, once its
 * transaction is done. */
typedef void (*cancelled_fn)(void *arg, const char *id, bool found, enum job_state before);
int ledger_cancel_many(struct ledger *l, char *const *ids, cancelled_fn fn, void *arg, struct error *err);
/* Finished without success, cancelled, or restored: queued again, from its stored request. Else refused. */
int ledger_retry(struct ledger *l, const char *id, struct error *err);

struct queued {
	char id[ID_ROOM];
	enum job_state state;
	enum verdict verdict; /* of its last attempt, if finished; VERDICT_CANCELLED if cancelled */
	int status;	      /* exit status of that attempt */
	int attempt;	      /* running or last; 0: none yet */
	int priority;
	bool cancelling;
	int64_t submitted, due;				 /* UTC ns; due 0: none */
	const char *owner, *submitter, *worker, *reason; /* last until fn returns; NULL: none */
	const char *live;   /* likewise: what it had used by its worker's last heartbeat, JSON */
	const char *handle; /* likewise: handed over (handover.h), what is known of it there */
};
typedef int (*queued_fn)(void *arg, const struct queued *q, struct error *err);
/* state -1: all; prefix NULL: all; limit 0: all. Newest first. */
int ledger_queue_list(struct ledger *l, int state, const char *prefix, int limit, queued_fn fn, void *arg,
		      struct error *err);
/* Those that have no verdict of an attempt: running, queued, waiting, restored, cancelled, each newest first, limit of each (0: all). In one look,
 * so that one who goes from one state to another meanwhile is seen once. */
int ledger_queue_list_open(struct ledger *l, const char *prefix, int limit, queued_fn fn, void *arg,
			   struct error *err);
/* Those of the ids that are known, in no order. For many ids at once. */
int ledger_queue_look(struct ledger *l, char *const *ids, queued_fn fn, void *arg, struct error *err);
/* Those of the ids that have an attempt in the ledger, as if the queue had finished them with it: for what it does not
 * know, because `run` made it, or its row was removed. */
int ledger_ended_look(struct ledger *l, char *const *ids, queued_fn fn, void *arg, struct error *err);
/* The tasks of an array: ids that are its name, a dot and a number. From the queue; and_ledger: those too of which only
 * attempts are left. In no order; each once. */
typedef int (*task_fn)(void *arg, const char *id, unsigned long number, struct error *err);
int ledger_array_tasks(struct ledger *l, const char *array, bool and_ledger, task_fn fn, void *arg,
		       struct error *err);

/* What ledger and queue know of an id that is to be run, asked in one statement: each run waits for it, twice. */
struct run_known {
	bool succeeded;	      /* some attempt has */
	int next_attempt;     /* removed ones keep their numbers */
	enum job_state state; /* in the queue; JOB_STATES: it is not there */
	char task[ID_ROOM];   /* of an array of that name in the queue; "": none */
};
int ledger_run_known(struct ledger *l, const char *id, struct run_known *ret, struct error *err);
/* The whole of one, as it was submitted. ERROR_NOT_FOUND. */
int ledger_queue_load(struct ledger *l, const char *id, struct job *ret, struct error *err);
/* Of those that have not ended in order (none is JOB_FINISHED), each counted up to most: what has ended costs nothing. */
int ledger_queue_open_counts(struct ledger *l, uint64_t most, uint64_t ret[JOB_STATES], struct error *err);
/* Of the attempts that began within the last hour, the newest thousands: how many have ended, how many of them without success,
 * and how many within the last minute, by the database's clock. */
struct recent {
	uint64_t window_ns;
	uint64_t ended, failed, in_minute;
	bool is_cut; /* there are more */
};
int ledger_recent(struct ledger *l, struct recent *ret, struct error *err);
int ledger_queue_counts(struct ledger *l, uint64_t ret[JOB_STATES], struct error *err);
/* The same, a part at a time, each of which takes the database milliseconds and keeps no snapshot: counts (zero at first) has
 * the rows up to the id in after ("" at first) when it returns 1, all of them when it returns 0. */
int ledger_queue_count_some(struct ledger *l, char after[ID_ROOM], uint64_t counts[JOB_STATES],
			    struct error *err);

/* ---- for workers ---- */

struct claim_order {
	const char *worker; /* host, boot and a uuid */
	uint64_t lease_ns;
	int cap;			   /* running at once per owner, on all workers; 0: no cap */
	uint64_t memory_total, cpus_total; /* of this host: what needs more is not for it; 0: not counted */
	uint64_t memory_free, cpus_free;   /* what is left of it now */
	bool hands_over;		   /* it does not run them itself (handover.h) */
};
/* At most max of them into ret (initialized by the callee; *ret_n of them to be job_done()). The owner with the fewest
 * running goes first, then the one who was served longest ago; of the owner's submitters the same; within one the
 * priority, then who came first. If the next one does not fit into what is free, nobody behind it is taken: *ret_full
 * says so. */
int ledger_claim(struct ledger *l, const struct claim_order *o, struct job *ret, size_t max, size_t *ret_n,
		 bool *ret_full, struct error *err);

/* Prolongs every lease of this worker. fn is called for each that it still has; what is not mentioned is lost to it. One
 * that the worker does not know (the answer to its claim never came) it hands back. */
typedef void (*lease_fn)(void *arg, const char *id, const char *token, bool cancelling);
int ledger_heartbeat(struct ledger *l, const char *worker, uint64_t lease_ns, lease_fn fn, void *arg,
		     struct error *err);
/* The same, and in the same transaction the worker says of itself what others may know: its row, made the first time. */
enum worker_state {
	WORKER_WORKING,
	WORKER_DRAINING, /* takes no more, and lets what it runs end */
	WORKER_STOPPING, /* takes no more, and hands back what it runs */
	WORKER_STATES
};
const char *worker_state_name(enum worker_state s); /* "working", "draining", "stopping" */
struct worker_sign {
	const char *name; /* as in its leases */
	const char *host, *engine, *version;
	enum worker_state state;
	int pid, seats, running;
	uint64_t lease_ns;
	const char *live; /* what those that it runs have used so far: JSON, {id: any}; NULL: not known */
};
int ledger_sign(struct ledger *l, const struct worker_sign *s, lease_fn fn, void *arg, struct error *err);
/* It ends: its row goes. */
int ledger_sign_off(struct ledger *l, const char *name, struct error *err);

/* Who has signed, and has not signed off; who was heard of last comes first. Alive is who was heard of within its own lease, by
 * the database's clock. */
struct worker_seen {
	const char *name, *owner, *host, *engine, *state, *version;
	int pid, seats, running;
	int64_t started, seen; /* UTC ns */
	int64_t silent_ns;     /* since then, by the database's clock */
	uint64_t lease_ns;
	bool is_alive;
};
typedef int (*worker_fn)(void *arg, const struct worker_seen *w, struct error *err);
int ledger_workers(struct ledger *l, worker_fn fn, void *arg, struct error *err);
/* Forgets those that were not heard of for a day. Nothing where whoever is connected may not. */
int ledger_workers_sweep(struct ledger *l, struct error *err);

/* Only looks: which it has, and which of them are to be cancelled. */
int ledger_leases(struct ledger *l, const char *worker, lease_fn fn, void *arg, struct error *err);

/* Hands it back, as if it had not been claimed, for anybody after delay. Not ours any more: nothing. */
int ledger_release(struct ledger *l, const char *id, const char *token, uint64_t delay_ns, struct error *err);
/* The same, and why, which is shown while it waits. */
int ledger_release_for(struct ledger *l, const char *id, const char *token, uint64_t delay_ns,
		       const char *reason, struct error *err);
/* The same, but it waits for nobody: 1 if its row, or one that is cancelled with it, is locked, as its owner can. */
int ledger_release_if_free(struct ledger *l, const char *id, const char *token, uint64_t delay_ns,
			   const char *reason, struct error *err);

/* Leases of others that were found over, and when by clock_now(). A database that was away has let every lease end, and a
 * clock that was set forward does: so one is only given up that has not moved between two looks, a lease apart, over one
 * connection that was not broken in between. Where there is one writer at a time, who writes for longer than a lease keeps
 * all others from prolonging theirs: that time does not count. All zero at first; lease_watch_done().
 *
 * One that ends later than any clock that is right can have written (twice its length from now) is watched like one that is
 * over: its holder's clock was ahead, or ours was set back. Likewise what is put off for longer than anything ever is. */
struct lease_watch {
	const char *worker; /* whose leases are not looked at; NULL: nobody's */
	uint64_t lease_ns;
	struct watched *list;
	size_t count;
	unsigned connection;
	uint64_t looked_ns; /* clock_now() of the last look */
	struct due *dues;   /* put off by a wrong clock */
	size_t dues_count;
	uint64_t dues_look_ns; /* clock_now() before which nobody looks for them again */
};
void lease_watch_done(struct lease_watch *w);

/* Leases that are over: an attempt `lost` is recorded, and it is tried again or finished. Those whose time has come are
 * queued. *ret_next: when the next of them is due (a lease, a second look, a waiting time), as UTC ns of this host's
 * clock; 0: none. */
int ledger_expire(struct ledger *l, struct lease_watch *watch, unsigned *ret_expired, int64_t *ret_next,
		  struct error *err);

/* Whoever has leases of this length to keep cannot wait for half a minute to learn that nobody hears him: who was cut off is
 * back as soon as all the others, who may be watching what is his. */
void ledger_hurry(struct ledger *l, uint64_t lease_ns);

/* ---- the doorbell ---- */

/* A descriptor that becomes readable when somebody has submitted, cancelled or finished something: PostgreSQL's NOTIFY
 * on this connection, or inotify on a file beside SQLite's. It only makes things faster: it may ring for nothing, and
 * may fail to ring. -1 with err set if it cannot be had, as behind a pooler of connections. It stays the ledger's, and changes after a reconnection: ask
 * for it each time before waiting, which costs nothing while it is the same. */
int ledger_bell(struct ledger *l, struct error *err);
/* Takes what it rang: 1, 0 if it did not. To be called before waiting, too: what came along with the answer to another
 * call makes the descriptor readable no more. Negative: the connection is gone; the next call of any kind connects again. */
int ledger_bell_read(struct ledger *l, struct error *err);
/* Nobody waits any more: a connection that goes on without being read must not be rung. */
void ledger_bell_end(struct ledger *l);

#endif
