/*
 * Every word of SQL that fumehood speaks, SQLite's and PostgreSQL's side by side: the statements (sql.c), the
 * columns of the tables that are filled row by row, and the migrations (schema.c).
 *
 * A statement is written once where both dialects agree: '@' stands for the prefix of our tables ("fumehood_" or
 * "fumehood."), "$1" for a parameter, '#' for "is one of the texts of the JSON array $1", '^' for the lock on what is read
 * that PostgreSQL needs (SQLite's writers are alone), '!' for whose a row is (in SQLite always the file's owner's). sql_expand() makes it what the database reads.
 */
#ifndef STORE_SQL_H
#define STORE_SQL_H

#include <stdbool.h>
#include <stddef.h>

#include "row.h"

/* A submitter's is PostgreSQL's, with functions where others write tables. */
enum sql_dialect { SQL_SQLITE, SQL_POSTGRES, SQL_SUBMITTER, SQL_DIALECTS };

enum sql {
	SQL_VERSION_THERE, /* → is there a version to ask for? (PostgreSQL) */
	SQL_COMPUTED,	   /* → how many columns of our tables are computed (SQLite) */
	SQL_VERSION,	   /* → version */
	SQL_VERSION_ADD,   /* version, at, fumehood's version */
	SQL_ROLES_THERE,   /* → has it roles? (PostgreSQL) */
	SQL_IS_MINE,	   /* owner → 1 if that is who is connected (PostgreSQL) */
	SQL_ANALYSIS_LOCK, /* id, at: makes it if need be; until the end of the transaction nobody else adds to it */
	SQL_ANALYSIS_STATE, /* id → last number, its verdict, has one succeeded? */
	SQL_TOKEN,	    /* token → number */
	SQL_NUMBER_NEXT,    /* id → number */
	SQL_NUMBER_TAKEN,   /* id, number → 1 */
	SQL_BLOB_STATE, /* sha256 → is it an object? (SQLite; PostgreSQL: sha256[] → sha256, is it …) */
	SQL_STAGED_ANY, /* → 1 if there is a content that nobody refers to yet (all of these: SQLite) */
	SQL_STAGED_ADD, /* sha256 */
	SQL_STAGED_TAKE,   /* sha256: somebody does now */
	SQL_STAGED_SWEEP,  /* how many: the contents of the first of them */
	SQL_STAGED_FORGET, /* how many: that they were there */
	SQL_CHANGES,	   /* → rows of the last statement that changed any */
	SQL_BLOB_HOLD, /* sha256[] → sha256, is it …: they stay until the end of the transaction (PostgreSQL) */
	SQL_BLOB_CONTENT, /* sha256 → content, size */
	SQL_BLOB_PAGE,	  /* sha256 after which, how many → sha256, size, content */
	/* Objects in the database (PostgreSQL). */
	SQL_OBJECT_PATIENTLY, /* until the end of the transaction somebody who puts the same is waited for */
	SQL_OBJECT_ADD,	      /* sha256[] → those that were not there */
	SQL_OBJECT_LOCK,    /* sha256[] → those that are there, and stay until the end of the transaction */
	SQL_OBJECT_CHUNKS,  /* sha256, position from which, how many → position, bytes */
	SQL_OBJECT_SWEEP,   /* seconds → how many were removed that are older, and that nobody refers to */
	SQL_OBJECT_ORPHANS, /* seconds → sha256 */
	SQL_LIST, /* verdicts as JSON, prefix, limit, before: at and id, since, submitter → attempt's columns */
	SQL_IDS, /* from this id, before that, how many → id: in the ledger or the queue, in their order */
	SQL_ID_LAST,	  /* from this id, before that → the last of them */
	SQL_LIST_VERDICT, /* the same, for one verdict, as it is */
	SQL_LIST_IDS,	  /* the same, for few ids: prefix, …, and before which id */
	SQL_IDS_MANY,	  /* from this id, before that, how many → 1 if there are more */
	SQL_ATTEMPT,	  /* id, number → attempt's columns */
	SQL_ATTEMPTS,	  /* id → number, verdict, … */
	SQL_OUTPUTS,	  /* id, number → path, sha256, size, media_type, is it an object? */
	SQL_REJECTED,	  /* id, number → path, reason */
	SQL_INPUTS,	  /* id, number → path, source, sha256, size, mode, from_analysis, from_attempt */
	SQL_QUERIES,	  /* id, number → name, sql, sha256, size, row_count, started_at, duration_ms */
	SQL_EVENTS,	  /* id, number → at, stage, text */
	SQL_SAMPLES,	  /* id, number → at_ms, cpu_ms, memory_bytes, pids */
	SQL_STEPS,	  /* id, number → verdict, … */
	SQL_DENIALS,	  /* id, number → at, layer, operation, … */
	SQL_LOG,	  /* id, number, stream → head, tail, omitted */
	SQL_SUCCESS,	  /* id → the number of its latest success, its owner */
	SQL_SUCCESSES, /* after this id, before that, owner or null → id of a task, the number of its latest success or null, its owner */
	SQL_LINEAGE_LATEST, /* id → the number of its latest success, else of its latest attempt, else of its latest that was removed */
	SQL_LINEAGE_NODE, /* id, number → verdict, created_at, was it removed? */
	SQL_LINEAGE_UP,	  /* id, number → what it came from: id, number, files or null */
	SQL_LINEAGE_DOWN, /* id, number → what came from it: the same */
	/* What was when, and how often (history.c). */
	SQL_SPANS, /* since, until, how many → id, number, verdict, created_at, started_at, ended_at, host, owner, submitter, submitted_at or null */
	SQL_DAYS,  /* verdicts as JSON, since, until → days since 1970, verdict, how many */
	SQL_COMMANDS, /* since, until, of how many, the newest → command, how many, without success, wall: mean and most, memory: the same */
	SQL_FAILURES, /* verdicts as JSON, since, until, of how many, the newest → command, verdict, reason, how many, created_at of the last */
	SQL_STORE,    /* → ledger_id, store_id, host, path */
	SQL_STORE_LOCK,	    /* the same; locks it */
	SQL_STORE_SET,	    /* store_id, at, host, path */
	SQL_STORE_CONTENTS, /* → sha256, size: of the contents that lie outside */
	SQL_CONTENT_BYTES,  /* → how large all contents are together */
	SQL_COUNTS,	    /* → analyses, attempts, outputs, blobs, objects */
	SQL_POST_COLUMNS, /* table's name → column, class (see backend.h), its letter for a binary COPY, its type in words */
	SQL_POST_SUM,	 /* id, number → rows posted, null: none */
	SQL_POST_CHUNKS, /* id, number → target, row_count, fields */
	SQL_POST_FORGET, /* id, number: forgets what was posted */
	SQL_VERDICT_SET, /* id, number, verdict, status, reason */
	SQL_EVENT_NEXT,	 /* id, number → position */
	SQL_PATHS,	 /* → table, id, number, path, of outputs and inputs */
	SQL_DANGLING,	 /* → id, number, path, size of the content or null, number or null */
	/* The queue. What locks, locks until the end of the transaction. */
	SQL_NOW,      /* → the server's time (PostgreSQL) */
	SQL_LOCK_FOR, /* so many ms a lock is waited for, until the end of the transaction (PostgreSQL) */
	SQL_TOKEN_VERDICT, /* token → verdict */
	SQL_QUEUE_STATES,  /* ids → id, state, submitted_at; locks them */
	SQL_KNOWN,	   /* ids → id, has its latest attempt succeeded? */
	SQL_QUEUE_FORGET,  /* ids */
	SQL_AFTER_FORGET,  /* ids */
	SQL_SUBMITTER_ADD, /* name, of who is connected */
	SQL_CLAIM_ANY,	   /* → 1 if something is queued */
	SQL_CLAIM_LOCK,	   /* one claim after the other (PostgreSQL) */
	SQL_CLAIM_BEGIN,   /* → the server's time, what was read so far (PostgreSQL) */
	SQL_CLAIM_OWNERS, /* owner after whom, or null → owner, running, served_at: a window of them (queue_line.h) */
	SQL_CLAIM_SUBMITTERS, /* owner, submitter after whom, or null → submitter, running, served_at: a window of them */
	SQL_CLAIM_GROUPS, /* owner, submitter, memory_bytes, cpus_milli at most → priority, memory_bytes, cpus_milli, seq of the first */
	SQL_CLAIM_HEAD, /* owner, submitter, priority, memory_bytes, cpus_milli, seq at least → queue's columns, seq; locks it, passes by what is locked */
	SQL_CLAIM_TAKE, /* id, worker, token, attempt, lease_until, lease_ms, dispatcher → what was read so far (PostgreSQL) */
	SQL_CLAIM_SERVED,  /* owner, submitter, at */
	SQL_CLAIMED,	   /* tokens → queue's columns */
	SQL_LEASE_PROLONG, /* worker, until, lease_ms, live */
	SQL_LEASES,	   /* worker → id, token, cancelling */
	SQL_LEASES_OVER, /* now, lease_ms of who has not said, worker → id, token, lease_until, lease_ms: of others */
	SQL_LEASE_OVER, /* id, token, lease_until → the same as SQL_HANDED_ROW; locks it, passes by what is locked */
	/* What is handed over (handover.c). A row's columns are the queue's, and dispatcher, handle, cancelling. */
	SQL_HAND_OVER,	 /* tokens as JSON, worker, batch: each has its place there as its index */
	SQL_BATCH,	 /* batch → index, token */
	SQL_HANDLES_SET, /* [[batch, index, handle], …] as JSON */
	SQL_HANDED, /* dispatcher → id, token, batch, index, handle, worker, is it taken?, cancelling, tries, retries */
	SQL_HANDED_ROW,	  /* batch, index → the row; locks it */
	SQL_HANDED_TOKEN, /* id, token → the row; locks it */
	SQL_HANDED_FENCE, /* id, token: it has this one now */
	SQL_TAKE, /* id, worker, token, attempt, lease_until, lease_ms, dispatcher, batch, index, handle */
	SQL_QUEUE_DUE,	      /* now: those whose time has come are queued */
	SQL_DUES,	      /* after when → id, due_at, tries, worker */
	SQL_QUEUE_WAKE,	      /* id, due_at: it is queued, if that is still so */
	SQL_QUEUE_NEXT,	      /* → now (PostgreSQL), the first lease's end, the first that is due */
	SQL_QUEUE_ROW,	      /* id → see queue_settle.c; locks it */
	SQL_QUEUE_SETTLE,     /* id, state, tries, due_at, verdict, status, reason, attempt */
	SQL_QUEUE_RELEASE,    /* id, state, due_at */
	SQL_QUEUE_CANCEL,     /* ids, reason */
	SQL_QUEUE_CANCELLING, /* id */
	SQL_QUEUE_AGAIN,      /* id, state */
	SQL_QUEUE_RESTORED,   /* what had not ended in a backup waits for somebody to let it go */
	SQL_AFTER_WAITING,    /* ids → id: of those who wait for one of them; locks them */
	SQL_AFTER_LOCK,	      /* id → number of those who wait for it; locks them */
	SQL_AFTER_READY,      /* id: queues who has waited for nobody else */
	SQL_AFTER_MET,	      /* id */
	SQL_AFTER_RECALL,  /* id: what it waits for and the queue does not know is met if it has succeeded */
	SQL_AFTER_ALL_MET, /* id */
	SQL_ARRAY_STANDING, /* after this id, before that → how many tasks there are, have not ended, have succeeded */
	SQL_ARRAY_WITNESS, /* the same → the last of them that has not ended; locks it */
	SQL_ARRAY_PASS, /* task, array, task: who waits for the array and the first of them waits for the second */
	SQL_ARRAY_MET,		/* task, array: who waits for both does not wait for the array any more */
	SQL_AFTER,		/* id → after, met */
	SQL_QUEUE_LIST,		/* state, prefix, limit → see queue_read.c */
	SQL_QUEUE_LIST_WAITING, /* prefix, limit → the same of one state; these cost nothing for what has ended */
	SQL_QUEUE_LIST_QUEUED,
	SQL_QUEUE_LIST_RUNNING,
	SQL_QUEUE_LIST_CANCELLED,
	SQL_QUEUE_LIST_RESTORED,
	SQL_QUEUE_LIST_OPEN, /* prefix, limit of each → those five in one look: running, queued, waiting, restored, cancelled */
	SQL_QUEUE_OPEN_COUNTS, /* at most → how many wait, are queued, run, were cancelled */
	SQL_RECENT,	       /* since when, at most → verdict, ended_at: of the newest attempts */
	SQL_QUEUE_LOOK,	       /* ids → the same */
	SQL_ENDED_LOOK,	       /* ids → id, number, verdict, status, reason, owner: of the latest attempt */
	SQL_RANGE_KNOWN, /* id, id → is one from here to there in the queue, has one attempts, came one after something? */
	SQL_ARRAY_QUEUED, /* after this id, before that → id: in the queue */
	SQL_ARRAY_KNOWN,  /* the same → id: in the queue or with attempts */
	SQL_ARRAYS_NAMED, /* ids → id, task: of those that are the name of an array */
	SQL_RUN_KNOWN, /* after this id, before that, id → has one succeeded?, its next number, its state in the queue, a task of
			* an array of that name there */
	SQL_QUEUE_JOB,	  /* id → queue's columns */
	SQL_QUEUE_COUNTS, /* → state, how many */
	SQL_WORKER_SIGN,  /* id, host, pid, engine, seats, running, state, version, now, lease_ms */
	SQL_WORKER_GONE,  /* id */
	SQL_WORKERS, /* → id, owner, host, pid, engine, seats, running, state, version, started_at, seen_at, lease_ms, now (PostgreSQL) */
	SQL_WORKERS_SILENT,    /* when → 1 if one was not seen since */
	SQL_WORKERS_FORGET,    /* when: those that were not seen since */
	SQL_QUEUE_COUNTS_SOME, /* id after which, how many → state, how many of those, the last of their ids */
	/* What is no longer wanted (remove.c, loose.c). A list is JSON: [[id, number], …]. */
	SQL_TOMBSTONE,	 /* id, number (0: any) → number, when it was removed: the latest */
	SQL_REMOVE_OF,	 /* ids → id, number: their attempts, the latest first */
	SQL_REMOVE_PAGE, /* verdicts as JSON, how many, before: at, id and number, only unpruned? → id, number, at, is it the latest? */
	SQL_REMOVE_QUEUED, /* verdicts as JSON, submitted before, after which id, how many → id: ended in the queue */
	SQL_REMOVE_BUILT,   /* ids → id, number, id, number: of another that came from it */
	SQL_REMOVE_AWAITED, /* ids → id, id: of one in the queue that comes after it */
	SQL_REMOVE_SUMS,    /* list → outputs, their bytes, bytes of logs */
	SQL_REMOVE_LIST,    /* list (SQLite: before the script) */
	SQL_REMOVE,	    /* list, are outputs kept? (PostgreSQL) */
	SQL_LOOSE_ANY,	    /* → 1 if there is one (SQLite) */
	SQL_LOOSE_TAKE,	    /* sha256: somebody refers to it (SQLite) */
	SQL_LOOSE_PAGE,	    /* sha256 after which, how many → sha256 */
	SQL_LOOSE_CLAIM,    /* sweep, sha256 after which, sha256 up to which */
	SQL_LOOSE_KEPT,	    /* sweep → sha256: of those that something refers to */
	SQL_LOOSE_LEFT,	    /* sweep, sha256 after which, how many → sha256 */
	SQL_LOOSE_FORGET,   /* sha256 (PostgreSQL: sha256[]), sweep */
	SQL_LOOSE_SIZE,	    /* sha256, sweep → size (SQLite) */
	SQL_LOOSE_SWEEP,    /* sha256 (SQLite); sweep, sha256[] → how many, their bytes (PostgreSQL) */
	SQL_COUNT,
};

/* The tables that a commit fills, in the order in which it does. */
enum sql_table {
	TABLE_ATTEMPT,
	TABLE_BLOB,
	TABLE_CHUNK, /* PostgreSQL, before the commit */
	TABLE_OUTPUT,
	TABLE_REJECTED,
	TABLE_INPUT,
	TABLE_LOG,
	TABLE_EVENT,
	TABLE_SAMPLE,
	TABLE_STEP,
	TABLE_DENIAL,
	TABLE_QUERY,
	TABLE_POSTED,
	TABLE_QUEUE, /* filled by submit */
	TABLE_QUEUE_AFTER,
	TABLE_COUNT,
};

/* types has one letter per column, which is the width that a binary COPY must have: t text, i integer, I bigint,
 * b bytea, z timestamptz, j jsonb, o boolean. */
struct sql_table_info {
	const char *name;
	const char *columns;
	const char *types;
	bool owned; /* its rows have an owner besides, which is not the caller's to say */
};
extern const struct sql_table_info sql_tables[TABLE_COUNT];

/* Of the columns of an attempt (columns.h), and the time of the commit after them: how many a list has, how many there are. A
 * statement that reads them has the owner first; one that reads a list of the attempt's has the position first. */
enum { ATTEMPT_NUMBER = 1, ATTEMPT_LISTED = 20, ATTEMPT_COMMITTED = 29, ATTEMPT_COLUMNS = 30 };
enum { ROW_MAX = ATTEMPT_COLUMNS + 1 }; /* no statement has more columns */

/* The columns of a queued analysis, in the order of every statement that reads one. */
enum queue_column {
	QUEUE_ID,
	QUEUE_SUBMITTER,
	QUEUE_PRIORITY,
	QUEUE_RETRIES,
	QUEUE_RETRY_ON,
	QUEUE_AGAIN,
	QUEUE_TRIES,
	QUEUE_REQUEST,
	QUEUE_INPUTS,
	QUEUE_MEMORY,
	QUEUE_CPUS,
	QUEUE_SUBMITTED,
	QUEUE_ATTEMPT,
	QUEUE_TOKEN,
	QUEUE_WORKER,
	QUEUE_OWNER,
	QUEUE_SEQ, /* of SQL_CLAIM_HEAD alone */
	/* Of a row that may be handed over. */
	QUEUE_DISPATCHER = QUEUE_SEQ,
	QUEUE_HANDLE,
	QUEUE_CANCELLING,
};

/* The statement for this dialect; newly allocated, NULL if memory is out. */
char *sql_expand(enum sql which, enum sql_dialect dialect);
/* "INSERT INTO fumehood_output(path, …) VALUES(?1, …)", "COPY fumehood.output(path, …) FROM STDIN (FORMAT binary)" */
char *sql_insert(enum sql_table table);
char *sql_copy(enum sql_table table);
/* "SELECT fumehood.put_queue($1)": a submitter's. NULL: memory is out, or there is none for this table. */
char *sql_put(enum sql_table table);

/* Statements for a table of the site's, all names quoted. SQLite: one row, with its conflict clause. PostgreSQL: the
 * COPY, into the table or (staged) into a temporary one; and what moves rows from there, lines up to $1. */
char *sql_post_insert(const struct row_table *t);
char *sql_post_copy(const struct row_table *t, bool staged, bool binary);
char *sql_post_stage(const struct row_table *t);
char *sql_post_move(const struct row_table *t);
/* "schema"."table" */
char *sql_post_name(const struct row_table *t);
extern const char sql_postgres_post_path[], sql_postgres_own_path[];

/* PostgreSQL, around a stranger's query: may the role $1 log in, what a session of its own is told, its transaction, whether
 * the session's role is fit for it ($1: the ledger's own user), what is left to set, the query as a COPY, whether it has
 * left its rights alone, and its end. */
extern const char sql_postgres_query_login[], sql_postgres_query_session[], sql_postgres_query_start[],
	sql_postgres_query_role[], sql_postgres_query_after[], sql_postgres_query_end[];
char *sql_postgres_query_begin(uint64_t timeout_ms);
/* A row of more than row_max bytes as text is a division by zero: it is not to be sent at all. */
char *sql_postgres_query_copy(const char *sql, uint64_t row_max);
/* "name", its quotes doubled. */
char *sql_quote_name(const char *name);

/* The first makes the tables of SQL_VERSION_FIRST, each further one the next version. Scripts of several statements. */
enum { SQL_VERSION_FIRST = 8 };
struct sql_migration {
	const char *script[SQL_DIALECTS];
};
extern const struct sql_migration sql_migrations[];
extern const int sql_version_wanted;
extern const char sql_version_9_sqlite[], sql_version_9_postgres[];

/* PostgreSQL: the roles and their rights (roles.sql). What a connection is to be, as a number of enum sql_part. */
enum sql_part { PART_DIRECT, PART_WORKER, PART_SUBMITTER };
extern const char sql_postgres_roles[], sql_postgres_part[];

/* PostgreSQL: what a session of our own begins with, or, local, every transaction in one that is only lent; what a
 * migration begins with. */
char *sql_postgres_settings(bool is_local, enum sql_part part, uint64_t lock_ms, uint64_t statement_ms);
extern const char sql_postgres_migrate_lock[];
/* A transaction: one that tells the schema's version and keeps it, one before there is any. */
char *sql_postgres_begin(const char *settings, bool asks_version);
/* SQLite: what removes the attempts of SQL_REMOVE_LIST, before it and after it: whole, or but for their outputs. */
extern const char sql_sqlite_remove_begin[], sql_sqlite_remove[], sql_sqlite_prune[];
/* Rings the bell of those who listen, when the transaction is committed. */
/* Whether a row that is referred to may go: between two transactions. */
extern const char sql_sqlite_trusting[], sql_sqlite_checking[];
extern const char sql_postgres_notify[], sql_postgres_listen[], sql_postgres_unlisten[];

#endif
