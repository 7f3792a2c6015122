#include "view.h"

#include <stdio.h>
#include <string.h>

/* ---- one attempt ---- */

static int load(struct hood *h, const char *id, int number, struct ledger **ret_ledger, struct attempt *ret,
		struct error *err)
{
	int r = id_check(id, err);

	if (r == 0)
		r = hood_ledger(h, LEDGER_CREATE, ret_ledger, err);
	return r < 0 ? r : ledger_load(*ret_ledger, id, number, ret, err);
}

struct subject {
	struct attempt attempt; /* as the ledger has it */
	json_t *attempts;
	bool in_ledger;
	struct live live;
	bool is_live; /* a run is going on, or a workspace is held */
	struct queue_view queue;
};

static void subject_done(struct subject *s)
{
	attempt_done(&s->attempt);
	json_decref(s->attempts);
	if (s->is_live)
		live_done(&s->live);
	queue_view_done(&s->queue);
}

/* As far as an attempt can say it: one that waits in the queue, or a first run that is going on. */
static void subject_complete(struct subject *s)
{
	if (s->queue.found) {
		s->attempt.created = s->queue.submitted;
		s->attempt.request = json_incref(s->queue.request);
	}
	if (!s->is_live)
		return;
	s->attempt.number = s->live.attempt;
	s->attempt.created = s->live.created;
	s->attempt.workspace = s->live.path ? strdup(s->live.path) : NULL;
}

/* Any source will do: a first run that is going on is not in the ledger yet. */
static int subject_load(struct subject *s, struct hood *h, const char *id, int number, struct error *err)
{
	struct error live_err = ERROR_INIT;
	struct ledger *ledger = NULL;
	int r = id_check(id, err);

	if (r == 0)
		r = hood_ledger(h, LEDGER_CREATE, &ledger, err);
	if (r < 0)
		return r;
	s->is_live = hood_live(h, id, &s->live, &live_err) == 0;
	r = queue_view_load(&s->queue, ledger, id, err);
	if (r < 0)
		return r;
	r = ledger_load(ledger, id, number, &s->attempt, err);
	s->in_ledger = r == 0;
	if (s->in_ledger)
		return ledger_attempts(ledger, id, &s->attempts, err);
	if (err->kind != ERROR_NOT_FOUND || !(s->is_live || s->queue.found) || number != 0)
		return r;
	s->attempts = json_array();
	snprintf(s->attempt.id, sizeof s->attempt.id, "%s", id);
	subject_complete(s);
	return 0;
}

static const char *subject_state(const struct subject *s)
{
	if (s->is_live && !s->live.held)
		return s->live.alive ? "running" : "dead";
	if (s->queue.found)
		return job_state_name(s->queue.state);
	return s->in_ledger ? "finished" : "held";
}

int view_show(struct hood *h, const char *id, int attempt, json_t **ret, struct error *err)
{
	_cleanup_(subject_done) struct subject s = {0};
	json_t *json;
	int r;

	attempt_init(&s.attempt);
	r = subject_load(&s, h, id, attempt, err);
	if (r < 0)
		return r;
	json = attempt_to_public_json(&s.attempt, true);
	if (!json || (!s.in_ledger && json_object_set_new(json, "verdict", json_null()) < 0) ||
	    json_object_set_new(json, "state", json_string(subject_state(&s))) < 0 ||
	    json_object_set(json, "attempts", s.attempts) < 0 ||
	    json_object_set(json, "queue", s.queue.found ? s.queue.json : json_null()) < 0) {
		json_decref(json);
		return error_memory(err);
	}
	*ret = json;
	return 0;
}

int view_outputs(struct hood *h, const char *id, int attempt, json_t **ret, struct error *err)
{
	_cleanup_attempt_ struct attempt a;
	struct ledger *ledger;
	int r;

	attempt_init(&a);
	r = load(h, id, attempt, &ledger, &a, err);
	if (r < 0)
		return r;
	*ret = json_pack("{s:s, s:i, s:s, s:o, s:o}", "id", a.id, "attempt", a.number, "verdict",
			 verdict_name(a.verdict), "outputs", manifest_outputs_to_json(&a.manifest),
			 "rejected_outputs", manifest_rejected_to_json(&a.manifest));
	return *ret ? 0 : error_memory(err);
}

/* ---- logs ---- */

static int add_bytes(json_t *object, const char *name, const char *data, size_t size)
{
	_cleanup_free_ char *text = NULL, *b64 = NULL, *b64_name = NULL;

	if (utf8_valid(data ? data : "", size))
		return json_object_set_new(object, name, json_stringn(data ? data : "", size));
	text = text_escape(data, size);
	b64 = base64_encode(data, size);
	if (!text || !b64 || asprintf(&b64_name, "%s_b64", name) < 0)
		return -1;
	return json_object_set_new(object, name, json_string(text)) ||
	       json_object_set_new(object, b64_name, json_string(b64));
}

static json_t *captured_json(const struct captured *c)
{
	json_t *json = json_object();

	if (!json || add_bytes(json, "head", c->head, c->head_size) ||
	    add_bytes(json, "tail", c->tail, c->tail_size) ||
	    json_object_set_new(json, "omitted", json_integer((json_int_t)c->omitted))) {
		json_decref(json);
		return NULL;
	}
	return json;
}

int view_logs(struct hood *h, const char *id, int attempt, json_t **ret, struct error *err)
{
	static const char *const names[] = {
		[STREAM_STDOUT] = "stdout", [STREAM_STDERR] = "stderr", [STREAM_POST] = "post_process"};
	_cleanup_attempt_ struct attempt a;
	struct ledger *ledger;
	json_t *json;
	int r;

	attempt_init(&a);
	r = load(h, id, attempt, &ledger, &a, err);
	if (r < 0)
		return r;
	json = json_pack("{s:s, s:i}", "id", a.id, "attempt", a.number);
	r = json ? 0 : error_memory(err);
	for (int i = 0; i <= STREAM_POST && r == 0; i++) {
		struct captured c = {0};

		r = ledger_load_log(ledger, &a, i, &c, err);
		if (r == 0 && json_object_set_new(json, names[i], captured_json(&c)) < 0)
			r = error_memory(err);
		free(c.head);
		free(c.tail);
	}
	if (r < 0)
		json_decref(json);
	else
		*ret = json;
	return r;
}

/* ---- the house ---- */

int view_gc(struct hood *h, json_t **ret, struct error *err)
{
	struct gc_report g = {0};
	json_t *json;
	int r = hood_gc(h, &g, err);

	if (r < 0 && g.failed == 0)
		return r;
	json = json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "committed", (json_int_t)g.committed, "lost",
			 (json_int_t)g.lost, "removed", (json_int_t)g.removed, "alive", (json_int_t)g.alive,
			 "foreign", (json_int_t)g.foreign, "failed", (json_int_t)g.failed, "objects",
			 (json_int_t)g.objects);
	if (json && g.failed > 0) {
		_cleanup_free_ char *message = text_escape(err->message, strlen(err->message));

		json_object_set_new(json, "error",
				    json_pack("{s:s, s:s, s:s}", "stage", err->stage ? err->stage : "gc",
					      "code", error_kind_name(err->kind), "message",
					      message ? message : "?"));
	}
	if (!json)
		return error_memory(err);
	*ret = json;
	return g.failed > 0;
}

static void on_item(void *arg, const struct doctor_item *item)
{
	_cleanup_free_ char *detail = text_escape(item->detail, strlen(item->detail)),
			    *remedy = text_escape(item->remedy, strlen(item->remedy));

	json_array_append_new(arg, json_pack("{s:s, s:b, s:b, s:s?, s:s?}", "name", item->name, "ok",
					     item->ok, "required", item->required, "detail", detail, "remedy",
					     remedy && *remedy ? remedy : NULL));
}

int view_doctor(struct hood *h, json_t **ret, struct error *err)
{
	json_t *items = json_array();
	int found = items ? hood_doctor(h, on_item, items, err) : error_memory(err);

	if (found < 0) {
		json_decref(items);
		return found;
	}
	*ret = json_pack("{s:b, s:o}", "ok", found == 0, "items", items);
	return *ret ? found : error_memory(err);
}
