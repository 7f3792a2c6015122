/*
 * The connection to an SQLite file, for the files of its backend: sqlite.c, sqlite_bell.c, sqlite_post.c,
 * sqlite_query.c.
 */
#ifndef STORE_SQLITE_PRIVATE_H
#define STORE_SQLITE_PRIVATE_H

#include <sqlite3.h>

#include "backend.h"

struct sqlite {
	struct backend base;
	sqlite3 *db;
	char *path;
	uid_t uid;   /* of the file's owner */
	char *owner; /* his name, once it was asked for */
	sqlite3_stmt *statements[SQL_COUNT];
	sqlite3_stmt *inserts[TABLE_COUNT];
	enum sql_table filling;
	int busy_ms;
	pthread_mutex_t *turn; /* take_turns; NULL: nobody else in this process writes */
	bool has_turn;
	int log_pages; /* in the WAL after our last commit */
	bool ringing;  /* this transaction rings when it is committed */
	int bell;      /* inotify; -1: nobody listens */
	/* The table of the site's that is being filled. */
	sqlite3_stmt *posting;
	const struct row_table *post_table;
	struct post_column *post_columns;
};

static inline struct sqlite *sqlite_of(struct backend *b)
{
	return (struct sqlite *)b;
}

/* One sentence for what SQLite said, by its code; `doing` is "read" or "write to". */
int sqlite_error(struct sqlite *s, int code, const char *doing, struct error *err);

/* The turn to write, if it is ours (backend.h's take_turns). */
void sqlite_turn_give(struct sqlite *s);

int sqlite_post_begin(struct backend *b, const struct row_table *t, bool staged, struct error *err);
int sqlite_post_add(struct backend *b, const struct cell *cells, uint64_t line, struct error *err);
int sqlite_post_end(struct backend *b, struct error *err);
int sqlite_query(struct backend *b, const struct ledger_query *q, query_line_fn fn, void *arg,
		 struct error *err);
int sqlite_ring(struct backend *b, struct error *err);
int sqlite_bell(struct backend *b, struct error *err);
int sqlite_bell_read(struct backend *b, struct error *err);
void sqlite_bell_end(struct backend *b);
void sqlite_bell_rung(struct sqlite *s);   /* after a commit */
void sqlite_post_forget(struct sqlite *s); /* what was begun and not ended */

int sqlite_log_note(void *sqlite, sqlite3 *db, const char *name,
		    int pages);		/* SQLite's hook after a commit */
void sqlite_log_fold(struct sqlite *s); /* before it is closed */

int sqlite_dump_begin(struct backend *b, struct error *err);
int sqlite_dump(struct backend *b, int dir, const char *path, struct backup_files *files, struct error *err);
int sqlite_load(struct backend *b, int dir, const struct backup_files *files, struct error *err);
int sqlite_is_empty(struct backend *b, bool *ret, struct error *err);

#endif
