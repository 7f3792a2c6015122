#include "handover.h"

#include "commit.h"
#include "queue_private.h"

#include <string.h>

/* ---- the dispatcher's ---- */

struct handing {
	const char *worker, *batch;
	const struct handed *list;
	size_t n;
	bool *kept;
	const char *tokens; /* JSON */
};

static int take_kept(void *arg, const struct value *row, struct error *err UNUSED)
{
	const struct handing *h = arg;
	int64_t i = value_to_integer(&row[0], -1);

	if (i >= 0 && (size_t)i < h->n && strcmp(value_words(&row[1]), h->list[i].token) == 0)
		h->kept[i] = true;
	return 0;
}

static int hand_over(struct ledger *l, void *arg, struct error *err)
{
	struct handing *h = arg;
	struct value batch = value_text(h->batch);

	memset(h->kept, 0, h->n * sizeof *h->kept);
	if (ledger_do(l, SQL_HAND_OVER, err, value_text(h->tokens), value_text(h->worker), batch) < 0)
		return -1;
	return ledger_run(l, SQL_BATCH, &batch, 1, take_kept, h, err);
}

int ledger_hand_over(struct ledger *l, const char *worker, const char *batch, const struct handed *list,
		     size_t n, bool *ret_kept, struct error *err)
{
	_cleanup_buffer_ struct buffer json = {0};
	struct handing h = {worker, batch, list, n, ret_kept, NULL};

	if (n == 0)
		return 0;
	/* Nothing in a token needs to be escaped. */
	for (size_t i = 0; i < n; i++)
		buffer_printf(&json, "%s\"%s\"", i ? "," : "[", list[i].token);
	buffer_puts(&json, "]");
	if (buffer_check(&json, err) < 0)
		return -1;
	h.tokens = json.data;
	return ledger_transaction(l, hand_over, &h, err);
}

static int handles_set(struct ledger *l, void *arg, struct error *err)
{
	return ledger_do(l, SQL_HANDLES_SET, err, value_text(arg));
}

int ledger_handles_set(struct ledger *l, const struct handle_note *list, size_t n, struct error *err)
{
	_cleanup_buffer_ struct buffer json = {0};

	if (n == 0)
		return 0;
	for (size_t i = 0; i < n; i++)
		buffer_printf(&json, "%s[\"%s\",%d,%s]", i ? "," : "[", list[i].batch, list[i].index,
			      list[i].handle);
	buffer_puts(&json, "]");
	if (buffer_check(&json, err) < 0)
		return -1;
	return ledger_transaction(l, handles_set, json.data, err);
}

struct seeing {
	handed_fn fn;
	void *arg;
};

static int take_seen(void *arg, const struct value *row, struct error *err)
{
	const struct seeing *s = arg;
	struct handed_seen h = {
		.id = value_words(&row[0]),
		.token = value_words(&row[1]),
		.batch = value_words_or_null(&row[2]),
		.index = (int)value_to_integer(&row[3], 0),
		.handle = value_words_or_null(&row[4]),
		.worker = value_words(&row[5]),
		.is_taken = value_to_integer(&row[6], 0) != 0,
		.cancelling = value_to_integer(&row[7], 0) != 0,
		.tries = (int)value_to_integer(&row[8], 0),
		.retries = (int)value_to_integer(&row[9], 0),
	};

	return s->fn(s->arg, &h, err);
}

int ledger_handed(struct ledger *l, const char *dispatcher, handed_fn fn, void *arg, struct error *err)
{
	struct seeing s = {fn, arg};

	return ledger_run(l, SQL_HANDED, LEDGER_VALUES(value_text(dispatcher)), take_seen, &s, err);
}

/* ---- its row ---- */

void handed_row_done(struct handed_row *r)
{
	job_done(&r->job);
	free(r->worker);
	free(r->dispatcher);
	json_decref(r->handle);
}

int handed_row_take(void *arg, const struct value *row, struct error *err)
{
	struct handed_row *r = arg;

	r->found = true;
	if (queue_job_load(&r->job, row, err) < 0 || value_to_text(&row[QUEUE_WORKER], &r->worker, err) < 0 ||
	    value_to_text(&row[QUEUE_DISPATCHER], &r->dispatcher, err) < 0 ||
	    value_to_json(&row[QUEUE_HANDLE], &r->handle, err) < 0)
		return -1;
	r->cancelling = value_to_integer(&row[QUEUE_CANCELLING], 0) != 0;
	return 0;
}

bool handed_row_is_taken(const struct handed_row *r)
{
	return !r->dispatcher || !r->worker || strcmp(r->dispatcher, r->worker) != 0;
}

void handed_row_describe(const struct handed_row *r, struct attempt *a, int64_t now)
{
	attempt_identify(a, r->job.id, r->job.token, r->job.attempt, r->job.request);
	a->created = a->ended = now;
	a->queued = true;
	a->engine = json_incref(r->handle);
}

/* An attempt that another may still believe to be his. It has a token that he does not know, so that what he commits is refused, and not
 * taken for the same once more; of one that is lost that is known anyway (queue_committed). */
static int end_for(struct ledger *l, const struct handed_row *r, struct attempt *a, const char *token,
		   int *ret_number, struct error *err)
{
	if (a->verdict != VERDICT_LOST) {
		memcpy(a->token, token, sizeof a->token);
		if (ledger_do(l, SQL_HANDED_FENCE, err, value_text(r->job.id), value_text(token)) < 0)
			return -1;
	}
	return commit_within(l, a, ret_number, err);
}

/* ---- who takes it ---- */

struct taking {
	const struct take_order *order;
	char token
		[TOKEN_SIZE]; /* made before the first try, so that a second one knows what the first has got */
	struct job *ret;
	struct error *why;
	bool is_ours;
};

/* Somebody has it, and is not heard of here: his attempt is over. *ret_number: of the next; 0: there is none. */
static int take_away(struct ledger *l, const struct taking *t, const struct handed_row *r, int64_t now,
		     int *ret_number, struct error *err)
{
	_cleanup_attempt_ struct attempt a;
	struct queue_row row;
	int number = 0;

	attempt_init(&a);
	handed_row_describe(r, &a, now);
	attempt_conclude(&a, r->cancelling ? VERDICT_CANCELLED : VERDICT_LOST, "%s",
			 t->order->lost ? t->order->lost : "it was started again elsewhere");
	attempt_event(&a, "lost", "taken away from %s", r->worker ? r->worker : "?");
	if (end_for(l, r, &a, t->token, &number, err) < 0 || queue_lock(l, r->job.id, &row, err) < 0)
		return -1;
	*ret_number = row.state == JOB_WAITING ? number + 1 : 0;
	return 0;
}

static int nothing_to_take(const struct taking *t, const char *why)
{
	error_set(t->why, ERROR_NOT_FOUND, "there is nothing to take as number %d of the batch %s: %s",
		  t->order->index, t->order->batch, why);
	return 0;
}

static int take_row(struct ledger *l, struct taking *t, struct handed_row *r, int64_t now, struct error *err)
{
	const struct take_order *o = t->order;
	_cleanup_free_ char *handle = r->handle ? json_dumps(r->handle, JSON_COMPACT) : NULL;
	int number = r->job.attempt;

	if (r->handle && !handle)
		return error_memory(err);
	if (handed_row_is_taken(r)) {
		if (take_away(l, t, r, now, &number, err) < 0)
			return -1;
		if (!number)
			return nothing_to_take(t, "it was lost before, and is not tried again");
	} else if (r->cancelling) {
		if (queue_put_back(l, r->job.id, true, 0, NULL, err) < 0)
			return -1;
		return nothing_to_take(t, "it was cancelled");
	}
	if (ledger_do(l, SQL_TAKE, err, value_text(r->job.id), value_text(o->worker), value_text(t->token),
		      value_integer(number), value_time(now + (int64_t)o->lease_ns),
		      value_integer((int64_t)(o->lease_ns / NSEC_PER_MSEC)), value_text(r->dispatcher),
		      value_text(o->batch), value_integer(o->index),
		      value_json(o->handle ? o->handle : handle)) < 0)
		return -1;
	memcpy(r->job.token, t->token, sizeof r->job.token);
	r->job.attempt = number;
	t->is_ours = true;
	return queue_ring(l, err);
}

static int take(struct ledger *l, void *arg, struct error *err)
{
	struct taking *t = arg;
	_cleanup_(handed_row_done) struct handed_row r = {0};
	int64_t now = 0;

	t->is_ours = false;
	if (queue_now(l, &now, err) < 0 ||
	    ledger_run(l, SQL_HANDED_ROW,
		       LEDGER_VALUES(value_text(t->order->batch), value_integer(t->order->index)),
		       handed_row_take, &r, err) < 0)
		return -1;
	if (!r.found)
		return nothing_to_take(t, "it went another way, or has ended");
	/* The connection was lost in the middle of our own commit. */
	if (strcmp(r.job.token, t->token) == 0)
		t->is_ours = true;
	else if (take_row(l, t, &r, now, err) < 0)
		return -1;
	if (t->is_ours) {
		job_done(t->ret);
		*t->ret = r.job;
		r.job = (struct job){0};
	}
	return 0;
}

int ledger_take(struct ledger *l, const struct take_order *o, struct job *ret, struct error *why,
		struct error *err)
{
	struct job job = {0};
	struct taking t = {.order = o, .ret = &job, .why = why};
	int r;

	if (token_make(t.token, err) < 0)
		return -1;
	r = ledger_transaction(l, take, &t, err);
	if (r < 0 || !t.is_ours) {
		job_done(&job);
		return r < 0 ? r : 1;
	}
	*ret = job;
	return 0;
}

/* ---- an end from outside ---- */

struct ending {
	const struct handed_end *end;
	char token[TOKEN_SIZE]; /* made before the first try, as above */
	int tries;
	bool is_done;
};

static int conclude(const struct handed_end *e, struct attempt *a, struct error *err)
{
	struct error why = ERROR_INIT;

	if (e->handle) {
		json_decref(a->engine);
		a->engine = json_loads(e->handle, 0, NULL);
		if (!a->engine)
			return error_set(err, ERROR_LEDGER, "what is known of '%s' is no JSON", e->id);
	}
	attempt_conclude(a, e->verdict, "%s", e->reason);
	if (e->verdict != VERDICT_REFUSED)
		return 0;
	error_set(&why, ERROR_REFUSED, "%s", e->reason);
	return attempt_refuse(a, &why) < 0 ? error_memory(err) : 0;
}

/* Its connection may have been lost in the middle of our own commit. */
static int was_ended(struct ledger *l, struct ending *e, struct error *err)
{
	int number, has = ledger_has_token(l, e->token, &number, err);

	if (has == 0 && e->end->verdict == VERDICT_LOST)
		has = ledger_has_token(l, e->end->token, &number, err);
	e->is_done = has > 0;
	return has < 0 ? has : 1;
}

static int end_row(struct ledger *l, void *arg, struct error *err)
{
	struct ending *e = arg;
	_cleanup_(handed_row_done) struct handed_row r = {0};
	_cleanup_attempt_ struct attempt a;
	int64_t now = 0;
	int number = 0;

	attempt_init(&a);
	if (queue_now(l, &now, err) < 0 ||
	    ledger_run(l, SQL_HANDED_TOKEN, LEDGER_VALUES(value_text(e->end->id), value_text(e->end->token)),
		       handed_row_take, &r, err) < 0)
		return -1;
	if (!r.found)
		return e->tries ? was_ended(l, e, err) : 1;
	e->tries++;
	handed_row_describe(&r, &a, now);
	if (conclude(e->end, &a, err) < 0 || end_for(l, &r, &a, e->token, &number, err) < 0)
		return -1;
	e->is_done = true;
	return 0;
}

int ledger_handed_end(struct ledger *l, const struct handed_end *e, struct error *err)
{
	struct ending ending = {.end = e};

	if (token_make(ending.token, err) < 0 || ledger_transaction(l, end_row, &ending, err) < 0)
		return -1;
	return ending.is_done ? 0 : 1;
}
