#include "view.h"

#include <stdio.h>
#include <string.h>

#include "member.h"

void subject_init(struct subject *s)
{
	*s = (struct subject){0};
	attempt_init(&s->attempt);
	attempt_init(&s->held);
}

void subject_done(struct subject *s)
{
	attempt_done(&s->attempt);
	attempt_done(&s->held);
	json_decref(s->attempts);
	if (s->is_live)
		live_done(&s->live);
	queue_view_done(&s->queue);
}

/* As far as an attempt can say it: one that waits in the queue, or a first run that is going on. */
static int subject_complete(struct subject *s, const char *id)
{
	struct attempt *a = &s->attempt;

	s->attempts = json_array();
	if (!s->attempts)
		return -1;
	snprintf(a->id, sizeof a->id, "%s", id);
	if (s->queue.found) {
		a->created = s->queue.submitted;
		a->request = json_incref(s->queue.job.request);
		a->engine = json_incref(s->queue.engine);
	}
	if (!s->is_live)
		return 0;
	a->number = s->live.attempt;
	a->created = s->live.created;
	a->pending = s->live.pending;
	a->workspace = s->live.path ? strdup(s->live.path) : NULL;
	return s->live.path && !a->workspace ? -1 : 0;
}

/* Any source will do: a first run that is going on is not in the ledger yet. */
int subject_load(struct subject *s, struct hood *h, const char *id, int attempt, struct error *err)
{
	struct error live_err = ERROR_INIT;
	struct ledger *ledger;
	int r = id_check(id, err);

	if (r == 0)
		r = hood_ledger(h, LEDGER_CREATE, &ledger, err);
	if (r < 0)
		return r;
	s->is_live = hood_live(h, id, &s->live, &live_err) == 0;
	if (s->is_live && s->live.held && (r = hood_steps(h, id, &s->held, err)) < 0)
		return r;
	r = queue_view_load(&s->queue, ledger, id, err);
	if (r < 0)
		return r;
	/* Whoever runs it here knows better than the ledger. */
	s->queue.has_pulse = s->queue.has_pulse && !(s->is_live && s->live.has_pulse);
	r = ledger_load(ledger, id, attempt, &s->attempt, err);
	s->in_ledger = r == 0;
	if (s->in_ledger)
		return ledger_attempts(ledger, id, &s->attempts, err);
	if (err->kind != ERROR_NOT_FOUND || !(s->is_live || s->queue.found) || attempt != 0)
		return r;
	return subject_complete(s, id) < 0 ? error_memory(err) : 0;
}

static const char *subject_state(const struct subject *s)
{
	if (s->is_live && !s->live.held)
		return live_state(&s->live);
	if (s->queue.found)
		return job_state_name(s->queue.state);
	return s->in_ledger ? "finished" : "held";
}

/* NULL: the ledger does not know it yet */
static const char *subject_owner(const struct subject *s)
{
	return s->in_ledger ? s->attempt.owner : s->queue.found ? s->queue.job.owner : NULL;
}

/* Of the attempt that is not in the ledger yet: why it is not. */
static json_t *pending_json(const struct subject *s)
{
	if (!s->is_live || !s->live.pending)
		return json_null();
	return json_pack("{s:i, s:s?}", "attempt", s->live.attempt, "message", s->live.why);
}

/* What it has used so far: by its supervisor, if it runs here, else by its worker. */
static json_t *live_json(const struct subject *s)
{
	if (s->is_live && s->live.has_pulse)
		return pulse_to_json(&s->live.pulse);
	return s->queue.has_pulse ? pulse_to_json(&s->queue.pulse) : json_null();
}

json_t *subject_own_json(const struct subject *s)
{
	const struct json_entry entries[] = {
		{"live", live_json(s)},
		{"pending_attempt", pending_json(s)},
		{"verdict", s->in_ledger ? JSON_ABSENT : json_null()},
		{"owner", json_shown(subject_owner(s))},
		{"state", json_string(subject_state(s))},
		{"attempts", json_incref(s->attempts)},
		{"held_steps", attempt_steps_to_json(&s->held)},
		{"queue", s->queue.found ? queue_view_json(&s->queue) : json_null()},
	};

	return json_from_entries(entries, ARRAY_SIZE(entries));
}

static json_t *subject_json(const struct subject *s)
{
	json_auto_t *own = subject_own_json(s),
		    *json = own ? attempt_to_public_json(&s->attempt, true) : NULL;

	return json_object_update(json, own) < 0 ? NULL : json_incref(json);
}

/* What is no analysis may be an array: else r, and err says what it said. */
static int show_array(struct hood *h, const char *id, int r, json_t **ret, struct error *err)
{
	_cleanup_(array_view_done) struct array_view v = {0};
	struct error why = ERROR_INIT;
	int k = array_view_load(&v, h, id, &why);

	if (k > 0)
		return r;
	if (k < 0) {
		*err = why;
		return k;
	}
	*ret = array_view_json(&v, id);
	return *ret ? 0 : error_memory(err);
}

int view_show(struct hood *h, const char *id, int attempt, json_t **ret, struct error *err)
{
	_cleanup_(subject_done) struct subject s;
	int r;

	subject_init(&s);
	r = subject_load(&s, h, id, attempt, err);
	if (r < 0 && err->kind == ERROR_NOT_FOUND && attempt == 0)
		return show_array(h, id, r, ret, err);
	if (r < 0)
		return r;
	*ret = subject_json(&s);
	return *ret ? 0 : error_memory(err);
}
