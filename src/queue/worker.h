/*
 * A worker: one process, one event loop. It claims analyses while there is room for them, keeps its leases, gives them to
 * an engine (engine.h), and hands back what it cannot finish.
 *
 *     claim ──► engine_start ──► … heartbeats … ──► engine_reap ──► settled, released, or kept for later
 *
 * worker_run() returns when it was told to stop and nothing is running any more, or, draining, when nothing can be
 * claimed. A ledger that cannot be reached is no reason to end. A crash at any instant leaves leases, which end by
 * themselves, and workspaces, which the next worker on this host recovers before it claims anything.
 *
 * On a node of a cluster it claims nothing: it takes the one analysis that was handed over to it (handover.h), and ends with it.
 */
#ifndef QUEUE_WORKER_H
#define QUEUE_WORKER_H

#include "engine.h"

enum { WORKER_JOBS_MAX = 4096 };

struct worker_hooks {
	void *arg;
	void (*ended)(void *arg, const struct engine_end *end); /* of one job */
	void (*say)(void *arg, const char *line);		/* what an operator wants to know */
};

struct worker_take {
	const char *batch; /* as made by token_make() */
	int index;
};

struct worker_options {
	struct hood_options hood;
	enum engine_kind engine;
	int jobs;	   /* at once; 0: the configuration's, else one per CPU */
	uint64_t lease_ns; /* 0: the configuration's */
	bool drain;
	const struct worker_take *take; /* NULL: it claims what is queued */
	const char *metrics;		/* a file for Prometheus, or NULL */
	int signal_fd;			/* a byte: stop. Another: at once */
	struct worker_hooks hooks;
};

/* 1: what it took is not settled: it was handed back, or became somebody else's. */
int worker_run(const struct worker_options *o, struct error *err);

#endif
