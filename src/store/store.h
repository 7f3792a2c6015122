/*
 * The ledger's handle, for the files of this folder only.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "backend.h"
#include "ledger.h"
#include "objects.h"

struct ledger {
	struct backend *backend;
	struct objects objects;
	bool objects_inside; /* contents are put into the database (chunks.h); objects is only to be read then */
	uint64_t objects_max; /* how large they may be; UINT64_MAX: no bound */
	char *shown;	      /* the URL without a password */
	uint64_t blob_max;
	int version;
	struct claim_memory *claims; /* queue_claim.c; NULL: none */
	struct {
		uint64_t claims, looks, pages; /* pages: of PostgreSQL */
	} claim_cost;
	char *adopted;		/* what this handle has done about the store (store_id.h); NULL: nothing */
	bool inside_by_default; /* nobody said that it is objects_inside */
	bool store_named;	/* by the URL: it may be any directory, not only the one beside the file */
	bool is_changed;	/* was made or upgraded when it was opened */
};

/* A transaction, for writing, on the schema that it was opened with: until its end nobody upgrades it. */
int ledger_begin(struct ledger *l, struct error *err);

/* stage.c: contents that somebody staged and did not come to commit. Adds to *removed. */
int ledger_sweep_staged(struct ledger *l, uint64_t *removed, struct error *err);

static inline bool ledger_has_chunks(const struct ledger *l)
{
	return l->backend->ops->dialect != SQL_SQLITE;
}

/* Writes an object, wherever it is, to fd (-1: nowhere), as objects_copy does. */
int ledger_copy_object(struct ledger *l, const uint8_t sha256[DIGEST_SIZE], uint64_t size, int fd,
		       struct error *err);

/* What the object store asks the ledger. */
struct objects_owner ledger_owner(struct ledger *l);

static inline int ledger_run(struct ledger *l, enum sql which, const struct value *params, size_t n,
			     row_fn fn, void *arg, struct error *err)
{
	return l->backend->ops->run(l->backend, which, params, n, fn, arg, err);
}

#endif
