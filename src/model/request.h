/*
 * What was asked: an id, a command, inputs, declared outputs, limits. From options, a file, the library or the
 * queue: one type, one validator. Pure data: nothing here looks at the file system.
 *
 * request_init, then fields set by hand, by option_apply() or request_parse(); request_check; request_done.
 */
#ifndef MODEL_REQUEST_H
#define MODEL_REQUEST_H

#include <jansson.h>
#include <stdbool.h>

#include "id.h"
#include "limit.h"
#include "text.h"

enum strength { STRENGTH_FULL, STRENGTH_LANDLOCK };
enum keep { KEEP_UNSET, KEEP_NEVER, KEEP_ON_FAILURE, KEEP_ALWAYS };

/* --ro PATH[:AT], --input PATH[:AS], --query NAME=SQL: a pair of words, the second may be NULL. */
struct pair {
	char *from;
	char *to;
};

struct request {
	char *id;	 /* NULL: to be made up */
	char **command;	 /* NULL-terminated argv */
	char *directory; /* absolute: where relative paths of this request start */
	char *data;	 /* NULL: the site's, else ./data where it exists */
	char *docs;
	struct pair *ro;
	size_t n_ro;
	struct pair *inputs;
	size_t n_inputs;
	char **from; /* "ID[:GLOB[:AS]]" each, see flow.h */
	bool no_stage;
	char **outputs;
	char **optional_outputs;
	char **env;	  /* "NAME=VALUE", or "NAME": the caller's value when it is planned */
	char **shown;	  /* what its caller works in: canonical paths, see run/caller.h */
	char **shown_env; /* "NAME=VALUE" that goes with it */
	bool stdin_open;
	bool terminal;
	struct limits limits;
	bool allow_unlimited;
	enum strength strength;
	enum keep keep;
	char *into;
	bool force; /* over what is there, for into */
	bool again;
	char *post_process;
	struct pair *queries;
	size_t n_queries;
	bool explain;
	/* For the queue; a run takes no notice of them. */
	int priority;
	char **after;	   /* ids */
	int retries;	   /* see request_retries() */
	unsigned retry_on; /* a bit 1 << verdict for each */
	char **slurm;	   /* "KEY=VALUE" each, of sbatch's options: see request_check.c */
	uint64_t set;	   /* private: which fields were given, whatever their value */
};

void request_init(struct request *r);
void request_done(struct request *r);
#define _cleanup_request_ _cleanup_(request_done)

/* One option as it stands on the command line, "--memory" / "2G" (value NULL for a flag). Returns 1 if taken,
 * 0 if the name is none of a request's, negative with ERROR_USAGE. option_takes_value tells beforehand:
 * 1, 0 for a flag, -1 unknown. */
int request_option(struct request *r, const char *option, const char *value, struct error *err);
int request_option_takes_value(const char *option);

/* Where the help of a command shows an option; NONE: it has its name, but is of no use in this version. */
enum option_group { GROUP_NONE, GROUP_INPUTS, GROUP_OUTPUTS, GROUP_LIMITS, GROUP_REST, GROUP_QUEUE };

struct option_info {
	const char *name;	    /* "--memory" */
	const char *value;	    /* what it takes: "SIZE"; NULL for a flag, or where there are choices */
	const char *remark;	    /* for who reads the help, or NULL */
	const char *const *choices; /* NULL-terminated, "" cannot be chosen; or NULL */
	enum option_group group;
	const char *help; /* what it means */
};

/* The options of a request one by one, limits first: for help and for "did you mean". False: there are no more. */
bool request_option_at(size_t i, struct option_info *ret);

/* How often it is tried again at most: as it says, else JOB_RETRIES_DEFAULT (job.h). */
int request_retries(const struct request *r);

/* A request file's text (YAML; JSON is a subset). file names it in errors: "file:line:column: …". Unknown keys and
 * wrong types are errors. Values that the caller has already set stay. */
int request_parse(struct request *r, const char *text, size_t size, const char *file, struct error *err);

/* The same from one line of a file of many: JSON, strictly. line is its number. */
int request_parse_line(struct request *r, const char *text, size_t size, const char *file, unsigned line,
		       struct error *err);
/* One task of an array: {task} in its words (id, command, env, inputs, outputs, from, after, into, queries) becomes the number, its id
 * ends in ".NUMBER" unless {task} is in it, and FUMEHOOD_TASK is in its environment. */
int request_set_task(struct request *r, unsigned task, struct error *err);

/* from's values where r has none: how a request takes the configuration's defaults. A list is taken whole or not at
 * all. */
int request_inherit(struct request *r, const struct request *from, struct error *err);

/* What can be checked without a file system: id, command present, names of env, NUL and '/' rules, globs. */
int request_check(const struct request *r, struct error *err);

json_t *request_to_json(const struct request *r); /* new reference, NULL if memory is out */
int request_from_json(struct request *r, const json_t *json, struct error *err);

/* A command line without a shell: blanks separate, '…', "…" and \\ quote, nothing is expanded. -EINVAL for a quote
 * that is not closed, and then the error is for the caller to set; a text of blanks is an empty list. */
int words_split(const char *text, char ***ret, struct error *err);

const char *keep_name(enum keep keep);
const char *strength_name(enum strength strength);

#endif
