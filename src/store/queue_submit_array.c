/*
 * An array goes in as one: what its tasks have in common is looked at once, and each is only a row that is made, sent and
 * forgotten. Whether an id is known is asked for the whole range first, where mostly nobody is.
 */
#include <stdio.h>
#include <string.h>

#include "queue_submit.h"
#include "text.h"

enum { CHUNK = 4096 };

/* ---- a task's words ---- */

static int fill_mark(struct buffer *out, const char *text, const char *mark, unsigned task)
{
	const char *at;
	char number[16];
	int r = 0;

	snprintf(number, sizeof number, "%u", task);
	out->size = 0;
	for (; r == 0 && (at = strstr(text, mark)); text = at + strlen(mark)) {
		r = buffer_append(out, text, (size_t)(at - text));
		if (r == 0)
			r = buffer_puts(out, number);
	}
	return r < 0 ? r : buffer_puts(out, text);
}

void job_array_id(const struct job_array *a, size_t i, char out[ID_ROOM])
{
	const char *at = strstr(a->job->id, a->mark);

	if (!at)
		snprintf(out, ID_ROOM, "%s", a->job->id);
	else
		snprintf(out, ID_ROOM, "%.*s%u%s", (int)(at - a->job->id), a->job->id, a->first + (unsigned)i,
			 at + strlen(a->mark));
}

size_t job_array_count(const struct job_array *a)
{
	return (size_t)a->last - a->first + 1;
}

/* ---- which of them are new ---- */

struct range {
	char low[ID_ROOM], high[ID_ROOM + 1];
	bool is_known, has_after;
};

static int take_range(void *arg, const struct value *row, struct error *err UNUSED)
{
	struct range *range = arg;

	range->is_known = value_to_integer(&row[0], 0) || value_to_integer(&row[1], 0);
	range->has_after = value_to_integer(&row[2], 0) != 0;
	return 0;
}

static int look_at_range(const struct submit *s, struct range *range, struct error *err)
{
	struct value params[2];
	char id[ID_ROOM];

	for (size_t i = 0; i < job_array_count(s->array); i++) {
		job_array_id(s->array, i, id);
		if (i == 0 || strcmp(id, range->low) < 0)
			memcpy(range->low, id, sizeof id);
		if (i == 0 || strcmp(id, range->high) > 0)
			memcpy(range->high, id, sizeof id);
	}
	/* With those whose array has the name of a task. */
	memcpy(range->high + strlen(range->high), "/", 2);
	params[0] = value_text(range->low);
	params[1] = value_text(range->high);
	return ledger_run(s->l, SQL_RANGE_KNOWN, params, 2, take_range, range, err);
}

struct chunk {
	char ids[CHUNK][ID_ROOM];
	struct known known[CHUNK];
	size_t n;
};

static void chunk_fill(struct chunk *c, const struct job_array *a, size_t first)
{
	for (c->n = 0; c->n < CHUNK && first + c->n < job_array_count(a); c->n++) {
		job_array_id(a, first + c->n, c->ids[c->n]);
		c->known[c->n] = (struct known){.id = c->ids[c->n]};
	}
	qsort(c->known, c->n, sizeof c->known[0], known_compare);
}

/* Those that replace one that has ended go at once. 1: they are there, from an earlier try of ours. */
static int decide_chunk(struct submit *s, struct chunk *c, size_t first, struct error *err)
{
	_cleanup_ids_ struct ids replaced = {0}, fresh = {0};
	bool is_mine = false;
	int r = queue_know(s->l, c->known, c->n, s->stamp, err);

	for (size_t i = 0; r == 0 && i < c->n; i++) {
		struct job named = *s->array->job;
		struct entry e = {.job = &named};
		const struct known *k = &c->known[i];
		/* The place of the id among the tasks. */
		size_t place = first + (size_t)(k->id - c->ids[0]) / ID_ROOM;

		snprintf(named.id, sizeof named.id, "%s", k->id);
		is_mine |= k->is_mine;
		if (k->is_mine)
			e.is_new = true;
		else
			r = submit_decide(s, &e, k, err);
		s->fresh[place] = e.is_new;
		if (r == 0 && e.replaces)
			r = ids_add(&replaced, k->id, err);
		if (r == 0 && e.is_new)
			r = ids_add(&fresh, k->id, err);
	}
	if (r == 0)
		r = submit_check_no_array(s, fresh.list, fresh.count, err);
	if (r == 0)
		r = queue_run_ids(s->l, SQL_AFTER_FORGET, replaced.list, replaced.count, NULL, NULL, NULL,
				  err);
	if (r == 0)
		r = queue_run_ids(s->l, SQL_QUEUE_FORGET, replaced.list, replaced.count, NULL, NULL, NULL,
				  err);
	return r < 0 ? r : is_mine;
}

static int decide(struct submit *s, struct range *range, struct error *err)
{
	_cleanup_free_ struct chunk *c = NULL;
	size_t n = job_array_count(s->array);
	int r = look_at_range(s, range, err), mine = 0;

	memset(s->fresh, true, n);
	if (r < 0 || !range->is_known)
		return r;
	c = malloc(sizeof *c);
	if (!c)
		return error_memory(err);
	for (size_t i = 0; i < n && r >= 0; i += c->n) {
		chunk_fill(c, s->array, i);
		r = decide_chunk(s, c, i, err);
		mine |= r > 0;
	}
	return r < 0 ? r : mine;
}

/* ---- storing ---- */

/* What was left of one whose row was removed. */
static int forget_after(const struct submit *s, struct error *err)
{
	_cleanup_ids_ struct ids ids = {0};
	char id[ID_ROOM];
	int r = 0;

	for (size_t i = 0; i < job_array_count(s->array) && r == 0; i++) {
		job_array_id(s->array, i, id);
		if (s->fresh[i])
			r = ids_add(&ids, id, err);
	}
	return r < 0 ? r : queue_run_ids(s->l, SQL_AFTER_FORGET, ids.list, ids.count, NULL, NULL, NULL, err);
}

/* The state that all of them begin in. */
static int look_at_parents(struct submit *s, enum job_state *ret, struct error *err)
{
	int r = submit_know_parents(s, err);

	*ret = JOB_QUEUED;
	for (size_t i = 0; i < s->n_parents && r == 0; i++) {
		int met = submit_check_parent(s->array->name, &s->parents[i], err);

		if (met < 0)
			r = met;
		else if (met == 0)
			*ret = JOB_WAITING;
	}
	return r;
}

static int add_rows(struct submit *s, enum job_state state, struct error *err)
{
	const struct job_array *a = s->array;
	struct backend *b = s->l->backend;
	json_t *inputs_json = inputs_to_json(&a->job->inputs);
	_cleanup_free_ char *inputs = inputs_json ? json_dumps(inputs_json, JSON_COMPACT) : NULL;
	_cleanup_free_ char *pattern = json_dumps(a->job->request, JSON_COMPACT);
	_cleanup_buffer_ struct buffer request = {0};
	char id[ID_ROOM];
	int r;

	json_decref(inputs_json);
	if (!inputs || !pattern)
		return error_memory(err);
	r = b->ops->rows_begin(b, TABLE_QUEUE, err);
	for (size_t i = 0; i < job_array_count(a) && r == 0; i++) {
		if (!s->fresh[i])
			continue;
		job_array_id(a, i, id);
		r = fill_mark(&request, pattern, a->mark, a->first + (unsigned)i) < 0
			    ? error_memory(err)
			    : submit_add_job(s, a->job, id, state, request.data, inputs, err);
	}
	return r < 0 ? r : b->ops->rows_end(b, err);
}

static int add_parents(struct submit *s, struct error *err)
{
	struct backend *b = s->l->backend;
	char id[ID_ROOM];
	int r = b->ops->rows_begin(b, TABLE_QUEUE_AFTER, err);

	for (size_t i = 0; i < job_array_count(s->array) && r == 0; i++) {
		job_array_id(s->array, i, id);
		for (size_t k = 0; s->fresh[i] && k < s->n_parents && r == 0; k++) {
			const struct value row[] = {
				value_text(id),
				value_text(s->parents[k].id),
				value_bool(s->parents[k].standing == STANDING_SUCCEEDED),
			};

			r = b->ops->rows_add(b, row, err);
			if (r == 0)
				r = submit_add_witness(s, id, s->array->job->after, s->parents[k].id, err);
		}
	}
	return r < 0 ? r : b->ops->rows_end(b, err);
}

/* If one of its tasks is new. */
static int check_name(const struct submit *s, struct error *err)
{
	const bool *fresh = memchr(s->fresh, 1, job_array_count(s->array));
	char id[ID_ROOM], name[ID_ROOM];

	if (!fresh)
		return 0;
	job_array_id(s->array, (size_t)(fresh - s->fresh), id);
	return array_of(id, name) ? submit_check_array(s, name, id, err) : 0;
}

int submit_store_array(struct submit *s, struct error *err)
{
	struct range range = {.is_known = true};
	enum job_state state = JOB_QUEUED;
	int r = decide(s, &range, err);

	if (r == 0)
		r = check_name(s, err);
	if (r == 0 && s->stamp == 0)
		r = queue_now(s->l, &s->stamp, err);
	s->stamp = s->stamp / 1000 * 1000;
	if (r == 0)
		r = look_at_parents(s, &state, err);
	if (r == 0 && range.has_after)
		r = forget_after(s, err);
	s->entries[0].is_new = true; /* its job stands for all */
	if (r == 0)
		r = submit_add_names(s, err);
	if (r == 0)
		r = commit_blobs(&s->contents, err);
	if (r == 0)
		r = add_rows(s, state, err);
	if (r == 0 && s->n_parents)
		r = add_parents(s, err);
	/* A million rows took their time. */
	if (r == 0)
		r = check_name(s, err);
	return r != 0 ? r : queue_ring(s->l, err);
}
