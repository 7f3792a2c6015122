/*
 * What came from what. An input that is another analysis's output says whose (input.from_…); of what was removed its tombstone
 * says it. Only reads.
 */
#ifndef STORE_LINEAGE_H
#define STORE_LINEAGE_H

#include "ledger.h"

/* The latest success of an analysis: 1; 0: there is none that is owner's (NULL: anybody's). */
int ledger_success(struct ledger *l, const char *id, const char *owner, int *ret_number, struct error *err);

/* The tasks of an array, in the order of their numbers, each with its latest success. Another's than owner's (NULL: anybody's)
 * are none of it. Empty: nobody knows it. */
struct success {
	char id[ID_ROOM];
	int number; /* 0: none, or it is another's */
};
struct successes {
	struct success *list;
	size_t count;
};
void successes_done(struct successes *s);
int ledger_successes(struct ledger *l, const char *array, const char *owner, struct successes *ret,
		     struct error *err);

/* One attempt. */
struct lineage_node {
	char id[ID_ROOM];
	int attempt;
	enum verdict verdict;
	int64_t created; /* UTC ns; 0: not known */
	bool is_known;	 /* it is in the ledger, or its tombstone is */
	bool is_removed;
};
/* attempt 0: the latest success, else the latest. ERROR_NOT_FOUND if there was none ever; one that somebody came from may be
 * gone without a trace: then is_known is false. */
int ledger_lineage_find(struct ledger *l, const char *id, int attempt, struct lineage_node *ret,
			struct error *err);
int ledger_lineage_node(struct ledger *l, const char *id, int attempt, struct lineage_node *ret,
			struct error *err);

struct lineage_link {
	char id[ID_ROOM];
	int attempt;
	int64_t files; /* -1: not known any more */
};
struct lineage_links {
	struct lineage_link *list;
	size_t count;
};
void lineage_links_done(struct lineage_links *links);
/* What the attempt came from, or (down) what came from it: each once, in the order of ids, numbers in them by their value. */
int ledger_lineage_links(struct ledger *l, const char *id, int attempt, bool down, struct lineage_links *ret,
			 struct error *err);

#endif
