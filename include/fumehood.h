/*
 * libfumehood: analyses that nobody trusts, run under the hood, from a program of yours.
 *
 *     fh_hood *hood = NULL;
 *     fh_request *request = fh_request_new();
 *     fh_result *result = NULL;
 *     fh_error err;
 *     const char *command[] = {"python3", "analysis.py", NULL};
 *
 *     fh_open(NULL, NULL, &hood, &err);
 *     fh_request_set(request, "id", "a42", &err);
 *     fh_request_set(request, "memory", "2G", &err);
 *     fh_request_command(request, command, &err);
 *     if (fh_perform(hood, request, &result, &err) < 0)
 *             fprintf(stderr, "%s: %s\n", err.stage, err.message);
 *     else
 *             printf("%s\n", fh_verdict_name(fh_result_verdict(result)));
 *     fh_result_free(result);
 *     fh_request_free(request);
 *     fh_close(hood);
 *
 * Each call above returns 0 or a negative number, and is to be checked: examples/c-library/ does, and is complete.
 *
 * What holds for every call
 *
 *   Return values   0 (or more, where it says so) is success. A failure is a negative number, -FH_USAGE … -FH_SYSTEM,
 *                   and *err says what was being done, to what, why it failed, and what to do. err may be NULL. Out
 *                   parameters are written on success only.
 *   Failures        What an analysis does wrong is a verdict, never a failure of a call.
 *   Ownership       Texts that come back as char ** are yours: fh_free(). What comes back as const char * belongs to the
 *                   handle that it was asked of, and lives as long. Every *_free and fh_close takes NULL.
 *   Text            NUL-terminated. JSON is UTF-8. Paths are bytes.
 *   Threads         A hood may be used by any number of threads at once. A request is for one thread at a time. A run
 *                   may be read, waited for and cancelled by several threads; one of them frees it, last. A result does
 *                   not change, and may be read by all.
 *   Signals         None is handled, SIGPIPE is never raised, and threads of the library have all of them blocked. SIGCHLD
 *                   may be ignored, and waitpid(-1) called as you like: nothing of the library depends on it. You may see
 *                   a child of ours end.
 *   Forks           A child that you fork shares nothing with the hood: a call in it is refused (-FH_REFUSED), freeing
 *                   there does nothing, and its end changes nothing. It may open another hood on PostgreSQL; with an
 *                   SQLite ledger it must exec first, since SQLite's locks do not survive a fork.
 *   Descriptors     All are close-on-exec. What you give stays yours; what you get, you close.
 *   Your end        If your process dies, in whatever way, its analyses are dead at once. What they leave is removed by
 *                   the next call with the same id, or by fh_gc().
 *   Working         A relative path starts at the current directory of the process at the time of the call, unless the
 *   directory       request has a "directory". The environment is read as getenv() does: do not change it meanwhile.
 */
#ifndef FUMEHOOD_H
#define FUMEHOOD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FH_VERSION "0.1.0"

/* The library's own version, which may be newer than the header that you compiled with. A constant. */
const char *fh_version(void);

/* Frees a text that came from the library. NULL is fine. */
void fh_free(void *text);

/* ---- Errors ------------------------------------------------------------------------------------------------------ */

enum fh_code {
	FH_OK = 0,
	FH_USAGE = 1,	  /* your words make no sense */
	FH_REFUSED = 2,	  /* understood, and not allowed or not possible on this host */
	FH_BUSY = 3,	  /* somebody else has it now, or it is still running */
	FH_NOT_FOUND = 4, /* no such analysis, attempt, output */
	FH_LEDGER = 5,	  /* the database said no, or nothing */
	FH_LEASE = 6,	  /* it was ours, and is somebody else's now: nothing of it was committed */
	FH_SYSTEM = 7	  /* a system call failed that should not have */
};

typedef struct fh_error {
	int code;	/* enum fh_code */
	int errnum;	/* errno where a system call failed, else 0 */
	char stage[32]; /* "request", "plan", "workspace", "sandbox", "supervise", "collect", "commit", … */
	char message[1024]; /* one sentence */
} fh_error;

/* "usage", "refused", …; "none" for FH_OK. A constant. */
const char *fh_code_name(int code);

/* ---- The hood ---------------------------------------------------------------------------------------------------- */

/* Configuration, state directory and ledger, opened once and used for everything. It keeps a few connections to the
 * ledger, one for each call or run that goes on at the same time. */
typedef struct fh_hood fh_hood;

/* config_file: as --config, or NULL. ledger: as --db ("sqlite:PATH", "postgresql://…"), or NULL: FUMEHOOD_DB, the
 * configuration's, $XDG_DATA_HOME/fumehood/ledger.db. The ledger itself is opened, or made, when it is needed. */
int fh_open(const char *config_file, const char *ledger, fh_hood **ret, fh_error *err);
/* Runs that are still there keep what they need: they may be freed before or after. */
void fh_close(fh_hood *hood);

/* ---- Requests ---------------------------------------------------------------------------------------------------- */

/* What is asked for: an id, a command, inputs, outputs, limits. It can be started or submitted any number of times (with
 * another id, or "again"), and changed in between. */
typedef struct fh_request fh_request;

fh_request *fh_request_new(void); /* NULL: memory is out */
void fh_request_free(fh_request *request);

/* One option of `fumehood run` or `submit`, without its dashes: "memory", "2G". All of them are in docs/FORMATS.md ("A
 * request", "Limits"), and are written as in request files or as options ("optional_output", "optional-output"). What is a
 * list there is added to what is there already, the rest replaced. A flag takes NULL, "true" or "false". Beside these there
 * are "id"; "directory", where relative paths start; and for fh_submit() "submitter". */
int fh_request_set(fh_request *request, const char *name, const char *value, fh_error *err);
/* The command's words, up to a NULL; they replace those that were there. */
int fh_request_command(fh_request *request, const char *const *argv, fh_error *err);
/* One more word of the command. */
int fh_request_add_word(fh_request *request, const char *word, fh_error *err);
/* A request file's text, YAML or JSON. What is set already stays. name: for messages, NULL: "request". */
int fh_request_parse(fh_request *request, const char *text, size_t size, const char *name, fh_error *err);
/* As -i: the analysis reads from this descriptor. It is duplicated. -1: /dev/null again. */
int fh_request_stdin(fh_request *request, int fd, fh_error *err);
/* As JSON, in the form that fh_request_parse() takes. */
int fh_request_json(const fh_request *request, char **ret_json, fh_error *err);

/* As --dry-run --json: every default resolved, nothing touched. */
int fh_plan(fh_hood *hood, const fh_request *request, char **ret_json, fh_error *err);

/* ---- Results ----------------------------------------------------------------------------------------------------- */

/* One attempt: how it ended, what it used, what came out. It does not change. */
typedef struct fh_result fh_result;

enum fh_verdict {
	FH_NONE = 0, /* there is none yet */
	FH_SUCCEEDED = 1,
	FH_FAILED = 2,
	FH_TIMED_OUT = 3,
	FH_OUTPUT_MISSING = 4,
	FH_POST_PROCESS_FAILED = 5,
	FH_OUT_OF_MEMORY = 6,
	FH_OUT_OF_DISK = 7,
	FH_OUT_OF_PROCESSES = 8,
	FH_CANCELLED = 9,
	FH_LOST = 10,
	FH_VERDICT_REFUSED = 11 /* it did not run; fh_result_error() says why */
};
const char *fh_verdict_name(int verdict); /* "succeeded", "failed", …; a constant */

enum fh_stream { FH_STDOUT = 0, FH_STDERR = 1, FH_POST_PROCESS = 2 /* what the post-process said */ };

/* A file that came out, or was refused. The texts are the result's. */
typedef struct fh_output {
	const char *path; /* bytes, relative to the workspace */
	uint64_t size;
	const char *media_type;
	char sha256[72]; /* 64 hexadecimal digits */
} fh_output;

void fh_result_free(fh_result *result);

const char *fh_result_id(const fh_result *result);
int fh_result_attempt(const fh_result *result);	  /* 0: it did not run */
int fh_result_verdict(const fh_result *result);	  /* enum fh_verdict */
int fh_result_exit_code(const fh_result *result); /* of the analysis; -1: it did not exit by itself */
int fh_result_signal(const fh_result *result);	  /* that ended it; 0: none did */
int fh_result_status(const fh_result *result);	  /* what `fumehood run` would exit with */
int fh_result_committed(const fh_result *result); /* 1: it is in the ledger; 0 */
/* 1: the command has ended, and something of ours (a full disk, a ledger that is away) kept us from committing it:
 * fh_result_error() says what, fh_gc() finishes it later. The verdict may be FH_NONE until then. */
int fh_result_pending(const fh_result *result);
const char *fh_result_reason(const fh_result *result);	  /* one line of evidence for people; NULL: none */
const char *fh_result_workspace(const fh_result *result); /* the path, which may be gone; NULL: none */
int64_t fh_result_rows(const fh_result *result); /* rows for the site's tables; -1: there were none to be */
/* What it ran in beside the host of its worker, by the keys of "engine" in --json: "engine" ("slurm"), "job", "node", "state", "reason",
 * "cluster". NULL: it is not known, or there was nothing else. */
const char *fh_result_engine(const fh_result *result, const char *key);
/* A counter by its name in --json: "wall_ms", "cpu_ms", "memory_peak_bytes", "pids_peak", … -1: not known. */
int64_t fh_result_usage(const fh_result *result, const char *name);

size_t fh_result_outputs(const fh_result *result); /* how many */
int fh_result_output(const fh_result *result, size_t index, fh_output *ret, fh_error *err);
size_t fh_result_rejected(const fh_result *result); /* how many are listed that were not collected */
int fh_result_rejected_output(const fh_result *result, size_t index, const char **ret_path,
			      const char **ret_reason, fh_error *err);

/* What went wrong on our side: the code (FH_OK: nothing did), and the whole of it in *ret, which may be NULL. */
int fh_result_error(const fh_result *result, fh_error *ret);

/* The end of what was kept of a stream: at most max bytes. For runs; fh_log_copy() has the whole, from the ledger. */
int fh_result_log(const fh_result *result, int stream, size_t max, char **ret_text, size_t *ret_size,
		  fh_error *err);

/* Why it ended as it did, for a prompt: at most ten lines "key: value", as `show --explain=agent` prints them. */
int fh_result_explain(const fh_result *result, char **ret_text, fh_error *err);

/* As --json prints it; with full as `show --json` does (without the list of attempts). */
int fh_result_json(const fh_result *result, int full, char **ret_json, fh_error *err);

/* ---- Running ----------------------------------------------------------------------------------------------------- */

/* The whole story, until it is committed and cleaned up. 0 with a result, whatever the verdict; one that was refused or
 * that we failed at has the verdict FH_VERDICT_REFUSED and the failure in fh_result_error(). Negative: there is not
 * even that. */
int fh_perform(fh_hood *hood, const fh_request *request, fh_result **ret, fh_error *err);

/* The same while you do something else: a thread of the library tells the story. */
typedef struct fh_run fh_run;

enum fh_start_flags {
	FH_DEFER = 1,  /* stop at the verdict, before the commit: fh_run_commit() or fh_run_drop() ends it */
	FH_FOLLOW = 2, /* keep what it writes for fh_run_read() */
	FH_PROGRESS = 4, /* measure it while it runs, for fh_run_progress() */
	FH_WHOLE =
		8, /* with FH_FOLLOW: nothing is dropped, what is not read yet is kept in memory, up to log_max */
	FH_MERGE = 16 /* its stderr goes where its stdout goes, in the order in which it was written */
};

int fh_start(fh_hood *hood, const fh_request *request, unsigned flags, fh_run **ret, fh_error *err);

/* Ends it, if it has not ended: it is cancelled as by SIGTERM and awaited. A deferred run that nobody has committed is
 * dropped. When this returns, nothing of it is alive, and only what it was asked to keep is left. */
void fh_run_free(fh_run *run);

const char *fh_run_id(const fh_run *run); /* made up, if the request has none */

enum fh_state {
	FH_RUNNING = 0,
	FH_DECIDED = 1, /* deferred: the verdict is known, and the commit is yours to order */
	FH_ENDED = 2
};
int fh_run_state(const fh_run *run);

/* A descriptor for poll(), epoll, an event loop: readable as long as fh_run_read() would give something, or it is
 * decided or ended. It stays the run's. Do not read from it. */
int fh_run_fd(const fh_run *run);
/* Until it is decided or has ended: 1. 0: timeout_ms have passed (-1: no end of waiting; 0: only look). */
int fh_run_wait(fh_run *run, int timeout_ms, fh_error *err);
/* Until its command is executed, could not be (*ret_errno, which may be NULL, says why, else it is 0), or will not be,
 * since the run has ended before: 1. 0: timeout_ms have passed, as above. */
int fh_run_started(fh_run *run, int timeout_ms, int *ret_errno, fh_error *err);
/* signal: SIGTERM, SIGINT, SIGHUP: what the verdict shall say. The analysis is sent SIGTERM and has its grace (1 s),
 * then it is killed. SIGKILL: at once. It returns before it is dead. Too late is no failure. */
int fh_run_cancel(fh_run *run, int signal, fh_error *err);

/* With FH_FOLLOW: what it wrote since the last call. More than 0: so many bytes. 0: nothing for now. -1: nothing, and
 * nothing more will come. *ret_dropped (may be NULL): so many bytes before these were never read, and are gone: the
 * library keeps the newest MiB of each stream (all of it with FH_WHOLE), the log more. A stream that is longer than log_max ends there, with a line
 * that says so. */
ssize_t fh_run_read(fh_run *run, int stream, void *buffer, size_t size, uint64_t *ret_dropped);

typedef struct fh_progress {
	int64_t elapsed_ms;
	int64_t cpu_ms, memory_bytes, pids, disk_files; /* -1: not known */
	char stage[32]; /* "workspace", "staging", "running", "collecting", "committing", "cleaning up" */
} fh_progress;
/* With FH_PROGRESS the latest, measured five times a second; else only the time. */
int fh_run_progress(fh_run *run, fh_progress *ret, fh_error *err);

/* Once it is decided or has ended; -FH_BUSY before. As fh_perform(). Of a run that is decided it says what is known so
 * far: fh_result_committed() is 0. */
int fh_run_result(fh_run *run, fh_result **ret, fh_error *err);

/* For FH_DEFER, once it is decided. An output for reading: the descriptor. It is a stranger's file: parse it as such. */
int fh_run_open_output(fh_run *run, const char *path, fh_error *err);
/* Outputs, rows, result, verdict, usage and logs in one transaction; then it is cleaned up. rows: JSON Lines
 * {"table": …, "row": {…}} for the tables that the site's configuration allows, or NULL; result_json: any JSON, or
 * NULL. Negative with the run still decided: rows or result were not accepted, and nothing was committed; give others,
 * or drop it. 0: it has ended; whether the ledger took it is in fh_run_result(). */
int fh_run_commit(fh_run *run, const char *rows, size_t rows_size, const char *result_json, fh_error *err);
/* Nothing of it is recorded, nothing is left. */
int fh_run_drop(fh_run *run, fh_error *err);

/* ---- Workspaces of analyses that run inside your own process ------------------------------------------------------ */

/* /tmp/scidex-analysis-ID, mode 0700. It is held for owner, a pid (0: this process), as long as that lives; or, with
 * seconds more than 0, until they are over, whoever lives. The same owner gets the same path again. */
int fh_workspace_create(fh_hood *hood, const char *id, pid_t owner, int64_t seconds, char **ret_path,
			fh_error *err);
/* The same; what lies there may take so much, in each step: disk as "2G", files as a number, or NULL. A step then has a disk of its
 * own, which the workspace's files are copied to and from. */
int fh_workspace_create_limited(fh_hood *hood, const char *id, pid_t owner, int64_t seconds, const char *disk,
				const char *files, char **ret_path, fh_error *err);
/* A run in it (fh_start() by who holds it) is a step: its files stay for the next one, and what all of them came to is committed
 * by fh_commit(), or here, before it is removed. Doing it twice is fine. */
int fh_workspace_cleanup(fh_hood *hood, const char *id, fh_error *err);
/* The same, and what ran in it is not recorded. */
int fh_workspace_discard(fh_hood *hood, const char *id, fh_error *err);

enum fh_commit_flags { FH_AGAIN = 1 /* another attempt, though one has succeeded */ };

/* Where an fh_rows_fn puts its rows. */
typedef struct fh_rows fh_rows;
/* JSON Lines {"table": …, "row": {…}}; a line may be given in pieces. */
int fh_rows_add(fh_rows *rows, const char *lines, size_t size, fh_error *err);
/* Sees what was collected (nothing is committed yet) and the workspace, and makes the rows. Not 0: nothing is
 * committed, and the call that it was given to fails with -FH_REFUSED, or with what was written to *err. */
typedef int (*fh_rows_fn)(void *arg, const fh_result *collected, int workspace_fd, fh_rows *rows,
			  fh_error *err);

/* What lies in a held workspace becomes an attempt, in one transaction with a result (any JSON, or NULL) and rows (made by
 * fn, or NULL). It has come to what the first of its steps came to that failed, or has succeeded. outputs: patterns up to a
 * NULL, or NULL: what its steps have declared, else every file. The workspace stays. */
int fh_commit(fh_hood *hood, const char *id, const char *const *outputs, const char *result_json,
	      fh_rows_fn fn, void *arg, unsigned flags, fh_result **ret, fh_error *err);
/* The same, and you know better what its steps came to: an enum fh_verdict, FH_NONE for their own. */
int fh_commit_as(fh_hood *hood, const char *id, const char *const *outputs, const char *result_json,
		 fh_rows_fn fn, void *arg, int verdict, unsigned flags, fh_result **ret, fh_error *err);

/* ---- Reading the ledger ------------------------------------------------------------------------------------------ */

/* attempt 0: the latest. */

int fh_load(fh_hood *hood, const char *id, int attempt, fh_result **ret, fh_error *err);
/* As `ls --json`. state: NULL, "waiting", "queued", "running", "pending", "restored", "held", "dead", "finished", or a verdict; prefix of ids: or NULL; limit 0:
 * all. */
int fh_list(fh_hood *hood, const char *state, const char *prefix, int limit, char **ret_json, fh_error *err);
/* The same, chosen by more: each word is NAME=VALUE as the options of `ls` are: id (a beginning, or a pattern), state, since,
 * until, verdict, submitter, sort, limit. NULL ends the list. */
int fh_list_where(fh_hood *hood, const char *const *words, char **ret_json, fh_error *err);
/* As `show --json`: of one that is running, too; of an array its summary. */
int fh_show(fh_hood *hood, const char *id, int attempt, char **ret_json, fh_error *err);
/* As `show --lineage --json`: what it came from by "from", and what came from it. attempt 0: the latest success, else the
 * latest. */
int fh_lineage(fh_hood *hood, const char *id, int attempt, char **ret_json, fh_error *err);
int fh_outputs(fh_hood *hood, const char *id, int attempt, char **ret_json, fh_error *err);
int fh_logs(fh_hood *hood, const char *id, int attempt, char **ret_json, fh_error *err);
/* What was kept of one stream, to a descriptor. Of an attempt that is running (attempt 0): what there is now, and with
 * follow until it ends, or stop_fd (-1: none) becomes readable. */
int fh_log_copy(fh_hood *hood, const char *id, int attempt, int stream, int fd, int follow, int stop_fd,
		fh_error *err);
/* An output's content to a descriptor, its digest compared on the way: good only if this returns 0. */
int fh_get(fh_hood *hood, const char *id, int attempt, const char *path, int fd, fh_error *err);

/* ---- The house --------------------------------------------------------------------------------------------------- */

/* As `gc --json`. What failed is in it: 1 is returned then, and the rest was done. */
int fh_gc(fh_hood *hood, char **ret_json, fh_error *err);
/* As `doctor --json`. 1: something that is required is missing. */
int fh_doctor(fh_hood *hood, char **ret_json, fh_error *err);
/* As `doctor --delegate USER`, as root. *ret_done: what is so now. */
int fh_delegate(const char *user, char **ret_done, fh_error *err);
/* The rows of a committed attempt once more, from the ledger's outputs, by a program under a hood of its own. command
 * NULL: as before, else the site's. cancel_fd: -1, or readable with a byte that is a signal's number. *ret_posted (may
 * be NULL): 0 if its rows were there already. */
int fh_post_process(fh_hood *hood, const char *id, int attempt, const char *command, int cancel_fd,
		    fh_result **ret, int *ret_posted, fh_error *err);
/* As `shell ID -- COMMAND`: one command in a workspace that was kept, under the hood that its analysis had; nothing is recorded. attempt
 * 0: the latest that is kept. command: words, ended by NULL. stdin_fd: -1, or what it reads. terminal: it has one of its own.
 * cancel_fd as above. The result is told like an attempt's, with its logs, and is not committed. FH_NOT_FOUND: none is kept. */
int fh_shell(fh_hood *hood, const char *id, int attempt, char *const *command, int stdin_fd, int terminal,
	     int cancel_fd, fh_result **ret, fh_error *err);

enum fh_remove_flags {
	FH_DRY_RUN = 1,	     /* only tells what would go */
	FH_FORCE = 2,	     /* also what others were made from, or are to come after */
	FH_KEEP_OUTPUTS = 4, /* fh_prune: attempts, outputs and lineage stay, logs and the like go */
};
/* As `rm --json`: all that the ledger has of these (ids, names of arrays, patterns; NULL ends the list), or of one attempt of them
 * (0: all). All of them or none: -FH_BUSY is what has not ended, -FH_REFUSED what others were made from. */
int fh_remove(fh_hood *hood, const char *const *ids, int attempt, unsigned flags, char **ret_json,
	      fh_error *err);
/* As `prune --json`: attempts that were made longer ago than that ("90d"), of these verdicts ("failed,lost"; NULL: all), and what has
 * ended in the queue since. What has not ended, or others were made from, is left alone and counted. */
int fh_prune(fh_hood *hood, const char *older, const char *verdicts, unsigned flags, char **ret_json,
	     fh_error *err);

/* As `db … --json`. fh_db_check: 1 if something is wrong. Only fh_db_upgrade changes the tables of a ledger that is there:
 * an older one is refused by every other call. */
int fh_db_init(fh_hood *hood, char **ret_json, fh_error *err);
int fh_db_upgrade(fh_hood *hood, char **ret_json, fh_error *err);
/* As `db init --roles`: least-privilege roles in PostgreSQL, for a ledger that is there, too. */
int fh_db_roles(fh_hood *hood, char **ret_json, fh_error *err);
int fh_db_status(fh_hood *hood, char **ret_json, fh_error *err);
int fh_db_check(fh_hood *hood, char **ret_json, fh_error *err);
/* As `db backup DIR --json` and `db restore DIR --json`: all of the ledger, database and objects, as it was at one moment, to a directory
 * that is new or empty; and back, into an empty ledger, or with FH_FORCE over what is there. What had not ended in it is
 * "restored": fh_retry() lets it go. */
int fh_backup(fh_hood *hood, const char *directory, char **ret_json, fh_error *err);
int fh_restore(fh_hood *hood, const char *directory, unsigned flags, char **ret_json, fh_error *err);

/* ---- The queue --------------------------------------------------------------------------------------------------- */

enum fh_submit_flags { FH_IF_ABSENT = 1 /* an id that is known is the same analysis, and no failure */ };

/* All of them or none. *ret_json: [{"id": …, "new": true}, …] in their order. */
int fh_submit(fh_hood *hood, fh_request *const *requests, size_t n, unsigned flags, char **ret_json,
	      fh_error *err);
/* [{"id", "state", "verdict", "status", "attempt", "priority", "owner", "submitter", "worker", "reason",
 * "cancelling", "submitted", "due", "engine"}, …], the newest first. state: NULL, "waiting", "queued", "running", "finished", "cancelled", "restored". */
int fh_queue(fh_hood *hood, const char *state, const char *prefix, int limit, char **ret_json, fh_error *err);
/* As `workers --json`: [{"id", "host", "pid", "engine", "seats", "running", "state", "alive", "seen", "silent_ms", "lease_ms",
 * "started", "version", "owner"}, …], who was heard of last first. */
int fh_workers(fh_hood *hood, char **ret_json, fh_error *err);
/* As `top --json`: what runs now, here and elsewhere, with what it has used so far, and how the queue is. */
int fh_top(fh_hood *hood, char **ret_json, fh_error *err);
/* Until every one of the ids (up to a NULL) is finished or cancelled: 1. 0: timeout_ms have passed (-1: no end; 0: only
 * look), or stop_fd (-1: none) became readable. *ret_json (both times): as fh_queue(), in the order of ids; with 0
 * null for one that the ledger, which has gone away since, cannot tell of. -FH_NOT_FOUND: one of them was never submitted. -FH_REFUSED: one was restored from a
 * backup, and nobody runs it before it is retried. */
int fh_wait(fh_hood *hood, const char *const *ids, int timeout_ms, int stop_fd, char **ret_json,
	    fh_error *err);
/* Waiting, queued or restored: it will not run. Running: its worker is told; so is, without waiting for the end, who runs it on this host
 * by the same state directory, a run or a program, which loses nothing else. Pending (its command has ended, and it could not be
 * finished): it is given up, its outputs thrown away, and recorded as cancelled. Ended: nothing. *ret_state (may be NULL):
 * the state before, a constant. */
int fh_cancel(fh_hood *hood, const char *id, const char **ret_state, fh_error *err);
/* Ended without success, or restored from a backup: queued again as it was submitted. */
int fh_retry(fh_hood *hood, const char *id, fh_error *err);

/* A worker in this process: claims and runs what is queued until a byte can be read from stop_fd (a pipe; -1: none): then
 * it stops claiming, and hands back what runs, for others. With drain it returns when nothing can be claimed any more,
 * and a byte lets what runs end; a second one hands it back. jobs 0: the configuration's, else as many as there are CPUs.
 * lease: such as "30s", or NULL. */
int fh_worker_run(fh_hood *hood, int jobs, const char *lease, int drain, int stop_fd, fh_error *err);
/* The same with another engine: "local" is this host, "slurm" gives what is queued to the nodes of a cluster, and leaves it there when it
 * stops. jobs 0: then the configuration's slurm.jobs. The nodes need fumehood, the command: as slurm.command says, else where PATH has it here. */
int fh_worker_run_engine(fh_hood *hood, const char *engine, int jobs, const char *lease, int drain,
			 int stop_fd, fh_error *err);

#ifdef __cplusplus
}
#endif

#endif
