/*
 * The numbers of an array's tasks, as a user writes them: "1-1000", "1,3,5", every second as "1-99:2", and any of these with
 * commas between them.
 */
#ifndef MODEL_TASKS_H
#define MODEL_TASKS_H

#include <stddef.h>

#include "error.h"

enum { TASKS_MAX = 1000000 };

struct tasks {
	unsigned *list; /* from the lowest to the highest, each once */
	size_t count;	/* at least one, TASKS_MAX at most */
};

/* ERROR_USAGE: it makes no sense, a number is there twice, or they are too many. *ret is to be tasks_done() on success only. */
int tasks_parse(const char *text, struct tasks *ret, struct error *err);
void tasks_done(struct tasks *t);
#define _cleanup_tasks_ _cleanup_(tasks_done)

#endif
