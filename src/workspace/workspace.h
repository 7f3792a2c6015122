/*
 * The directory an analysis runs in, /tmp/scidex-analysis-{id}/, and the record of who owns it.
 *
 * The state directory has one folder per id that has a workspace now: runs/{id}/ with
 *   lock           flock()ed by whoever acts on it: the supervisor for the whole run
 *   record.json    who owns it: see struct record; what is learned while it runs is added as a line
 *   stdout stderr  what was captured (written by supervise)
 *   finished.json  the attempt, once its verdict is known (written by run)
 * and the workspace root has
 *   scidex-analysis-{id}          the workspace, 0700
 *   scidex-analysis-{id}@N        one of attempt N that was kept, since the next has begun; its folder is runs/{id}@N
 *   .scidex-analysis-{id}.MARK    scratch, 0700 and ours: its tmp is the private /tmp of the run. And, for a moment
 *                                 while it is being made, .scidex-analysis-{id}.MARK.new: the workspace before its
 *                                 atomic rename. MARK comes from the attempt's token by a hash: the analysis can
 *                                 read its mount table, and the token is not for its eyes. And, while it is being
 *                                 removed, .scidex-analysis-{id}.MARK.gone: the workspace, whose folder is
 *                                 runs/.gone-… then.
 * The record is written before the thing that it names is made, so that whatever a crash leaves is named.
 *
 * Order: workspace_open (takes the lock, makes or adopts) … workspace_remove or workspace_keep, workspace_close.
 * Recovery: workspace_each_dead, or workspace_take for one.
 */
#ifndef WORKSPACE_WORKSPACE_H
#define WORKSPACE_WORKSPACE_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#include "error.h"
#include "id.h"
#include "manifest.h"
#include "plan.h"
#include "process.h"

enum owner_kind {
	OWNER_SUPERVISOR, /* whoever holds the lock */
	OWNER_PROCESS,	  /* held by `workspace create`: a process */
	OWNER_UNTIL,	  /* held until an instant */
	OWNER_KEPT,	  /* kept after its end (--keep) until an instant; gc expires it */
};

/* A kept workspace makes room for its next attempt: its name and its folder's get "@", the attempt, and, if that is taken, a
 * number more ("@1.2"). No id has such a letter. */
enum { ASIDE_ROOM = 24, FOLDER_ROOM = ID_ROOM + ASIDE_ROOM };

/* Whose a workspace was before a run adopted it, and will be again: OWNER_PROCESS or OWNER_UNTIL; OWNER_KEPT, before somebody
 * has looked around in it. */
struct holding {
	enum owner_kind owner; /* OWNER_SUPERVISOR: it is not adopted */
	struct process_id process;
	int64_t until;
	char token[TOKEN_SIZE];
};

struct record {
	char id[ID_ROOM];
	char token[TOKEN_SIZE];
	char machine[MACHINE_ID_SIZE];
	char boot[BOOT_ID_SIZE];
	uid_t uid; /* of the owner: whose record this is */
	enum owner_kind owner;
	struct process_id process; /* OWNER_PROCESS, and the supervisor for messages */
	int64_t until;		   /* UTC ns: OWNER_UNTIL, OWNER_KEPT */
	struct holding held;	   /* OWNER_SUPERVISOR, in an adopted one */
	struct process_id init;	   /* PID 1 of the namespace, as seen here; pid 0: not started */
	char **cgroups;		   /* absolute directories made for it */
	char aside
		[ASIDE_ROOM]; /* "1": it is, or is about to be, beside the next attempt's; "": it has its own name */
	char *path;	      /* the workspace */
	uint64_t device, inode; /* of the workspace; inode 0: not yet made */
	char *scratch;
	char *ledger;  /* its URL without a password; who recovers it has his own */
	json_t *extra; /* run's own notes: request, plan, attempt number, created; or NULL */
};

/* Of run's notes the one that is ours to know, a boolean: there is no namespace that dies with init, which ends the others before
 * itself as soon as its supervisor is dead. */
#define RECORD_ENDS_ITSELF "ends_itself"

void record_init(struct record *r);
void record_done(struct record *r);
json_t *record_to_json(const struct record *r);
/* Of a record's file: each line is a record by itself, and the last that is whole counts; the first, which may be the only one, has
 * no end of its own. Where the power failed there may be zeros. */
void record_last_line(const char **text, size_t *size);
/* Of a whole file. Strict: bytes from outside. err is marked if they are damaged, and not only newer than this program. */
int record_parse(struct record *r, const char *text, size_t size, struct error *err);

/* Where everything lies. state is an open descriptor of the state directory, root_fd of the workspace root. Both are
 * refused when somebody else could change what we make there. */
struct site {
	int state;
	int runs; /* state's folder of folders */
	int root_fd;
	char *root;   /* "/tmp" */
	char *prefix; /* "scidex-analysis-" */
};
int site_open(struct site *s, const char *state_dir, const char *root, const char *prefix, struct error *err);
void site_close(struct site *s);

/* ".scidex-analysis-{id}.MARK", and what lies in it */
#define SCRATCH_TMP "tmp"
void workspace_scratch_name(const char *prefix, const char *id, const char *token, char *out, size_t room);

struct workspace {
	const struct site *site;
	struct record record;
	char folder[FOLDER_ROOM]; /* its name in runs: "{id}", "{id}@1" */
	int run_fd;		  /* runs/{id}, -1 when closed */
	int lock_fd;		  /* held */
	int fd;			  /* the workspace, O_PATH-free: readable directory */
	/* As files of the host are copied in: so many bytes more. NULL: nobody looks. */
	void (*copied)(void *arg, uint64_t bytes);
	void *copied_arg;
};
/* It was held by our caller: what lies there counts as staged. */
bool workspace_is_adopted(const struct workspace *w);
/* Nobody holds or keeps it any longer. The lock is ours. */
bool workspace_is_over(const struct workspace *w);

/* Takes id's lock and makes the workspace with its record and scratch, owned by uid/gid (chowned as root; the
 * caller's own otherwise). ERROR_BUSY if a run is going on; ERROR_REFUSED if the path exists and is not ours, or
 * is held by somebody else. One that is kept moves aside. Adopts a held one of the same owner: its process is
 * ours or one of our ancestors, or it is nobody's until an instant. If a dead owner left something, calls
 * recover(arg, dead workspace) when that is given, and refuses, saying to run gc, if something is left after it.
 * cgroups: what will be made for it, which a new one's first record names already; NULL: nothing yet. */
typedef int (*workspace_recover_fn)(void *arg, struct workspace *dead, struct error *err);
int workspace_open(const struct site *site, const char *id, const char *token, uid_t uid, gid_t gid,
		   char *const *cgroups, workspace_recover_fn recover, void *arg, struct workspace *ret,
		   struct error *err);

/* Writes the record again after a field was changed (init, cgroups, owner, extra …). */
int workspace_save(struct workspace *w, struct error *err);

/* Removes scratch and workspace (the directory itself included), then runs/{id}. Idempotent. */
int workspace_remove(struct workspace *w, struct error *err);
/* A large one is taken out of the way first, so that nobody need wait for the rest: 1, and its id is free again; what is left, which w is
 * now, is for workspace_remove(), by anybody who has the time (in another process, if he closes w without unlocking it). gc does that
 * for the dead. 0: it cannot be done, and w is as it was. */
int workspace_retire(struct workspace *w);
/* So many of them are not removed yet, and somebody may be at it. */
int workspace_count_retired(const struct site *site);
/* As workspace_close, for who has handed w to a child: the lock is that one's. */
void workspace_hand_over(struct workspace *w);
/* The held workspace, locked, becomes this run's, with a scratch of its own; on failure it is held as before. */
int workspace_adopt(struct workspace *w, const char *token, uid_t uid, gid_t gid, struct error *err);
/* A run in an adopted workspace is over, or was refused, or its supervisor has died: it is held again as before, by whom it
 * was, if he is still there; the cgroups that its record still names stay named. */
int workspace_give_back(struct workspace *w, struct error *err);
/* Nobody holds it any more: it is left as by a run that has ended and whose attempt, of this token, is still to be committed.
 * extra is taken. */
int workspace_leave(struct workspace *w, const char *token, json_t *extra, struct error *err);
/* A kept one is opened once more, by whom it was kept, with a scratch of its own: workspace_give_back(), and it is kept as before.
 * attempt 0: the latest of those that are kept. ERROR_NOT_FOUND, ERROR_BUSY. */
int workspace_reopen(const struct site *site, const char *id, int attempt, const char *token, uid_t uid,
		     gid_t gid, struct workspace *ret, struct error *err);
/* Every kept one that is not in use just now, locked: fn removes it or leaves it. */
int workspace_each_kept(const struct site *site, workspace_recover_fn fn, void *arg, struct error *err);
/* The folders of one id, its own first: for whoever only looks. NULL-terminated. */
int workspace_folders(const struct site *site, const char *id, char ***ret, struct error *err);
/* Could a folder of runs have this name? */
bool folder_name_is_one(const char *name);
/* Removes only scratch; the workspace stays as OWNER_KEPT until `until`; chowned back to the caller as root. */
int workspace_keep(struct workspace *w, int64_t until, struct error *err);
/* Unlocks, closes. Removes nothing. */
void workspace_close(struct workspace *w);
#define _cleanup_workspace_ _cleanup_(workspace_close)

/* `workspace create`: held for a process or until an instant. The same owner again: the same path. recover as above. */
int workspace_hold(const struct site *site, const char *id, const struct process_id *owner, int64_t until,
		   workspace_recover_fn recover, void *arg, char **ret_path, struct error *err);
/* `workspace cleanup`: takes id's workspace, whoever held it, if it is ours and no run is going on in it; kills and
 * awaits what its record names, calls back (which commits or not, removes cgroups, then workspace_remove()s).
 * Missing: 0, nothing called. ERROR_REFUSED for somebody else's, ERROR_BUSY for a live run. */
int workspace_take(const struct site *site, const char *id, workspace_recover_fn fn, void *arg,
		   struct error *err);

/* For gc: calls back for each id in the state directory whose owner is gone or expired, with its lock taken, its
 * processes killed and awaited, its record read and not trusted blindly (machine, boot, uid, path under root with
 * our prefix, device and inode). Records that are not ours to judge (another machine's or user's) are passed over
 * and counted. The callback commits or records, then removes. Goes on after a failure: the result is 0 with
 * ret->failed counted and the first reason in err; negative only if the state directory cannot be read. */
struct workspace_gc_counts {
	unsigned seen, alive, foreign, taken, failed;
};
int workspace_each_dead(const struct site *site, workspace_recover_fn fn, void *arg,
			struct workspace_gc_counts *ret, struct error *err);

/* Processes of another machine are none of ours; those of another boot are dead. */
bool record_is_of_this_boot(const struct record *r);
/* Kills the PID 1 that the record names (pid with start time, this boot, this machine) and waits until it and so its
 * whole namespace is gone. The cgroups are then empty; removing them is run's business. */
int record_kill(const struct record *r, struct error *err);

/* Copies a regular file (no link, one or more names is fine, at most max bytes) to w->fd/as, making parent
 * directories, hashing; owner uid/gid. Appends to inputs. Naming the same source and target twice is harmless. The
 * source's path is canonical: a link anywhere in it, or another file than the plan saw, is refused. */
int workspace_stage(struct workspace *w, const struct stage *what, uint64_t max, uid_t uid, gid_t gid,
		    struct inputs *inputs, struct error *err);

/* The same with a content that somebody else writes: what is i's path, source, size, digest and mode is so when fill has
 * returned 0 (it verifies). */
typedef int (*workspace_fill_fn)(void *arg, const struct input *i, int fd, struct error *err);
int workspace_stage_content(struct workspace *w, const struct input *i, uint64_t max, uid_t uid, gid_t gid,
			    workspace_fill_fn fill, void *arg, struct inputs *inputs, struct error *err);

/* As root, a uid of its own for each running analysis: a locked slot in /run/fumehood. Hands out host uid/gid and
 * the lock's descriptor; a slot whose former PID 1 is still dying is passed over. slot_bind notes the PID 1. */
struct slot {
	int fd;
	int number;
	uid_t uid;
	gid_t gid;
};
int slot_take(struct slot *ret, struct error *err);
int slot_bind(const struct slot *s, const struct process_id *init);
void slot_release(struct slot *s);

#endif
