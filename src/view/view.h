/*
 * What is shown of the ledger, the queue and the house: where it comes from, in which order, and how it looks as JSON.
 * The library gives this JSON, the command prints it with --json and the same structures for people.
 *
 * Calls that take a hood return 0 with *ret, a new reference, or negative with err; those named _json give a new
 * reference, NULL when memory is out. Nothing here changes anything but view_gc().
 */
#ifndef VIEW_VIEW_H
#define VIEW_VIEW_H

#include "hood.h"
#include "lineage.h"
#include "print.h"
#include "queue.h"

/* ---- view_list.c: `ls`, one row per analysis ---- */

struct view_filter {
	const char *state;  /* of an analysis or of the queue, or a verdict; NULL: all */
	const char *prefix; /* of the id; NULL: all */
	int limit;	    /* the newest of the ledger and of the queue, or the first in the order; 0: all */
	/* Of `ls` only. */
	const char *pattern;   /* of the whole id, prefix being its beginning; NULL: none */
	char beginning[129];   /* that prefix */
	int64_t since, until;  /* created at or after, and before; 0: whenever */
	unsigned verdicts;     /* 1 << VERDICT_…; 0: all, and what has none */
	const char *submitter; /* or owner; NULL: anybody */
	const char *
		before_id; /* only what the ledger has, from where another list ended: with until the time of its last row; NULL: all */
	const char *sort; /* "time" or NULL: the newest first; "id", "wall", "cpu", "memory" */
};
/* One of its words, as `ls` takes them: id (a beginning, or a pattern with * ? [ in it), state, since, until, verdict (several with
 * commas), submitter, sort, limit. value is kept. ERROR_USAGE: it makes no sense. */
int view_filter_set(struct view_filter *f, const char *name, const char *value, struct error *err);

struct view_row {
	const struct attempt *attempt; /* as far as it is known */
	const char *state;
	const char *verdict; /* NULL: none yet */
};

/* Negative: memory is out. It must not use the hood. */
typedef int (*view_row_fn)(void *arg, const struct view_row *row);
/* What is running comes first, from the state directory, then the queue; both replace the row of an earlier attempt. In another
 * order than by time they come together, and all that may be shown is held in memory: twice the limit at most. */
int view_list_each(struct hood *h, const struct view_filter *f, view_row_fn fn, void *arg, struct error *err);
int view_list(struct hood *h, const struct view_filter *f, json_t **ret, struct error *err);
json_t *view_row_json(const struct view_row *row);
/* by_pages: some rows at a time, for a pager; a reader who has seen enough is no error then. */
int view_list_table(FILE *to, const struct look *look, struct hood *h, const struct view_filter *f,
		    bool by_pages, struct error *err);
/* The words of its command with blanks between them, fit to be shown; NULL: they are not known, or memory is out. */
char *view_command(const struct attempt *a);

/* ---- view_queue.c: the queue ---- */

/* The newest first. */
int view_queue(struct hood *h, const struct view_filter *f, json_t **ret, struct error *err);
json_t *view_queued_json(const struct queued *q);

/* What the queue knows of one analysis; found false: it never was there. Zero-initialise. */
struct queue_view {
	bool found, cancelling;
	enum job_state state;
	int64_t submitted, due;
	char *worker, *reason;
	json_t *engine; /* handed over: what is known of it there; or NULL */
	bool has_pulse; /* it runs, and its worker has said what it uses */
	struct pulse pulse;
	struct job job;
};
int queue_view_load(struct queue_view *v, struct ledger *l, const char *id, struct error *err);
void queue_view_done(struct queue_view *v);
json_t *queue_view_json(const struct queue_view *v); /* of one that was found */

/* What an analysis runs in beside its worker's host, and as what: "job 123_4 on node1: PENDING, Priority"; "": nothing is known of that. Newly
 * allocated; NULL: memory is out. And what that is called, escaped in out: "slurm". */
char *view_engine(const json_t *engine);
void view_engine_line(FILE *to, const json_t *engine); /* for a page */
const char *view_engine_name(const json_t *engine, char out[32]);
/* What a row of the queue says of it; NULL: nothing. */
json_t *view_engine_of(const struct queued *q);

/* ---- view_workers.c: who runs what is queued ---- */

int view_workers(struct hood *h, json_t **ret, struct error *err);
int view_workers_table(FILE *to, const struct look *look, struct hood *h, struct error *err);

struct workers_view {
	unsigned known; /* have ever been heard of, as far as that is remembered */
	unsigned alive;
	unsigned takes;	   /* alive, and taking more */
	int64_t silent_ns; /* of who was heard of last */
	char host[256];
};
int workers_view_load(struct workers_view *v, struct ledger *l, struct error *err);
/* One line without its end; "": somebody takes what is queued. Newly allocated; NULL: memory is out. */
char *workers_view_warning(const struct workers_view *v, const struct hood *h);

/* ---- view_top.c: what runs now, here and elsewhere, and the queue ---- */

struct top_row {
	char id[ID_ROOM], host[256];
	int attempt;
	size_t step;	 /* 0: none */
	int64_t created; /* UTC ns; 0: not known */
	bool is_here, is_queued;
	bool has_pulse;
	struct pulse pulse;
	json_t *engine; /* handed over: what is known of it there; or NULL */
};
struct top_view {
	int64_t at;
	char host[65];
	struct top_row *rows;
	size_t n_rows, n_here;
	uint64_t counts[JOB_STATES]; /* up to some number */
	struct recent recent;
	unsigned workers_alive;
};
/* To be done in any case. */
int top_view_load(struct top_view *v, struct hood *h, struct error *err);
void top_view_done(struct top_view *v);
json_t *top_view_json(const struct top_view *v);
int top_view_table(FILE *to, const struct look *look, const struct top_view *v, struct error *err);
int view_top(struct hood *h, json_t **ret, struct error *err);

/* ---- view_show.c: `show`, all that is known of one analysis ---- */

struct subject {
	struct attempt attempt; /* the ledger's, or what is known of one that has none there */
	json_t *attempts;
	bool in_ledger;
	struct live live;
	bool is_live;	     /* a run is going on, or a workspace is held */
	struct attempt held; /* what has run in it so far */
	struct queue_view queue;
};
void subject_init(struct subject *s);
void subject_done(struct subject *s);
/* attempt 0: the latest, or a first one that is queued or going on. */
int subject_load(struct subject *s, struct hood *h, const char *id, int attempt, struct error *err);
/* Only what it has beside the attempt, for attempt_write_public. */
json_t *subject_own_json(const struct subject *s);
/* Of an array its summary. */
int view_show(struct hood *h, const char *id, int attempt, json_t **ret, struct error *err);

/* ---- view_compare.c: two beside each other ---- */

/* One attempt; 0: the latest. */
struct view_side {
	const char *id;
	int attempt;
};
/* {"a": …, "b": …, "options": [{"name", "a", "b"}], "limits": the same, "inputs": [{"path", "state": "same" | "differs" | "only_a" | "only_b",
 * "a", "b"}], "outputs": the same}: of options and limits only what differs. */
int view_compare(struct hood *h, const struct view_side *a, const struct view_side *b, json_t **ret,
		 struct error *err);

/* ---- view_timeline.c, view_numbers.c: many at once ---- */

/* Of a filter only since and until (0: now). {"since", "until", "analyses": [{"id", "attempt", "state", "verdict", "host", "owner", "submitter",
 * "submitted", "started", "ended"}], "more": there are older ones}: what goes on, and the newest of what has ended. */
int view_timeline(struct hood *h, const struct view_filter *f, json_t **ret, struct error *err);
/* Likewise. {"since", "until", "days": [{"day", "verdicts": {"succeeded": 3, …}}], "commands": […], "commands_of_newest": of how many at most,
 * "failures": […], "failures_of_newest"}. */
int view_numbers(struct hood *h, const struct view_filter *f, json_t **ret, struct error *err);

/* ---- view_array.c: `show` of an array, its tasks summed up ---- */

enum { ARRAY_FAILURES = 10 };
enum { TASK_ID_ROOM = ID_ROOM + 32 };
struct array_failure {
	char id[TASK_ID_ROOM];
	enum verdict verdict;
	int status;
	char *reason; /* NULL: none */
};
/* Zero-initialise. */
struct array_view {
	size_t tasks, states[JOB_STATES];
	size_t verdicts[VERDICT_COUNT];		       /* of those that have ended */
	size_t wrong;				       /* ended without success */
	struct array_failure failures[ARRAY_FAILURES]; /* the first of these, in the order of their numbers */
	size_t n_failures;
};
/* 1: there is no array of that name. */
int array_view_load(struct array_view *v, struct hood *h, const char *name, struct error *err);
void array_view_done(struct array_view *v);
json_t *array_view_json(const struct array_view *v, const char *name);

/* ---- view_lineage.c: `show --lineage`, what came from what ---- */

struct lineage_point {
	struct lineage_node node;
	size_t depth;	/* from the first */
	size_t more[2]; /* links up and down that were not followed: there are too many */
	bool is_drawn;
};
struct lineage_edge {
	size_t from, to; /* of the nodes */
	int64_t files;	 /* -1: not known any more */
};
/* Zero-initialise. */
struct lineage_view {
	struct lineage_point *nodes; /* the first is what was asked for */
	size_t n_nodes;
	struct lineage_edge *edges;
	size_t n_edges;
	size_t omitted;	     /* all that was not followed */
	struct lookup names; /* private */
};
struct lineage_bounds {
	size_t depth, width, nodes;
};
extern const struct lineage_bounds lineage_page, lineage_whole; /* for people, for programs */
/* attempt 0: the latest success, which is what others get, else the latest. */
int lineage_view_load(struct lineage_view *v, struct hood *h, const char *id, int attempt,
		      const struct lineage_bounds *bounds, struct error *err);
void lineage_view_done(struct lineage_view *v);
json_t *lineage_view_json(const struct lineage_view *v);
/* One of lineage_page. */
void lineage_view_draw(FILE *to, const struct look *look, struct lineage_view *v);
int view_lineage(struct hood *h, const char *id, int attempt, json_t **ret, struct error *err);

/* ---- view.c: parts of an attempt ---- */

/* An attempt from the ledger, which stays the hood's. */
int view_load(struct hood *h, const char *id, int attempt, struct ledger **ret_ledger, struct attempt *ret,
	      struct error *err);
int view_outputs(struct hood *h, const char *id, int attempt, json_t **ret, struct error *err);
json_t *view_outputs_json(const struct attempt *a);
int view_outputs_table(FILE *to, const struct manifest *m, struct error *err);
int view_logs(struct hood *h, const char *id, int attempt, json_t **ret, struct error *err);
/* Only the streams that are wanted, and of each the last lines; 0: all. */
int view_logs_load(struct ledger *l, const struct attempt *a, const bool wanted[STREAM_POST + 1], int lines,
		   json_t **ret, struct error *err);

/* ---- view_log.c: the bytes of logs, from the ledger or as they come ---- */

struct log_reader {
	bool wanted[STREAM_POST + 1];
	off_t seen[STREAM_POST + 1]; /* bytes of each that were given */
	int lines;		     /* only the last so many of each; 0: all */
	int (*put)(void *arg, int stream, const char *data, size_t size, struct error *err);
	int (*omitted)(void *arg, uint64_t bytes, struct error *err); /* so many were not kept; or NULL */
	void *arg;
	int step; /* only this one's; 0: all */
};
/* What the ledger kept, and what the supervisor has written so far: both from the byte on that was not seen yet. */
int log_read_kept(struct log_reader *r, struct ledger *l, const struct attempt *a, struct error *err);
/* The steps of a held workspace, from hood_steps(). */
int log_read_held(struct log_reader *r, const struct attempt *a, struct error *err);
int log_read_live(struct log_reader *r, const struct live *l, struct error *err);
/* What the lines before the last ones are counts as seen, of one whose files there are. */
int log_skip_live(struct log_reader *r, const struct live *l, struct error *err);
/* As it is written, until the run has ended; 1: stop_fd (-1: none) is readable. */
int log_follow(struct log_reader *r, struct hood *h, const struct live *l, int stop_fd, struct error *err);

/* ---- view_page.c, view_attempt.c, view_plan.c: pages for people, written as they are made ---- */

/* `show`; that of an attempt alone; `run --dry-run`. */
int view_page(FILE *to, const struct look *look, const struct subject *s, struct error *err);
int view_attempt(FILE *to, const struct look *look, const struct attempt *a, const json_t *attempts,
		 struct error *err);
/* The steps of an attempt in a held workspace; nothing if it has none. */
int view_steps(FILE *to, const struct look *look, const struct attempt *a, struct error *err);
int view_plan(FILE *to, const struct look *look, const struct plan *p, struct error *err);
/* view.c: one value, lines ended. NULL: memory is out. */
int view_json(FILE *to, const struct look *look, const json_t *json, struct error *err);

/* ---- view_line.c, view_trace.c: an attempt in a line. Newly allocated, lines ended; NULL: memory is out ---- */

enum style view_verdict_style(enum verdict v);
/* What is not as it was asked for: a limit that is not held, a log that is not whole. "" if there is nothing. */
char *view_warnings(const struct attempt *a, bool colour);
/* The last line of a run, and its warnings before it; quiet: only what went wrong. */
char *view_line(const struct attempt *a, bool colour, bool quiet);
/* The same without the first warnings, which were told before it started. */
char *view_line_after(const struct attempt *a, size_t told, bool colour, bool quiet);
/* One of them, as a line. */
char *view_warning(const char *text, bool colour);
/* As workflow engines write it: Nextflow's columns, and a line below them. */
char *view_trace(const struct attempt *a);

/* ---- view_denial.c: what was denied ---- */

/* One of them, without a line's end; newly allocated, NULL: memory is out. */
char *view_denial(const struct denial *d);
/* A line for each, the first of them; nothing if there are none. */
void view_denials(struct buffer *b, const struct attempt *a, bool colour);
/* Was it run with --explain? */
bool view_was_explained(const struct attempt *a);

/* ---- view_agent.c: the same for a prompt ---- */

/* Ten lines at most, by what the attempt has of its logs; newly allocated, NULL: memory is out. */
char *view_agent(const struct attempt *a);
/* Of one in the ledger. */
int view_explain(struct hood *h, const char *id, int attempt, char **ret, struct error *err);
/* view_line.c: it failed by itself, and was not run with --explain. */
bool view_would_explaining_help(const struct attempt *a);

/* ---- view.c: the house ---- */

/* What `gc` has done, in the order in which it is told. */
enum { GC_ROWS = 9 };
struct gc_row {
	const char *key; /* in JSON */
	uint64_t n;
	const char *what;
};
void view_gc_rows(const struct gc_report *g, struct gc_row rows[GC_ROWS]);
/* `gc`: 1 if something failed, which is in it. */
int view_gc(struct hood *h, json_t **ret, struct error *err);
/* `rm`, `prune`: words NULL: by age. Its order is o, but for what hood_remove() fills in. */
int view_remove(struct hood *h, char *const *words, const struct remove_order *o, json_t **ret,
		struct error *err);
/* How old, as `prune --older` takes it, and of which verdicts (NULL: all). ERROR_USAGE. */
int view_remove_age(struct remove_order *o, const char *older, const char *verdicts, struct error *err);
json_t *view_removed_json(const struct remove_order *o, const struct remove_report *r);
/* The same for people; lines ended. NULL: memory is out. */
char *view_removed(const struct remove_order *o, const struct remove_report *r);
/* `doctor`: 1 if something that is required is missing. */
int view_doctor(struct hood *h, json_t **ret, struct error *err);
/* The same for people; quiet: only what is not there. */
int view_doctor_page(FILE *to, const struct look *look, bool quiet, struct hood *h, struct error *err);

#endif
