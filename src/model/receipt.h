/*
 * What was truly in force around one attempt: a list of layers, each held or not, with a word of detail. Written
 * by those who raised the layers, never from what was planned.
 *
 * Out of memory is sticky, as in buffer.h: who adds a line need not look. Who relies on all of them asks once, with
 * receipt_check(), or gets NULL from receipt_to_json().
 */
#ifndef MODEL_RECEIPT_H
#define MODEL_RECEIPT_H

#include <jansson.h>
#include <stdbool.h>

#include "error.h"

struct layer {
	char *name; /* "user namespace", "landlock", "limit memory", … */
	bool held;
	char *detail; /* "ABI 7", "cgroup v1 memory, 2G", or why it is not held */
};

struct receipt {
	struct layer *layers;
	size_t count;
	char **warnings; /* one line each: defaults that were dropped, overlays that became binds */
	bool failed;	 /* a line is missing */
};

void receipt_done(struct receipt *r);
#define _cleanup_receipt_ _cleanup_(receipt_done)
void receipt_add(struct receipt *r, const char *name, bool held, const char *detail_format, ...)
	PRINTF_LIKE(4, 5);
void receipt_warn(struct receipt *r, const char *format, ...) PRINTF_LIKE(2, 3);
int receipt_check(const struct receipt *r, struct error *err);
/* What was in force around both: a layer that one of them did not have, or not held, is not held, with its reason. An
 * empty r is none yet. */
void receipt_join(struct receipt *r, const struct receipt *more);
/* The lines of more, too, after those of r. */
void receipt_extend(struct receipt *r, const struct receipt *more);
json_t *receipt_to_json(const struct receipt *r); /* {"layers":[{"name","held","detail"}], "warnings":[…]} */
int receipt_from_json(struct receipt *r, const json_t *json, struct error *err);

#endif
