/*
 * What a database must be able to do for the ledger, and no more: transactions, statements with parameters, rows in
 * bulk. All logic is above (ledger.c, commit.c, load.c, check.c), all SQL is in sql.h.
 *
 * Failures: ERROR_LEDGER with one sentence. ERROR_AGAIN says that the transaction is gone and may be tried again from its
 * begin: a deadlock, a row that another one inserted first, a connection that was lost (even during COMMIT: the
 * token tells whether it had been done).
 */
#ifndef STORE_BACKEND_H
#define STORE_BACKEND_H

#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "digest.h"
#include "error.h"
#include "sql.h"
#include "url.h"

enum value_kind {
	VALUE_NULL,
	VALUE_INTEGER,
	VALUE_BOOL,
	VALUE_TIME, /* UTC ns */
	VALUE_TEXT,
	VALUE_JSON,
	VALUE_BYTES,
};

/* A parameter or a column. A row that was read has only NULL, INTEGER (booleans and times too), TEXT (JSON too) and
 * BYTES; text is followed by a NUL. It lasts until the row function returns. */
struct value {
	enum value_kind kind;
	int64_t integer;
	const void *data;
	size_t size;
};

struct value value_integer(int64_t n);
struct value value_bool(bool b);
struct value value_time(int64_t utc_ns);		 /* 0: null */
struct value value_text(const char *text);		 /* NULL: null */
struct value value_json(const char *text);		 /* NULL: null */
struct value value_bytes(const void *data, size_t size); /* never null, not even if data is */
struct value value_path(const char *path);		 /* its bytes; NULL: null */

/* Who wrote a ledger may be a stranger: no value is longer than VALUE_SIZE_MAX, neither read nor written; of a text or path
 * VALUE_TEXT_MAX are read; JSON, or a row of it, takes VALUE_AMOUNT_MAX of memory at the most, or is refused. */
enum { VALUE_SIZE_MAX = 32 << 20, VALUE_TEXT_MAX = 64 << 10, VALUE_AMOUNT_MAX = 128 << 20 };
size_t value_amount(const struct value *v); /* of memory, as JSON */

/* Reads out of a row: what is null, or not of that kind, is fallback; copies end with a NUL. */
int64_t value_to_integer(const struct value *v, int64_t fallback);
int value_to_text(const struct value *v, char **ret, struct error *err); /* its beginning; NULL for null */
int value_to_bytes(const struct value *v, char **ret, size_t *ret_size, struct error *err);
/* A path as relative_check() has it; if it is none, *ret is the caller's all the same. */
int value_to_below(const struct value *v, char **ret, struct error *err);
int value_to_json(const struct value *v, json_t **ret, struct error *err); /* NULL for null */
/* An id or a word of ours: what none has in it is '?'. "" for null and what does not fit. */
void value_to_fixed(const struct value *v, char *out, size_t room);
int value_to_digest(const struct value *v, uint8_t ret[DIGEST_SIZE], struct error *err);

typedef int (*row_fn)(void *arg, const struct value *row, struct error *err); /* negative: ends with it */
/* A row_fn: the first column, into an int64_t; null is 0. */
int take_integer(void *arg, const struct value *row, struct error *err);
/* "" for what is no text. Lasts as long as the row. */
const char *value_words(const struct value *v);
const char *value_words_or_null(const struct value *v); /* nor is what is longer than VALUE_TEXT_MAX */

enum blob_state { BLOB_UNKNOWN, BLOB_IN_DATABASE, BLOB_OBJECT };

struct backend;
struct backup_files;
struct ledger_query;
typedef int (*query_line_fn)(void *arg, const char *line, size_t size, struct error *err);

struct backend_ops {
	enum sql_dialect dialect;
	struct backend *(*close)(struct backend *b); /* returns NULL */
	/* For writing. ret_version, unless NULL: the schema's version as it stays until the end of this transaction. */
	int (*begin)(struct backend *b, int *ret_version, struct error *err);
	int (*commit)(struct backend *b, struct error *err);
	void (*rollback)(struct backend *b);
	/* Before the first statement: what the database itself needs (schema, journal mode), and a lock so that two
	 * migrations do not collide, nor one with a transaction that has asked for the version. Called between begin and
	 * commit, except prepare, which comes before begin. NULL: nothing, since to begin is to lock. */
	int (*migrate_prepare)(struct backend *b, struct error *err);
	int (*migrate_lock)(struct backend *b, struct error *err);
	int (*script)(struct backend *b, const char *text, struct error *err);
	/* *ret 0: none of our tables is there. */
	int (*version)(struct backend *b, int *ret, struct error *err);
	/* fn may be NULL, and must not use the backend. */
	int (*run)(struct backend *b, enum sql which, const struct value *params, size_t n_params, row_fn fn,
		   void *arg, struct error *err);
	/* rows_begin, rows_add for each, rows_end. NULL for the end: each is there at once. */
	int (*rows_begin)(struct backend *b, enum sql_table table, struct error *err);
	int (*rows_add)(struct backend *b, const struct value *row, struct error *err);
	int (*rows_end)(struct backend *b, struct error *err);
	/* Within a transaction: what is there stays until its end, and no sweep takes it after that, either. */
	int (*blob_states)(struct backend *b, const uint8_t (*sha256)[DIGEST_SIZE], size_t n,
			   enum blob_state *ret, struct error *err);
	/* A table of the site's: post_begin, post_add for each row, post_end. ERROR_BAD_ROW: the rows are at fault, err says
	 * why; failed_row tells which, counted from 1, or is 0. staged: slower, but it always tells. After a failure the
	 * transaction can only be rolled back. */
	int (*post_begin)(struct backend *b, const struct row_table *t, bool staged, struct error *err);
	int (*post_add)(struct backend *b, const struct cell *cells, uint64_t line, struct error *err);
	int (*post_end)(struct backend *b, struct error *err);
	/* An answer goes to b a row at a time, as CSV: fn gets whole lines, the header first. */
	int (*query)(struct backend *b, const struct ledger_query *q, query_line_fn fn, void *arg,
		     struct error *err);
	/* The doorbell of the queue (queue.h). ring is for the transaction that is open: it rings if that is committed.
	 * bell: the descriptor, negative. bell_read: 1 if it rang, 0, negative if the connection is gone. bell_end: nobody
	 * listens any more. */
	int (*ring)(struct backend *b, struct error *err);
	int (*bell)(struct backend *b, struct error *err);
	int (*bell_read)(struct backend *b, struct error *err);
	void (*bell_end)(struct backend *b);
	/* Could anybody write at this moment? Only where there is one writer at a time. NULL: always. */
	bool (*is_writable)(struct backend *b);
	/* From now on whoever writes in this process has turn meanwhile: SQLite's own way is to look again after a while. NULL: others
	 * are not in the way, or the database tells when they are done. */
	void (*take_turns)(struct backend *b, pthread_mutex_t *turn);
	/* Of a connection to a server: nothing but connecting again helps any more, which the next begin, or statement by itself,
	 * does; and that it is to be taken for such a one. NULL: there is no server. */
	bool (*is_lost)(const struct backend *b);
	void (*distrust)(struct backend *b);
	/* What a commit will need is made ready; what cannot be is missing then. NULL: nothing. */
	void (*foresee_commit)(struct backend *b);
	/* Silence of so long is noticed from now on. NULL: there is no peer that could be silent. */
	void (*hurry)(struct backend *b, uint64_t silence_ms);
	/* A backup (backup.h): a snapshot, in which statements can be run until rollback(); the files of it; what was put there as one
	 * transaction, in place of all that is there; is anything? */
	int (*dump_begin)(struct backend *b, struct error *err);
	int (*dump)(struct backend *b, int dir, const char *path, struct backup_files *files,
		    struct error *err);
	int (*load)(struct backend *b, int dir, const struct backup_files *files, struct error *err);
	int (*is_empty)(struct backend *b, bool *ret, struct error *err);
	/* The database's own check of itself: fn gets one text per problem. NULL: has none. */
	int (*verify)(struct backend *b, row_fn fn, void *arg, struct error *err);
};

struct backend {
	const struct backend_ops *ops;
	char *name; /* for messages: quoted, escaped, without a password */
	uint64_t failed_row;
	bool is_pooled;	     /* there is no session of our own */
	unsigned connection; /* another number after every reconnection */
	struct work *work;   /* ledger_watch(): for what takes long in one call */
	bool only_submits;   /* whoever is connected has the rights of a submitter, at most */
	bool is_own; /* it is a file of ours that nobody else can write, by one look when it was opened */
};

/* A column of the site's table, as the database knows it. type: n numbers, i integers, b booleans, a arrays, j any
 * JSON, s text, d text or numbers, * anything. */
struct post_column {
	char type;
	char binary;	/* its letter in a binary COPY, 0: none */
	char words[48]; /* "character varying(20)", for messages */
};
/* The columns of t, in its order. ERROR_BAD_ROW if the table or one of them is not there. */
int post_columns_find(struct backend *b, const struct row_table *t, struct post_column *ret,
		      struct error *err);
/* ERROR_BAD_ROW if the column does not take this kind of value. */
int post_cell_check(const struct row_table *t, size_t i, const struct post_column *c, const struct cell *cell,
		    struct error *err);

int sqlite_open(const struct ledger_url *url, unsigned flags, struct backend **ret, struct error *err);
int postgres_open(const struct ledger_url *url, unsigned flags, struct backend **ret, struct error *err);
/* lending.c: one that has its connection only while it needs one. */
struct lending;
int lending_lend(struct lending *from, unsigned flags, struct backend **ret, struct error *err);
const char *lending_url(const struct lending *l);

#endif
