/*
 * Submitting: all or none. What is asked of the database is asked for thousands at a time, so that a hundred thousand
 * take a few seconds.
 *
 * Who they come after is locked until the end: one that ends meanwhile either has ended when we look, or finds them.
 */
#include <string.h>

#include "array.h"
#include "queue_submit.h"
#include "text.h"

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
	s->entries = calloc(s->n + 1, sizeof *s->entries);
	s->by_id = calloc(s->n + 1, sizeof(struct entry *));
	if (!s->entries || !s->by_id)
		return error_memory(err);
	for (size_t i = 0; i < s->n; i++) {
		s->entries[i] = (struct entry){.job = &jobs[i], .position = i};
		s->by_id[i] = &s->entries[i];
		if (id_check(jobs[i].id, err) < 0)
			return -1;
	}
	qsort(s->by_id, s->n, sizeof(struct entry *), entry_compare);
	return check_twice(s, err);
}

static int sort_parents(struct submit *s, struct error *err)
{
	size_t all = 0;

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
	s->n_parents = array_sort_distinct(s->parents, all, sizeof *s->parents, known_compare);
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
	bool is_mine = false;

	if (!list)
		return error_memory(err);
	for (size_t i = 0; i < s->n; i++) {
		s->by_id[i]->is_new = s->by_id[i]->replaces = false;
		if (entry_find(s, s->by_id[i]->job->id) == s->by_id[i])
			list[n++].id = s->by_id[i]->job->id;
	}
	if (queue_know(s->l, list, n, s->stamp, err) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		struct entry *e = entry_find(s, list[i].id);

		if (list[i].is_mine)
			is_mine = e->is_new = true;
		else if (!is_mine && submit_decide(s, e, &list[i], err) < 0)
			return -1;
	}
	return is_mine;
}

/* A name that nobody has may be that of an array. */
static int know_array(struct submit *s, struct known *k, struct error *err)
{
	if (array_standing(s->l, k->id, &k->standing, err) < 0)
		return -1;
	if (k->standing != STANDING_ACTIVE)
		return 0;
	if (array_witness(s->l, k->id, NULL, k->witness, err) < 0)
		return -1;
	/* The last has ended in between: how, is looked at once more. */
	return *k->witness ? 0 : array_standing(s->l, k->id, &k->standing, err);
}

int submit_know_parents(struct submit *s, struct error *err)
{
	if (queue_know(s->l, s->parents, s->n_parents, s->stamp, err) < 0)
		return -1;
	for (size_t i = 0; i < s->n_parents; i++) {
		struct known *k = &s->parents[i];

		*k->witness = 0;
		if (k->standing == STANDING_UNKNOWN && !entry_find(s, k->id) && know_array(s, k, err) < 0)
			return -1;
	}
	return 0;
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

	for (size_t i = 0; i < s->n; i++) {
		const struct entry *e = &s->entries[i];

		if ((e->is_new && ids_add(&fresh, e->job->id, err) < 0) ||
		    (e->replaces && ids_add(&replaced, e->job->id, err) < 0))
			return -1;
	}
	return submit_forget(s, &fresh, &replaced, err);
}

/* Whose they are the queue says: it goes last. */
int submit_forget(const struct submit *s, const struct ids *after, const struct ids *queued,
		  struct error *err)
{
	if (queue_run_ids(s->l, SQL_AFTER_FORGET, after->list, after->count, NULL, NULL, NULL, err) < 0)
		return -1;
	return queue_run_ids(s->l, SQL_QUEUE_FORGET, queued->list, queued->count, NULL, NULL, NULL, err);
}

static const char *submitter_of(const struct job *j)
{
	return j->submitter ? j->submitter : "";
}

int submit_add_names(const struct submit *s, struct error *err)
{
	_cleanup_strv_ char **seen = NULL;
	const char *last = NULL;

	for (size_t i = 0; i < s->n; i++) {
		const char *name = submitter_of(s->entries[i].job);
		char **old = seen;

		if (!s->entries[i].is_new || (last && strcmp(last, name) == 0))
			continue;
		last = name;
		while (old && *old && strcmp(*old, name) != 0)
			old++;
		if (old && *old)
			continue;
		if (strv_append(&seen, name, err) < 0)
			return -1;
		if (ledger_do(s->l, SQL_SUBMITTER_ADD, err, value_text(name)) < 0)
			return -1;
	}
	return 0;
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

	return ledger_rows_add(s->l, row, err);
}

char *submit_inputs(const struct job *j)
{
	json_auto_t *inputs = inputs_to_json(&j->inputs);

	return inputs ? json_dumps(inputs, JSON_COMPACT) : NULL;
}

static int add_job(struct submit *s, const struct entry *e, struct error *err)
{
	const struct job *j = e->job;
	_cleanup_free_ char *request = json_dumps(j->request, JSON_COMPACT), *inputs = submit_inputs(j);
	enum job_state state = JOB_QUEUED;

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

/* Rows of each that is new. */
static int add_rows(struct submit *s, enum sql_table table,
		    int (*add)(struct submit *s, const struct entry *e, struct error *err), struct error *err)
{
	if (ledger_rows_begin(s->l, table, err) < 0)
		return -1;
	for (size_t i = 0; i < s->n; i++)
		if (s->entries[i].is_new && add(s, &s->entries[i], err) < 0)
			return -1;
	return ledger_rows_end(s->l, err);
}

static bool named_before(char *const *after, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (strcmp(after[k], after[i]) == 0)
			return true;
	return false;
}

/* Unless it is named itself. */
static int add_witness(struct submit *s, const char *id, char *const *after, const char *array,
		       struct error *err)
{
	const struct known key = {.id = array};
	const struct known *k = bsearch(&key, s->parents, s->n_parents, sizeof key, known_compare);

	if (!k || !*k->witness)
		return 0;
	for (; after && *after; after++)
		if (strcmp(*after, k->witness) == 0)
			return 0;
	return ledger_rows_add(
		s->l, (struct value[]){value_text(id), value_text(k->witness), value_bool(false)}, err);
}

int submit_add_parent(struct submit *s, const char *id, char *const *after, const char *parent, bool is_met,
		      struct error *err)
{
	const struct value row[] = {value_text(id), value_text(parent), value_bool(is_met)};

	if (ledger_rows_add(s->l, row, err) < 0)
		return -1;
	return add_witness(s, id, after, parent, err);
}

static int add_after(struct submit *s, const struct entry *e, struct error *err)
{
	char *const *after = e->job->after;

	for (size_t i = 0; after && after[i]; i++)
		if (!named_before(after, i) &&
		    submit_add_parent(s, e->job->id, after, after[i], check_after(s, e, after[i], err) == 1,
				      err) < 0)
			return -1;
	return 0;
}

int submit_stamp(struct submit *s, struct error *err)
{
	if (s->stamp == 0 && queue_now(s->l, &s->stamp, err) < 0)
		return -1;
	s->stamp = s->stamp / 1000 * 1000;
	return 0;
}

static int store(struct ledger *l, void *arg, struct error *err)
{
	struct submit *s = arg;
	int r;

	claim_memory_forget(l);
	if (s->array)
		return submit_store_array(s, err);
	r = decide(s, err);
	if (r != 0)
		return r;
	if (submit_stamp(s, err) < 0 || submit_know_parents(s, err) < 0 || forget_replaced(s, err) < 0 ||
	    submit_add_names(s, err) < 0 || commit_blobs(&s->contents, err) < 0 ||
	    add_rows(s, TABLE_QUEUE, add_job, err) < 0 || submit_check_names(s, err) < 0 ||
	    (s->n_parents && add_rows(s, TABLE_QUEUE_AFTER, add_after, err) < 0))
		return -1;
	return queue_ring(l, err);
}

static int submit(struct submit *s, const struct job *jobs, struct error *err)
{
	struct objects *objects = &s->l->objects;
	bool was_holding = objects->holding;
	int r;

	if (sort_entries(s, jobs, err) < 0 || sort_parents(s, err) < 0 || list_inputs(s, err) < 0)
		return -1;
	r = commit_secured(&s->contents, store, s, err);
	if (!was_holding)
		objects_release(objects);
	return r;
}

int ledger_submit(struct ledger *l, const struct job *jobs, size_t n, unsigned flags, content_open_fn open,
		  void *arg, bool *ret_new, struct error *err)
{
	_cleanup_(submit_done) struct submit s = {
		.l = l, .flags = flags, .n = n, .contents = {.l = l, .open = open, .arg = arg}};

	if (submit(&s, jobs, err) < 0)
		return -1;
	for (size_t i = 0; i < n && ret_new; i++)
		ret_new[i] = s.entries[i].is_new;
	return 0;
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
