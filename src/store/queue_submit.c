/*
 * Submitting: all or none. What is asked of the database is asked for thousands at a time, so that a hundred thousand
 * take a few seconds.
 *
 * Who they come after is locked until the end: one that ends meanwhile either has ended when we look, or finds them.
 */
#include <errno.h>
#include <string.h>

#include "queue_submit.h"
#include "text.h"

enum { SECURE_TRIES = 5 };

static void submit_done(struct submit *s)
{
	free(s->entries);
	free(s->by_id);
	free(s->parents);
	free(s->outputs);
	commit_done(&s->contents);
}

static int entry_compare(const void *a, const void *b)
{
	const struct entry *x = *(struct entry *const *)a, *y = *(struct entry *const *)b;
	int n = strcmp(x->job->id, y->job->id);

	return n ? n : (x->position > y->position) - (x->position < y->position);
}

/* The first of the batch with this id. */
static struct entry *entry_find(const struct submit *s, const char *id)
{
	size_t low = 0, high = s->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(s->by_id[middle]->job->id, id) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < s->n && strcmp(s->by_id[low]->job->id, id) == 0 ? s->by_id[low] : NULL;
}

/* The same id twice in a batch: the second is known by then. */
static int check_twice(const struct submit *s, struct error *err)
{
	for (size_t i = 1; i < s->n; i++) {
		if (strcmp(s->by_id[i - 1]->job->id, s->by_id[i]->job->id) != 0)
			continue;
		if (!(s->flags & SUBMIT_IF_ABSENT))
			return error_set(err, ERROR_REFUSED, "'%s' is there twice: submit it once",
					 s->by_id[i]->job->id);
	}
	return 0;
}

static int sort_entries(struct submit *s, const struct job *jobs, struct error *err)
{
	int r = 0;

	s->entries = calloc(s->n + 1, sizeof *s->entries);
	s->by_id = calloc(s->n + 1, sizeof(struct entry *));
	if (!s->entries || !s->by_id)
		return error_memory(err);
	for (size_t i = 0; i < s->n && r == 0; i++) {
		s->entries[i] = (struct entry){.job = &jobs[i], .position = i};
		s->by_id[i] = &s->entries[i];
		r = id_check(jobs[i].id, err);
	}
	qsort(s->by_id, s->n, sizeof(struct entry *), entry_compare);
	return r < 0 ? r : check_twice(s, err);
}

static int sort_parents(struct submit *s, struct error *err)
{
	size_t all = 0, n = 0;

	for (size_t i = 0; i < s->n; i++)
		all += strv_length(s->entries[i].job->after);
	s->parents = calloc(all + 1, sizeof *s->parents);
	if (!s->parents)
		return error_memory(err);
	for (size_t i = 0, k = 0; i < s->n; i++)
		for (char **a = s->entries[i].job->after; a && *a; a++) {
			int r = id_check(*a, err);

			if (r < 0)
				return error_prefix(err, r, "cannot submit '%s'", s->entries[i].job->id);
			s->parents[k++].id = *a;
		}
	qsort(s->parents, all, sizeof *s->parents, known_compare);
	for (size_t i = 0; i < all; i++)
		if (i == 0 || known_compare(&s->parents[i], &s->parents[n - 1]) != 0)
			s->parents[n++] = s->parents[i];
	s->n_parents = n;
	return 0;
}

/* Inputs that many have in common are stored once. */
static int list_inputs(struct submit *s, struct error *err)
{
	size_t all = 0, k = 0;

	for (size_t i = 0; i < s->n; i++)
		all += s->entries[i].job->inputs.count;
	s->outputs = calloc(all + 1, sizeof *s->outputs);
	if (!s->outputs)
		return error_memory(err);
	for (size_t i = 0; i < s->n; i++) {
		const struct inputs *in = &s->entries[i].job->inputs;

		for (size_t n = 0; n < in->count; n++) {
			struct output *o = &s->outputs[k++];

			*o = (struct output){.path = in->list[n].source ? in->list[n].source
									: in->list[n].path,
					     .size = in->list[n].size};
			memcpy(o->sha256, in->list[n].sha256, DIGEST_SIZE);
		}
	}
	return commit_list(&s->contents, s->outputs, all, err);
}

/* ---- what the ledger knows ---- */

int submit_decide(const struct submit *s, struct entry *e, const struct known *k, struct error *err)
{
	e->is_new = e->replaces = false;
	if (k->standing == STANDING_UNKNOWN) {
		e->is_new = true;
		return 0;
	}
	if (s->flags & SUBMIT_IF_ABSENT)
		return 0;
	if (k->standing == STANDING_ACTIVE)
		return error_set(err, ERROR_BUSY, "cannot submit '%s': it is in the queue already",
				 e->job->id);
	if (!e->job->again)
		return error_set(
			err, ERROR_REFUSED,
			"cannot submit '%s': there is an analysis of this name already; choose another, or --again "
			"for another attempt of it",
			e->job->id);
	e->is_new = e->replaces = true;
	return 0;
}

/* 1: all of it is there, from an earlier try of ours. */
static int decide(struct submit *s, struct error *err)
{
	_cleanup_free_ struct known *list = calloc(s->n + 1, sizeof *list);
	size_t n = 0;
	int r;

	if (!list)
		return error_memory(err);
	for (size_t i = 0; i < s->n; i++) {
		s->by_id[i]->is_new = s->by_id[i]->replaces = false;
		if (entry_find(s, s->by_id[i]->job->id) == s->by_id[i])
			list[n++].id = s->by_id[i]->job->id;
	}
	r = queue_know(s->l, list, n, s->stamp, err);
	for (size_t i = 0; i < n && r >= 0; i++) {
		struct entry *e = entry_find(s, list[i].id);

		if (list[i].is_mine)
			r = e->is_new = true;
		else if (r == 0)
			r = submit_decide(s, e, &list[i], err);
	}
	return r;
}

/* A name that nobody has may be that of an array. */
int submit_know_parents(struct submit *s, struct error *err)
{
	int r = queue_know(s->l, s->parents, s->n_parents, s->stamp, err);

	for (size_t i = 0; i < s->n_parents && r == 0; i++) {
		struct known *k = &s->parents[i];

		*k->witness = 0;
		if (k->standing == STANDING_UNKNOWN && !entry_find(s, k->id))
			r = array_standing(s->l, k->id, &k->standing, err);
		else
			continue;
		if (r == 0 && k->standing == STANDING_ACTIVE)
			r = array_witness(s->l, k->id, NULL, k->witness, err);
		/* The last has ended in between: how, is looked at once more. */
		if (r == 0 && k->standing == STANDING_ACTIVE && !*k->witness)
			r = array_standing(s->l, k->id, &k->standing, err);
	}
	return r;
}

int submit_check_parent(const char *id, const struct known *parent, struct error *err)
{
	switch (parent->standing) {
	case STANDING_ACTIVE:
		return 0;
	case STANDING_SUCCEEDED:
		return 1;
	case STANDING_ENDED:
		return error_set(err, ERROR_REFUSED, "cannot submit '%s' after '%s', which did not succeed",
				 id, parent->id);
	default:
		return error_set(err, ERROR_REFUSED, "cannot submit '%s' after '%s', which nobody knows", id,
				 parent->id);
	}
}

/* Is it met already? 1, 0, negative. */
static int check_after(const struct submit *s, const struct entry *e, const char *after, struct error *err)
{
	const struct entry *other = entry_find(s, after);
	const struct known key = {.id = after};
	const struct known *k = bsearch(&key, s->parents, s->n_parents, sizeof key, known_compare);

	if (other && other->is_new && other->position < e->position)
		return 0;
	if (other && other->is_new)
		return error_set(
			err, ERROR_REFUSED,
			"cannot submit '%s' after '%s', which comes later in the same list: put it first",
			e->job->id, after);
	return submit_check_parent(e->job->id, k, err);
}

/* ---- storing ---- */

/* Who a new one came after once, before its row was removed, is forgotten as well. */
static int forget_replaced(const struct submit *s, struct error *err)
{
	_cleanup_ids_ struct ids fresh = {0}, replaced = {0};
	int r = 0;

	for (size_t i = 0; i < s->n && r == 0; i++) {
		if (s->entries[i].is_new)
			r = ids_add(&fresh, s->entries[i].job->id, err);
		if (r == 0 && s->entries[i].replaces)
			r = ids_add(&replaced, s->entries[i].job->id, err);
	}
	/* Whose they are the queue says: it goes last. */
	if (r == 0)
		r = queue_run_ids(s->l, SQL_AFTER_FORGET, fresh.list, fresh.count, NULL, NULL, NULL, err);
	return r < 0 ? r
		     : queue_run_ids(s->l, SQL_QUEUE_FORGET, replaced.list, replaced.count, NULL, NULL, NULL,
				     err);
}

static const char *submitter_of(const struct job *j)
{
	return j->submitter ? j->submitter : "";
}

int submit_add_names(const struct submit *s, struct error *err)
{
	_cleanup_strv_ char **seen = NULL;
	const char *last = NULL;
	int r = 0;

	for (size_t i = 0; i < s->n && r == 0; i++) {
		const char *name = submitter_of(s->entries[i].job);
		struct value param = value_text(name);
		char **old = seen;

		if (!s->entries[i].is_new || (last && strcmp(last, name) == 0))
			continue;
		last = name;
		while (old && *old && strcmp(*old, name) != 0)
			old++;
		if (old && *old)
			continue;
		r = strv_append(&seen, name) < 0
			    ? error_memory(err)
			    : ledger_run(s->l, SQL_SUBMITTER_ADD, &param, 1, NULL, NULL, err);
	}
	return r;
}

int submit_add_job(struct submit *s, const struct job *j, const char *id, enum job_state state,
		   const char *request, const char *inputs, struct error *err)
{
	const struct value row[] = {
		value_text(id),
		value_text(job_state_name(state)),
		value_text(submitter_of(j)),
		value_integer(j->priority),
		value_integer(j->retries),
		value_integer(j->retry_on),
		value_bool(j->again),
		value_integer(0),
		value_json(request),
		value_json(inputs),
		value_integer((int64_t)j->memory_bytes),
		value_integer((int64_t)j->cpus_milli),
		value_time(s->stamp),
		value_integer(0),
		value_bool(false),
	};

	return s->l->backend->ops->rows_add(s->l->backend, row, err);
}

static int add_job(struct submit *s, const struct entry *e, struct error *err)
{
	const struct job *j = e->job;
	json_t *inputs_json = inputs_to_json(&j->inputs);
	_cleanup_free_ char *request = json_dumps(j->request, JSON_COMPACT);
	_cleanup_free_ char *inputs = inputs_json ? json_dumps(inputs_json, JSON_COMPACT) : NULL;
	enum job_state state = JOB_QUEUED;

	json_decref(inputs_json);
	if (!request || !inputs)
		return error_memory(err);
	for (char **a = j->after; a && *a; a++) {
		int met = check_after(s, e, *a, err);

		if (met < 0)
			return met;
		if (met == 0)
			state = JOB_WAITING;
	}
	return submit_add_job(s, j, j->id, state, request, inputs, err);
}

static int add_jobs(struct submit *s, struct error *err)
{
	struct backend *b = s->l->backend;
	int r = b->ops->rows_begin(b, TABLE_QUEUE, err);

	for (size_t i = 0; i < s->n && r == 0; i++)
		if (s->entries[i].is_new)
			r = add_job(s, &s->entries[i], err);
	return r < 0 ? r : b->ops->rows_end(b, err);
}

static bool named_before(char *const *after, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (strcmp(after[k], after[i]) == 0)
			return true;
	return false;
}

/* Unless it is named itself. */
int submit_add_witness(struct submit *s, const char *id, char *const *after, const char *array,
		       struct error *err)
{
	const struct known key = {.id = array};
	const struct known *k = bsearch(&key, s->parents, s->n_parents, sizeof key, known_compare);
	struct value row[3];

	if (!k || !*k->witness)
		return 0;
	for (; after && *after; after++)
		if (strcmp(*after, k->witness) == 0)
			return 0;
	row[0] = value_text(id);
	row[1] = value_text(k->witness);
	row[2] = value_bool(false);
	return s->l->backend->ops->rows_add(s->l->backend, row, err);
}

static int add_after(struct submit *s, const struct entry *e, struct error *err)
{
	int r = 0;

	for (size_t i = 0; e->job->after && e->job->after[i] && r == 0; i++) {
		const struct value row[] = {
			value_text(e->job->id),
			value_text(e->job->after[i]),
			value_bool(check_after(s, e, e->job->after[i], err) == 1),
		};

		if (!named_before(e->job->after, i))
			r = s->l->backend->ops->rows_add(s->l->backend, row, err);
		if (r == 0 && !named_before(e->job->after, i))
			r = submit_add_witness(s, e->job->id, e->job->after, e->job->after[i], err);
	}
	return r;
}

static int add_afters(struct submit *s, struct error *err)
{
	struct backend *b = s->l->backend;
	int r = s->n_parents ? b->ops->rows_begin(b, TABLE_QUEUE_AFTER, err) : 0;

	for (size_t i = 0; i < s->n && r == 0; i++)
		if (s->entries[i].is_new)
			r = add_after(s, &s->entries[i], err);
	return r < 0 || !s->n_parents ? r : b->ops->rows_end(b, err);
}

static int store(struct ledger *l, void *arg, struct error *err)
{
	static int (*const steps[])(const struct submit *, struct error *) = {forget_replaced,
									      submit_add_names};
	struct submit *s = arg;
	int r;

	claim_memory_forget(l);
	if (s->array)
		return submit_store_array(s, err);
	r = decide(s, err);
	/* Only what is found by a later try can be ours. */
	if (r == 0 && s->stamp == 0)
		r = queue_now(l, &s->stamp, err);
	s->stamp = s->stamp / 1000 * 1000;
	if (r == 0)
		r = submit_know_parents(s, err);
	for (size_t i = 0; i < ARRAY_SIZE(steps) && r == 0; i++)
		r = steps[i](s, err);
	if (r == 0)
		r = commit_blobs(&s->contents, err);
	if (r == 0)
		r = add_jobs(s, err);
	if (r == 0)
		r = submit_check_names(s, err);
	if (r == 0)
		r = add_afters(s, err);
	return r != 0 ? r : queue_ring(l, err);
}

static int submit(struct submit *s, const struct job *jobs, struct error *err)
{
	struct ledger *l = s->l;
	bool was_holding = l->objects.holding;
	int r = sort_entries(s, jobs, err);

	if (r == 0)
		r = sort_parents(s, err);
	if (r == 0)
		r = list_inputs(s, err);
	for (int tries = SECURE_TRIES; r == 0 && tries > 0; tries--) {
		r = commit_secure(&s->contents, err);
		if (r == 0)
			r = commit_stage(&s->contents, err);
		if (r == 0)
			r = queue_transaction(l, store, s, err);
		if (r != -ESTALE)
			break;
		r = tries > 1 ? 0 : r; /* what was put has been swept meanwhile */
	}
	if (!was_holding)
		objects_release(&l->objects);
	return r;
}

int ledger_submit(struct ledger *l, const struct job *jobs, size_t n, unsigned flags, content_open_fn open,
		  void *arg, bool *ret_new, struct error *err)
{
	_cleanup_(submit_done) struct submit s = {
		.l = l, .flags = flags, .n = n, .contents = {.l = l, .open = open, .arg = arg}};
	int r = submit(&s, jobs, err);

	for (size_t i = 0; i < n && r == 0 && ret_new; i++)
		ret_new[i] = s.entries[i].is_new;
	return r;
}

int ledger_submit_array(struct ledger *l, const struct job_array *a, unsigned flags, content_open_fn open,
			void *arg, bool *ret_new, struct error *err)
{
	_cleanup_(submit_done) struct submit s = {.l = l,
						  .flags = flags,
						  .n = 1,
						  .contents = {.l = l, .open = open, .arg = arg},
						  .array = a,
						  .fresh = ret_new};

	return submit(&s, a->job, err);
}
