/*
 * Reading attempts, in a list or one as a whole. An attempt never changes once it is committed, so
 * no transaction is needed over the several tables.
 */
#include "columns.h"
#include "store.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "array.h"
#include "id.h"
#include "output_glob.h"
#include "queue.h"
#include "remove.h"
#include "text.h"

enum { LIST_PAGE = 500, LIST_AMOUNT = VALUE_AMOUNT_MAX / 2, FEW_IDS = 2000 };

/* A page of the list, read whole before it is told. */
struct list {
	const struct ledger_filter *filter;
	struct attempt *rows;
	size_t n, n_read; /* those that the pattern wants, and all */
	size_t amount;	  /* of memory; beyond LIST_AMOUNT the page ends early */
	int64_t before;	  /* where the next page begins: earlier than that, or as early with a lower id */
	char before_id[ID_ROOM];
	enum sql statement;
	const char *verdict;   /* the only one */
	char end[ID_ROOM + 1]; /* of the prefix */
};

static void list_done(struct list *list)
{
	for (size_t i = 0; i < list->n; i++)
		attempt_done(&list->rows[i]);
	free(list->rows);
	list->rows = NULL;
	list->n = list->n_read = list->amount = 0;
}

/* The owner, and n of its columns; sum counts what they take of memory. */
static int load_attempt(struct attempt *a, size_t n, const struct value *row, size_t *sum, struct error *err)
{
	for (size_t i = 0; i <= n; i++)
		*sum += value_amount(&row[i]);
	if (*sum > VALUE_AMOUNT_MAX)
		return error_set(err, ERROR_LEDGER, "the ledger holds an attempt larger than any can be");
	a->committed = true;
	if (value_to_text(&row[0], &a->owner, err) < 0)
		return -1;
	return columns_read(TABLE_ATTEMPT, n, row + 1, a, err);
}

static int list_row(void *arg, const struct value *row, struct error *err)
{
	_cleanup_attempt_ struct attempt a;
	struct list *list = arg;
	const char *pattern = list->filter->pattern;
	struct attempt *added;

	list->n_read++;
	if (list->amount > LIST_AMOUNT)
		return 0;
	attempt_init(&a);
	if (load_attempt(&a, ATTEMPT_LISTED, row, &list->amount, err) < 0)
		return -1;
	list->before = a.created;
	/* As it stands there, or the next page could begin with it again. */
	snprintf(list->before_id, sizeof list->before_id, "%s", value_words(&row[1]));
	if (pattern && !output_glob_match(pattern, a.id))
		return 0;
	added = ARRAY_ADD(list->rows, list->n);
	if (!added)
		return error_memory(err);
	*added = a;
	attempt_init(&a);
	return 0;
}

char *verdicts_text(unsigned verdicts)
{
	json_auto_t *names = json_array();

	for (int v = 0; v < VERDICT_COUNT; v++)
		if (verdicts & 1U << v && json_array_append_new(names, json_string(verdict_name(v))) < 0)
			return NULL;
	return json_dumps(names, JSON_COMPACT);
}

/* By which index: of few ids, of one verdict, or of the time. What is common is found soon by its time; what is rare is not. */
static int choose_statement(struct list *list, struct ledger *l, struct error *err)
{
	const struct ledger_filter *f = list->filter;
	int64_t many = 0;

	list->statement = SQL_LIST;
	for (int v = 0; v < VERDICT_COUNT; v++)
		if (f->verdicts == 1U << v) {
			list->statement = SQL_LIST_VERDICT;
			list->verdict = verdict_name(v);
		}
	if (!f->prefix || !*f->prefix || id_check(f->prefix, NULL) < 0)
		return 0;
	/* No character of an id is as high as that. */
	snprintf(list->end, sizeof list->end, "%s\x7f", f->prefix);
	if (ledger_ask(l, SQL_IDS_MANY, &many, err, value_text(f->prefix), value_text(list->end),
		       value_integer(FEW_IDS)) < 0)
		return -1;
	if (!many)
		list->statement = SQL_LIST_IDS;
	return 0;
}

static int list_page(struct list *list, struct ledger *l, const char *verdicts, int64_t limit,
		     struct error *err)
{
	const struct ledger_filter *f = list->filter;
	const char *wanted = list->statement == SQL_LIST_VERDICT ? list->verdict : verdicts;
	struct value params[] = {
		value_text(f->verdicts ? wanted : NULL),
		value_text(f->prefix),
		value_integer(limit),
		value_time(list->before),
		value_text(list->before_id),
		value_time(f->since > 0 ? f->since : 1),
		value_text(f->submitter),
		value_text(list->end), /* of few ids alone */
	};
	size_t n = ARRAY_SIZE(params) - (list->statement != SQL_LIST_IDS);

	return ledger_run(l, list->statement, params, n, list_row, list, err);
}

int ledger_list(struct ledger *l, const struct ledger_filter *f, ledger_row_fn fn, void *arg,
		struct error *err)
{
	static const struct ledger_filter all = {0};
	_cleanup_(list_done) struct list list = {.filter = f ? f : &all};
	_cleanup_free_ char *verdicts = verdicts_text(list.filter->verdicts);
	int64_t left = list.filter->limit > 0 ? list.filter->limit : INT64_MAX, page;
	int r = verdicts ? choose_statement(&list, l, err) : error_memory(err);

	list.before = list.filter->until > 0 ? list.filter->until : INT64_MAX;
	snprintf(list.before_id, sizeof list.before_id, "%s",
		 list.filter->before_id ? list.filter->before_id : "");
	do {
		page = left < LIST_PAGE && !list.filter->pattern ? left : LIST_PAGE;
		list_done(&list);
		if (r == 0)
			r = list_page(&list, l, verdicts, page, err);
		for (size_t i = 0; r == 0 && i < list.n && left > 0; i++, left--)
			r = fn(arg, &list.rows[i], err);
	} while (r == 0 && left > 0 && ((int64_t)list.n_read == page || list.amount > LIST_AMOUNT));
	return r;
}

struct load {
	struct attempt a;
	bool found;
};

static int take_attempt(void *arg, const struct value *row, struct error *err)
{
	struct load *load = arg;

	load->found = true;
	return load_attempt(&load->a, ATTEMPT_COMMITTED, row, &(size_t){0}, err);
}

static int take_rows(void *arg, const struct value *row, struct error *err UNUSED)
{
	((struct load *)arg)->a.rows = value_to_integer(row, -1);
	return 0;
}

/* ---- what it has many of ---- */

/* Each adds a record to the attempt: a copy, or what it leaves empty. first: the column before the record's own. */
static int add_output(struct attempt *a, void *record, const struct value *first, struct error *err)
{
	struct output *o = record;

	o->is_object = value_to_integer(first, 0) != 0;
	return manifest_add(&a->manifest, o, err);
}

static int add_rejected(struct attempt *a, void *record, const struct value *first UNUSED, struct error *err)
{
	const struct rejected_output *r = record;

	return manifest_reject(&a->manifest, r->path, r->reason, err);
}

static int add_input(struct attempt *a, void *record, const struct value *first UNUSED, struct error *err)
{
	return inputs_add(&a->inputs, record, err);
}

static int add_query(struct attempt *a, void *record, const struct value *first UNUSED, struct error *err)
{
	struct query *more = ARRAY_ADD(a->queries, a->n_queries);

	if (!more)
		return error_memory(err);
	*more = *(struct query *)record;
	*(struct query *)record = (struct query){0};
	return 0;
}

static int add_event(struct attempt *a, void *record, const struct value *first UNUSED, struct error *err)
{
	struct event *more = ARRAY_ADD(a->events, a->n_events);

	if (!more)
		return error_memory(err);
	*more = *(struct event *)record;
	*(struct event *)record = (struct event){0};
	return 0;
}

static int add_step(struct attempt *a, void *record, const struct value *first UNUSED, struct error *err)
{
	struct step *more = ARRAY_ADD(a->steps, a->n_steps);

	if (!more)
		return error_memory(err);
	*more = *(struct step *)record;
	*(struct step *)record = (struct step){0};
	return 0;
}

static int add_denial(struct attempt *a, void *record, const struct value *first UNUSED, struct error *err)
{
	struct denial *more = ARRAY_ADD(a->denials.list, a->denials.n);

	if (!more)
		return error_memory(err);
	*more = *(struct denial *)record;
	*(struct denial *)record = (struct denial){0};
	return 0;
}

static int add_sample(struct attempt *a, void *record, const struct value *first UNUSED,
		      struct error *err UNUSED)
{
	struct timeline *t = a->timeline;

	if (t && t->count < SAMPLES_MAX)
		t->samples[t->count++] = *(const struct sample *)record;
	return 0;
}

struct part {
	enum sql which;
	enum sql_table table;
	int (*add)(struct attempt *a, void *record, const struct value *first, struct error *err);
	struct attempt *to;
	size_t sum; /* of memory */
};

static int load_part(void *arg, const struct value *row, struct error *err)
{
	struct part *p = arg;
	union {
		struct output output;
		struct rejected_output rejected;
		struct input input;
		struct query query;
		struct event event;
		struct step step;
		struct denial denial;
		struct sample sample;
	} record;
	int r;

	for (size_t i = 0; i <= columns_of[p->table].count; i++)
		p->sum += value_amount(&row[i]);
	if (p->sum > VALUE_AMOUNT_MAX / (p->table == TABLE_OUTPUT ? 1 : 2))
		return error_set(err, ERROR_LEDGER, "the ledger holds an attempt larger than any can be");
	memset(&record, 0, sizeof record);
	if (p->table == TABLE_STEP)
		record.step.usage = (struct usage)USAGE_UNKNOWN;
	r = columns_read(p->table, columns_of[p->table].count, row + 1, &record, err);
	r = r == 0 ? p->add(p->to, &record, &row[0], err)
		   : error_prefix(err, r, "analysis '%s' cannot be read", p->to->id);
	if (p->table == TABLE_STEP)
		step_done(&record.step);
	else
		columns_done(p->table, &record);
	return r;
}

static int add_name(void *arg, const struct attempt *a, struct error *err)
{
	struct buffer *names = arg;

	buffer_printf(names, "%s%s", names->size ? ", " : "", a->id);
	return buffer_check(names, err);
}

static int take_queued(void *arg, const struct queued *q, struct error *err UNUSED)
{
	*(enum job_state *)arg = q->state;
	return 0;
}

/* The sentence says what there is instead. */
static int not_found(struct ledger *l, const char *id, int number, const struct analysis_state *state,
		     struct error *err)
{
	const struct ledger_filter latest = {.limit = 5};
	_cleanup_buffer_ struct buffer names = {0};
	enum job_state queued = JOB_STATES;
	struct error ignored = ERROR_INIT;
	char shown[160], when[CLOCK_TEXT_SIZE];
	int64_t removed = 0;
	int r;

	text_escape_into(shown, sizeof shown, id, strlen(id));
	if (!state->last_attempt)
		(void)ledger_queue_look(l, (char *[]){(char *)id, NULL}, take_queued, &queued, &ignored);
	if (queued != JOB_STATES)
		return error_set(err, ERROR_NOT_FOUND,
				 "'%s' has no attempt in the ledger %s yet: in the queue it is %s", shown,
				 l->backend->name, job_state_name(queued));
	if (ledger_removed(l, id, state->last_attempt ? number : 0, &removed, err) < 0)
		return -1;
	clock_format(removed, when);
	if (removed && state->last_attempt)
		return error_set(err, ERROR_NOT_FOUND,
				 "attempt %d of '%s' was removed at %s: its latest is %d", number, shown,
				 when, state->last_attempt);
	if (removed)
		return error_set(err, ERROR_NOT_FOUND, "analysis '%s' was removed from the ledger %s at %s",
				 shown, l->backend->name, when);
	if (state->last_attempt)
		return error_set(err, ERROR_NOT_FOUND, "analysis '%s' has no attempt %d: its latest is %d",
				 shown, number, state->last_attempt);
	r = ledger_list(l, &latest, add_name, &names, err);
	if (r < 0)
		return r;
	return error_set(err, ERROR_NOT_FOUND, "there is no analysis '%s' in the ledger %s%s%s", shown,
			 l->backend->name, names.size ? "; the latest there: " : ", which is empty",
			 names.size ? names.data : "");
}

static int load_all(struct ledger *l, const struct value key[2], struct load *load, struct error *err)
{
	struct part parts[] = {
		{SQL_OUTPUTS, TABLE_OUTPUT, add_output, &load->a},
		{SQL_REJECTED, TABLE_REJECTED, add_rejected, &load->a},
		{SQL_QUERIES, TABLE_QUERY, add_query, &load->a},
		{SQL_INPUTS, TABLE_INPUT, add_input, &load->a},
		{SQL_EVENTS, TABLE_EVENT, add_event, &load->a},
		{SQL_SAMPLES, TABLE_SAMPLE, add_sample, &load->a},
		{SQL_STEPS, TABLE_STEP, add_step, &load->a},
		{SQL_DENIALS, TABLE_DENIAL, add_denial, &load->a},
	};

	if (ledger_run(l, SQL_ATTEMPT, key, 2, take_attempt, load, err) < 0)
		return -1;
	if (!load->found)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (ledger_run(l, parts[i].which, key, 2, load_part, &parts[i], err) < 0)
			return -1;
	if (load->a.pruned) /* they went with the rest: nobody knows */
		load->a.denials.more = -1;
	return ledger_run(l, SQL_POST_SUM, key, 2, take_rows, load, err);
}

int ledger_load(struct ledger *l, const char *id, int number, struct attempt *ret, struct error *err)
{
	struct analysis_state state;
	struct value key[2];
	struct load load = {.found = false};
	int r = ledger_analysis(l, id, &state, err);

	if (r < 0)
		return r;
	attempt_init(&load.a);
	key[0] = value_text(id);
	key[1] = value_integer(number > 0 ? number : state.last_attempt);
	r = load_all(l, key, &load, err);
	if (r == 0 && !load.found)
		r = not_found(l, id, number, &state, err);
	if (r < 0) {
		attempt_done(&load.a);
		return r;
	}
	*ret = load.a;
	return 0;
}

int ledger_load_outputs(struct ledger *l, const char *id, int number, struct manifest *ret, struct error *err)
{
	_cleanup_attempt_ struct attempt a;
	struct part part = {SQL_OUTPUTS, TABLE_OUTPUT, add_output, &a};

	attempt_init(&a);
	snprintf(a.id, sizeof a.id, "%s", id);
	if (ledger_run(l, part.which, LEDGER_VALUES(value_text(id), value_integer(number)), load_part, &part,
		       err) < 0)
		return -1;
	*ret = a.manifest;
	a.manifest = (struct manifest){0};
	return 0;
}
