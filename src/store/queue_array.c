/*
 * Arrays: many analyses whose ids are one name, a dot and a number. There is no table of them: in the index of ids they lie
 * side by side, between "NAME." and "NAME/".
 */
#include "queue_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void array_range_of(const char *name, struct array_range *ret)
{
	snprintf(ret->from, sizeof ret->from, "%s.", name);
	snprintf(ret->to, sizeof ret->to, "%s/", name);
}

struct listing {
	size_t prefix;
	task_fn fn;
	void *arg;
};

static int take_task(void *arg, const struct value *row, struct error *err)
{
	const struct listing *listing = arg;
	char id[ID_ROOM];
	const char *rest;

	value_to_fixed(&row[0], id, sizeof id);
	rest = strlen(id) > listing->prefix ? id + listing->prefix : "";
	if (!*rest || rest[strspn(rest, "0123456789")])
		return 0;
	return listing->fn(listing->arg, id, strtoul(rest, NULL, 10), err);
}

/* Not page by page: what the server believes of a table that has just grown would have it sort all of it for each. */
int ledger_array_tasks(struct ledger *l, const char *array, bool and_ledger, task_fn fn, void *arg,
		       struct error *err)
{
	struct listing listing = {.fn = fn, .arg = arg};
	struct array_range range;
	struct value params[2];
	int r = id_check(array, err);

	if (r < 0)
		return r;
	array_range_of(array, &range);
	listing.prefix = strlen(range.from);
	params[0] = value_text(range.from);
	params[1] = value_text(range.to);
	return ledger_run(l, and_ledger ? SQL_ARRAY_KNOWN : SQL_ARRAY_QUEUED, params, 2, take_task, &listing,
			  err);
}
