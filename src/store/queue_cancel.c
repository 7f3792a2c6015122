/*
 * Cancelling many at once: some thousands to a transaction, so that a million takes seconds and nobody waits long for a lock.
 */
#include "queue_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

enum { CHUNK = 4096, FEW = 64 };

struct target {
	const char *id;
	size_t place;
	bool found;
	enum job_state state;  /* now */
	enum job_state before; /* as the first try found it */
};

struct chunk {
	struct target by_id[CHUNK];
	size_t n;
};

static int target_compare(const void *a, const void *b)
{
	return strcmp(((const struct target *)a)->id, ((const struct target *)b)->id);
}

static int take_state(void *arg, const struct value *row, struct error *err UNUSED)
{
	struct chunk *c = arg;
	struct target key = {.id = value_words(&row[0])}, *t;

	t = bsearch(&key, c->by_id, c->n, sizeof key, target_compare);
	if (!t || row[1].kind != VALUE_TEXT || job_state_parse(row[1].data, &t->state) < 0)
		return 0;
	if (!t->found)
		t->before = t->state;
	t->found = true;
	return 0;
}

static bool is_waiting(const struct target *t)
{
	return t->found && (t->state == JOB_WAITING || t->state == JOB_QUEUED || t->state == JOB_RESTORED);
}

/* Of a few each is told which one it was. */
static int cancel_behind(struct ledger *l, const struct ids *ids, struct error *err)
{
	char reason[ID_ROOM + 32];

	if (ids->count > FEW)
		return queue_cancel_after(l, ids->list, ids->count, "what it comes after was cancelled", err);
	for (size_t i = 0; i < ids->count; i++) {
		snprintf(reason, sizeof reason, "'%s' was cancelled", ids->list[i]);
		if (queue_cancel_after(l, &ids->list[i], 1, reason, err) < 0)
			return -1;
	}
	return 0;
}

static int cancel_chunk(struct ledger *l, void *arg, struct error *err)
{
	_cleanup_ids_ struct ids all = {0}, waiting = {0};
	struct value why = value_text("cancelled");
	struct chunk *c = arg;
	bool any = false;

	for (size_t i = 0; i < c->n; i++)
		if (ids_add(&all, c->by_id[i].id, err) < 0)
			return -1;
	if (queue_run_ids(l, SQL_QUEUE_STATES, all.list, all.count, NULL, take_state, c, err) < 0)
		return -1;
	for (size_t i = 0; i < c->n; i++) {
		const struct target *t = &c->by_id[i];
		bool is_running = t->found && t->state == JOB_RUNNING;

		if ((is_waiting(t) && ids_add(&waiting, t->id, err) < 0) ||
		    (is_running && ledger_do(l, SQL_QUEUE_CANCELLING, err, value_text(t->id)) < 0))
			return -1;
		any |= is_waiting(t) || is_running;
	}
	if (queue_run_ids(l, SQL_QUEUE_CANCEL, waiting.list, waiting.count, &why, NULL, NULL, err) < 0 ||
	    cancel_behind(l, &waiting, err) < 0)
		return -1;
	return any ? queue_ring(l, err) : 1;
}

static void tell(struct chunk *c, size_t first, struct target *places, cancelled_fn fn, void *arg)
{
	for (size_t i = 0; i < c->n; i++)
		places[c->by_id[i].place - first] = c->by_id[i];
	for (size_t i = 0; i < c->n; i++)
		fn(arg, places[i].id, places[i].found, places[i].before);
}

int ledger_cancel_many(struct ledger *l, char *const *ids, cancelled_fn fn, void *arg, struct error *err)
{
	_cleanup_free_ struct chunk *c = malloc(sizeof *c);
	_cleanup_free_ struct target *places = calloc(CHUNK, sizeof *places);

	if (!c || !places)
		return error_memory(err);
	for (size_t i = 0; ids[i]; i += c->n) {
		for (c->n = 0; c->n < CHUNK && ids[i + c->n]; c->n++)
			c->by_id[c->n] = (struct target){.id = ids[i + c->n], .place = i + c->n};
		qsort(c->by_id, c->n, sizeof c->by_id[0], target_compare);
		if (ledger_transaction(l, cancel_chunk, c, err) < 0)
			return -1;
		tell(c, i, places, fn, arg);
	}
	return 0;
}
