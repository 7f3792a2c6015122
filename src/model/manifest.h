/*
 * Files that came out, files that went in, files that were refused. Paths are bytes relative to the workspace.
 */
#ifndef MODEL_MANIFEST_H
#define MODEL_MANIFEST_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "digest.h"
#include "error.h"
#include "lookup.h"

struct output {
	char *path; /* bytes, NUL-terminated, relative, no "." or ".." */
	uint8_t sha256[DIGEST_SIZE];
	uint64_t size;
	const char *media_type; /* a constant: by the name's ending; "application/octet-stream" */
	bool is_object;		/* its content is already in the object store */
};

struct rejected_output {
	char *path;
	const char *reason; /* a constant, one of the table in docs/FORMATS.md: "symbolic link", … */
};

/* What was staged into the workspace before the start. */
struct input {
	char *path;   /* in the workspace */
	char *source; /* on the host */
	uint8_t sha256[DIGEST_SIZE];
	uint64_t size;
	unsigned mode;
	uint64_t device, inode; /* of the source while it is being submitted; else 0 */
	bool for_post;		/* of a queued analysis: a file of its post-process, not of its workspace */
	/* Another analysis's output: whose, and of which attempt; source is its path there. NULL: a file of the host. */
	char *from_analysis;
	int from_attempt;
};

struct manifest {
	struct output *outputs;
	size_t n_outputs;
	struct rejected_output *rejected;
	size_t n_rejected;
	uint64_t n_rejected_more; /* beyond what is listed (the list is bounded) */
	char **missing;		  /* declared patterns that matched nothing */
	char **present;		  /* what was there instead, a few names, for the message */
};

void manifest_done(struct manifest *m);
#define _cleanup_manifest_ _cleanup_(manifest_done)
/* Both copy the path. */
int manifest_add(struct manifest *m, const struct output *o, struct error *err);
int manifest_reject(struct manifest *m, const char *path, const char *reason, struct error *err);
void manifest_sort(struct manifest *m);
const struct output *manifest_find(const struct manifest *m, const char *path);
/* or NULL */ /* by path bytes */

struct inputs {
	struct input *list;
	size_t count;
	struct lookup names; /* private: finds one of them by its path */
};

void inputs_done(struct inputs *in);
#define _cleanup_inputs_ _cleanup_(inputs_done)
int inputs_add(struct inputs *in, const struct input *i, struct error *err); /* copies */
const struct input *inputs_find(const struct inputs *in, const char *path);
/* One that is there came from this attempt of another analysis. */
int inputs_set_from(struct inputs *in, const char *path, const char *analysis, int attempt,
		    struct error *err);
/* Where each of them came from is nobody's word for it. */
void inputs_forget_from(struct inputs *in);

const char *media_type_of(const char *path);
/* The constant that equals text, for what comes back from a store; "application/octet-stream" if there is none. */
const char *media_type_known(const char *text);

/* Why a file was not collected; docs/FORMATS.md explains them. */
#define REJECT_SYMLINK	  "symbolic link"
#define REJECT_HARD_LINK  "hard link (another name for the same file)"
#define REJECT_FIFO	  "FIFO"
#define REJECT_SOCKET	  "socket"
#define REJECT_DEVICE	  "device"
#define REJECT_SET_ID	  "set-uid or set-gid"
#define REJECT_OWNER	  "owned by somebody else"
#define REJECT_UNREADABLE "cannot be read"
#define REJECT_SPARSE	  "sparse beyond the limit"
#define REJECT_BYTES	  "over the limit of collected bytes"
#define REJECT_LARGE	  "larger than the ledger takes"
#define REJECT_FILES	  "over the limit of collected files"
#define REJECT_NAMES	  "over the limit of names"
#define REJECT_DEPTH	  "too deep"
#define REJECT_CHANGED	  "changed while it was read"
#define REJECT_OTHER	  "refused"
/* The constant that equals text; REJECT_OTHER if there is none. */
const char *reject_reason_known(const char *text);

/* Adds "path" (escaped where it is not UTF-8, with "path_b64" beside it) to object. -1 if memory is out. */
int json_set_path(json_t *object, const char *path);
/* Reads it back, newly allocated; NULL and err on nonsense. */
char *json_get_path(const json_t *object, struct error *err);

json_t *manifest_outputs_to_json(const struct manifest *m);
json_t *manifest_rejected_to_json(const struct manifest *m);

/* One entry of each list: what manifest_to_json and inputs_to_json are made of. whole: as a record keeps it. */
json_t *output_to_json(const struct output *o, bool whole);
json_t *rejected_to_json(const struct rejected_output *rejected);
json_t *input_to_json(const struct input *in);
int output_read(struct manifest *m, const json_t *json, struct error *err);
int rejected_read(struct manifest *m, const json_t *json, struct error *err);
int input_read(struct inputs *in, const json_t *json, struct error *err);
/* manifest_to_json without its lists. */
json_t *manifest_head_to_json(const struct manifest *m);

/* Everything, and back: what a record keeps. manifest_from_json and inputs_from_json add to what is there. */
json_t *manifest_to_json(const struct manifest *m);
int manifest_from_json(struct manifest *m, const json_t *json, struct error *err);
json_t *inputs_to_json(const struct inputs *in);
int inputs_from_json(struct inputs *in, const json_t *json, struct error *err);

#endif
