/*
 * Removing what is no longer wanted: attempts with all that belongs to them, or but for their outputs, and what has ended in the queue.
 *
 * An attempt goes in one transaction, with as many others as some hundred milliseconds take; between two of these others get their
 * turn. A crash leaves attempts that are whole or gone. Each leaves a tombstone: its number is not given again, its token is not
 * committed again. Contents that nobody refers to any more are ledger_sweep()'s.
 */
#ifndef STORE_REMOVE_H
#define STORE_REMOVE_H

#include "id.h"
#include "ledger.h"

struct remove_order {
	char *const *ids; /* of these, in their order, each once; NULL: what was made before the time below */
	int attempt;	  /* only this one; 0: all */
	int64_t before;	  /* UTC ns */
	unsigned verdicts; /* 1 << VERDICT_…, any of them; 0: all */
	bool keeps_outputs;
	bool force;   /* what others build on, too */
	bool dry_run; /* only counts */
	void *arg;
	/* Something of it is on this host, and has not ended. NULL: nothing is. */
	bool (*is_busy)(void *arg, const char *id);
};

enum { REMOVE_NAMES = 10 };
struct remove_report {
	uint64_t analyses, attempts, outputs, bytes; /* analyses: of which the latest attempt is among them */
	uint64_t queued;			     /* rows of the queue */
	uint64_t busy, built_on;		     /* that stay: they run, or others build on them */
	char names[REMOVE_NAMES][ID_ROOM];	     /* the first */
	size_t n_names;
	uint64_t contents,
		freed; /* that were swept: how many, how many bytes of them were in the database or its store */
};

/* Named ones: all or none is removed, and ERROR_REFUSED or ERROR_BUSY says in one sentence which of them is in the way;
 * ERROR_NOT_FOUND: one is not known. By age: what is in the way stays, and is counted. */
int ledger_remove(struct ledger *l, const struct remove_order *o, struct remove_report *ret,
		  struct error *err);

/* Was it removed? When (UTC ns), 0: no. number 0: any attempt of it. */
int ledger_removed(struct ledger *l, const char *id, int number, int64_t *ret, struct error *err);

#endif
