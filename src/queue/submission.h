/*
 * Many analyses on their way into the queue: each request is made into a job that needs its submitter no more, and all
 * of them go in together, or none.
 *
 * submission_open, submission_add …, submission_commit, submission_close. A file that many of them stage is read once.
 * Until the commit nothing is written anywhere.
 */
#ifndef QUEUE_SUBMISSION_H
#define QUEUE_SUBMISSION_H

#include "hood.h"
#include "queue.h"

struct submission;

/* Whose share of the workers it takes, unless something else is said: the user's login name. */
enum { SUBMITTER_ROOM = 129 };
int submitter_default(char *out, size_t room, struct error *err);

int submission_open(struct hood *h, const char *submitter, struct submission **ret, struct error *err);
void submission_close(struct submission *s); /* NULL is fine */
DEFINE_CLEANUP(struct submission *, submission_close);
#define _cleanup_submission_ _cleanup_(submission_closep)

/* While files are read ("reading") and stored ("storing"): how many of how many bytes. Never more often than ten times a
 * second, and not within the first one. */
typedef void (*submission_watch_fn)(void *arg, const char *what, uint64_t done, uint64_t total);
void submission_watch(struct submission *s, submission_watch_fn fn, void *arg);

/* request has been checked. Its id is made up if it has none. */
int submission_add(struct submission *s, const struct request *request, struct error *err);
/* One for each task, as request_set_task() makes them. Alone in its submission, which tasks and request outlive. */
int submission_add_array(struct submission *s, const struct request *request, const struct tasks *tasks,
			 struct error *err);
/* flags as for ledger_submit. */
int submission_commit(struct submission *s, unsigned flags, struct error *err);

/* As ledger_retry(). If its row was removed from the queue, it is submitted once more from its latest attempt, where that
 * has all that belongs to it. */
int submission_retry(struct hood *h, const char *submitter, const char *id, struct error *err);

/* What the submitter should know of them, a line each; NULL: nothing. */
char *const *submission_notes(const struct submission *s);

size_t submission_count(const struct submission *s);
const char *submission_id(struct submission *s, size_t i);    /* until the next call */
bool submission_is_new(const struct submission *s, size_t i); /* after the commit */

#endif
