/*
 * The post-process: the platform's program that turns files into rows. It reads what a hostile analysis left, so it runs
 * under a hood of its own, with limits and a log of its own, without the ledger; all that comes out are rows, each
 * checked against what the site allows.
 *
 * post_plan before anything runs, so that what cannot work is refused in time; post_run when nothing of the analysis is
 * alive. A crash in between leaves what the workspace's record names, and no rows.
 */
#ifndef RUN_POST_PROCESS_H
#define RUN_POST_PROCESS_H

#include "place.h"
#include "private.h"
#include "spool.h"

/* Which command, from where: the order's, else the site's. Neither: 0, else 1 with plan made. */
int post_plan(struct hood *h, const struct post_order *asked, struct plan *plan, struct error *err);

struct post_job {
	struct hood *hood;
	const struct plan *plan;
	struct place *place;	       /* for its record, its scratch and its folder of runs */
	const struct attempt *attempt; /* id, number, outputs */
	int cancel_fd, stop_fd;	       /* -1: none */
	/* Writes an output's content to fd. */
	int (*fetch)(void *arg, const struct output *o, int fd, struct error *err);
	/* Its own files that were stored with the submission (for_post), and how they come: likewise. NULL: none. */
	const struct inputs *stored;
	workspace_fill_fn fill;
	void *arg;
};

struct post_result {
	struct spool *rows;  /* NULL unless it succeeded */
	char *reason;	     /* why it failed; NULL: it succeeded */
	int cancel_signal;   /* it was cancelled */
	struct captured log; /* what it said on stderr */
	char **warnings;     /* of its receipt: limits that could not be held */
};
void post_result_done(struct post_result *r);

/* 0 when there is an end, good or bad; negative if it could not be run here and now (error_is_passing). */
int post_run(const struct post_job *job, struct post_result *ret, struct error *err);

#endif
