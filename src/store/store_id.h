/*
 * Is this directory the ledger's object store? A content that was committed must be there for whoever reads it, on every
 * host; so the ledger knows its store by an id, which lies in both: in the one row of the table `store`, and in the file `id`
 * of the directory.
 *
 * A ledger has an id of its own from its first moment, and no store. The first that is about to put something in joins the
 * two, in one transaction that holds that row: whoever else begins at the same moment, anywhere, waits, and finds a store
 * then, which is his directory or is not. The file is written before the transaction is committed, so a crash leaves a
 * directory that names this ledger, and a ledger that has no store yet: the next one takes it up. Had another been faster
 * with another directory, the first one's is refused from then on.
 */
#ifndef STORE_STORE_ID_H
#define STORE_STORE_ID_H

#include "store.h"

enum store_state {
	STORE_NEW,    /* the ledger has none yet */
	STORE_READY,  /* it is this directory */
	STORE_WRONG,  /* it is another one; the error says so, in one sentence */
	STORE_INSIDE, /* the database has the contents itself (chunks.h): no directory is asked for */
};
/* Touches nothing. ret_id may be NULL. */
int store_examine(struct ledger *l, enum store_state *ret, struct store_id *ret_id, struct error *why,
		  struct error *err);

/* Adds "store": {"state", "id", "ledger_id", "problem"}. */
json_t *store_status(struct ledger *l); /* NULL: memory is out */

/* Refused: others put what is large into a directory, and nobody has said (anyway: or said) that it lies in the database. */
int store_check_inside(struct ledger *l, bool anyway, struct error *err);
/* The store is this directory, from now on if there was none. */
int store_join(struct ledger *l, struct error *err);

#endif
