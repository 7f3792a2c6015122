/*
 * An attempt as rows, said once: which member of which struct is which column. What a commit writes, what is asked for and what
 * is read back (sql.c, commit_rows.c, load.c) come out of these lists. A column's kind says how the member lies in memory,
 * when it is null, and what the database has for it.
 *
 * The attempt on disk and in --json has tables of its own (model/record.h): those keys and forms are promised to others.
 */
#ifndef STORE_COLUMNS_H
#define STORE_COLUMNS_H

#include "attempt.h"
#include "backend.h"

/* The letter is its type in struct sql_table_info. */
enum column_kind {
	COLUMN_TEXT,	/* char *; NULL is null */
	COLUMN_WORDS,	/* the same, never null */
	COLUMN_CHARS,	/* char[] */
	COLUMN_BYTES,	/* char *, a path; NULL is null */
	COLUMN_PATH,	/* the same, never null */
	COLUMN_BELOW,	/* the same, a path below a directory (relative_check) */
	COLUMN_DIGEST,	/* uint8_t[DIGEST_SIZE] */
	COLUMN_INT,	/* int */
	COLUMN_CODE,	/* int; -1 is null */
	COLUMN_SIGNAL,	/* int; 0 is null */
	COLUMN_SIZE,	/* uint64_t */
	COLUMN_COUNT,	/* int64_t; -1 is null */
	COLUMN_TIME,	/* int64_t, UTC ns; 0 is null */
	COLUMN_INSTANT, /* the same, never null */
	COLUMN_BOOL,
	COLUMN_VERDICT,
	COLUMN_MEDIA_TYPE, /* const char *, a constant of ours */
	COLUMN_REASON,	   /* the same */
	COLUMN_JSON,	   /* json_t *; NULL is null */
	COLUMN_USAGE,	   /* as JSON: struct usage, struct receipt, a list of paths (NULL is null) */
	COLUMN_RECEIPT,
	COLUMN_PATHS,
	COLUMN_INTERVAL, /* struct timeline *: that of its samples; NULL is null */
};
#define LETTER_TEXT	  "t"
#define LETTER_WORDS	  "t"
#define LETTER_CHARS	  "t"
#define LETTER_BYTES	  "b"
#define LETTER_PATH	  "b"
#define LETTER_BELOW	  "b"
#define LETTER_DIGEST	  "b"
#define LETTER_INT	  "i"
#define LETTER_CODE	  "i"
#define LETTER_SIGNAL	  "i"
#define LETTER_SIZE	  "I"
#define LETTER_COUNT	  "I"
#define LETTER_TIME	  "z"
#define LETTER_INSTANT	  "z"
#define LETTER_BOOL	  "o"
#define LETTER_VERDICT	  "t"
#define LETTER_MEDIA_TYPE "t"
#define LETTER_REASON	  "t"
#define LETTER_JSON	  "j"
#define LETTER_USAGE	  "j"
#define LETTER_RECEIPT	  "j"
#define LETTER_PATHS	  "j"
#define LETTER_INTERVAL	  "I"

/* X(struct, member, column, kind). The first part of an attempt is what a list has too. */
#define ATTEMPT_LISTED_COLUMNS(X)                      \
	X(attempt, id, analysis_id, CHARS)             \
	X(attempt, number, number, INT)                \
	X(attempt, token, token, CHARS)                \
	X(attempt, verdict, verdict, VERDICT)          \
	X(attempt, exit_code, exit_code, CODE)         \
	X(attempt, signal, signal, SIGNAL)             \
	X(attempt, status, status, INT)                \
	X(attempt, created, created_at, TIME)          \
	X(attempt, started, started_at, TIME)          \
	X(attempt, ended, ended_at, TIME)              \
	X(attempt, workspace, workspace, BYTES)        \
	X(attempt, kept, kept, BOOL)                   \
	X(attempt, host, host, TEXT)                   \
	X(attempt, reason, reason, TEXT)               \
	X(attempt, usage, usage, USAGE)                \
	X(attempt, error_stage, error_stage, TEXT)     \
	X(attempt, error_code, error_code, TEXT)       \
	X(attempt, error_message, error_message, TEXT) \
	X(attempt, request, request, JSON)             \
	X(attempt, engine, engine, JSON)
#define ATTEMPT_OTHER_COLUMNS(X)                                  \
	X(attempt, plan, plan, JSON)                              \
	X(attempt, receipt, receipt, RECEIPT)                     \
	X(attempt, result, result, JSON)                          \
	X(attempt, manifest.missing, missing, PATHS)              \
	X(attempt, manifest.present, present, PATHS)              \
	X(attempt, manifest.n_rejected_more, rejected_more, SIZE) \
	X(attempt, timeline, sample_interval_ms, INTERVAL)        \
	X(attempt, pruned, pruned_at, TIME)                       \
	X(attempt, denials.more, denials_more, COUNT)
#define OUTPUT_COLUMNS(X)                 \
	X(output, path, path, BELOW)      \
	X(output, sha256, sha256, DIGEST) \
	X(output, size, size, SIZE)       \
	X(output, media_type, media_type, MEDIA_TYPE)
#define REJECTED_COLUMNS(X)                  \
	X(rejected_output, path, path, PATH) \
	X(rejected_output, reason, reason, REASON)
#define INPUT_COLUMNS(X)                             \
	X(input, path, path, BELOW)                  \
	X(input, source, source, BYTES)              \
	X(input, sha256, sha256, DIGEST)             \
	X(input, size, size, SIZE)                   \
	X(input, mode, mode, INT)                    \
	X(input, from_analysis, from_analysis, TEXT) \
	X(input, from_attempt, from_attempt, SIGNAL)
#define QUERY_COLUMNS(X)                    \
	X(query, name, name, WORDS)         \
	X(query, sql, sql, WORDS)           \
	X(query, sha256, sha256, DIGEST)    \
	X(query, size, size, SIZE)          \
	X(query, rows, row_count, SIZE)     \
	X(query, started, started_at, TIME) \
	X(query, duration_ms, duration_ms, COUNT)
#define EVENT_COLUMNS(X)              \
	X(event, at, at, INSTANT)     \
	X(event, stage, stage, WORDS) \
	X(event, text, text, WORDS)
#define STEP_COLUMNS(X)                     \
	X(step, verdict, verdict, VERDICT)  \
	X(step, exit_code, exit_code, CODE) \
	X(step, signal, signal, SIGNAL)     \
	X(step, status, status, INT)        \
	X(step, started, started_at, TIME)  \
	X(step, ended, ended_at, TIME)      \
	X(step, reason, reason, TEXT)       \
	X(step, usage, usage, USAGE)        \
	X(step, request, request, JSON)     \
	X(step, plan, plan, JSON)           \
	X(step, receipt, receipt, RECEIPT)
#define DENIAL_COLUMNS(X)                      \
	X(denial, at, at, TIME)                \
	X(denial, layer, layer, WORDS)         \
	X(denial, operation, operation, WORDS) \
	X(denial, path, path, BYTES)           \
	X(denial, count, count, COUNT)         \
	X(denial, target, target, TEXT)        \
	X(denial, error, errno, TEXT)          \
	X(denial, hint, hint, TEXT)
#define SAMPLE_COLUMNS(X)                            \
	X(sample, at_ms, at_ms, COUNT)               \
	X(sample, cpu_ms, cpu_ms, COUNT)             \
	X(sample, memory_bytes, memory_bytes, COUNT) \
	X(sample, pids, pids, COUNT)

struct column {
	enum column_kind kind;
	size_t offset, room;
};
struct columns {
	const struct column *list;
	size_t count;
	size_t size; /* of the struct */
};
/* Of TABLE_ATTEMPT, TABLE_OUTPUT, TABLE_REJECTED, TABLE_INPUT, TABLE_QUERY, TABLE_EVENT, TABLE_SAMPLE, TABLE_STEP and TABLE_DENIAL. */
extern const struct columns columns_of[TABLE_COUNT];

/* The record as values, which last as long as it does, and its texts do: JSON is newly allocated (NULL for a table that has
 * none). */
struct column_texts {
	char *list[ROW_MAX];
	size_t count;
	bool failed;
};
void column_texts_done(struct column_texts *texts);
int columns_write(enum sql_table table, const void *record, struct value *row, struct column_texts *texts);
/* The first n columns of a row into a record, whose strings and other parts are newly allocated and the caller's in any case. */
int columns_read(enum sql_table table, size_t n, const struct value *row, void *record, struct error *err);
/* Frees the strings of one of a list. */
void columns_done(enum sql_table table, void *record);

#endif
