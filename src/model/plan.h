/*
 * The request with every default resolved against the site's configuration and the host's abilities. Immutable
 * once made (by run): what is learned later lives in the box. Printable (--dry-run), stored with the attempt. It holds one array of mounts and one table
 * of limits that the sandbox only executes.
 */
#ifndef MODEL_PLAN_H
#define MODEL_PLAN_H

#include <jansson.h>
#include <sys/types.h>

#include "limit.h"
#include "lookup.h"
#include "manifest.h"
#include "mount_kind.h"
#include "request.h"

/* As root: whom the analysis is taken for when it reads an input: its owner, a given user, or nobody in particular. */
enum reader_kind { READER_OWNER, READER_USER, READER_ANYBODY };
struct reader {
	enum reader_kind kind;
	uid_t uid; /* USER */
	gid_t gid;
};

struct mount {
	enum mount_kind kind;
	char *source;  /* canonical host path; for LINK the link's text; for SAME a path inside */
	char *target;  /* absolute path inside */
	char *content; /* FILE */
	size_t content_size;
	bool writable; /* BIND, TMPFS */
	bool optional; /* skipped when the source is not there */
	uint64_t size; /* TMPFS bytes */
	uint64_t inodes;
	unsigned mode;		/* DIR, FILE, TMPFS */
	uint64_t device, inode; /* what source was when the plan was made: the child refuses another */
	struct reader reader;	/* OVERLAY */
	const char *
		layer; /* OVERLAY: what it is laid over, and source a part of, a literal; neighbours share it; NULL: source */
};

/* A file to be copied into the workspace before the start. */
struct stage {
	char *source; /* canonical host path */
	char *as;     /* relative, in the workspace */
	uint64_t device,
		inode; /* what it was when the plan was made: another is not copied; inode 0: not known */
	uint64_t size; /* then */
};

/* Outputs of one attempt of another analysis, which are staged too: those of struct plan's flow_files that it has. */
struct plan_flow {
	char *analysis;
	int attempt;
	char *as; /* the directory below which they appear */
	uint64_t files, bytes;
};

/* What the command is to the story. */
enum plan_kind { PLAN_ANALYSIS, PLAN_POST_PROCESS, PLAN_SHELL };
/* What it reaches beside its own loopback: nothing. */
enum network { NETWORK_NONE };

struct plan {
	enum plan_kind kind;
	char id[ID_ROOM];
	int attempt;
	char token[TOKEN_SIZE];
	char *workspace; /* /tmp/scidex-analysis-{id} */
	char *scratch;	 /* the directory on the host that the private /tmp lies in */
	char **command;	 /* as asked */
	char *program;	 /* what is executed: an absolute path inside */
	char **env;
	char *data, *docs; /* canonical, or NULL */
	char **prefixes;   /* interpreter prefixes shown by themselves */
	char **notes;	   /* what its user should know before it starts, a line each */
	enum network network;
	char **devices; /* nodes of the host's that it sees, by their paths */
	struct mount *mounts;
	size_t n_mounts;
	size_t n_common; /* so many of them, the first, are those of every analysis on this host */
	struct stage *stages;
	size_t n_stages;
	char **left_out; /* of directories that are copied: some of what is not, each with the reason */
	struct lookup stage_names; /* private: finds one of them by its name */
	char **flow_roots;	   /* directories of the workspace in which is nothing but them, read-only */
	struct plan_flow *flows;
	size_t n_flows;
	struct inputs flow_files;
	bool failed;	   /* something is missing, see plan_check() */
	struct mount lost; /* private: in place of a mount that is missing */
	char **outputs;
	char **optional_outputs;
	struct limits limits;
	bool allow_unlimited;
	bool stdin_open;
	bool explain;  /* paths and connections are listened to as well */
	bool terminal; /* its stdin, stdout and stderr are one of its own */
	enum strength strength;
	enum keep keep;
	char *into;
	bool into_force;
	char *ledger; /* without credentials */
	char *submitter_directory;
	bool own_disk;	       /* a file system of its own holds the disk limit exactly */
	bool use_userns_first; /* an ordinary user: the user namespace comes first and owns the others */
};

void plan_init(struct plan *p);
void plan_done(struct plan *p);
struct plan *plan_new(void);	      /* NULL if memory is out */
void plan_free(const struct plan *p); /* NULL is fine */
#define _cleanup_plan_ _cleanup_(plan_done)

/* Out of memory is sticky, as in buffer.h: who adds need not look, a path that could not be made counts as well, and who has
 * made the plan asks once, with plan_check(). Nothing is run by one that is not whole; it has no JSON either. */

/* A new zeroed entry at the end, kind and target set; never NULL. */
struct mount *plan_add_mount(struct plan *p, enum mount_kind kind, const char *source, const char *target);
void plan_add_stage(struct plan *p, const char *source, const char *as, uint64_t device, uint64_t inode,
		    uint64_t size);
/* One more line for the user, unless it is there already. */
void plan_note(struct plan *p, const char *format, ...) PRINTF_LIKE(2, 3);
void plan_add_flow(struct plan *p, const struct plan_flow *f); /* copies */
/* A variable of its environment, in place of one of the same name. */
void plan_set_env(struct plan *p, const char *name, const char *value);
int plan_check(const struct plan *p, struct error *err);
/* Something is staged under that name; source NULL: whatever it is. */
bool plan_has_stage(const struct plan *p, const char *source, const char *as);

/* Of a plan that was stored, what the end of its story needs: everything but mounts, stages and where limits came from. */
int plan_recall(struct plan *p, const json_t *json, struct error *err);

json_t *plan_to_json(const struct plan *p); /* contents of FILE mounts are not printed, only their size */

#endif
