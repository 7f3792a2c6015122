/*
 * Waiting for queued analyses to end: a look at the ledger when its bell rings, and now and then. Nothing is held while it
 * waits, and whoever stops waiting changes nothing.
 */
#ifndef QUEUE_WAITING_H
#define QUEUE_WAITING_H

#include "queue.h"

struct wait_counts {
	size_t total, waiting, queued, running;
	size_t succeeded, failed; /* failed: everything that ended otherwise */
};

struct wait_hooks {
	void *arg;
	void (*ended)(void *arg, size_t index, const struct queued *q); /* once for each id */
	void (*progress)(void *arg, const struct wait_counts *c);	/* after every look */
	int progress_ms; /* how often progress is wanted even if nothing happened; 0: never */
	int stop_fd;	 /* readable: stop waiting; -1 */
};

/* 0: all have ended. 1: stopped. ERROR_NOT_FOUND: one that is in no queue and in no ledger. ERROR_REFUSED: nobody runs it. */
int wait_for(struct ledger *l, char *const *ids, const struct wait_hooks *hooks, struct error *err);
/* Is it only that the ledger is away? A server that is restarted is waited for. */
bool wait_is_passing(const struct error *err);

#endif
