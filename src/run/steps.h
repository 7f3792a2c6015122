/*
 * The steps of an attempt in a held workspace. Each `run` there is one: what it came to is written down beside the record, the
 * workspace goes back to its holder, and nothing is in the ledger until somebody says `commit`, cleans up, or lets it expire.
 *
 * runs/{id}/ has of each step that has ended
 *   step-N.json                    the attempt that it would have been, as finished.json has it
 *   step-N.stdout, step-N.stderr   what was captured
 *   begun.json                     the last one before it started, with its inputs
 *   made.json                      the files in the workspace that steps have made, after the last of them
 * A step exists from the rename of its step-N.json on. The first one's token is the attempt's: whoever commits, and however
 * often it is tried after a crash, commits it once.
 */
#ifndef RUN_STEPS_H
#define RUN_STEPS_H

#include "private.h"

/* Of a run that is going on, or whose supervisor has died: 0, it is no step. */
size_t record_step(const struct record *r);
/* The name of a captured stream beside the record. step 0: it is no step. */
enum { LOG_NAME_SIZE = 48 };
const char *run_log_name(size_t step, int stream, char out[LOG_NAME_SIZE]);

/* How many there are, 1 to n without a gap. */
int steps_count(int run_fd, size_t *ret, struct error *err);
enum { STEP_PREFIX_SIZE = 32 };
const char *step_prefix(size_t step, char out[STEP_PREFIX_SIZE]); /* "step-2." */

/* Which step the next one is. What is committed already, and was only left by a crash, is forgotten. */
int steps_begin(struct ledger *l, struct workspace *w, size_t *ret, struct error *err);

/* It is about to start, and these are its inputs. */
int step_note_begin(struct workspace *w, const struct attempt *a, struct error *err);
/* What lies there that a's inputs do not have. */
int step_collect_made(struct workspace *w, const struct attempt *a, struct manifest *ret, struct error *err);
/* What steps before have made; an empty manifest if there are none. */
int steps_made(struct workspace *w, struct manifest *ret, struct error *err);
/* The inputs that steps before have staged, and did not find there. */
int steps_staged(struct workspace *w, struct inputs *ret, struct error *err);
/* The step has come to a, and this is what lies there that steps have made. Durable. */
int step_save(struct workspace *w, size_t step, const struct attempt *a, const struct manifest *made,
	      struct error *err);

/* step_disk.c. The held workspace's files (host) go onto the disk that w->fd is on. */
int step_move_in(const struct workspace *w, int host, uid_t uid, gid_t gid, struct error *err);
/* Before the step is written down: a copy of what lies on its disk, in the scratch. After it: that copy, if there is one, becomes
 * what lies in the workspace (host). */
int step_copy_home(const struct workspace *w, int disk, struct error *err);
int step_bring_home(const struct workspace *w, int host, struct error *err);
/* The limits that the workspace was made with, of disk and files, for those that are not set. */
int held_limits_save(const struct site *site, const char *id, const struct limits *l, struct error *err);
int held_limits_load(const char *state_dir, const char *id, struct limits *l, struct error *err);

/* 1: the ledger has them, as this attempt; 0. */
int steps_are_committed(struct ledger *l, struct workspace *w, int *ret_number, struct error *err);
/* All of them as one attempt, with their logs: 1; 0: there are none. last: what the last one was alone, or NULL. */
int steps_load(struct workspace *w, struct attempt *ret, struct attempt *last, struct error *err);
/* They are committed, or nobody wants them: the next is the first again. */
int steps_forget(struct workspace *w, struct error *err);

/* hold_post.c: what the last one was run with makes the rows of all of them, unless the caller has some. */
struct spool;
int steps_post_process(struct hood *h, struct ledger *l, struct workspace *w, const struct attempt *last,
		       struct attempt *a, bool has_rows, struct spool **ret, struct error *err);
/* hold_commit.c: all of them, and what they have made, as one attempt. *ret_kept: the workspace is kept. */
int steps_commit(struct hood *h, struct ledger *l, struct workspace *w, bool *ret_kept, struct error *err);

/* hold_leave.c: their commit has failed, and why. Durable, and pending. */
int steps_leave(struct workspace *w, const struct attempt *a, const struct error *why, struct error *err);

/* A step whose supervisor has died, or could not write down what it came to: it is a step now, or never was one; and the
 * workspace is its holder's again. */
int step_settle(struct recovery *rec, struct workspace *w, struct error *err);

#endif
