/* What remove.c and remove_judge.c share: a batch of what is to go, and what is in the way of it. */
#ifndef STORE_REMOVE_PRIVATE_H
#define STORE_REMOVE_PRIVATE_H

#include "remove.h"

enum obstacle { NOTHING, BUSY_HERE, BUSY_QUEUED, BUILT_ON, AWAITED };

/* An attempt; number 0: only its row in the queue, if there is no attempt, -1: that row in any case. */
struct victim {
	char id[ID_ROOM];
	int number;
	int64_t created;
	bool is_latest;
	enum obstacle obstacle;
	char by[ID_ROOM]; /* who builds on it; its state in the queue */
};

struct edge {
	struct victim *on;
	char id[ID_ROOM];
	int number;
};

struct removal {
	struct ledger *l;
	const struct remove_order *o;
	struct remove_report *report;
	struct victim *list; /* sorted by id and number while a batch is judged */
	size_t n;
	size_t at, count; /* the batch */
	struct edge *edges;
	size_t n_edges;
	uint64_t outputs, bytes; /* of the batch */
	size_t batch;		 /* how large the next one is */
	bool is_judging;	 /* nothing is removed yet */
};

static inline struct victim *removal_batch(const struct removal *x)
{
	return x->list + x->at;
}

int victim_compare(const void *a, const void *b);
/* A text among pointers to texts, for bsearch(). */
int id_key_compare(const void *key, const void *member);
/* The first of the batch with this id, and how many follow. */
struct victim *victims_find(const struct removal *x, const char *id, size_t *ret_n);
/* Sorts the batch, and notes what is in the way of each. The rows of the queue are locked first, as every commit does. */
int removal_judge(struct removal *x, struct error *err);
/* In one sentence; negative. */
int removal_refuse(const struct victim *v, struct error *err);

#endif
