#include "remove_private.h"
#include "queue_private.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "array.h"
#include "clock.h"
#include "text.h"

/* So long one transaction is to take; it begins with so many, and has at most so many. */
enum { BATCH_FIRST = 32, BATCH_MOST = 1024 };
static const uint64_t BATCH_NS = 150 * NSEC_PER_MSEC;
/* Whoever waits for SQLite's lock looks for it every 100 ms at least. */
static const struct timespec PAUSE = {.tv_nsec = 120 * NSEC_PER_MSEC};

static void removal_done(struct removal *x)
{
	free(x->list);
	free(x->edges);
}

/* ---- a batch ---- */

static char *list_text(const struct removal *x)
{
	const struct victim *list = removal_batch(x);
	json_auto_t *text = json_array();

	for (size_t i = 0; i < x->count; i++)
		if (list[i].obstacle == NOTHING &&
		    json_array_append_new(text, json_pack("[s, i]", list[i].id, list[i].number)) < 0)
			return NULL;
	return json_dumps(text, JSON_COMPACT);
}

static int take_sums(void *arg, const struct value *row, struct error *err UNUSED)
{
	struct removal *x = arg;

	x->outputs = x->o->keeps_outputs ? 0 : (uint64_t)value_to_integer(&row[0], 0);
	x->bytes = (x->o->keeps_outputs ? 0 : (uint64_t)value_to_integer(&row[1], 0)) +
		   (uint64_t)value_to_integer(&row[2], 0);
	return 0;
}

static int remove_listed(struct ledger *l, const char *list, bool keep, struct error *err)
{
	struct backend *b = l->backend;

	if (ledger_has_chunks(l))
		return ledger_do(l, SQL_REMOVE, err, value_json(list), value_integer(keep));
	if (b->ops->script(b, sql_sqlite_remove_begin, err) < 0 ||
	    ledger_do(l, SQL_REMOVE_LIST, err, value_json(list)) < 0)
		return -1;
	return b->ops->script(b, keep ? sql_sqlite_prune : sql_sqlite_remove, err);
}

static int remove_batch(struct ledger *l, void *arg, struct error *err)
{
	_cleanup_free_ char *list = NULL;
	struct removal *x = arg;

	if (removal_judge(x, err) < 0)
		return -1;
	list = list_text(x);
	if (!list)
		return error_memory(err);
	x->outputs = x->bytes = 0;
	if (ledger_run(l, SQL_REMOVE_SUMS, LEDGER_VALUES(value_json(list)), take_sums, x, err) < 0)
		return -1;
	return x->o->dry_run ? 0 : remove_listed(l, list, x->o->keeps_outputs, err);
}

static void note_name(struct remove_report *r, const char *id)
{
	for (size_t i = 0; i < r->n_names; i++)
		if (strcmp(r->names[i], id) == 0)
			return;
	if (r->n_names < REMOVE_NAMES)
		snprintf(r->names[r->n_names++], ID_ROOM, "%s", id);
}

static void count_batch(struct removal *x)
{
	struct remove_report *r = x->report;

	for (size_t i = 0; i < x->count; i++) {
		const struct victim *v = &removal_batch(x)[i];

		r->busy += v->obstacle == BUSY_HERE || v->obstacle == BUSY_QUEUED;
		r->built_on += v->obstacle == BUILT_ON || v->obstacle == AWAITED;
		if (v->obstacle != NOTHING)
			continue;
		r->attempts += v->number > 0;
		r->analyses += v->is_latest;
		r->queued += v->number <= 0;
		note_name(r, v->id);
	}
	r->outputs += x->outputs;
	r->bytes += x->bytes;
}

/* As many as fit into the time that others are kept waiting. */
static void choose_batch(struct removal *x, uint64_t took)
{
	if (took > BATCH_NS)
		x->batch = x->batch / 2 > 0 ? x->batch / 2 : 1;
	else if (took < BATCH_NS / 2 && x->batch < BATCH_MOST)
		x->batch *= 2;
}

/* Of one that was named all attempts go together. */
static size_t batch_size(const struct removal *x)
{
	size_t n = x->n - x->at < x->batch ? x->n - x->at : x->batch;

	while (x->o->ids && x->at + n < x->n && strcmp(x->list[x->at + n].id, x->list[x->at + n - 1].id) == 0)
		n++;
	return n;
}

/* All that is listed, batch by batch. */
static int remove_all(struct removal *x, struct error *err)
{
	for (x->at = 0; x->at < x->n; x->at += x->count) {
		uint64_t begun = clock_now();
		int r;

		x->count = batch_size(x);
		r = x->o->dry_run ? remove_batch(x->l, x, err)
				  : ledger_transaction(x->l, remove_batch, x, err);
		if (r < 0)
			return r;
		count_batch(x);
		choose_batch(x, clock_now() - begun);
		if (!x->o->dry_run && !ledger_has_chunks(x->l))
			nanosleep(&PAUSE, NULL);
	}
	return 0;
}

/* ---- named ones ---- */

static struct victim *add_victim(struct removal *x, const char *id, int number)
{
	struct victim *v = ARRAY_ADD(x->list, x->n);

	if (!v)
		return NULL;
	*v = (struct victim){.number = number};
	snprintf(v->id, sizeof v->id, "%s", id);
	return v;
}

/* The latest of an id comes first. */
static int take_attempt(void *arg, const struct value *row, struct error *err)
{
	struct removal *x = arg;
	const char *id = value_words(&row[0]);
	int number = (int)value_to_integer(&row[1], 0);
	bool is_latest = !x->n || strcmp(x->list[x->n - 1].id, id) != 0;
	struct victim *v = add_victim(x, id, number);

	if (!v)
		return error_memory(err);
	v->is_latest = is_latest;
	return 0;
}

static int not_known(struct removal *x, const char *id, struct error *err)
{
	_cleanup_attempt_ struct attempt a;
	struct victim here = {.obstacle = BUSY_HERE};
	int r;

	attempt_init(&a);
	snprintf(here.id, sizeof here.id, "%s", id);
	if (x->o->is_busy && x->o->is_busy(x->o->arg, id))
		return removal_refuse(&here, err);
	r = ledger_load(x->l, id, x->o->attempt, &a, err);
	return r < 0 ? r : error_set(err, ERROR_LEDGER, "'%s' came back while it was removed: try again", id);
}

/* Only the one attempt, if there is one that was asked for. */
static void choose_attempts(struct removal *x)
{
	size_t n = 0;

	for (size_t i = 0; i < x->n; i++)
		if (x->o->attempt == 0 || x->list[i].number == x->o->attempt)
			x->list[n++] = x->list[i];
	x->n = n;
}

static int text_compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int find_named(struct removal *x, struct error *err)
{
	_cleanup_ids_ struct ids queued = {0};
	size_t n = strv_length(x->o->ids), found, has;

	if (queue_run_ids(x->l, SQL_REMOVE_OF, x->o->ids, n, NULL, take_attempt, x, err) < 0 ||
	    queue_run_ids(x->l, SQL_QUEUE_LOOK, x->o->ids, n, NULL, ids_take, &queued, err) < 0)
		return -1;
	choose_attempts(x);
	found = x->n;
	if (x->n)
		qsort(x->list, x->n, sizeof *x->list, victim_compare);
	if (queued.count)
		qsort(queued.list, queued.count, sizeof *queued.list, text_compare);
	x->at = 0;
	x->count = found;
	for (size_t i = 0; i < n; i++) {
		const char *id = x->o->ids[i];

		if (victims_find(x, id, &has))
			continue;
		if (x->o->attempt > 0 || !queued.count ||
		    !bsearch(id, queued.list, queued.count, sizeof *queued.list, id_key_compare))
			return not_known(x, id, err);
		if (!add_victim(x, id, 0))
			return error_memory(err);
	}
	return 0;
}

/* Nothing is touched before all were looked at. */
static int remove_named(struct removal *x, struct error *err)
{
	if (find_named(x, err) < 0)
		return -1;
	x->is_judging = true;
	for (x->at = 0; x->at < x->n; x->at += x->count) {
		x->count = x->n - x->at < BATCH_MOST ? x->n - x->at : BATCH_MOST;
		if (removal_judge(x, err) < 0)
			return -1;
		for (size_t i = 0; i < x->count; i++)
			if (removal_batch(x)[i].obstacle != NOTHING)
				return removal_refuse(&removal_batch(x)[i], err);
	}
	x->is_judging = false;
	if (x->n)
		qsort(x->list, x->n, sizeof *x->list, victim_compare);
	return remove_all(x, err);
}

/* ---- by age ---- */

static int take_old(void *arg, const struct value *row, struct error *err)
{
	struct victim *v = add_victim(arg, value_words(&row[0]), (int)value_to_integer(&row[1], 0));

	if (!v)
		return error_memory(err);
	v->created = value_to_integer(&row[2], 0);
	v->is_latest = value_to_integer(&row[3], 0) != 0;
	return 0;
}

/* The latest first: what was made from others is newer than these, and goes before them. */
static int remove_attempts(struct removal *x, const char *verdicts, struct error *err)
{
	const struct remove_order *o = x->o;
	struct victim before = {.created = o->before - 1};

	/* As early with any id and number. */
	snprintf(before.id, sizeof before.id, "~");
	do {
		const struct value params[] = {
			value_text(o->verdicts ? verdicts : NULL),
			value_integer(BATCH_MOST),
			value_time(before.created),
			value_text(before.id),
			value_integer(before.number),
			value_integer(o->keeps_outputs),
		};

		x->n = 0;
		if (ledger_run(x->l, SQL_REMOVE_PAGE, params, ARRAY_SIZE(params), take_old, x, err) < 0)
			return -1;
		if (x->n)
			before = x->list[x->n - 1];
		if (remove_all(x, err) < 0)
			return -1;
	} while (x->n == BATCH_MOST);
	return 0;
}

static int take_ended(void *arg, const struct value *row, struct error *err)
{
	return add_victim(arg, value_words(&row[0]), -1) ? 0 : error_memory(err);
}

static int remove_queued(struct removal *x, const char *verdicts, struct error *err)
{
	char after[ID_ROOM] = "";

	do {
		const struct value params[] = {value_text(x->o->verdicts ? verdicts : NULL),
					       value_time(x->o->before), value_text(after),
					       value_integer(BATCH_MOST)};

		x->n = 0;
		if (ledger_run(x->l, SQL_REMOVE_QUEUED, params, ARRAY_SIZE(params), take_ended, x, err) < 0)
			return -1;
		if (x->n)
			memcpy(after, x->list[x->n - 1].id, sizeof after);
		if (remove_all(x, err) < 0)
			return -1;
	} while (x->n == BATCH_MOST);
	return 0;
}

static int remove_old(struct removal *x, struct error *err)
{
	_cleanup_free_ char *verdicts = verdicts_text(x->o->verdicts);

	if (!verdicts)
		return error_memory(err);
	if (remove_attempts(x, verdicts, err) < 0)
		return -1;
	return remove_queued(x, verdicts, err);
}

int ledger_remove(struct ledger *l, const struct remove_order *o, struct remove_report *ret,
		  struct error *err)
{
	_cleanup_(removal_done) struct removal x = {.l = l, .o = o, .report = ret, .batch = BATCH_FIRST};

	return o->ids ? remove_named(&x, err) : remove_old(&x, err);
}

struct tombstone {
	int64_t number, at;
};

static int take_tombstone(void *arg, const struct value *row, struct error *err UNUSED)
{
	struct tombstone *t = arg;

	*t = (struct tombstone){value_to_integer(&row[0], 0), value_to_integer(&row[1], 0)};
	return 0;
}

int ledger_removed(struct ledger *l, const char *id, int number, int64_t *ret, struct error *err)
{
	struct tombstone t = {0};

	if (ledger_run(l, SQL_TOMBSTONE, LEDGER_VALUES(value_text(id), value_integer(number)), take_tombstone,
		       &t, err) < 0)
		return -1;
	*ret = t.at;
	return 0;
}
