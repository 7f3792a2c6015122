/*
 * Threads that ask the ledger, each with a connection of its own, so that the one that talks to browsers never waits for a disk or a server.
 */
#ifndef WEB_ASKER_H
#define WEB_ASKER_H

#include "hood.h"

/* Something to be asked: the first member of what the caller has. work is called in one of the threads, and does not touch it after it has
 * told that it is done. h NULL: the threads are to end, and nothing is asked any more. */
struct errand {
	struct errand *next;
	void (*work)(struct errand *e, struct hood *h);
};

struct askers;
int askers_open(const struct hood_options *options, size_t n, struct askers **ret, struct error *err);
void askers_give(struct askers *a, struct errand *e);
/* After what is being asked is done, and the rest of what was given is told that it comes too late. Returns NULL. */
struct askers *askers_close(struct askers *a);

#endif
