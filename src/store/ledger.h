/*
 * The ledger: what every attempt was, for good. One interface; SQLite or PostgreSQL behind it, chosen by the URL.
 * All SQL is in one place (sql.h), contents too large for the database in a content-addressed store (objects.h).
 *
 * ledger_open, any number of calls, ledger_close. A crash at any instant leaves the last committed transaction,
 * and at most temporary objects that the next gc removes.
 */
#ifndef STORE_LEDGER_H
#define STORE_LEDGER_H

#include <errno.h>
#include <jansson.h>
#include <stdbool.h>

#include "attempt.h"
#include "error.h"
#include "row.h"
#include "work.h"

struct ledger;

enum ledger_flags {
	LEDGER_CREATE = 1, /* make it if it is not there (first use) */
	LEDGER_READ_ONLY = 2,
	LEDGER_UPGRADE = 4, /* bring an older one to this version's schema, which nothing else does */
	LEDGER_ROLES = 8,   /* ledger_roles()'s own */
	LEDGER_LOOK =
		16, /* the database itself refuses every write, whoever asks for it; behind a pooler, which gives each
			       statement to another session, that is for the role that logs in to say */
};

/* "sqlite:PATH" or a bare path; "postgresql://…"; parameters of ours: objects=DIR (or postgresql), objects_max=SIZE, group=NAME,
 * blob_max=SIZE, busy=TIME, statement=TIME, filesystem=any (not after a bare path). One handle is for one thread.
 * ERROR_NOT_FOUND: it is not there, and
 * LEDGER_CREATE was not given.
 * A schema that is older (without LEDGER_UPGRADE) or newer is refused, for reading too. Making and upgrading are one
 * transaction, which others wait for. Messages never contain a password. */
int ledger_open(const char *url, unsigned flags, struct ledger **ret, struct error *err);
struct ledger *ledger_close(struct ledger *l); /* NULL is fine; returns NULL */
DEFINE_CLEANUP(struct ledger *, ledger_close);
#define _cleanup_ledger_ _cleanup_(ledger_closep)

/* For a process whose SQLite is ours alone, before it opens a ledger: SQLite takes 128 MiB at the most, and 32 for each that is
 * open. It reads the key of an index whole, whatever its length. */
void ledger_bound_memory(void);

/* As contents are read, stored, copied and checked, w counts their bytes, until somebody else does; NULL: nobody. Who begins a
 * piece of work that the ledger only has a part in (a commit, a copy) calls work_begin() himself. */
void ledger_watch(struct ledger *l, struct work *w);
struct work *ledger_work(const struct ledger *l); /* or NULL */

/* Least-privilege roles for readers, submitters, workers and owners (roles.sql), in PostgreSQL; refused for SQLite. As often
 * as one likes. An upgrade keeps those that there are. */
int ledger_roles(struct ledger *l, struct error *err);
int ledger_has_roles(struct ledger *l, bool *ret, struct error *err);

/* The URL as it may be shown and stored: no password. Newly allocated. */
char *ledger_url_redacted(const char *url);
/* Do they name the same ledger, whoever connects? 1, 0, -ENOMEM. */
int ledger_url_same(const char *a, const char *b);
/* What a user wrote: another scheme, or a connection string, would else become the name of a file, with the password in it.
 * ERROR_USAGE says the right form, and nothing that may be a password. */
int ledger_url_check(const char *url, struct error *err);

/* Where its large contents are to be, "postgresql" or a directory, newly allocated; and how large one may be (UINT64_MAX: no
 * bound). Nothing is opened. */
int ledger_url_objects(const char *url, char **ret, uint64_t *ret_max, struct error *err);

struct analysis_state {
	bool known;
	int last_attempt; /* 0: none */
	int next_attempt; /* removed ones keep their numbers */
	bool succeeded;	  /* some attempt has */
	enum verdict last_verdict;
};
int ledger_analysis(struct ledger *l, const char *id, struct analysis_state *ret, struct error *err);

/* Is it a file of our own user's, which nobody else can write? As it was opened; of what is lent, as who claims has opened it. */
bool ledger_is_own(const struct ledger *l);
/* Is it an attempt of who asks, so that its words are his own? In a file: if that is his; else by the role. 1, 0, negative. */
int ledger_is_mine(struct ledger *l, const struct attempt *a, struct error *err);
/* Refused if whoever is connected may not: a submitter, a reader. */
int ledger_may_commit(struct ledger *l, const char *id, struct error *err);
/* While there is nothing else to do: makes ready what the commit will need. It cannot fail, the commit can. */
void ledger_foresee_commit(struct ledger *l);

/* Before something runs whose outputs may be large, and where they would be put: refused in one sentence if the directory is
 * not this ledger's object store (store_id.h). A ledger on a server that has none yet takes it. */
int ledger_store_ready(struct ledger *l, struct error *err);
/* Where the store is and what it is, in words; touches nothing. Negative: it is not this ledger's, or cannot be looked at. */
int ledger_store_describe(struct ledger *l, char *ret, size_t room, struct error *err);

/* Outputs above this size are to be put into the object store before they are committed; UINT64_MAX: none is, since the
 * database itself has them. And what no output may exceed. */
uint64_t ledger_object_min(const struct ledger *l);
uint64_t ledger_content_max(const struct ledger *l);

/* Reads fd (positioned anywhere; read from 0 with pread) to its end, hashing; writes it as an object: temporary
 * file, fsync, rename, fsync of the directory. Existing content is not written again. */
int ledger_put_object(struct ledger *l, int fd, uint64_t size, uint8_t ret_sha256[DIGEST_SIZE],
		      struct error *err);

/* Keeps the objects that a finished attempt refers to from every sweep until it is committed, over the end of this
 * process: to be called before its verdict is written to disk. Costs nothing where there are none. */
int ledger_pin(struct ledger *l, const struct attempt *a, struct error *err);
/* The attempt is committed, or never will be: its objects are kept from no sweep any more. */
void ledger_unpin(struct ledger *l, const struct attempt *a);

/* Opens the content of an output that is not an object (or whose object is gone); the ledger verifies size and digest while it reads. The
 * descriptor is the ledger's to close. */
typedef int (*content_open_fn)(void *arg, const struct output *o, struct error *err);

/* One transaction: analysis, attempt, blobs, outputs, rejected outputs, inputs, logs, events, samples. Fenced and
 * idempotent by the token: a second commit of the same token changes nothing and reports the first one's number.
 * *ret_number is the attempt's final number (another run of the same id may have taken the expected one). */
int ledger_commit(struct ledger *l, const struct attempt *a, content_open_fn open, void *arg, int *ret_number,
		  struct error *err);
/* Rows for the site's tables, from whoever has them: they are read several times, one table after the other. */
struct row_text {
	const char *fields; /* {"gene": …}, checked before; lasts until the next call */
	size_t size;
	uint64_t line; /* for messages */
};
struct row_source {
	void *arg;
	const struct row_tables *tables;
	const uint64_t *counts; /* of each table's rows */
	int (*rewind)(void *arg, struct error *err);
	/* The next one of this table: 1, 0 at the end. */
	int (*next)(void *arg, size_t table, struct row_text *ret, struct error *err);
};
/* The same, and in the same transaction the rows. ERROR_BAD_ROW: the database does not take them, err says which line and
 * why, and nothing at all is committed. */
int ledger_commit_rows(struct ledger *l, const struct attempt *a, content_open_fn open, void *arg,
		       const struct row_source *rows, int *ret_number, struct error *err);
/* For an attempt that is committed: posts its rows (again), and makes it succeeded if only they were missing. Rows that
 * were posted before and are the same change nothing (*ret_posted false), unless a key tells which to replace; others
 * are refused then. */
int ledger_post(struct ledger *l, const struct attempt *a, const struct row_source *rows, bool *ret_posted,
		struct error *err);
/* Was this token committed? 1, 0, negative. */
int ledger_has_token(struct ledger *l, const char *token, int *ret_number, struct error *err);

/* A query of a stranger's: only read, on a connection of its own, which is a login of a role (PostgreSQL) or can see no
 * table of the ledger's (SQLite). ERROR_REFUSED says what was wrong with it. */
struct ledger_query {
	const char *sql;
	const char *role;     /* NULL: none, which PostgreSQL refuses */
	const char *passfile; /* with its password; NULL: where libpq looks for it */
	uint64_t timeout_ms;
	uint64_t max_bytes;
};
/* Writes the answer to fd as CSV with a header line. */
int ledger_query(struct ledger *l, const struct ledger_query *q, int fd, uint64_t *ret_rows,
		 struct error *err);

struct ledger_filter {
	unsigned verdicts;    /* 1 << VERDICT_…, any of them; 0: all */
	const char *prefix;   /* of the id, or NULL */
	const char *pattern;  /* of the whole id (output_glob.h), or NULL */
	int64_t since, until; /* created at or after, and before: UTC ns; 0: whenever */
	const char *
		before_id; /* those too that were created at that instant, with an id before this one; NULL: none */
	const char *submitter; /* as the queue knows it, or the owner; NULL: anybody */
	int limit;	       /* 0: all */
};
/* Newest first; calls back with one row per analysis: its latest attempt, without plan, receipt, result, outputs,
 * inputs, logs, events. It is read by pages, each from where the one before ended, and while fn is called nothing is open: fn
 * may take its time, but must not use the ledger. */
typedef int (*ledger_row_fn)(void *arg, const struct attempt *a, struct error *err);
int ledger_list(struct ledger *l, const struct ledger_filter *f, ledger_row_fn fn, void *arg,
		struct error *err);

/* Ids that begin so, of the ledger and its queue, in the order of their bytes: for a hand on the tab key. If there are more than
 * limit, the last one stands in for those that are left out, so that what all of them begin with can be told. A beginning that
 * no id has gives none. fn: negative ends it. Whatever the ledger holds, only what is an id is told. */
typedef int (*ledger_id_fn)(void *arg, const char *id, struct error *err);
int ledger_ids(struct ledger *l, const char *prefix, int limit, ledger_id_fn fn, void *arg,
	       struct error *err);

/* One attempt whole but for the logs' bytes; number 0: the latest. ERROR_NOT_FOUND names what there is. */
int ledger_load(struct ledger *l, const char *id, int number, struct attempt *ret, struct error *err);
/* Only its outputs, into an empty manifest. */
int ledger_load_outputs(struct ledger *l, const char *id, int number, struct manifest *ret,
			struct error *err);
/* Every attempt's number and verdict, for `show`: [{"attempt":1,"verdict":"failed",…}] */
int ledger_attempts(struct ledger *l, const char *id, json_t **ret, struct error *err);
/* Of an attempt with steps: all of theirs, one after the other. */
int ledger_load_log(struct ledger *l, const struct attempt *a, int stream, struct captured *ret,
		    struct error *err);
/* step: from 1. */
int ledger_load_step_log(struct ledger *l, const struct attempt *a, size_t step, int stream,
			 struct captured *ret, struct error *err);
/* Writes an output's content to fd, verifying its digest on the way: what was written is good only if 0 comes back. */
int ledger_copy_output(struct ledger *l, const struct output *o, int fd, struct error *err);

/* Removes temporary objects of dead writers and unreferenced objects, without racing a commit. Refused where the directory is
 * not this ledger's. */
int ledger_sweep(struct ledger *l, uint64_t *ret_removed, struct error *err);
/* Before it: contents that something referred to which was removed (remove.h), and that nothing refers to any more. Adds to both. */
int ledger_sweep_loose(struct ledger *l, uint64_t *removed, uint64_t *bytes, struct error *err);

/* db status / db check: {"url","version","wanted","analyses","attempts","outputs","blobs","objects","store":{…},"queue":{…}} and
 * {"checked", "problems":[{"kind","object","message"}], "busy"}; kinds: "damaged", "missing", "orphan", "reference",
 * "store", "database"; busy: commits were going on, orphans were not looked for. */
int ledger_status(struct ledger *l, json_t **ret, struct error *err);
int ledger_check(struct ledger *l, json_t **ret, struct error *err);

#endif
