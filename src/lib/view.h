/*
 * What --json prints, as JSON: for the library, and for whoever else shows the ledger to a program. Each takes a hood
 * and gives a new reference, or negative with err.
 */
#ifndef LIB_VIEW_H
#define LIB_VIEW_H

#include "hood.h"
#include "queue.h"

/* `ls`: what is running comes first, from the state directory, and replaces the row of an earlier attempt. */
int view_list(struct hood *h, const char *state, const char *prefix, int limit, json_t **ret,
	      struct error *err);
/* `show`: the ledger's, or a first run that is going on. */
int view_show(struct hood *h, const char *id, int attempt, json_t **ret, struct error *err);
int view_outputs(struct hood *h, const char *id, int attempt, json_t **ret, struct error *err);
int view_logs(struct hood *h, const char *id, int attempt, json_t **ret, struct error *err);
/* `gc`: 1 if something failed, which is in it. */
int view_gc(struct hood *h, json_t **ret, struct error *err);
/* `doctor`: 1 if something that is required is missing. */
int view_doctor(struct hood *h, json_t **ret, struct error *err);

/* The queue, the newest first. */
int view_queue(struct hood *h, const char *state, const char *prefix, int limit, json_t **ret,
	       struct error *err);
json_t *view_queued(const struct queued *q);
/* What the queue knows of one analysis; found false: it never was there. Zero-initialise. */
struct queue_view {
	bool found;
	enum job_state state;
	int64_t submitted;
	json_t *json, *request;
};
int queue_view_load(struct queue_view *v, struct ledger *l, const char *id, struct error *err);
void queue_view_done(struct queue_view *v);

#endif
