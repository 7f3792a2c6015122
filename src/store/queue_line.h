/*
 * Who stands in line: the owners who have something queued, the submitters of each, and of a submitter the groups of analyses
 * that ask for the same: priority, memory, CPUs. A group is a line of its own, first come first served.
 *
 * It is read from the index of what is ready, by steps from one to the next, whatever lies between them; of owners and of
 * submitters those LINE_WINDOW that come after who was served last, and more only if they have nothing for us. So what a look
 * costs does not depend on how many are queued, on how many names there are, or on how much is too large for this host.
 */
#ifndef STORE_QUEUE_LINE_H
#define STORE_QUEUE_LINE_H

#include "queue_private.h"

enum { LINE_WINDOW = 6 };

/* Running and served: the fewer and the longer ago, the sooner. */
struct share {
	int64_t running, served;
};

struct group {
	int64_t priority, memory_bytes, cpus_milli;
	int64_t seq; /* nothing before this one is left */
};

struct line {
	char *name;
	struct share share;
	bool is_empty;	 /* has nothing for us */
	bool is_touched; /* has got something */
	/* An owner's submitters; a submitter's groups. */
	struct line *lines;
	size_t n;
	bool is_whole; /* there are no more than these */
	struct group *groups;
	size_t n_groups;
	bool is_fresh; /* nothing was taken since the groups were looked for */
};

/* The root is a line, too, whose lines are the owners: all zero at first. */
void line_done(struct line *line);

struct line_order {
	uint64_t memory_total, cpus_total; /* 0: not counted */
	int cap;			   /* 0: none */
};
/* Whose turn it is, an owner and one of his submitters who has a group; both NULL: nobody's. */
int line_next(struct ledger *l, struct line *root, const struct line_order *o, struct line **ret_owner,
	      struct line **ret_submitter, struct error *err);
/* Of the highest priority, the group that has waited for longest. */
struct group *line_group(const struct line *submitter);
/* Nothing is left of it that others do not have or are claiming just now. To look again at once would be to wait for them, as
 * they may for us. */
void line_drop(struct line *submitter, const struct group *g);

#endif
