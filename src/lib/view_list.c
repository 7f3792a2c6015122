#include "view.h"

#include <stdio.h>
#include <string.h>

#include "queue.h"

/* What is no verdict: of the state directory, and of the queue. */
static const char *const live_states[] = {"running", "held", "dead", "waiting", "queued"};

struct listing {
	const char *state;  /* NULL: all */
	const char *prefix; /* NULL: all */
	json_t *rows;
	json_t *live; /* ids that have a row from the state directory or the queue */
	json_t *held; /* held or kept ones, shown only if the ledger does not know them: id, since when */
};

static void listing_done(struct listing *l)
{
	json_decref(l->rows);
	json_decref(l->live);
	json_decref(l->held);
}

static bool is_live_state(const char *state)
{
	for (size_t i = 0; i < ARRAY_SIZE(live_states); i++)
		if (strcmp(live_states[i], state) == 0)
			return true;
	return false;
}

static int add_row(struct listing *l, const struct attempt *a, const char *state, const char *verdict)
{
	char created[CLOCK_TEXT_SIZE] = "", started[CLOCK_TEXT_SIZE] = "";

	if (a->created)
		clock_format(a->created, created);
	if (a->started)
		clock_format(a->started, started);
	return json_array_append_new(l->rows,
				     json_pack("{s:s, s:s, s:s?, s:o, s:s?, s:s?, s:o}", "id", a->id, "state",
					       state, "verdict", verdict, "attempt",
					       a->number > 0 ? json_integer(a->number) : json_null(),
					       "created", *created ? created : NULL, "started",
					       *started ? started : NULL, "usage", usage_to_json(&a->usage)));
}

static int add_live_row(struct listing *l, const char *id, int number, int64_t created, const char *state)
{
	struct attempt a;
	int r;

	if ((l->state && strcmp(l->state, state) != 0) ||
	    (l->prefix && strncmp(id, l->prefix, strlen(l->prefix)) != 0))
		return 0;
	attempt_init(&a);
	snprintf(a.id, sizeof a.id, "%s", id);
	a.number = number;
	a.created = created;
	if (strcmp(state, "running") == 0)
		a.usage.wall_ms = (clock_utc() - created) / (int64_t)NSEC_PER_MSEC;
	r = add_row(l, &a, state, NULL);
	attempt_done(&a);
	return r;
}

static int on_live(void *arg, const struct live *live)
{
	struct listing *l = arg;

	if (live->held)
		return json_object_set_new(l->held, live->id, json_integer(live->created));
	if (json_object_set_new(l->live, live->id, json_true()) < 0)
		return -1;
	return add_live_row(l, live->id, live->attempt, live->created, live->alive ? "running" : "dead");
}

static int on_ledger_row(void *arg, const struct attempt *a, struct error *err)
{
	struct listing *l = arg;

	if (!l->state)
		json_object_del(l->held, a->id);
	if (json_object_get(l->live, a->id) || (l->state && is_live_state(l->state)))
		return 0;
	return add_row(l, a, "finished", verdict_name(a->verdict)) < 0 ? error_memory(err) : 0;
}

static bool wants(const struct listing *l, const char *state, const char *id)
{
	return (!l->state || strcmp(l->state, state) == 0) &&
	       (!l->prefix || strncmp(id, l->prefix, strlen(l->prefix)) == 0);
}

/* What the queue has replaces the row of an earlier attempt. */
static int on_queued(void *arg, const struct queued *q, struct error *err)
{
	const char *state = job_state_name(q->state);
	struct listing *l = arg;
	struct attempt a;
	int r = 0;

	if (json_object_get(l->live, q->id))
		return 0;
	if (json_object_set_new(l->live, q->id, json_true()) < 0)
		return error_memory(err);
	attempt_init(&a);
	memcpy(a.id, q->id, sizeof a.id);
	a.number = q->attempt;
	a.created = q->submitted;
	if (wants(l, state, q->id))
		r = add_row(l, &a, state, q->state == JOB_CANCELLED ? state : NULL);
	attempt_done(&a);
	return r < 0 ? error_memory(err) : 0;
}

static int list_queue(struct listing *l, struct ledger *ledger, int limit, struct error *err)
{
	static const enum job_state shown[] = {JOB_RUNNING, JOB_QUEUED, JOB_WAITING, JOB_CANCELLED};
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(shown); i++)
		r = ledger_queue_list(ledger, (int)shown[i], l->prefix, limit, on_queued, l, err);
	return r;
}

static int check_state(const char *state, struct error *err)
{
	enum verdict v;
	char shown[64];

	if (!state || is_live_state(state) || strcmp(state, "finished") == 0 || verdict_parse(state, &v) == 0)
		return 0;
	return error_set(
		err, ERROR_USAGE,
		"there is no state '%s': it is waiting, queued, running, cancelled, held, dead, finished, or a verdict",
		text_escape_into(shown, sizeof shown, state, strlen(state)));
}

static int list(struct listing *l, struct hood *h, int limit, struct error *err)
{
	bool is_verdict = l->state && !is_live_state(l->state) && strcmp(l->state, "finished") != 0;
	struct ledger_filter filter = {
		.state = is_verdict ? l->state : NULL, .prefix = l->prefix, .limit = limit};
	struct ledger *ledger;
	json_t *created;
	const char *id;
	int r = hood_live_each(h, on_live, l, err);

	if (r < 0 && err->kind == ERROR_NONE)
		return error_memory(err);
	if (r == 0)
		r = hood_ledger(h, LEDGER_CREATE, &ledger, err);
	if (r == 0)
		r = list_queue(l, ledger, limit, err);
	if (r == 0)
		r = ledger_list(ledger, &filter, on_ledger_row, l, err);
	if (r < 0 || is_verdict)
		return r;
	json_object_foreach (l->held, id, created)
		if (add_live_row(l, id, 0, json_integer_value(created), "held") < 0)
			return error_memory(err);
	return 0;
}

int view_list(struct hood *h, const char *state, const char *prefix, int limit, json_t **ret,
	      struct error *err)
{
	_cleanup_(listing_done) struct listing l = {.state = state,
						    .prefix = prefix,
						    .rows = json_array(),
						    .live = json_object(),
						    .held = json_object()};
	int r = l.rows && l.live && l.held ? check_state(state, err) : error_memory(err);

	if (r == 0)
		r = list(&l, h, limit, err);
	if (r == 0)
		*ret = TAKE_PTR(l.rows);
	return r;
}
