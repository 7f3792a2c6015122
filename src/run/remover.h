/*
 * Who removes a large workspace while its user goes on. It is taken out of the way first (workspace_retire), under the lock that is then
 * the remover's: a child that outlives the command, or a thread of the library and the worker, which hood_close awaits. A few at a time;
 * beyond them, and where neither can be had, the caller removes it himself and waits. What a remover that was killed leaves, gc removes.
 */
#ifndef RUN_REMOVER_H
#define RUN_REMOVER_H

#include <pthread.h>
#include <stdatomic.h>

#include "hood.h"
#include "tree.h"
#include "workspace.h"

struct remover {
	enum remover_kind kind;
	struct hand *hand; /* the command's second; or NULL */
	int folder_fd;	   /* the hand's */
	bool has_thread;
	pthread_t thread;
	struct workspace *workspace; /* the thread's; NULL: it has done its work */
	atomic_bool done;
};

/* size: what is thought to lie in it; NULL: that is looked at. w is closed afterwards, or as if it were: its id is free. */
int remover_remove(struct remover *r, struct workspace *w, const struct tree_size *size, struct error *err);
/* Awaits it. */
void remover_close(struct remover *r);

#endif
