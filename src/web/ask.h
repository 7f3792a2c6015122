/*
 * What is asked for: an address, taken apart. Bytes of a stranger; nothing here looks at anything else.
 */
#ifndef WEB_ASK_H
#define WEB_ASK_H

#include <stdbool.h>
#include <stddef.h>

#include "error.h"

enum { ASK_PARTS_MAX = 4, ASK_PARAMS_MAX = 16, ASK_TEXT_MAX = 4096 };

struct ask_param {
	const char *name, *value;
};

struct ask {
	char text[ASK_TEXT_MAX]; /* what the others point into */
	const char *
		parts[ASK_PARTS_MAX + 1]; /* of the path, decoded: "/a/x%20y" is "a", "x y"; ends with NULL */
	size_t n_parts;
	struct ask_param params[ASK_PARAMS_MAX];
	size_t n_params;
};

/* "/a/ID?attempt=2", as it stands in a request. ERROR_USAGE: it is none of ours. */
int ask_parse(struct ask *a, const char *uri, struct error *err);
/* The value of a parameter, or NULL. An empty one, as a form sends it, is none. */
const char *ask_param(const struct ask *a, const char *name);
/* Does this Accept header want JSON rather than a page? NULL: no. */
bool ask_wants_json(const char *accept);

#endif
