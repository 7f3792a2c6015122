/*
 * What an analysis was not allowed, or did not find, as far as the hood heard of it: each once, with a count and with what would
 * help. At most DENIALS_MAX different ones; `more` counts the rest.
 *
 * Nobody fails for want of memory here: what cannot be kept is counted.
 */
#ifndef MODEL_DENIAL_H
#define MODEL_DENIAL_H

#include <jansson.h>
#include <stdint.h>

#include "error.h"

enum { DENIALS_MAX = 100 };

struct denial {
	char *layer;	 /* "seccomp", "mounts", "network", "landlock" */
	char *operation; /* the system call */
	char *path;	 /* bytes; NULL: it is about none */
	char *target;	 /* what it was about, for people; or NULL */
	char *error;	 /* "EPERM" */
	char *hint;	 /* what would help, or why nothing does; or NULL */
	int64_t at;	 /* UTC ns, the first */
	int64_t count;
};

struct denials {
	struct denial *list;
	size_t n;
	int64_t more; /* -1: nobody listened */
};
#define DENIALS_UNKNOWN    \
	{                  \
		.more = -1 \
	}

void denial_done(struct denial *d);
void denials_done(struct denials *d);
/* Copies it, or counts it with one that is the same but for its time. */
void denials_add(struct denials *d, const struct denial *one);
/* What was heard in both. */
void denials_join(struct denials *d, const struct denials *more);

json_t *denials_to_json(const struct denials *d); /* as stored */
int denials_from_json(struct denials *d, const json_t *json, struct error *err);
/* What --json tells: an array; null if nobody listened. */
json_t *denials_to_public_json(const struct denials *d);

#endif
