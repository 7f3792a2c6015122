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
	struct lending *lending;     /* that it was opened of; NULL: it has a connection of its own */
	struct claim_memory *claims; /* queue_claim.c; NULL: none */
	struct {
		uint64_t claims, looks, pages; /* pages: of PostgreSQL */
	} claim_cost;
	bool inside_by_default; /* nobody said that it is objects_inside */
	bool store_named;	/* by the URL: it may be any directory, not only the one beside the file */
	bool is_changed;	/* was made or upgraded when it was opened */
};

/* A transaction, for writing, on the schema that it was opened with: until its end nobody upgrades it. */
int ledger_begin(struct ledger *l, struct error *err);
/* body within a transaction: committed if it returns 0, else rolled back. 1, nothing to be done, is 0 for the caller. */
typedef int (*ledger_body)(struct ledger *l, void *arg, struct error *err);
int ledger_once(struct ledger *l, ledger_body body, void *arg, struct error *err);
/* The same, again from its begin if the connection was lost or somebody was in the way (ERROR_AGAIN): body must not depend
 * on what an earlier try left, and what that one did may have been committed. */
int ledger_transaction(struct ledger *l, ledger_body body, void *arg, struct error *err);
/* joint.c: the same, of a handle that is lent (lending.h) together with others who want to at this moment: in one transaction, by the
 * thread of one of them. For what does not take long; body must not use another handle. */
int ledger_transaction_joint(struct ledger *l, ledger_body body, void *arg, struct error *err);

/* commit_stage.c: contents that somebody staged and did not come to commit. Adds to *removed. */
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

/* A statement whose rows nobody wants; one that gives a number (an int64_t, which stays as it is if there is no row). Its
 * parameters, one at least, come last. */
#define LEDGER_VALUES(...)                   \
	(const struct value[]){__VA_ARGS__}, \
		sizeof((const struct value[]){__VA_ARGS__}) / sizeof(struct value)
#define ledger_do(l, which, err, ...) ledger_run(l, which, LEDGER_VALUES(__VA_ARGS__), NULL, NULL, err)
#define ledger_ask(l, which, ret, err, ...) \
	ledger_run(l, which, LEDGER_VALUES(__VA_ARGS__), take_integer, ret, err)

/* The names of those of enum verdict whose bits are set, as a JSON array; NULL if memory is out. */
char *verdicts_text(unsigned verdicts);

/* Rows in bulk: begin, add for each, end. */
static inline int ledger_rows_begin(struct ledger *l, enum sql_table table, struct error *err)
{
	return l->backend->ops->rows_begin(l->backend, table, err);
}

static inline int ledger_rows_add(struct ledger *l, const struct value *row, struct error *err)
{
	return l->backend->ops->rows_add(l->backend, row, err);
}

static inline int ledger_rows_end(struct ledger *l, struct error *err)
{
	return l->backend->ops->rows_end ? l->backend->ops->rows_end(l->backend, err) : 0;
}

#endif
