/*
 * The connection to a PostgreSQL server, for the files of its backend: postgres.c, postgres_bell.c, postgres_post.c,
 * postgres_query.c.
 */
#ifndef STORE_POSTGRES_H
#define STORE_POSTGRES_H

#include "backend.h"
#include "buffer.h"
#include "pq.h"

enum { COPY_CHUNK = 256 * 1024, PLAN_NAME_SIZE = 24 };

/* postgres_plan.c */
struct kept_plan {
	uint64_t made; /* clock_now(); 0: there is none */
	unsigned uses;
};

struct postgres {
	struct backend base;
	struct pq q;
	char *url; /* with the password */
	uint64_t busy_ms;
	enum sql_part part;
	bool in_transaction;
	bool has_rung; /* this transaction */
	bool copying;
	char *begin,
		*begin_first; /* what a transaction begins with: with and without asking for the version */
	bool only_looks;      /* LEDGER_LOOK */
	bool listening;	      /* for the queue's bell, and after a reconnection again */
	enum sql_table table;
	struct buffer rows;		   /* of the COPY, not sent yet */
	struct kept_plan plans[SQL_COUNT]; /* of this connection */
	/* The table of the site's that is being filled. */
	const struct row_table *post_table;
	struct post_column *post_columns;
	bool post_staged, post_binary;
	uint64_t post_count;
};

static inline struct postgres *postgres_of(struct backend *b)
{
	return (struct postgres *)b;
}

/* Begins a COPY … FROM STDIN; sends what p->rows holds; ends it. */
int copy_in_begin(struct postgres *p, const char *text, pq_fail_fn fail, struct error *err);
int copy_in_send(struct postgres *p, struct error *err);
int copy_in_end(struct postgres *p, pq_fail_fn fail, struct error *err);

/* Is the statement planned beforehand, in this connection? 1 with the name of its plan, 0: it is to be sent as it is. */
int postgres_plan(struct postgres *p, enum sql which, const char *text, char ret[static PLAN_NAME_SIZE],
		  struct error *err);
/* One statement with one parameter, whose rows nobody wants. */
int postgres_call(struct postgres *p, const char *text, const struct value *param, struct error *err);
/* rows_add, rows_end of a submitter. */
int postgres_put_add(struct postgres *p, const struct value *row, struct error *err);
int postgres_put_end(struct postgres *p, struct error *err);

int postgres_post_begin(struct backend *b, const struct row_table *t, bool staged, struct error *err);
int postgres_post_add(struct backend *b, const struct cell *cells, uint64_t line, struct error *err);
int postgres_post_end(struct backend *b, struct error *err);
int postgres_ring(struct backend *b, struct error *err);
int postgres_bell(struct backend *b, struct error *err);
int postgres_bell_read(struct backend *b, struct error *err);
void postgres_bell_end(struct backend *b);
/* Connects again, and waits a little for a server that restarts. */
int postgres_reconnect(struct postgres *p, struct error *err);
/* Connects q to the ledger's server as query->role, with the password of that role alone. */
int postgres_login(struct postgres *p, struct pq *q, const struct ledger_query *query, struct error *err);
int postgres_query(struct backend *b, const struct ledger_query *q, query_line_fn fn, void *arg,
		   struct error *err);

int postgres_dump_begin(struct backend *b, struct error *err);
int postgres_dump(struct backend *b, int dir, const char *path, struct backup_files *files,
		  struct error *err);
int postgres_load(struct backend *b, int dir, const struct backup_files *files, struct error *err);
int postgres_is_empty(struct backend *b, bool *ret, struct error *err);

#endif
