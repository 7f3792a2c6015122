/*
 * A worker: one process, one event loop. It claims analyses while there is room for them, keeps its leases, gives them to
 * an engine (engine.h), and hands back what it cannot finish.
 *
 *     claim ──► engine_start ──► … heartbeats … ──► engine_reap ──► settled, released, or kept for later
 *
 * worker_run() returns when it was told to stop and nothing is running any more, or, draining, when nothing can be
 * claimed. A ledger that cannot be reached is no reason to end. A crash at any instant leaves leases, which end by
 * themselves, and workspaces, which the next worker on this host recovers before it claims anything.
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

struct worker_options {
	struct hood_options hood;
	int jobs;	   /* at once; 0: the configuration's, else one per CPU */
	uint64_t lease_ns; /* 0: the configuration's */
	bool drain;
	const char *metrics; /* a file for Prometheus, or NULL */
	int signal_fd;	     /* a byte: stop. Another: at once */
	struct worker_hooks hooks;
};

int worker_run(const struct worker_options *o, struct error *err);

#endif
