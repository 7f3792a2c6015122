/*
 * What is in the way of a removal: it has not ended, others were made from it, or are to come after it.
 */
#include "queue_private.h"
#include "remove_private.h"

#include <stdio.h>
#include <string.h>

#include "array.h"
#include "text.h"

int victim_compare(const void *a, const void *b)
{
	const struct victim *x = a, *y = b;
	int n = strcmp(x->id, y->id);

	return n ? n : (x->number > y->number) - (x->number < y->number);
}

struct victim *victims_find(const struct removal *x, const char *id, size_t *ret_n)
{
	struct victim *list = removal_batch(x);
	size_t low = 0, high = x->count, n = 0;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(list[middle].id, id) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	while (low + n < x->count && strcmp(list[low + n].id, id) == 0)
		n++;
	*ret_n = n;
	return n ? &list[low] : NULL;
}

static struct victim *find_attempt(const struct removal *x, const char *id, int number)
{
	struct victim key = {.number = number};

	snprintf(key.id, sizeof key.id, "%s", id);
	return bsearch(&key, removal_batch(x), x->count, sizeof key, victim_compare);
}

static int note_state(void *arg, const struct value *row, struct error *err UNUSED)
{
	const char *state = value_words(&row[1]);
	struct removal *x = arg;
	size_t n;
	struct victim *v = victims_find(x, value_words(&row[0]), &n);

	if (strcmp(state, "finished") == 0 || strcmp(state, "cancelled") == 0)
		return 0;
	for (size_t i = 0; v && i < n; i++) {
		v[i].obstacle = BUSY_QUEUED;
		snprintf(v[i].by, sizeof v[i].by, "%s", state);
	}
	return 0;
}

int id_key_compare(const void *key, const void *member)
{
	return strcmp(key, *(char *const *)member);
}

/* Named ones go together. */
static bool is_named(const struct remove_order *o, const char *id, int number)
{
	return o->ids && (o->attempt == 0 || o->attempt == number) &&
	       bsearch(id, o->ids, strv_length(o->ids), sizeof *o->ids, id_key_compare);
}

static int note_edge(void *arg, const struct value *row, struct error *err)
{
	struct removal *x = arg;
	int number = (int)value_to_integer(&row[3], 0);
	struct victim *on = find_attempt(x, value_words(&row[0]), (int)value_to_integer(&row[1], 0));
	struct edge *e;

	if (!on || is_named(x->o, value_words(&row[2]), number))
		return 0;
	e = ARRAY_ADD(x->edges, x->n_edges);
	if (!e)
		return error_memory(err);
	*e = (struct edge){.on = on, .number = number};
	value_to_fixed(&row[2], e->id, sizeof e->id);
	return 0;
}

/* What goes with this batch builds on nothing any more; what stays, does. */
static void judge_edges(struct removal *x)
{
	bool more = true;

	while (more) {
		more = false;
		for (size_t i = 0; i < x->n_edges; i++) {
			struct edge *e = &x->edges[i];
			const struct victim *by = find_attempt(x, e->id, e->number);

			if (e->on->obstacle != NOTHING || (by && by->obstacle == NOTHING))
				continue;
			e->on->obstacle = BUILT_ON;
			memcpy(e->on->by, e->id, sizeof e->id);
			more = true;
		}
	}
}

/* after is an id of the batch, or the array of some. */
static int note_awaited(void *arg, const struct value *row, struct error *err UNUSED)
{
	const char *after = value_words(&row[0]), *by = value_words(&row[1]);
	struct removal *x = arg;
	struct victim *list = removal_batch(x);
	char array[ID_ROOM];

	if (is_named(x->o, by, x->o->attempt))
		return 0;
	for (size_t i = 0; i < x->count; i++) {
		if (list[i].obstacle != NOTHING ||
		    (strcmp(list[i].id, after) != 0 &&
		     (!array_of(list[i].id, array) || strcmp(array, after) != 0)))
			continue;
		list[i].obstacle = AWAITED;
		snprintf(list[i].by, sizeof list[i].by, "%s", by);
	}
	return 0;
}

static int list_ids(const struct removal *x, bool and_arrays, struct ids *ids, struct error *err)
{
	const struct victim *list = removal_batch(x);
	char array[ID_ROOM], last[ID_ROOM] = "";

	for (size_t i = 0; i < x->count; i++) {
		if (i && strcmp(list[i].id, list[i - 1].id) == 0)
			continue;
		if (ids_add(ids, list[i].id, err) < 0)
			return -1;
		if (!and_arrays || !array_of(list[i].id, array) || strcmp(array, last) == 0)
			continue;
		memcpy(last, array, sizeof last);
		if (ids_add(ids, array, err) < 0)
			return -1;
	}
	return 0;
}

static int judge_built(struct removal *x, const struct ids *ids, struct error *err)
{
	_cleanup_ids_ struct ids and_arrays = {0};

	x->n_edges = 0;
	if (queue_run_ids(x->l, SQL_REMOVE_BUILT, ids->list, ids->count, NULL, note_edge, x, err) < 0)
		return -1;
	judge_edges(x);
	if (list_ids(x, true, &and_arrays, err) < 0)
		return -1;
	return queue_run_ids(x->l, SQL_REMOVE_AWAITED, and_arrays.list, and_arrays.count, NULL, note_awaited,
			     x, err);
}

int removal_judge(struct removal *x, struct error *err)
{
	bool locks = !x->o->dry_run && !x->is_judging;
	struct victim *list = removal_batch(x);
	_cleanup_ids_ struct ids ids = {0};

	qsort(list, x->count, sizeof *list, victim_compare);
	if (list_ids(x, false, &ids, err) < 0)
		return -1;
	for (size_t i = 0; i < x->count; i++)
		list[i].obstacle =
			x->o->is_busy && x->o->is_busy(x->o->arg, list[i].id) ? BUSY_HERE : NOTHING;
	if (queue_run_ids(x->l, locks ? SQL_QUEUE_STATES : SQL_QUEUE_LOOK, ids.list, ids.count, NULL,
			  note_state, x, err) < 0)
		return -1;
	return x->o->force || x->o->keeps_outputs ? 0 : judge_built(x, &ids, err);
}

int removal_refuse(const struct victim *v, struct error *err)
{
	static const char none[] = "; nothing was removed";

	if (v->obstacle == BUSY_HERE)
		return error_set(
			err, ERROR_BUSY,
			"cannot remove '%s': it runs, is held or is pending on this host; end it with `fumehood cancel %s`, "
			"`fumehood workspace cleanup %s` or `fumehood gc` first%s",
			v->id, v->id, v->id, none);
	if (v->obstacle == BUSY_QUEUED)
		return error_set(err, ERROR_BUSY,
				 "cannot remove '%s': in the queue it is %s; `fumehood cancel %s` first%s",
				 v->id, v->by, v->id, none);
	if (v->obstacle == AWAITED)
		return error_set(
			err, ERROR_REFUSED,
			"cannot remove '%s': '%s' is to come after it; --force removes it all the same%s",
			v->id, v->by, none);
	return error_set(
		err, ERROR_REFUSED,
		"cannot remove '%s': '%s' was made from its outputs; --force removes it all the same, and "
		"its name stays in the lineage%s",
		v->id, v->by, none);
}
