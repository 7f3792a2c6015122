/*
 * One attempt, whole: what is written to disk when its verdict is known, what is committed in one transaction,
 * what `show` and --json print. attempt_to_json and attempt_from_json are inverse (tests hold them so).
 *
 * Out of memory is sticky in its events, its conclusion and its receipt: who adds to them need not look. attempt_check() asks; it becomes no
 * JSON and is not committed unless it is whole.
 */
#ifndef MODEL_ATTEMPT_H
#define MODEL_ATTEMPT_H

#include <jansson.h>

#include "clock.h"
#include "denial.h"
#include "id.h"
#include "manifest.h"
#include "receipt.h"
#include "usage.h"
#include "verdict.h"

enum {
	STREAM_STDOUT,
	STREAM_STDERR,
	STREAM_COUNT,
	STREAM_POST = STREAM_COUNT /* what the post-process said */
};
const char *stream_name(int stream); /* "stdout", "stderr", "post_process" */

/* A captured stream: the first bytes and the last, `omitted` of them in between only counted. */
struct captured {
	char *head;
	size_t head_size;
	char *tail;
	size_t tail_size;
	uint64_t omitted;
};
void captured_done(struct captured *c);
/* Where the last lines begin: *lines is how many line breaks may lie behind it, and is counted down. Not found: there are fewer. */
size_t lines_from_end(const char *data, size_t size, int *lines, bool *ret_found);
/* Only the last so many lines of it, what comes before them being dropped as if it had never been. */
void captured_keep_lines(struct captured *c, int lines);
/* {"head", "tail", "omitted_bytes"}, at most max bytes of each: if nothing was omitted, one follows the other. */
json_t *captured_to_json(const struct captured *c, size_t max);
/* What came after it at its end. Where both are cut, what lies between the two cuts is only counted. */
int captured_join(struct captured *c, const struct captured *more, struct error *err);

struct event {
	int64_t at; /* UTC ns */
	char *stage;
	char *text;
};

/* A query of the knowledge base, run before the start: its answer was staged as a file. */
struct query {
	char *name; /* of the file in the workspace */
	char *sql;
	uint8_t sha256[DIGEST_SIZE]; /* of the file */
	uint64_t size;
	uint64_t rows;
	int64_t started; /* UTC ns */
	int64_t duration_ms;
};

/* One of several commands that ran one after the other in a held workspace. What came out is the attempt's. */
struct step {
	enum verdict verdict;
	int exit_code, signal, status; /* as for an attempt */
	int64_t started, ended;
	char *reason;
	json_t *request, *plan;
	struct usage usage;
	struct receipt receipt;
	struct captured logs[STREAM_COUNT];
};
void step_done(struct step *s);

struct attempt {
	char id[ID_ROOM];
	int number;
	char *owner; /* whose it is, as the ledger says; NULL: not from there */
	char token[TOKEN_SIZE];
	enum verdict verdict;
	int exit_code;			 /* -1: null */
	int signal;			 /* 0: null */
	int status;			 /* exit status of `run` */
	int64_t created, started, ended; /* UTC ns, 0: null */
	int64_t pruned;			 /* when all but its outputs was removed, or 0 */
	char *workspace;		 /* the path, kept or not */
	bool kept;
	char *host;
	char *reason; /* one line of evidence for people: "used 2.0 GiB of 2 GiB; python3 was killed" */
	json_t *request, *plan;
	json_t *result; /* `commit --result`: any JSON, or NULL */
	json_t *engine; /* what it ran in beside its worker's host: {"engine": "slurm", "job", "node", …}, or NULL */
	struct usage usage;
	struct timeline *timeline; /* or NULL */
	struct receipt receipt;
	struct denials denials;
	struct manifest manifest;
	struct inputs inputs;
	struct query *queries;
	size_t n_queries;
	struct captured logs[STREAM_COUNT];
	struct captured post_log;
	/* In a held workspace: what the rest is the sum of, in order; `logs` is empty then. */
	struct step *steps;
	size_t n_steps;
	int64_t rows; /* that its post-process printed; -1: there was none, or it failed */
	struct event *events;
	size_t n_events;
	bool failed; /* an event or the conclusion is missing */
	/* Where it went wrong on our side, if it did. */
	char *error_stage, *error_code, *error_message;
	int step;      /* in a held workspace: which it is, to be committed with the others; else 0 */
	bool queued;   /* it has a lease: its commit is refused once that is somebody else's */
	bool is_bound; /* queued by somebody else, with whose rights it ran. Not stored */
	bool committed;
	/* The command has ended, and we could not finish the story: it waits on disk for gc or its worker. error_* says
	 * why. Not stored: it is so until it is not. */
	bool pending;
};

void attempt_init(struct attempt *a);
void attempt_done(struct attempt *a);
#define _cleanup_attempt_ _cleanup_(attempt_done)

/* Which one it is. The request is shared. */
void attempt_identify(struct attempt *a, const char *id, const char *token, int number, json_t *request);
/* A verdict that does not come from evidence (lost, given up, rows that were refused): with the exit status that it has, and the
 * reason in the place of any before. Out of memory: neither has changed. */
void attempt_conclude(struct attempt *a, enum verdict verdict, const char *format, ...) PRINTF_LIKE(3, 4);
void attempt_event(struct attempt *a, const char *stage, const char *format, ...) PRINTF_LIKE(3, 4);
int attempt_check(const struct attempt *a, struct error *err);
/* Goes on without what is missing. */
void attempt_forgive(struct attempt *a);
/* One that has happened already. */
void attempt_event_at(struct attempt *a, int64_t at, const char *stage, const char *text);
/* The exit status of who ran it: its own only when what it came to is safe. */
int attempt_status(const struct attempt *a);
/* A new one at the end, zeroed but for copies of these; NULL if memory is out. */
struct query *attempt_add_query(struct attempt *a, const char *name, const char *sql);
/* One step more: a becomes of what the steps before have come to and this one, whose own is taken out of it. */
int attempt_add_step(struct attempt *a, struct attempt *step, struct error *err);
/* What its steps wrote, one after the other, becomes what it wrote. In the ledger they stay apart. */
int attempt_join_logs(struct attempt *a, struct error *err);
/* Its log in the ledger: "stdout.2" is the second step's. 0: of an attempt without steps. */
enum { STREAM_TEXT_SIZE = 32 };
const char *stream_step_name(int stream, size_t step, char out[STREAM_TEXT_SIZE]);
int attempt_set_error(struct attempt *a, const struct error *err);
/* It came to no verdict, and this is why. -ENOMEM. */
int attempt_refuse(struct attempt *a, const struct error *why);

/* Everything but the logs' bytes (they lie beside the record on disk): of them it has the sizes, which
 * attempt_from_json restores with head and tail still NULL, for the caller to load. */
json_t *attempt_to_json(const struct attempt *a);
int attempt_from_json(struct attempt *a, const json_t *json, struct error *err);

/* What --json tells of each step: an array. */
json_t *attempt_steps_to_json(const struct attempt *a);
/* The object that --json promises (INTERFACE.md). full adds what `show --json` adds except attempts. */
json_t *attempt_to_public_json(const struct attempt *a, bool full);

/* Both with empty lists of outputs, refused ones (stored) and inputs: for attempt_stream.h, which writes those itself. */
json_t *attempt_head_to_json(const struct attempt *a);
json_t *attempt_head_to_public_json(const struct attempt *a, bool full);

#endif
