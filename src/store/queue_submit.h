/*
 * One submission under way: queue_submit.c has one of many jobs, queue_submit_array.c one of an array, whose jobs are never
 * all in memory.
 */
#ifndef STORE_QUEUE_SUBMIT_H
#define STORE_QUEUE_SUBMIT_H

#include "commit.h"
#include "queue_private.h"

/* One of the batch. */
struct entry {
	const struct job *job;
	size_t position;
	bool is_new;   /* to be stored */
	bool replaces; /* one that has ended */
};

struct submit {
	struct ledger *l;
	unsigned flags;
	size_t n;
	struct entry *entries; /* in their order */
	struct entry **by_id;  /* the same, sorted */
	struct known *parents; /* sorted, distinct */
	size_t n_parents;
	struct output *outputs; /* the inputs, as what is to be stored */
	struct commit contents;
	int64_t stamp;		       /* when; the same for every try */
	const struct job_array *array; /* entries has only its job, then */
	bool *fresh;		       /* which of its tasks are new */
};

/* Is it to be stored? */
int submit_decide(const struct submit *s, struct entry *e, const struct known *k, struct error *err);
/* A parent that is not in the same list. Is it met already? 1, 0, negative. */
int submit_check_parent(const char *id, const struct known *parent, struct error *err);
int submit_know_parents(struct submit *s, struct error *err);
/* That it comes after parent, and whether that is met. One that comes after an array waits for its witness too, if it has
 * one. after: all that it comes after. */
int submit_add_parent(struct submit *s, const char *id, char *const *after, const char *parent, bool is_met,
		      struct error *err);
/* When, if no earlier try has said it: only what is found by a later one can be ours. */
int submit_stamp(struct submit *s, struct error *err);
/* What these came after once, and the rows of those in the queue. */
int submit_forget(const struct submit *s, const struct ids *after, const struct ids *queued,
		  struct error *err);
char *submit_inputs(const struct job *j);			 /* as JSON; NULL: memory is out */
int submit_add_names(const struct submit *s, struct error *err); /* of submitters */
int submit_add_job(struct submit *s, const struct job *j, const char *id, enum job_state state,
		   const char *request, const char *inputs, struct error *err);

/* queue_submit_names.c: ids are those of no array; name, whose task is submitted, is that of no analysis; both, of all that
 * is new, whose rows are there. */
int submit_check_no_array(const struct submit *s, char *const *ids, size_t n, struct error *err);
int submit_check_array(const struct submit *s, const char *name, const char *task, struct error *err);
int submit_check_names(const struct submit *s, struct error *err);

/* queue_submit_array.c: within the transaction. */
int submit_store_array(struct submit *s, struct error *err);

#endif
