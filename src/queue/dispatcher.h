/*
 * Who a dispatcher is: a worker whose name outlives it, so that the next one goes on with what it has handed over. The name is a file in
 * the state directory, one for each cluster, made once and locked while it lives. A crash leaves the file, and the lock is free.
 */
#ifndef QUEUE_DISPATCHER_H
#define QUEUE_DISPATCHER_H

#include "error.h"

enum { DISPATCHER_NAME_ROOM = 256 };

struct dispatcher {
	int fd; /* the lock */
	char name[DISPATCHER_NAME_ROOM];
};

/* ERROR_BUSY: another one lives. */
int dispatcher_open(const char *state_dir, const char *engine, const char *cluster, struct dispatcher *ret,
		    struct error *err);
void dispatcher_close(struct dispatcher *d);

#endif
