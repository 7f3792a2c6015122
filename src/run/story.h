/*
 * One analysis on its way through the story: what its stages share, and the stages that have files of their own.
 * story.c calls them in order; nothing else does.
 */
#ifndef RUN_STORY_H
#define RUN_STORY_H

#include "affinity.h"
#include "buffer.h"
#include "ended.h"
#include "post.h"
#include "private.h"
#include "rights.h"
#include "tree.h"

struct story {
	struct hood *hood;
	const struct request *request;
	const struct run_hooks *hooks;
	bool deferred;	      /* the caller says when it is finished */
	struct rights rights; /* of who asked for it, on this host */
	struct plan plan, post_plan;
	bool has_post; /* a post-process */
	struct post_result post;
	struct ledger *ledger;
	struct workspace workspace;
	bool has_workspace;
	uint64_t passed_on[STREAM_COUNT]; /* bytes that the caller got as they came */
	bool in_line[STREAM_COUNT],
		passed_end[STREAM_COUNT]; /* the last was no newline; it was told to be cut */
	struct slot slot;		  /* as root: the uid of this analysis */
	uid_t uid;
	gid_t gid;
	uid_t owner; /* whose files are outputs: uid, or who had it when it ran */
	struct cgroup *cgroup;
	struct affinity affinity;
	int out[STREAM_COUNT][2]; /* pipes */
	int log[STREAM_COUNT];
	int null;
	int in[2]; /* -i: the caller's stdin is poured through this pipe */
	/* A disk of its own: the workspace's descriptor then is a directory on it, and the host's is kept here. */
	int disk, host_workspace, loop;
	struct tree_size disk_empty;	   /* what it holds before anything is in it */
	bool disk_was_full, files_were_up; /* no byte, no file more */
	struct tree_size disk_most;	   /* in use, at the most that was seen */
	struct tree_look *look;		   /* at plain directories, under way */
	bool disk_was_hidden;		   /* it was ended for what could not be looked into */
	struct sandbox *sandbox;
	struct evidence evidence;
	struct attempt *attempt; /* what it all ends in */
	uint64_t started;
	bool has_ended; /* and that is on disk */
	bool concluded; /* the verdict is decided */
};
void story_blank(struct story *s);
void story_free(struct story *s); /* the memory only */

/* Tells the caller's progress hook which stage begins. */
void story_tell(const struct story *s, const char *stage);

/* story.c: which attempt this is, or a refusal: it has succeeded already. */
int story_next_attempt(struct story *s, struct error *err);
/* What cannot be post-processed is refused. */
int story_plan_post(struct story *s, struct error *err);
int story_check_handed_back(const struct story *s, struct error *err);
/* All that is known when the command has ended, on disk. */
int story_note_end(struct story *s, struct error *err);

/* story_workspace.c: the directory, filled; the cgroup and the CPUs. */
int story_workspace(struct story *s, struct error *err);
int story_fill_workspace(struct story *s, struct error *err);
/* An input's content out of the ledger; arg is the story. */
int story_fill_input(void *arg, const struct input *i, int fd, struct error *err);
int story_limits(struct story *s, struct error *err);
bool story_counts_cpu_time(const struct story *s);

/* story_watch.c: the walls up, the command started and watched until nothing of it is alive. */
int story_sandbox(struct story *s, struct error *err);
int story_supervise(struct story *s, struct error *err);
void story_note_disk_use(struct story *s);

/* story_end.c: collected, post-processed, judged; saved, where that is possible. */
int story_conclude(struct story *s, struct error *err);
/* The verdict and all that belongs to it, on disk. */
int story_save(struct story *s, bool sync, struct error *err);
int story_commit(struct story *s, struct error *err);
/* It cannot be finished now: all that it takes to do that later is brought to where it stays, and why is written down.
 * The attempt is pending then, or, if even that fails, lost; error_* says why. */
void story_leave(struct story *s, const struct error *why);

/* story_reason.c: one line of evidence for people. */
int story_reason(const struct story *s, struct buffer *b);

#endif
