/*
 * What is known of an attempt at the moment its command has ended, on disk before anything else is done with it. From
 * then on whatever fails, and whoever dies, leaves all that it takes to finish the story later (resume.c).
 *
 * runs/{id}/ended holds two lines of JSON, the rest are zeros; a line without its end does not count.
 *   1. the attempt so far, with the evidence for its verdict
 *   2. once we have given up for now: why, and where the workspace is if it lay on a disk of its own
 * ended_reserve() takes the room for both before the command starts, so that a disk that is full when it ends cannot
 * take its result away; then ended_save(), and ended_set_pending() as often as it is tried in vain. (A file system that
 * copies on write may still refuse.)
 */
#ifndef RUN_ENDED_H
#define RUN_ENDED_H

#include "attempt.h"
#include "box.h"
#include "process.h"
#include "workspace.h"

#define ENDED_NAME "ended"
#define ENDED_ROOM "ended.room"

struct ended {
	struct attempt attempt; /* no verdict, no outputs yet; its logs are loaded */
	struct evidence evidence;
	uid_t uid; /* whose files are outputs */
	bool own_disk;
	struct disk_use disk;
	bool has_post;	      /* a post-process comes next, if it has succeeded */
	bool deferred;	      /* its caller wanted to decide */
	json_t *whose;	      /* as its record has it (rights_to_json) */
	struct inputs stored; /* queued: what lies in the ledger with its submission */
};
void ended_init(struct ended *e);
void ended_done(struct ended *e);
#define _cleanup_ended_ _cleanup_(ended_done)

/* The second line. */
struct pending {
	char *stage, *code, *message;
	int64_t since;		  /* UTC ns */
	bool copied;		  /* what lay on a disk of its own is in the workspace now */
	struct process_id holder; /* or this process holds it (holder.h); pid 0: none does */
};
void pending_done(struct pending *p);
#define _cleanup_pending_ _cleanup_(pending_done)

/* Room for what is known now and for what will be learned. */
int ended_reserve(struct workspace *w, const struct attempt *a, struct error *err);
/* a instead of e's own attempt. */
int ended_save(struct workspace *w, const struct attempt *a, const struct ended *e, struct error *err);
int ended_set_pending(struct workspace *w, const struct pending *p, struct error *err);

/* 1, 0: there is none, or it is not whole; negative. The logs are not read yet. */
int ended_load(int run_fd, struct ended *ret, struct error *err);
int pending_load(int run_fd, struct pending *ret, struct error *err);
/* Is there a first line, so that somebody can go on from here? Only looks. */
bool ended_exists(int run_fd);

#endif
