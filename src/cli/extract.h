/*
 * Where `get` writes: outputs become files, each whole or not at all, never outside the place that was named, never
 * over something else unless it was told to.
 */
#ifndef CLI_EXTRACT_H
#define CLI_EXTRACT_H

#include <stdbool.h>

#include "ledger.h"

struct extract {
	const char *to; /* -o: "-", a directory, or the new file's name; NULL: the output's own name, here */
	bool force;
	bool keeps_paths; /* they were not named one by one: a name below another must not meet one of its own kind */
	bool is_directory; /* `to` is one: outputs keep their paths below it */
};

/* Looks at `to`, once, and makes it, with its parents, if it is a directory; count: how many outputs there will be. */
int extract_prepare(struct extract *x, size_t count, struct error *err);
/* ERROR_REFUSED: something is there already, and there is no --force. Nothing is made. */
int extract_look(const struct extract *x, const struct output *o, struct error *err);
bool extract_is_stdout(const struct extract *x);
/* *ret_file: its name, newly allocated. */
int extract_output(const struct extract *x, struct ledger *ledger, const struct output *o, char **ret_file,
		   struct error *err);

#endif
