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

	if (id_check(array, err) < 0)
		return -1;
	array_range_of(array, &range);
	listing.prefix = strlen(range.from);
	return ledger_run(l, and_ledger ? SQL_ARRAY_KNOWN : SQL_ARRAY_QUEUED,
			  LEDGER_VALUES(value_text(range.from), value_text(range.to)), take_task, &listing,
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
	return ledger_run(l, SQL_ARRAY_STANDING, LEDGER_VALUES(value_text(range.from), value_text(range.to)),
			  take_standing, ret, err);
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
			  LEDGER_VALUES(value_text(range.from), value_text(below ? below : range.to)),
			  take_id, ret, err);
}

int array_pass_on(struct ledger *l, const char *id, struct error *err)
{
	char name[ID_ROOM], witness[ID_ROOM], reason[ID_ROOM + 32];
	enum standing standing = STANDING_UNKNOWN;

	if (!array_of(id, name))
		return 0;
	if (array_witness(l, name, id, witness, err) < 0)
		return -1;
	if (*witness)
		return ledger_do(l, SQL_ARRAY_PASS, err, value_text(id), value_text(name),
				 value_text(witness));
	/* One may have failed at the moment at which somebody was submitted who comes after all. */
	if (array_standing(l, name, &standing, err) < 0)
		return -1;
	if (standing != STANDING_ENDED)
		return ledger_do(l, SQL_ARRAY_MET, err, value_text(id), value_text(name));
	snprintf(reason, sizeof reason, "a task of '%s' did not succeed", name);
	return queue_cancel_after(l, (char *const[]){name}, 1, reason, err);
}
