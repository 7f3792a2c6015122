/*
 * One analysis on its way through the story: what its stages share, and the stages that have files of their own.
 * story.c calls them in order; nothing else does.
 */
#ifndef RUN_STORY_H
#define RUN_STORY_H

#include "box.h"
#include "buffer.h"
#include "ended.h"
#include "notices.h"
#include "post_process.h"
#include "private.h"
#include "pulse.h"
#include "rights.h"

struct story {
	struct hood *hood;
	const struct request *request;
	const struct run_hooks *hooks;
	bool deferred;			     /* the caller says when it is finished */
	struct rights rights;		     /* of who asked for it, on this host */
	const struct plan *plan, *post_plan; /* ours; no post-process: NULL */
	struct post_result post;
	struct ledger *ledger;
	struct workspace workspace;
	bool has_workspace;
	struct place place;
	uid_t owner;	     /* whose files are outputs: the place's, or who had it when it ran */
	struct spare *begun; /* its init, on the way while the workspace is made; NULL: none, or taken */
	struct box box;
	int stop_fd; /* stopper.h; -1: none */
	struct pulse_writer pulse;
	struct notices notices;
	struct passed_on {
		uint64_t bytes; /* that the caller got as they came */
		bool in_line;	/* the last was no newline */
		bool at_end;	/* it was told to be cut */
	} passed_on[STREAM_COUNT];
	struct evidence evidence;
	struct disk_use disk;
	struct attempt *attempt; /* what it all ends in */
	struct work work;	 /* how far staging, collecting and committing are */
	size_t step;		 /* in a held workspace: which it is (steps.h); else 0 */
	char log_prefix[32];
	bool too_large;	     /* to be kept, whatever else is */
	uint64_t kept_bytes; /* else, if it is kept: so much */
	bool has_ended;	     /* and that is on disk */
	bool concluded;	     /* the verdict is decided */
};
void story_blank(struct story *s);
void story_free(struct story *s); /* the memory only */

/* Tells the caller's progress hook, and who looks on, which stage begins. */
void story_tell(struct story *s, const char *stage);
/* Has it such a hook? Then s->work tells it how far a stage is. */
bool story_counts(struct story *s);

/* story_plan.c: what was asked for, resolved; what cannot be run, or not be post-processed, is refused. */
int story_plan(struct story *s, struct error *err);
int story_plan_post(struct story *s, struct error *err);
/* Once more when the id is ours alone: another run of it may have ended since. */
int story_plan_again(struct story *s, struct error *err);

/* story.c */
int story_check_handed_back(const struct story *s, struct error *err);
/* All that is known when the command has ended, on disk. */
int story_note_end(struct story *s, struct error *err);

/* story_workspace.c: the directory, filled; the box, open. */
int story_workspace(struct story *s, struct error *err);
/* An input's content out of the ledger; arg is the story. */
int story_fill_input(void *arg, const struct input *i, int fd, struct error *err);
int story_box(struct story *s, struct error *err);
struct pty_job pty_of(const struct run_terminal *t); /* NULL: of nobody */

/* story_watch.c: the walls up, the command started and watched until nothing of it is alive. */
/* What every analysis has, before anything of this one is known. */
void story_begin_walls(struct story *s);
int story_start(struct story *s, struct error *err);
int story_watch(struct story *s, struct error *err);
void story_on_output(void *arg, int stream, const char *data, size_t size); /* arg is the story */
/* Does the caller want to hear how far it is? Else it is only written down, as often as samples are taken anyway. */
enum { PULSE_INTERVAL_MS = 1000 };
bool story_tells_progress(const struct story *s);
void story_on_progress(void *arg, const struct sample *now, int64_t files);

/* story_manager.c: who is around us may have ended it, and is asked. */
int story_ask_manager(struct story *s, struct error *err);

/* story_end.c: what came out; what the post-process makes of it. */
int story_post(struct story *s, struct error *err);
/* Collected, post-processed, judged; saved, where that is possible. */
int story_conclude(struct story *s, struct error *err);
/* The verdict and all that belongs to it, on disk. */
int story_save(struct story *s, bool sync, struct error *err);
int story_commit(struct story *s, struct error *err);
/* It cannot be finished now: all that it takes to do that later is brought to where it stays, and why is written down.
 * The attempt is pending then, or, if even that fails, lost; error_* says why. */
void story_leave(struct story *s, const struct error *why);

/* story_reason.c: one line of evidence for people. */
void story_reason(const struct story *s, struct buffer *b);

#endif
