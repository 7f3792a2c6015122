/* What the files of run share: the hood itself, and the stages that story.c calls. */
#ifndef RUN_PRIVATE_H
#define RUN_PRIVATE_H

#include "cgroup.h"
#include "hood.h"
#include "remover.h"
#include "sandbox.h"
#include "supervise.h"
#include "workspace.h"

struct hood {
	struct config config;
	char *ledger_url;
	char *state_dir;
	char *directory; /* where it was opened: relative paths of configuration do not exist, of requests do */
	struct site site;
	bool site_is_open;
	struct lending *lending; /* or NULL */
	struct ledger *ledger;
	struct work *work; /* hood_watch() */
	unsigned ledger_flags;
	bool only_reads;
	/* Of one that only reads: which file it has open. */
	bool ledger_is_file;
	dev_t ledger_device;
	ino_t ledger_inode;
	struct cgroup_host cgroups;
	bool cgroups_probed;
	struct stock *stock;	    /* hood_use_stock(); borrowed */
	struct plan *common;	    /* scene_begin(); NULL: none */
	struct hand *hand;	    /* hood_options.hand; or NULL */
	struct ledger_ahead *ahead; /* hood_begin_ledger(); NULL: nobody is at it */
	struct remover remover;
};

/* The ledger that hood_ledger() will be asked for is opened meanwhile, if there is a hand for it, it is there, and nobody else's. */
void hood_begin_ledger(struct hood *h, unsigned flags);
/* Awaits it: h->ahead is NULL then, and h->ledger open, or err says why not. */
int hood_end_ledger(struct hood *h, struct error *err);

/* The state directory, made on first use. */
int hood_site(struct hood *h, struct site **ret, struct error *err);
int hood_cgroups(struct hood *h, const struct cgroup_host **ret, struct error *err);

/* resolve.c: request + configuration → plan, without mounts. rights NULL: the caller's own. */
struct rights;
int plan_resolve(struct hood *h, const struct request *r, struct rights *rights, struct plan *plan,
		 struct error *err);
/* Asked for, else the site's, else what is built in; the site's maximum bounds them. */
int plan_resolve_limits(const struct hood *h, const struct request *r, struct plan *plan, struct error *err);
/* Where programs are looked for. */
const char *program_search(void);
/* The same for a post-process (post_process.h), which sees less: no data, no docs, no workspace. */
struct post_order {
	const char *id;
	int attempt;
	const char *command; /* one text, split into words; NULL: the site's */
	const char *
		directory; /* where its own files lie; absolute; for the site's command beside the configuration */
	const char *scratch;	/* the directory on the host that its places are made in */
	enum strength strength; /* the analysis's: it has no more walls than that had */
	bool is_stored;		/* its own files are in the ledger, with the submission */
	bool is_sites;		/* queue.allow lists it: they lie beside that */
};
int plan_resolve_post(struct hood *h, const struct post_order *o, struct plan *plan, struct error *err);
/* The same for a command in a kept workspace: what the analysis saw, by its request (r, completed here) and its plan. */
int plan_resolve_shell(struct hood *h, struct request *r, const struct plan *like, struct plan *plan,
		       struct error *err);
/* scene.c: the array of mounts. Of full strength what every analysis on this host has may be looked up before: it is the next
 * plan's, h->common until then. */
int scene_begin(struct hood *h, struct error *err);
int plan_add_scene(struct hood *h, const struct request *r, const struct rights *rights, struct plan *plan,
		   struct error *err);
/* One text, split into words without a shell; ERROR_USAGE if there is none. */
int command_split(const char *text, char ***ret, struct error *err);
/* Nothing is staged because of --input. */
void request_forget_inputs(struct request *r);
/* staging.c: which files of the submitter are copied in. */
int plan_add_stages(const struct hood *h, const struct request *r, struct plan *plan, struct error *err);

/* hints.c: a note for each word that names a file which the analysis will not see. Without mounts (a sketch) absolute paths
 * are not judged. */
int plan_add_hints(const struct request *r, struct plan *plan, struct error *err);

/* resolve_inputs.c: data and docs, the request's own (own_*), else the site's, else what lies in the current directory: which
 * is not the worker's to look into. */
int resolve_inputs(struct hood *h, struct request *r, const struct rights *rights, bool own_data,
		   bool own_docs, bool own_ro, struct plan *plan, struct error *err);
/* --ro paths are made canonical in a copy of the request that the scene uses. */
int resolve_ro(struct hood *h, struct request *r, struct error *err);
/* Where an input may not lie or what it may not contain: the state directory, the ledger, the workspace root. */
int input_check(const struct hood *h, const char *path, const char *option, struct error *err);

/* The part of it that is about the machine: /proc and the like. */
int input_check_machine(const char *path, const char *option, struct error *err);

/* ./data and ./docs are shown unasked only if they lie in the directory, not if they lead out of it. */
int default_check(const char *directory, const char *name, const char *real, struct error *err);

/* resolve_flows.c: --from. Where it puts things, and that nothing else is put there, is known before anybody has run: for submit as
 * well. Then, when the attempt starts, what there is: by the ledger, and of nobody else's than who asked. */
int flows_place(const struct request *r, struct plan *plan, struct error *err);
struct rights;
int flows_resolve(struct hood *h, const struct request *r, const struct rights *rights, struct plan *plan,
		  struct error *err);
/* Into the workspace, as the last of what is staged. step: what lies there already may be what an earlier one got. */
int flows_stage(struct workspace *w, const struct plan *plan, bool step, uid_t uid, gid_t gid,
		workspace_fill_fn fill, void *arg, struct inputs *inputs, struct error *err);

/* queries.c: may there be queries? Then they are run, and their answers staged. */
int queries_check(const struct hood *h, const struct request *request, struct error *err);
int queries_run(struct hood *h, struct ledger *l, const struct request *request, int run_fd,
		struct attempt *a, struct error *err);
int queries_stage(struct workspace *w, uint64_t max, uid_t uid, gid_t gid, struct attempt *a,
		  struct error *err);

/* finish.c: what happens to an attempt whose command is dead, shared by story.c and recover.c. */
/* rows: what the post-process printed, or NULL. Rows that the database does not take make it post_process_failed. */
struct spool;
int attempt_commit(struct ledger *l, struct attempt *a, int workspace_fd, struct spool *rows,
		   struct error *err);
/* The ledger as where contents come from and go to: as a fetch, a workspace_fill_fn, a collect_put_fn; arg is the ledger. */
int ledger_fetch_output(void *arg, const struct output *o, int fd, struct error *err);
int ledger_fetch_input(void *arg, const struct input *i, int fd, struct error *err);
int ledger_take_object(void *arg, int fd, uint64_t size, uint8_t ret_sha256[DIGEST_SIZE], struct error *err);
/* story_say.c: a caller's own rows, checked and set aside. */
int rows_gather(const struct hood *h, int run_fd, const char *lines, size_t size, struct spool **ret,
		struct error *err);
/* An attempt in a file beside the record, without its logs. read: 1, 0: there is none, negative: err is marked if it is
 * damaged. */
int attempt_save(struct workspace *w, const char *name, const struct attempt *a, bool sync,
		 struct error *err);
int attempt_read(struct workspace *w, const char *name, struct attempt *a, struct error *err);
#define FINISHED_NAME	 "finished.json"
#define FINISHED_DAMAGED "finished.json.damaged"
/* finished.json: written before the commit where there is room, so that whoever comes after a crash can commit it. */
int finished_save(struct workspace *w, const struct attempt *a, bool sync, struct error *err);
/* 1, 0: there is none, negative: err is marked if it is damaged. */
int finished_load(struct workspace *w, struct attempt *a, struct error *err);
/* The manifest.json of a post-process. 0, -errno. */
int manifest_write(const struct attempt *a, int fd);
/* --keep, by its plan and its verdict. */
bool attempt_wants_keeping(const struct attempt *a);
/* What was captured, as it lies beside the record. step 0: of a run that is none. */
int attempt_load_logs(struct workspace *w, size_t step, struct attempt *a, struct error *err);
/* into.c: copies outputs to plan->into, or where `directory` is open (-1: not); a warning for those that are left out,
 * before the commit. fetch writes a content. */
typedef int (*output_fetch_fn)(void *arg, const struct output *o, int fd, struct error *err);
int outputs_copy_into(const struct attempt *a, const struct plan *p, int directory, output_fetch_fn fetch,
		      void *arg, struct error *err);
void into_warn(const struct plan *p, struct attempt *a);
/* rights_into.c: the same with the rights of who asked for it. state: a directory for what is on its way. */
int rights_copy_into(const struct hood *h, const struct rights *rights, struct ledger *l,
		     const struct attempt *a, const struct plan *p, int state, struct error *err);

/* keep.c: the configuration's keep.max_bytes. Those that expire first go first, until `more` bytes fit as well; those that somebody
 * uses stay. *ret_removed counts them. */
int keep_fit(struct hood *h, uint64_t more, unsigned *ret_removed, struct error *err);
/* When what is kept from now on expires; INT64_MAX: never. */
int64_t keep_until(const struct hood *h);
/* Would it fit if all the others went? 1, 0 with *ret_bytes. */
int keep_can_fit(const struct hood *h, int workspace_fd, uint64_t *ret_bytes);

/* recover.c: what a dead owner left, finished or removed; a workspace_recover_fn. */
struct recovery {
	struct hood *hood;
	struct gc_report report;
	bool cleans_up;	   /* whoever holds it: it is to go */
	bool discards;	   /* the steps of what nobody holds any more are not committed */
	bool gives_up;	   /* what is pending is not finished any more: somebody has said so */
	bool is_elsewhere; /* what was to be given up is another ledger's, and was left alone */
};
int recover_workspace(void *arg, struct workspace *w, struct error *err);
/* What is known of an attempt whose supervisor died before its command had ended. */
int lost_describe(const struct workspace *w, struct attempt *a, struct error *err);
/* Removes the cgroups that the record names, whether or not somebody has tried before; those that are left stay in it, and
 * the record must stay then too, for gc: nothing else names them. */
int cgroups_remove(struct record *r, struct error *err);

#endif
