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
int manifest_add(struct manifest *m, const struct output *o);			     /* copies; -ENOMEM */
int manifest_reject(struct manifest *m, const char *path, const char *reason);	     /* copies the path */
void manifest_sort(struct manifest *m);						     /* by path bytes */

struct inputs {
	struct input *list;
	size_t count;
};

void inputs_done(struct inputs *in);
int inputs_add(struct inputs *in, const struct input *i); /* copies; -ENOMEM */
const struct input *inputs_find(const struct inputs *in, const char *path);

const char *media_type_of(const char *path);

/* Adds "path" (escaped where it is not UTF-8, with "path_b64" beside it) to object. -1 if memory is out. */
int json_set_path(json_t *object, const char *path);
/* Reads it back, newly allocated; NULL and err on nonsense. */
char *json_get_path(const json_t *object, struct error *err);

json_t *manifest_outputs_to_json(const struct manifest *m);
json_t *manifest_rejected_to_json(const struct manifest *m);

#endif
