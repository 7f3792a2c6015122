/*
 * A story taken up where its command has ended, from what is on disk: ended.h, the logs, the workspace. The workspace is
 * locked, its processes are dead (recover.c).
 */
#ifndef RUN_RESUME_H
#define RUN_RESUME_H

#include "ended.h"
#include "private.h"
#include "rights.h"
#include "spool.h"

/* Where the attempt's files are: the workspace, or a disk that somebody holds. */
struct remains {
	struct pending pending;
	bool is_pending; /* we gave up on it, and said why */
	int fd;		 /* -1: there is nothing to collect from */
	json_t *whose;	 /* remains_recall() */
	bool gone;	 /* it was held, and the holder is dead */
};
#define REMAINS_INIT     \
	{                \
		.fd = -1 \
	}
int remains_find(const struct workspace *w, struct remains *ret, struct error *err);
void remains_done(struct remains *r);
#define _cleanup_remains_ _cleanup_(remains_done)

/* Whose it is, as its record and its end say; ERROR_REFUSED: it is not ours to go on with, and stays. */
int remains_recall(const struct workspace *w, struct remains *r, struct error *err);
/* His rights, as when it was run; none of it for another. */
int remains_rights(struct hood *h, const struct remains *remains, const struct attempt *a, struct rights *ret,
		   struct error *err);

/* give_up.c: 1: somebody has cancelled it, it is recorded as that, and nothing is left to do but to remove it. */
int pending_give_up(struct recovery *rec, struct ledger *l, struct workspace *w,
		    const struct remains *remains, struct error *err);
/* recover.c: why it still is pending: what `show` tells. */
void pending_say_why(struct workspace *w, struct remains *remains, const struct error *err);
/* recover.c: no pins any more for what is committed, or never will be: a sweep cannot know that of a token that the ledger
 * has not. */
void token_unpin(struct ledger *l, const struct workspace *w);

/* Collects, post-processes, judges and saves. 1: a and *ret_rows (NULL: none) are what it came to; 0: nobody can go on
 * from what is here. */
int story_resume(struct hood *h, struct ledger *l, struct workspace *w, const struct remains *remains,
		 struct attempt *a, struct spool **ret_rows, struct error *err);

#endif
