/*
 * Reading attempts, in a list or one as a whole. An attempt never changes once it is committed, so
 * no transaction is needed over the several tables.
 */
#include "store.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "queue.h"
#include "text.h"

static int load_paths(const struct value *v, char ***ret, struct error *err)
{
	json_t *array = NULL, *object;
	size_t i;
	int r = value_to_json(v, &array, err);

	json_array_foreach (array, i, object) {
		_cleanup_free_ char *path = r < 0 ? NULL : json_get_path(object, err);

		if (r == 0 && !path)
			r = -EINVAL;
		if (r == 0 && strv_append(ret, path) < 0)
			r = error_memory(err);
	}
	json_decref(array);
	return r;
}

static int load_usage(const struct value *v, struct usage *ret, struct error *err)
{
	json_t *json = NULL;
	int r = value_to_json(v, &json, err);

	if (r == 0 && json)
		r = usage_from_json(ret, json, err);
	json_decref(json);
	return r;
}

static int load_receipt(const struct value *v, struct receipt *ret, struct error *err)
{
	json_t *json = NULL;
	int r = value_to_json(v, &json, err);

	if (r == 0 && json)
		r = receipt_from_json(ret, json, err);
	json_decref(json);
	return r;
}

static int load_texts(struct attempt *a, const struct value *row, struct error *err)
{
	const struct {
		enum attempt_column column;
		char **to;
	} texts[] = {
		{ATTEMPT_WORKSPACE, &a->workspace},   {ATTEMPT_HOST, &a->host},
		{ATTEMPT_REASON, &a->reason},	      {ATTEMPT_ERROR_STAGE, &a->error_stage},
		{ATTEMPT_ERROR_CODE, &a->error_code}, {ATTEMPT_ERROR_MESSAGE, &a->error_message},
	};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(texts) && r == 0; i++)
		r = value_to_text(&row[texts[i].column], texts[i].to, err);
	return r;
}

/* The columns that a list has too. */
static int load_listed(struct attempt *a, const struct value *row, const struct value *owner,
		       struct error *err)
{
	int r;

	value_to_fixed(&row[ATTEMPT_ID], a->id, sizeof a->id);
	value_to_fixed(&row[ATTEMPT_TOKEN], a->token, sizeof a->token);
	a->number = (int)value_to_integer(&row[ATTEMPT_NUMBER], 0);
	if (row[ATTEMPT_VERDICT].kind == VALUE_TEXT &&
	    verdict_parse(row[ATTEMPT_VERDICT].data, &a->verdict) < 0)
		a->verdict = VERDICT_NONE;
	a->exit_code = (int)value_to_integer(&row[ATTEMPT_EXIT_CODE], -1);
	a->signal = (int)value_to_integer(&row[ATTEMPT_SIGNAL], 0);
	a->status = (int)value_to_integer(&row[ATTEMPT_STATUS], 0);
	a->created = value_to_integer(&row[ATTEMPT_CREATED], 0);
	a->started = value_to_integer(&row[ATTEMPT_STARTED], 0);
	a->ended = value_to_integer(&row[ATTEMPT_ENDED], 0);
	a->kept = value_to_integer(&row[ATTEMPT_KEPT], 0) != 0;
	a->committed = true;
	r = load_texts(a, row, err);
	if (r == 0)
		r = value_to_text(owner, &a->owner, err);
	if (r == 0)
		r = load_usage(&row[ATTEMPT_USAGE], &a->usage, err);
	return r < 0 ? r : value_to_json(&row[ATTEMPT_REQUEST], &a->request, err);
}

struct list {
	ledger_row_fn fn;
	void *arg;
};

static int list_row(void *arg, const struct value *row, struct error *err)
{
	_cleanup_attempt_ struct attempt a;
	const struct list *list = arg;
	int r;

	attempt_init(&a);
	r = load_listed(&a, row, &row[ATTEMPT_LISTED], err);
	return r < 0 ? r : list->fn(list->arg, &a, err);
}

int ledger_list(struct ledger *l, const struct ledger_filter *f, ledger_row_fn fn, void *arg,
		struct error *err)
{
	struct value params[] = {
		value_text(f ? f->state : NULL),
		value_text(f ? f->prefix : NULL),
		value_integer(f && f->limit > 0 ? f->limit : INT64_MAX),
	};
	struct list list = {fn, arg};

	return ledger_run(l, SQL_LIST, params, ARRAY_SIZE(params), list_row, &list, err);
}

struct load {
	struct attempt a;
	bool found;
	size_t events_room;
};

static int load_attempt(void *arg, const struct value *row, struct error *err)
{
	struct load *load = arg;
	struct attempt *a = &load->a;
	int64_t interval = value_to_integer(&row[ATTEMPT_SAMPLE_INTERVAL], -1);
	int r = load_listed(a, row, &row[ATTEMPT_COLUMNS], err);

	load->found = true;
	if (r == 0)
		r = value_to_json(&row[ATTEMPT_PLAN], &a->plan, err);
	if (r == 0)
		r = value_to_json(&row[ATTEMPT_RESULT], &a->result, err);
	if (r == 0)
		r = load_receipt(&row[ATTEMPT_RECEIPT], &a->receipt, err);
	if (r == 0)
		r = load_paths(&row[ATTEMPT_MISSING], &a->manifest.missing, err);
	if (r == 0)
		r = load_paths(&row[ATTEMPT_PRESENT], &a->manifest.present, err);
	a->manifest.n_rejected_more = (uint64_t)value_to_integer(&row[ATTEMPT_REJECTED_MORE], 0);
	if (r == 0 && interval >= 0) {
		a->timeline = calloc(1, sizeof *a->timeline);
		if (!a->timeline)
			return error_memory(err);
		a->timeline->interval_ms = interval;
	}
	return r;
}

static int load_output(void *arg, const struct value *row, struct error *err)
{
	struct load *load = arg;
	_cleanup_free_ char *path = NULL;
	struct output o = {
		.size = (uint64_t)value_to_integer(&row[2], 0),
		.media_type = media_type_known(row[3].kind == VALUE_TEXT ? row[3].data : ""),
		.is_object = value_to_integer(&row[4], 0) != 0,
	};
	int r = value_to_bytes(&row[0], &path, NULL, err);

	if (r == 0)
		r = value_to_digest(&row[1], o.sha256, err);
	o.path = path;
	if (r == 0 && manifest_add(&load->a.manifest, &o) < 0)
		r = error_memory(err);
	return r;
}

static int load_rejected(void *arg, const struct value *row, struct error *err)
{
	struct load *load = arg;
	_cleanup_free_ char *path = NULL;
	int r = value_to_bytes(&row[0], &path, NULL, err);

	if (r < 0)
		return r;
	if (manifest_reject(&load->a.manifest, path,
			    reject_reason_known(row[1].kind == VALUE_TEXT ? row[1].data : "")) < 0)
		return error_memory(err);
	return 0;
}

static int load_input(void *arg, const struct value *row, struct error *err)
{
	struct load *load = arg;
	_cleanup_free_ char *path = NULL, *source = NULL;
	struct input input = {
		.size = (uint64_t)value_to_integer(&row[3], 0),
		.mode = (unsigned)value_to_integer(&row[4], 0),
	};
	int r = value_to_bytes(&row[0], &path, NULL, err);

	if (r == 0)
		r = value_to_text(&row[1], &source, err);
	if (r == 0)
		r = value_to_digest(&row[2], input.sha256, err);
	input.path = path;
	input.source = source;
	if (r == 0 && inputs_add(&load->a.inputs, &input) < 0)
		r = error_memory(err);
	return r;
}

static int load_query(void *arg, const struct value *row, struct error *err)
{
	struct load *load = arg;
	_cleanup_free_ char *name = NULL, *sql = NULL;
	struct query *q;
	int r = value_to_bytes(&row[0], &name, NULL, err);

	if (r == 0)
		r = value_to_bytes(&row[1], &sql, NULL, err);
	if (r < 0)
		return r;
	q = attempt_add_query(&load->a, name, sql);
	if (!q)
		return error_memory(err);
	q->size = (uint64_t)value_to_integer(&row[3], 0);
	q->rows = (uint64_t)value_to_integer(&row[4], 0);
	q->started = value_to_integer(&row[5], 0);
	q->duration_ms = value_to_integer(&row[6], 0);
	return value_to_digest(&row[2], q->sha256, err);
}

static int load_event(void *arg, const struct value *row, struct error *err)
{
	struct load *load = arg;
	struct attempt *a = &load->a;
	struct event *e;
	int r;

	if (a->n_events == load->events_room) {
		size_t room = load->events_room ? 2 * load->events_room : 16;

		e = reallocarray(a->events, room, sizeof *e);
		if (!e)
			return error_memory(err);
		a->events = e;
		load->events_room = room;
	}
	e = &a->events[a->n_events++];
	*e = (struct event){.at = value_to_integer(&row[0], 0)};
	r = value_to_bytes(&row[1], &e->stage, NULL, err);
	return r < 0 ? r : value_to_bytes(&row[2], &e->text, NULL, err);
}

static int load_rows(void *arg, const struct value *row, struct error *err UNUSED)
{
	((struct load *)arg)->a.rows = value_to_integer(row, -1);
	return 0;
}

static int load_sample(void *arg, const struct value *row, struct error *err UNUSED)
{
	struct load *load = arg;
	struct timeline *t = load->a.timeline;

	if (t && t->count < SAMPLES_MAX)
		t->samples[t->count++] = (struct sample){
			.at_ms = value_to_integer(&row[0], 0),
			.cpu_ms = value_to_integer(&row[1], -1),
			.memory_bytes = value_to_integer(&row[2], -1),
			.pids = value_to_integer(&row[3], -1),
		};
	return 0;
}

static int add_name(void *arg, const struct attempt *a, struct error *err)
{
	struct buffer *names = arg;

	return buffer_printf(names, "%s%s", names->size ? ", " : "", a->id) < 0 ? error_memory(err) : 0;
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
	char shown[160];
	int r;

	text_escape_into(shown, sizeof shown, id, strlen(id));
	if (!state->last_attempt)
		(void)ledger_queue_look(l, (char *[]){(char *)id, NULL}, take_queued, &queued, &ignored);
	if (queued != JOB_STATES)
		return error_set(err, ERROR_NOT_FOUND,
				 "'%s' has no attempt in the ledger %s yet: in the queue it is %s", shown,
				 l->backend->name, job_state_name(queued));
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

static int load_parts(struct ledger *l, const struct value key[2], struct load *load, struct error *err)
{
	static const struct {
		enum sql which;
		row_fn fn;
	} parts[] = {
		{SQL_ATTEMPT, load_attempt}, {SQL_OUTPUTS, load_output}, {SQL_REJECTED, load_rejected},
		{SQL_POST_SUM, load_rows},   {SQL_QUERIES, load_query},	 {SQL_INPUTS, load_input},
		{SQL_EVENTS, load_event},    {SQL_SAMPLES, load_sample},
	};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(parts) && r == 0 && (i == 0 || load->found); i++)
		r = ledger_run(l, parts[i].which, key, 2, parts[i].fn, load, err);
	return r;
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
	r = load_parts(l, key, &load, err);
	if (r == 0 && !load.found)
		r = not_found(l, id, number, &state, err);
	if (r < 0) {
		attempt_done(&load.a);
		return r;
	}
	*ret = load.a;
	return 0;
}
