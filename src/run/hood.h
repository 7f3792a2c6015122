/*
 * The story: request → plan → workspace → sandbox → supervise → collect → commit → clean up. story.c tells it from
 * top to bottom; this header is all that the command and the library need of it.
 *
 * hood_open once (configuration, state directory, ledger's URL), then any of the calls, then hood_close. Nothing here
 * prints, exits, handles signals or keeps globals.
 */
#ifndef RUN_HOOD_H
#define RUN_HOOD_H

#include <stdbool.h>

#include "attempt.h"
#include "config.h"
#include "job.h"
#include "ledger.h"
#include "plan.h"
#include "process.h"
#include "remove.h"
#include "request.h"

struct hood;

/* Who removes a large workspace when a run is over (remover.h): its caller, who waits, or somebody beside him. */
enum remover_kind { REMOVER_NONE, REMOVER_CHILD, REMOVER_THREAD };

struct hood_options {
	enum remover_kind remover;
	bool hand; /* what can wait for nobody is done by a second one (base/hand.h): for who runs a single analysis */
	bool only_reads;	 /* the ledger is opened without any right to write, whoever asks for it */
	const char *config_file; /* --config, or NULL */
	const char *ledger; /* --db, or NULL: FUMEHOOD_DB, configuration, $XDG_DATA_HOME/fumehood/ledger.db */
	struct lending *
		lending; /* of the same ledger: its connection is one that many share (lending.h); NULL: its own */
};

int hood_open(const struct hood_options *options, struct hood **ret, struct error *err);
struct hood *hood_close(struct hood *h);
DEFINE_CLEANUP(struct hood *, hood_close);
#define _cleanup_hood_ _cleanup_(hood_closep)

/* For who runs one analysis after the other: what can be made ahead is (sandbox/stock.h), for all the hoods that are told to use it,
 * and which are closed before it. NULL: as after hood_open, nothing is. */
struct stock;
int hood_stock_open(struct stock **ret, struct error *err);
struct stock *hood_stock_close(struct stock *k);
void hood_use_stock(struct hood *h, struct stock *k);

const struct config *hood_config(const struct hood *h);
const char *hood_ledger_url(const struct hood *h);
const char *hood_state_dir(const struct hood *h); /* it may not be there yet */
/* Opens (first use: makes) the ledger and keeps it open with the hood. flags as ledger_open. */
int hood_ledger(struct hood *h, unsigned flags, struct ledger **ret, struct error *err);
/* Nobody needs it for a while: the next use opens it again. */
void hood_ledger_close(struct hood *h);
/* Of one that only reads, for long, between two uses: if its file was replaced by another, the next use opens that. */
void hood_ledger_renew(struct hood *h);

/* What `gc` and `commit` do, and what is done with the ledger, is counted by w from now on (work.h); NULL: by nobody. A run
 * tells its hooks. */
void hood_watch(struct hood *h, struct work *w);

/* What the caller wants to see while it runs. All optional. */
struct progress {
	int64_t elapsed_ms;
	int64_t cpu_ms, memory_bytes, pids; /* -1: not known */
	int64_t disk_files;		    /* in the workspace; -1 */
	uint64_t bytes, bytes_total;	    /* of what is being copied; total 0: nothing is */
	const char *stage; /* "workspace", "staging", "running", "collecting", "committing", "cleaning up" */
};

/* On cancel_fd: a worker gives the analysis back to the queue; hood_run ends with ERROR_LEASE, nothing recorded. */
enum { CANCEL_HAND_BACK = 0xff };

/* Who looks at an analysis's own terminal: he gets all of it, whatever log_max is. Descriptors, -1: none. */
struct run_terminal {
	int like_fd;   /* a terminal whose size and keys it has */
	int window_fd; /* a byte: that size has changed */
	int room_fd;   /* readable as long as `output` has room: what comes else waits */
};

/* The batch system that this worker is a job of: it can end an analysis, or limit it, and tells why if it is asked. */
enum manager_said {
	MANAGER_SAYS_NOTHING,
	MANAGER_TIMED_OUT,     /* its time is over: with the command, not with us */
	MANAGER_CANCELLED,     /* somebody has cancelled it there */
	MANAGER_OUT_OF_MEMORY, /* it has a limit of its own, below ours */
	MANAGER_TAKES_BACK,    /* nobody's fault: the analysis is handed back */
};
enum { MANAGER_REASON_SIZE = 256 };
struct manager_question {
	const struct evidence *evidence;
	const struct usage *usage;
	uint64_t memory_limit;	  /* ours; LIMIT_NONE: none */
	uint64_t memory_around;	  /* the tightest of what we are in ourselves; likewise */
	int64_t oom_kills_around; /* in our own place there; -1: not known */
};
struct run_manager {
	void *arg;
	/* Once nothing of it is alive, in the thread of the run: it may take seconds. engine: what is known of it there, to be changed. reason:
	 * one line for people, unless it says nothing. */
	enum manager_said (*ask)(void *arg, const struct manager_question *q, json_t *engine,
				 char reason[MANAGER_REASON_SIZE]);
};

struct run_hooks {
	void *arg;
	void (*output)(void *arg, int stream, const char *data, size_t size);
	void (*progress)(void *arg, const struct progress *p);
	/* Before it starts: what is also in the receipt's warnings, and before all others there. */
	void (*warned)(void *arg, const char *text);
	/* The command is executed from now on, or could not be: why. */
	void (*started)(void *arg, int exec_errno);
	/* Nothing of it is alive any more. */
	void (*ended)(void *arg);
	int progress_interval_ms; /* 0: none */
	int cancel_fd; /* readable: a byte with the signal's number, or CANCEL_HAND_BACK; -1: none */
	int stdin_fd;  /* for request.stdin_open; -1 otherwise */
	bool merge;    /* its stderr goes where its stdout goes */
	const struct run_terminal *terminal; /* for request.terminal; NULL: nobody looks at it */
	const struct job
		*job; /* claimed from the queue: its number, token and inputs are used; NULL otherwise */
	const struct run_manager *manager; /* or NULL */
};

/* Can this host raise the walls that the site asks for? Refused, in the words of a run that could not: for who is about to claim. */
int hood_check_walls(const struct hood *h, struct error *err);

/* Resolves every default against configuration and host; touches nothing. For --dry-run. */
int hood_plan(struct hood *h, const struct request *r, struct plan *ret, struct error *err);

/* The whole story. Returns 0 with ret filled when the command has ended: committed (ret->committed), or pending
 * (ret->pending; ret->error_* says why, the verdict is VERDICT_NONE if it is not known yet; gc finishes it later), or
 * neither, since it is somebody else's now (error_code) or, worst of all, even that could not be written down. Negative: refused or our failure, err says why; ret has id and
 * verdict VERDICT_REFUSED then, nothing is left behind and nothing was recorded. */
int hood_run(struct hood *h, const struct request *r, const struct run_hooks *hooks, struct attempt *ret,
	     struct error *err);

/* The same in two steps, for a caller that has something to say before the commit. hood_story() tells it up to the
 * verdict: nothing of the analysis is alive, its outputs are in ret->manifest and its verdict is on disk. Then any of
 * the calls, then hood_story_end(), which commits and cleans up (ret is filled further: committed, error_*), or
 * hood_story_drop(), which leaves nothing behind. 0 with *ret_story NULL: it is pending, as above. request, hooks and ret must live until then. */
struct story;
int hood_story(struct hood *h, const struct request *r, const struct run_hooks *hooks, struct attempt *ret,
	       struct story **ret_story, struct error *err);
int hood_story_result(struct story *s, json_t *result, struct error *err); /* any JSON; borrowed */
/* Rows for the site's tables, as a post-process prints them: whole lines {"table": …, "row": {…}}. Checked here;
 * refused where the analysis did not succeed, or a post-process has made rows. */
int hood_story_rows(struct story *s, const char *lines, size_t size, struct error *err);
/* A collected output for reading: a descriptor. */
int hood_story_open(struct story *s, const struct output *o, struct error *err);
void hood_story_end(struct story *s);
void hood_story_drop(struct story *s);

/* `shell ID`: one command in a kept workspace, under the hood that its analysis had: the same environment, inputs and limits, but
 * that a shell (command NULL) is as long as its user likes. What it changes there stays; nothing is recorded, and the workspace is
 * kept for as long as before. ret is told like an attempt, never committed. ERROR_NOT_FOUND: none is kept. */
struct shell_order {
	int attempt;	      /* 0: the latest that is kept */
	char *const *command; /* NULL: a shell */
	bool terminal;
};
int hood_shell(struct hood *h, const char *id, const struct shell_order *o, const struct run_hooks *hooks,
	       struct attempt *ret, struct error *err);

/* For submit: the request as a worker can run it without its submitter: defaults that are the submitter's resolved,
 * paths absolute, values of environment variables filled in; what it would stage is in ret->inputs (path, source, size,
 * mode; no digests yet), what it needs in memory and cpus too. Limits and the program are the worker's to resolve. */
int hood_job(struct hood *h, const struct request *r, struct job *ret, struct error *err);

/* workspace create / cleanup. limits: of disk and files, for each step in it; NULL: as they are. */
int hood_workspace_create(struct hood *h, const char *id, const struct process_id *owner, int64_t until,
			  const struct limits *limits, char **ret_path, struct error *err);
/* What ran in it is committed first, unless it is to be discarded. */
int hood_workspace_cleanup(struct hood *h, const char *id, bool discard, struct error *err);

/* What has run in a held workspace so far, as one attempt with the logs of its steps. 1, 0: nothing. Only looks. */
int hood_steps(struct hood *h, const char *id, struct attempt *ret, struct error *err);

/* A run that is going on here, by this state directory, and is no worker's: a step too. tell: 1, it is told to end as by SIGTERM,
 * twice: at once; 0: there is none. wait: until all of it is cleaned up, 0 with its verdict, VERDICT_NONE if there is none; 1: stop_fd
 * (-1: none) is readable. done in any case. */
struct run_stop {
	int fd;
	char id[ID_ROOM];
	char token[TOKEN_SIZE];
	int attempt;
	size_t step; /* 0: it is none */
};
int run_stop_tell(struct hood *h, const char *id, struct run_stop *ret, struct error *err);
int run_stop_wait(struct hood *h, const struct run_stop *s, int stop_fd, enum verdict *ret,
		  struct error *err);
void run_stop_done(struct run_stop *s);

/* `cancel`: ledger_cancel(); of one that is pending on this host the result is thrown away: recorded as cancelled, its
 * workspace removed. Pending elsewhere: its worker, or gc there, does that. What runs here and is no worker's is told to end: *ret_stop
 * (NULL: nobody waits for it) then has a descriptor, else -1. *ret_was: the state before, a constant. */
int hood_cancel(struct hood *h, const char *id, const char **ret_was, struct run_stop *ret_stop,
		struct error *err);

/* `commit ID`: collects from a held workspace (globs as for run, NULL: what its steps have declared, else everything) and
 * commits it as what its steps came to, or, if none has run in it, as an attempt that succeeded, with an optional result, and with rows for the site's tables that a function makes which has seen what was
 * collected: one transaction. The workspace stays held. The same content again is a new attempt only with again. */
struct commit_order {
	char *const *outputs;
	json_t *result;
	enum verdict verdict; /* instead of the steps' own; VERDICT_NONE: that */
	bool again;
	void *arg;
	/* NULL, or: gives lines {"table": …, "row": {…}}, allocated; negative: nothing is committed. fd: the workspace. */
	int (*rows)(void *arg, const struct attempt *a, int fd, char **ret_lines, size_t *ret_size,
		    struct error *err);
};
int hood_commit(struct hood *h, const char *id, const struct commit_order *o, struct attempt *ret,
		struct error *err);

/* `post-process ID`: once more, from the ledger's outputs (command NULL: as before, else the site's). 0 with ret's verdict
 * succeeded or post_process_failed; *ret_posted false: its rows were there already. */
int hood_post_process(struct hood *h, const char *id, int number, const char *command, int cancel_fd,
		      struct attempt *ret, bool *ret_posted, struct error *err);

struct gc_report {
	unsigned committed; /* ended, pending ones that are finished now */
	unsigned lost;	    /* recorded as lost */
	unsigned given_up;  /* pending ones that somebody has cancelled: recorded as that */
	unsigned removed;   /* workspaces removed: lost, held by the dead, kept and expired */
	unsigned alive;	    /* left alone */
	unsigned foreign;
	unsigned failed;  /* err has the first reason */
	uint64_t objects; /* removed from the object store */
	uint64_t pruned;  /* attempts that `retain` has no longer wanted */
};
/* What the configuration's `retain` says is removed from the ledger: adds to ret->pruned. Where whoever is connected may not, nothing. */
int hood_retain(struct hood *h, bool dry_run, struct gc_report *ret, struct error *err);
int hood_gc(struct hood *h, struct gc_report *ret, struct error *err);
/* The same without looking at the object store: what a worker begins with. */
int hood_recover(struct hood *h, struct gc_report *ret, struct error *err);

/* `rm`, `prune`. words: ids, names of arrays, patterns; NULL: what is older. What nobody refers to any more is swept then; if that
 * could not be done now, the next gc does. o's ids, arg and is_busy are found out here. */
int hood_remove(struct hood *h, char *const *words, const struct remove_order *o, struct remove_report *ret,
		struct error *err);

/* What a run has used so far, by its supervisor's last look: at most a second old while the command runs. -1: not known. */
struct pulse {
	char stage
		[24]; /* "staging", "running", "collecting", "post-processing", "committing", "cleaning up" */
	int64_t at;   /* UTC ns; 0 or less: not known */
	int64_t elapsed_ms, cpu_ms;
	int64_t cpu_permille; /* of one CPU, lately */
	int64_t memory_bytes, memory_peak_bytes, pids;
	int64_t wall_limit_ms, memory_limit_bytes; /* -1: none */
};
json_t *pulse_to_json(const struct pulse *p);
int pulse_from_json(struct pulse *ret, const json_t *json); /* -EINVAL: it is none */
/* Of one that runs here; negative: there is none. */
int hood_pulse(struct hood *h, const char *id, struct pulse *ret);

/* A run that is going on, for `ls`, `show` and `logs -f`: from its record. 0, or ERROR_NOT_FOUND. */
struct live {
	char id[ID_ROOM];
	int attempt;
	int64_t created;
	bool alive;   /* its supervisor holds the lock */
	bool held;    /* a held or kept workspace, not a run */
	bool kept;    /* only kept: its attempt is over */
	bool pending; /* its command has ended, and we could not finish it: gc does, or its worker */
	char *why;    /* pending: the reason, if it is known */
	bool queued;  /* a worker's */
	bool whose;   /* its record says whose it is: an older version's does not */
	char *ledger; /* what its result is for, without a password; NULL: not known yet */
	char *path;
	char token[TOKEN_SIZE];
	size_t step; /* alive, in a held workspace: which; else 0 */
	struct process_id supervisor;
	bool has_pulse;
	struct pulse pulse;	  /* alive */
	int log_fd[STREAM_COUNT]; /* -1: none */
};
void live_done(struct live *l);
const char *live_state(const struct live *l); /* "running", "pending", "dead", "held" */
int hood_live(struct hood *h, const char *id, struct live *ret, struct error *err);
int hood_live_each(struct hood *h, int (*fn)(void *arg, const struct live *l), void *arg, struct error *err);

/* What this host can enforce, each item tried, not guessed. */
struct doctor_item {
	const char *name;
	bool ok;
	bool required;
	char detail[256]; /* what was found */
	char remedy[512]; /* what to do, "" if nothing */
};
typedef void (*doctor_fn)(void *arg, const struct doctor_item *item);
/* 0 if every required item is ok, 1 if not, negative on our failure. */
int hood_doctor(struct hood *h, doctor_fn fn, void *arg, struct error *err);

/* `doctor --apparmor`: a profile that lets this very program use user namespaces, for the path at which it lies. Allocated. */
int hood_apparmor(char **ret_profile, struct error *err);

/* `doctor --delegate USER`, as root: a part of the cgroup tree for that user. *ret_done: what is so now; allocated. */
int hood_delegate(const char *user, char **ret_done, struct error *err);

#endif
