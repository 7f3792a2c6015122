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

	out->size = 0;
	for (; (at = strstr(text, mark)); text = at + strlen(mark)) {
		buffer_append(out, text, (size_t)(at - text));
		buffer_printf(out, "%u", task);
	}
	return buffer_puts(out, text);
}

void job_array_id(const struct job_array *a, size_t i, char out[ID_ROOM])
{
	const char *at = strstr(a->job->id, a->mark);

	if (!at)
		snprintf(out, ID_ROOM, "%s", a->job->id);
	else
		snprintf(out, ID_ROOM, "%.*s%u%s", (int)(at - a->job->id), a->job->id, a->tasks->list[i],
			 at + strlen(a->mark));
}

size_t job_array_count(const struct job_array *a)
{
	return a->tasks->count;
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
	return ledger_run(s->l, SQL_RANGE_KNOWN,
			  LEDGER_VALUES(value_text(range->low), value_text(range->high)), take_range, range,
			  err);
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

	if (queue_know(s->l, c->known, c->n, s->stamp, err) < 0)
		return -1;
	for (size_t i = 0; i < c->n; i++) {
		struct job named = *s->array->job;
		struct entry e = {.job = &named};
		const struct known *k = &c->known[i];
		/* The place of the id among the tasks. */
		size_t place = first + (size_t)(k->id - c->ids[0]) / ID_ROOM;

		snprintf(named.id, sizeof named.id, "%s", k->id);
		is_mine |= k->is_mine;
		if (k->is_mine)
			e.is_new = true;
		else if (submit_decide(s, &e, k, err) < 0)
			return -1;
		s->fresh[place] = e.is_new;
		if ((e.replaces && ids_add(&replaced, k->id, err) < 0) ||
		    (e.is_new && ids_add(&fresh, k->id, err) < 0))
			return -1;
	}
	if (submit_check_no_array(s, fresh.list, fresh.count, err) < 0 ||
	    submit_forget(s, &replaced, &replaced, err) < 0)
		return -1;
	return is_mine;
}

static int decide(struct submit *s, struct range *range, struct error *err)
{
	_cleanup_free_ struct chunk *c = NULL;
	size_t n = job_array_count(s->array);
	int mine = 0;

	memset(s->fresh, true, n);
	if (look_at_range(s, range, err) < 0)
		return -1;
	if (!range->is_known)
		return 0;
	c = malloc(sizeof *c);
	if (!c)
		return error_memory(err);
	for (size_t i = 0; i < n; i += c->n) {
		int r;

		chunk_fill(c, s->array, i);
		r = decide_chunk(s, c, i, err);
		if (r < 0)
			return r;
		mine |= r;
	}
	return mine;
}

/* ---- storing ---- */

/* What was left of one whose row was removed. */
static int forget_after(const struct submit *s, struct error *err)
{
	_cleanup_ids_ struct ids ids = {0}, none = {0};
	char id[ID_ROOM];

	for (size_t i = 0; i < job_array_count(s->array); i++) {
		job_array_id(s->array, i, id);
		if (s->fresh[i] && ids_add(&ids, id, err) < 0)
			return -1;
	}
	return submit_forget(s, &ids, &none, err);
}

/* The state that all of them begin in. */
static int look_at_parents(struct submit *s, enum job_state *ret, struct error *err)
{
	if (submit_know_parents(s, err) < 0)
		return -1;
	*ret = JOB_QUEUED;
	for (size_t i = 0; i < s->n_parents; i++) {
		int met = submit_check_parent(s->array->name, &s->parents[i], err);

		if (met < 0)
			return met;
		if (met == 0)
			*ret = JOB_WAITING;
	}
	return 0;
}

static int add_rows(struct submit *s, enum job_state state, struct error *err)
{
	const struct job_array *a = s->array;
	_cleanup_free_ char *inputs = submit_inputs(a->job),
			    *pattern = json_dumps(a->job->request, JSON_COMPACT);
	_cleanup_buffer_ struct buffer request = {0};
	char id[ID_ROOM];

	if (!inputs || !pattern)
		return error_memory(err);
	if (ledger_rows_begin(s->l, TABLE_QUEUE, err) < 0)
		return -1;
	for (size_t i = 0; i < job_array_count(a); i++) {
		if (!s->fresh[i])
			continue;
		job_array_id(a, i, id);
		if (fill_mark(&request, pattern, a->mark, a->tasks->list[i]) < 0)
			return error_memory(err);
		if (submit_add_job(s, a->job, id, state, request.data, inputs, err) < 0)
			return -1;
	}
	return ledger_rows_end(s->l, err);
}

static int add_parents(struct submit *s, struct error *err)
{
	char id[ID_ROOM];

	if (ledger_rows_begin(s->l, TABLE_QUEUE_AFTER, err) < 0)
		return -1;
	for (size_t i = 0; i < job_array_count(s->array); i++) {
		job_array_id(s->array, i, id);
		for (size_t k = 0; s->fresh[i] && k < s->n_parents; k++)
			if (submit_add_parent(s, id, s->array->job->after, s->parents[k].id,
					      s->parents[k].standing == STANDING_SUCCEEDED, err) < 0)
				return -1;
	}
	return ledger_rows_end(s->l, err);
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

	if (r != 0)
		return r;
	s->entries[0].is_new = true; /* its job stands for all */
	if (check_name(s, err) < 0 || submit_stamp(s, err) < 0 || look_at_parents(s, &state, err) < 0 ||
	    (range.has_after && forget_after(s, err) < 0) || submit_add_names(s, err) < 0 ||
	    commit_blobs(&s->contents, err) < 0 || add_rows(s, state, err) < 0 ||
	    (s->n_parents && add_parents(s, err) < 0) ||
	    check_name(s, err) < 0) /* a million rows took their time */
		return -1;
	return queue_ring(s->l, err);
}
