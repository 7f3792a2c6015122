/*
 * One commit under way: commit.c begins and ends its transaction, commit_rows.c fills the tables in between.
 */
#ifndef STORE_COMMIT_H
#define STORE_COMMIT_H

#include "buffer.h"
#include "chunks.h"

/* A content that this attempt refers to. */
struct content {
	const struct output *output;
	bool is_object;
	bool in_chunks; /* that is, in the database */
};

enum { COMMIT_ROUNDS = 5 }; /* so often what was put, and swept before it was referred to, is put again */

struct commit {
	struct ledger *l;
	const struct attempt *a; /* NULL: only contents are stored */
	content_open_fn open;
	void *arg;
	struct content *contents; /* distinct, by digest */
	size_t n_contents;
	struct buffer scratch; /* one content */
	int number;
	const struct row_source *rows; /* or NULL */
	bool is_brief;		       /* it may share its transaction with others */
	bool staged;		       /* find out which row is wrong */
	bool is_posted;		       /* repost.c: there was something to do */
};

void commit_done(struct commit *c);
/* The contents that are to be stored; those that must be objects are made so, from here to objects_release() no sweep
 * can take them; the others are put into the database, within the transaction. commit_blobs is ERROR_SWEPT if a sweep has taken
 * one from the database all the same: to be secured again. */
int commit_list(struct commit *c, const struct output *outputs, size_t n, struct error *err);
/* commit_stage.c: many of the latter are written beforehand, where there is one writer at a time. */
int commit_stage(struct commit *c, struct error *err);
/* body within a transaction, after they were secured and staged: again and again while they are swept in between. */
int commit_secured(struct commit *c, ledger_body body, void *arg, struct error *err);
int commit_blobs(struct commit *c, struct error *err);
/* Within it: they are referred to now. */
int commit_unstage(struct commit *c, struct error *err);
/* Between rows_begin(TABLE_BLOB) and rows_end. */
int commit_blob_add(struct commit *c, const struct content *content, struct error *err);
/* What the database has of each of them; newly allocated. And those that are in chunks, NULL if memory is out. */
int commit_blob_states(struct commit *c, enum blob_state **ret, struct error *err);
struct chunks_content *commit_chunks(struct commit *c, size_t *ret_n);

/* An attempt without outputs or rows, within a transaction that is open. */
int commit_within(struct ledger *l, const struct attempt *a, int *ret_number, struct error *err);

/* Everything but the analysis's row, in the order in which tables refer to each other. */
int commit_rows(struct commit *c, struct error *err);

/* post.c: the rows, and that they were posted. */
int commit_posts(struct commit *c, struct error *err);
/* It failed for a row, and the quick way has not told which: then to be tried once more, staged, for the message. */
bool commit_wants_staged(struct commit *c, const struct error *err);

/* The descriptor of an output's content, the caller's to close; negative. */
int commit_content_open(struct commit *c, const struct output *o, struct error *err);
int content_changed(const struct commit *c, const struct output *o, struct error *err);

#endif
