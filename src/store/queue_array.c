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

bool array_of(const char *id, char out[ID_ROOM])
{
	const char *dot = strrchr(id, '.');

	if (!dot || dot == id || !dot[1] || dot[1 + strspn(dot + 1, "0123456789")])
		return false;
	snprintf(out, ID_ROOM, "%.*s", (int)(dot - id), id);
	return true;
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
	struct array_range range = {0};
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

/* ---- who comes after all of them ---- */

static int take_standing(void *arg, const struct value *row, struct error *err UNUSED)
{
	enum standing *standing = arg;
	int64_t all = value_to_integer(&row[0], 0), active = value_to_integer(&row[1], 0),
		succeeded = value_to_integer(&row[2], 0);

	*standing = all == 0		       ? STANDING_UNKNOWN
		    : all > active + succeeded ? STANDING_ENDED
		    : active		       ? STANDING_ACTIVE
					       : STANDING_SUCCEEDED;
	return 0;
}

int array_standing(struct ledger *l, const char *name, enum standing *ret, struct error *err)
{
	struct array_range range = {0};

	array_range_of(name, &range);
	return ledger_run(l, SQL_ARRAY_STANDING,
			  (struct value[]){value_text(range.from), value_text(range.to)}, 2, take_standing,
			  ret, err);
}

static int take_id(void *arg, const struct value *row, struct error *err UNUSED)
{
	value_to_fixed(&row[0], arg, ID_ROOM);
	return 0;
}

int array_witness(struct ledger *l, const char *name, const char *below, char ret[ID_ROOM], struct error *err)
{
	struct array_range range = {0};

	*ret = 0;
	array_range_of(name, &range);
	return ledger_run(l, SQL_ARRAY_WITNESS,
			  (struct value[]){value_text(range.from), value_text(below ? below : range.to)}, 2,
			  take_id, ret, err);
}

int ledger_refuse_array(struct ledger *l, const char *id, struct error *err)
{
	struct array_range range = {0};
	char task[ID_ROOM] = "";
	int r;

	array_range_of(id, &range);
	r = ledger_run(l, SQL_ARRAY_ANY, (struct value[]){value_text(range.from), value_text(range.to)}, 2,
		       take_id, task, err);
	if (r < 0 || !*task)
		return r;
	return error_set(
		err, ERROR_REFUSED,
		"cannot run '%s': there is an array of this name, with the task '%s'; choose another name",
		id, task);
}

int array_pass_on(struct ledger *l, const char *id, struct error *err)
{
	char name[ID_ROOM], witness[ID_ROOM];
	enum standing standing = STANDING_UNKNOWN;
	int r;

	if (!array_of(id, name))
		return 0;
	r = array_witness(l, name, id, witness, err);
	if (r == 0 && *witness)
		return ledger_run(l, SQL_ARRAY_PASS,
				  (struct value[]){value_text(id), value_text(name), value_text(witness)}, 3,
				  NULL, NULL, err);
	/* One may have failed at the moment at which somebody was submitted who comes after all. */
	if (r == 0)
		r = array_standing(l, name, &standing, err);
	if (r == 0 && standing == STANDING_ENDED) {
		char reason[ID_ROOM + 32];

		snprintf(reason, sizeof reason, "a task of '%s' did not succeed", name);
		return queue_cancel_after(l, (char *const[]){name}, 1, reason, err);
	}
	return r < 0 ? r
		     : ledger_run(l, SQL_ARRAY_MET, (struct value[]){value_text(id), value_text(name)}, 2,
				  NULL, NULL, err);
}
