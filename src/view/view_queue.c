#include "view.h"

#include <string.h>

#include "member.h"
#include "text.h"

static const char *word(const json_t *engine, const char *key)
{
	const char *text = json_string_value(json_object_get(engine, key));

	return text && *text ? text : NULL;
}

const char *view_engine_name(const json_t *engine, char out[32])
{
	const char *name = word(engine, "engine");

	text_escape_into(out, 32, name ? name : "engine", strlen(name ? name : "engine"));
	return out;
}

char *view_engine(const json_t *engine)
{
	static const struct {
		const char *key, *before, *else_before; /* the latter where none of its kind came before it */
	} parts[] = {
		{"job", "job ", "job "}, {"node", " on ", "on "}, {"state", ": ", ""}, {"reason", ", ", ""}};
	_cleanup_buffer_ struct buffer b = {0};

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		const char *text = word(engine, parts[i].key);

		if (text)
			buffer_printf(&b, "%s%s", b.size ? parts[i].before : parts[i].else_before, text);
	}
	if (buffer_check(&b, NULL) < 0)
		return NULL;
	return text_escape(b.size ? b.data : "", b.size);
}

json_t *view_engine_of(const struct queued *q)
{
	return q->handle ? json_loads(q->handle, JSON_REJECT_DUPLICATES, NULL) : NULL;
}

json_t *view_queued_json(const struct queued *q)
{
	bool ended = q->state == JOB_FINISHED || q->state == JOB_CANCELLED;
	json_auto_t *engine = view_engine_of(q);
	const struct json_entry entries[] = {
		{"id", json_string(q->id)},
		{"state", json_string(job_state_name(q->state))},
		{"verdict", json_text(ended ? verdict_name(q->verdict) : NULL)},
		{"status", ended ? json_integer(q->status) : json_null()},
		{"attempt", q->attempt > 0 ? json_integer(q->attempt) : json_null()},
		{"priority", json_integer(q->priority)},
		{"owner", json_shown(q->owner)},
		{"submitter", json_shown(q->submitter)},
		{"worker", json_shown(q->worker)},
		{"reason", json_shown(q->reason)},
		{"cancelling", json_boolean(q->cancelling)},
		{"submitted", json_instant(q->submitted)},
		{"due", json_instant(q->due)},
		{"engine", engine ? json_incref(engine) : json_null()},
	};

	return json_from_entries(entries, ARRAY_SIZE(entries));
}

static int append(void *arg, const struct queued *q, struct error *err UNUSED)
{
	json_push(arg, view_queued_json(q));
	return 0;
}

int view_queue(struct hood *h, const struct view_filter *f, json_t **ret, struct error *err)
{
	json_auto_t *rows = json_array();
	struct ledger *ledger;
	enum job_state wanted = JOB_STATES;
	int r;

	if (f->state && job_state_parse(f->state, &wanted) < 0)
		return error_set(
			err, ERROR_USAGE,
			"there is no state '%s': it is waiting, queued, running, restored, finished or cancelled",
			SHOWN(64, f->state));
	r = hood_ledger(h, LEDGER_CREATE, &ledger, err);
	if (r < 0)
		return r;
	r = ledger_queue_list(ledger, f->state ? (int)wanted : -1, f->prefix, f->limit, append, &rows, err);
	if (r < 0)
		return r;
	*ret = json_incref(rows);
	return rows ? 0 : error_memory(err);
}

/* ---- one of them, as `show` has it ---- */

void queue_view_done(struct queue_view *v)
{
	if (v->found)
		job_done(&v->job);
	free(v->worker);
	free(v->reason);
	json_decref(v->engine);
}

static int take(void *arg, const struct queued *q, struct error *err)
{
	json_auto_t *live = q->live ? json_loads(q->live, JSON_REJECT_DUPLICATES, NULL) : NULL;
	struct queue_view *v = arg;
	int r;

	v->found = true;
	v->state = q->state;
	v->cancelling = q->cancelling;
	v->submitted = q->submitted;
	v->due = q->due;
	v->engine = view_engine_of(q);
	v->has_pulse = live && q->state == JOB_RUNNING && pulse_from_json(&v->pulse, live) == 0;
	r = text_set(&v->worker, q->worker, err);
	return r < 0 ? r : text_set(&v->reason, q->reason, err);
}

int queue_view_load(struct queue_view *v, struct ledger *l, const char *id, struct error *err)
{
	char *const ids[] = {(char *)id, NULL};
	int r;

	job_init(&v->job);
	r = ledger_queue_look(l, ids, take, v, err);
	if (r == 0 && v->found)
		r = ledger_queue_load(l, id, &v->job, err);
	return r;
}

json_t *queue_view_json(const struct queue_view *v)
{
	const struct job *j = &v->job;
	const struct json_entry entries[] = {
		{"state", json_string(job_state_name(v->state))},
		{"owner", json_shown(j->owner)},
		{"submitter", json_shown(j->submitter)},
		{"priority", json_integer(j->priority)},
		{"retries", json_integer(j->retries)},
		{"tries", json_integer(j->tries)},
		{"after", json_text_list(j->after)},
		{"submitted", json_instant(v->submitted)},
		{"due", json_instant(v->due)},
		{"worker", json_shown(v->worker)},
		{"reason", json_shown(v->reason)},
		{"cancelling", json_boolean(v->cancelling)},
		{"engine", v->engine ? json_incref(v->engine) : json_null()},
	};

	return json_from_entries(entries, ARRAY_SIZE(entries));
}
