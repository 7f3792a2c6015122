/*
 * The ends of a queued analysis: the fence around its commit, what becomes of it and of those who wait for it,
 * cancelling, and beginning again.
 *
 * Those who wait are locked before they are looked at, level by level: of two that end at once the second then sees
 * what the first has done, and whoever is submitted meanwhile is not forgotten.
 */
#include "queue_private.h"

#include <stdio.h>
#include <string.h>

static int take_row(void *arg, const struct value *row, struct error *err)
{
	struct queue_row *q = arg;

	q->found = true;
	if (row[0].kind != VALUE_TEXT || job_state_parse(row[0].data, &q->state) < 0)
		return error_set(err, ERROR_LEDGER,
				 "the ledger holds a queued analysis without a state: it is damaged");
	value_to_fixed(&row[1], q->token, sizeof q->token);
	q->retries = (int)value_to_integer(&row[2], 0);
	q->retry_on = (unsigned)value_to_integer(&row[3], 0);
	q->tries = (int)value_to_integer(&row[4], 0);
	q->cancelling = value_to_integer(&row[5], 0) != 0;
	if (row[6].kind != VALUE_TEXT || verdict_parse(row[6].data, &q->verdict) < 0)
		q->verdict = VERDICT_NONE;
	return 0;
}

int queue_lock(struct ledger *l, const char *id, struct queue_row *ret, struct error *err)
{
	struct value key = value_text(id);

	*ret = (struct queue_row){0};
	return ledger_run(l, SQL_QUEUE_ROW, &key, 1, take_row, ret, err);
}

static int lock_known(struct ledger *l, const char *id, struct queue_row *ret, struct error *err)
{
	if (queue_lock(l, id, ret, err) < 0)
		return -1;
	if (!ret->found)
		return error_set(err, ERROR_NOT_FOUND, "'%s' is not in the queue of %s", id,
				 l->backend->name);
	return 0;
}

static bool is_ours(const struct queue_row *row, const char *token)
{
	return row->found && row->state == JOB_RUNNING && strcmp(row->token, token) == 0;
}

static int lease_lost(const char *id, struct error *err)
{
	return error_set(
		err, ERROR_LEASE,
		"cannot commit '%s': its lease is over, and it is no longer this worker's: nothing was "
		"committed",
		id);
}

static int take_verdict(void *arg, const struct value *row, struct error *err UNUSED)
{
	if (row[0].kind != VALUE_TEXT || verdict_parse(row[0].data, arg) < 0)
		*(enum verdict *)arg = VERDICT_NONE;
	return 0;
}

int queue_committed(struct ledger *l, const struct attempt *a, struct error *err)
{
	enum verdict verdict = VERDICT_NONE;
	struct value key = value_text(a->token);

	if (ledger_run(l, SQL_TOKEN_VERDICT, &key, 1, take_verdict, &verdict, err) < 0)
		return -1;
	return verdict == VERDICT_LOST && a->verdict != VERDICT_LOST ? lease_lost(a->id, err) : 0;
}

/* Who comes after an array comes after each of its tasks. */
static int add_arrays(struct ids *ids, struct error *err)
{
	char name[ID_ROOM], last[ID_ROOM] = "";
	size_t n = ids->count;

	for (size_t i = 0; i < n; i++) {
		if (!array_of(ids->list[i], name) || strcmp(name, last) == 0)
			continue;
		memcpy(last, name, sizeof last);
		if (ids_add(ids, name, err) < 0)
			return -1;
	}
	return 0;
}

int queue_cancel_after(struct ledger *l, char *const *ids, size_t n, const char *reason, struct error *err)
{
	_cleanup_ids_ struct ids level = {0};
	struct value why = value_text(reason);

	for (size_t i = 0; i < n; i++)
		if (ids_add(&level, ids[i], err) < 0)
			return -1;
	while (level.count) {
		_cleanup_ids_ struct ids next = {0};

		if (add_arrays(&level, err) < 0 ||
		    queue_run_ids(l, SQL_AFTER_WAITING, level.list, level.count, NULL, ids_take, &next, err) <
			    0 ||
		    queue_run_ids(l, SQL_QUEUE_CANCEL, next.list, next.count, &why, NULL, NULL, err) < 0)
			return -1;
		ids_done(&level);
		level = next;
		next = (struct ids){0};
	}
	return 0;
}

/* It has succeeded: who waits for nobody else may start. They may be a million: none of their ids comes here. */
static int release_after(struct ledger *l, const char *id, struct error *err)
{
	struct value key = value_text(id);
	int64_t waiting = 0;

	if (ledger_ask(l, SQL_AFTER_LOCK, &waiting, err, key) < 0)
		return -1;
	if (waiting && (array_pass_on(l, id, err) < 0 || ledger_do(l, SQL_AFTER_READY, err, key) < 0))
		return -1;
	return ledger_do(l, SQL_AFTER_MET, err, key);
}

/* Our own failures, and what the submitter wants tried again. */
static bool can_be_mended(const struct queue_row *row, const struct attempt *a)
{
	enum error_kind code = error_kind_parse(a->error_code);

	if (a->verdict == VERDICT_SUCCEEDED || a->verdict == VERDICT_CANCELLED)
		return false;
	if (a->verdict == VERDICT_LOST || row->retry_on & 1u << a->verdict)
		return true;
	return a->verdict == VERDICT_REFUSED &&
	       (code == ERROR_SYSTEM || code == ERROR_LEDGER || code == ERROR_BUSY);
}

static int end_after(struct ledger *l, const struct attempt *a, struct error *err)
{
	char reason[ID_ROOM + 32];

	if (a->verdict == VERDICT_SUCCEEDED)
		return release_after(l, a->id, err);
	snprintf(reason, sizeof reason, "'%s' did not succeed", a->id);
	return queue_cancel_after(l, (char *const[]){(char *)a->id}, 1, reason, err);
}

int queue_settle(struct ledger *l, const struct queue_row *row, const struct attempt *a, int number,
		 struct error *err)
{
	bool again = !row->cancelling && row->tries < row->retries && can_be_mended(row, a);
	int64_t now = 0;

	if (!is_ours(row, a->token))
		return lease_lost(a->id, err);
	if ((again && queue_now(l, &now, err) < 0) ||
	    ledger_do(l, SQL_QUEUE_SETTLE, err, value_text(a->id),
		      value_text(job_state_name(again ? JOB_WAITING : JOB_FINISHED)),
		      value_integer(row->tries + again),
		      value_time(again ? now + (int64_t)job_back_off(row->tries) : 0),
		      value_text(verdict_name(a->verdict)), value_integer(a->status),
		      value_text(a->reason ? a->reason : a->error_message), value_integer(number)) < 0 ||
	    (!again && end_after(l, a, err) < 0))
		return -1;
	return queue_ring(l, err);
}

/* ---- cancel, release, retry ---- */

struct change {
	const char *id;
	const char *token;
	uint64_t delay_ns;
	const char *reason; /* or NULL */
	bool is_brief;	    /* waits for no lock */
	enum job_state before;
	int tries;
};

static int cancel_now(struct ledger *l, const char *id, struct error *err)
{
	struct value why = value_text("cancelled");
	char *const one[] = {(char *)id};
	char reason[ID_ROOM + 32];
	int r = queue_run_ids(l, SQL_QUEUE_CANCEL, one, 1, &why, NULL, NULL, err);

	snprintf(reason, sizeof reason, "'%s' was cancelled", id);
	return r < 0 ? r : queue_cancel_after(l, one, 1, reason, err);
}

static int cancel(struct ledger *l, void *arg, struct error *err)
{
	struct change *c = arg;
	struct queue_row row;
	int r;

	if (lock_known(l, c->id, &row, err) < 0)
		return -1;
	c->before = row.state;
	switch (row.state) {
	case JOB_WAITING:
	case JOB_QUEUED:
	case JOB_RESTORED:
		r = cancel_now(l, c->id, err);
		break;
	case JOB_RUNNING:
		r = ledger_do(l, SQL_QUEUE_CANCELLING, err, value_text(c->id));
		break;
	default:
		return 1;
	}
	return r < 0 ? r : queue_ring(l, err);
}

int ledger_cancel(struct ledger *l, const char *id, enum job_state *ret_state, struct error *err)
{
	struct change c = {.id = id};

	if (ledger_transaction(l, cancel, &c, err) < 0)
		return -1;
	if (ret_state)
		*ret_state = c.before;
	return 0;
}

int queue_put_back(struct ledger *l, const char *id, bool cancelling, int64_t due, const char *reason,
		   struct error *err)
{
	claim_memory_forget(l);
	if (ledger_do(l, SQL_QUEUE_RELEASE, err, value_text(id),
		      value_text(job_state_name(due ? JOB_WAITING : JOB_QUEUED)), value_time(due),
		      value_text(reason)) < 0 ||
	    (cancelling && cancel_now(l, id, err) < 0))
		return -1;
	return queue_ring(l, err);
}

static int release(struct ledger *l, void *arg, struct error *err)
{
	const struct change *c = arg;
	struct queue_row row = {0};
	int64_t now = 0;

	claim_memory_forget(l);
	if ((c->is_brief && queue_lock_for(l, LOCK_BRIEF_MS, err) < 0) || queue_lock(l, c->id, &row, err) < 0)
		return -1;
	if (!is_ours(&row, c->token))
		return 1;
	if (queue_now(l, &now, err) < 0)
		return -1;
	return queue_put_back(l, c->id, row.cancelling, c->delay_ns ? now + (int64_t)c->delay_ns : 0,
			      c->reason, err);
}

int ledger_release_for(struct ledger *l, const char *id, const char *token, uint64_t delay_ns,
		       const char *reason, struct error *err)
{
	struct change c = {.id = id, .token = token, .delay_ns = delay_ns, .reason = reason};

	return ledger_transaction(l, release, &c, err);
}

int ledger_release(struct ledger *l, const char *id, const char *token, uint64_t delay_ns, struct error *err)
{
	return ledger_release_for(l, id, token, delay_ns, NULL, err);
}

int ledger_release_if_free(struct ledger *l, const char *id, const char *token, uint64_t delay_ns,
			   const char *reason, struct error *err)
{
	struct change c = {
		.id = id, .token = token, .delay_ns = delay_ns, .reason = reason, .is_brief = true};
	int r = ledger_transaction(l, release, &c, err);

	return r < 0 && err->kind == ERROR_LOCKED ? 1 : r;
}

static int take_unmet(void *arg, const struct value *row, struct error *err)
{
	return value_to_integer(&row[1], 0) ? 0 : ids_take(arg, row, err);
}

/* What it comes after, as it is now. */
static int check_unmet(struct ledger *l, const char *id, bool restored, struct known *k, struct error *err)
{
	if (k->standing == STANDING_UNKNOWN) {
		if (array_standing(l, k->id, &k->standing, err) < 0)
			return -1;
		/* One that was restored has kept its witness. */
		if (k->standing == STANDING_ACTIVE && !restored)
			return error_set(
				err, ERROR_REFUSED,
				"cannot try '%s' again: it comes after the array '%s', which has not ended yet",
				id, k->id);
	}
	if (k->standing != STANDING_ENDED && k->standing != STANDING_UNKNOWN)
		return 0;
	return error_set(err, ERROR_REFUSED,
			 "cannot try '%s' again: it comes after '%s', which %s; 'fumehood retry %s' first",
			 id, k->id,
			 k->standing == STANDING_ENDED ? "did not succeed" : "nobody knows any more", k->id);
}

/* Where it begins again: it may have to wait for others as before. */
static int retry_state(struct ledger *l, const char *id, bool restored, enum job_state *ret,
		       struct error *err)
{
	_cleanup_ids_ struct ids unmet = {0};
	_cleanup_free_ struct known *known = NULL;
	struct value key = value_text(id);

	if (ledger_run(l, SQL_AFTER, &key, 1, take_unmet, &unmet, err) < 0)
		return -1;
	known = calloc(unmet.count + 1, sizeof *known);
	if (!known)
		return error_memory(err);
	for (size_t i = 0; i < unmet.count; i++)
		known[i].id = unmet.list[i];
	if (queue_know(l, known, unmet.count, 0, err) < 0) /* they came in their order */
		return -1;
	*ret = JOB_QUEUED;
	for (size_t i = 0; i < unmet.count; i++) {
		if (check_unmet(l, id, restored, &known[i], err) < 0)
			return -1;
		if (known[i].standing == STANDING_ACTIVE)
			*ret = JOB_WAITING;
	}
	/* One that has succeeded, and whose row was removed, will not say so again. */
	return ledger_do(l, *ret == JOB_QUEUED ? SQL_AFTER_ALL_MET : SQL_AFTER_RECALL, err, key);
}

static int retry(struct ledger *l, void *arg, struct error *err)
{
	struct change *c = arg;
	enum job_state state = JOB_QUEUED;
	struct queue_row row;

	claim_memory_forget(l);
	if (lock_known(l, c->id, &row, err) < 0)
		return -1;
	/* The connection was lost in the middle of our own commit. */
	if (c->tries++ && (row.state == JOB_QUEUED || row.state == JOB_WAITING))
		return 1;
	if (row.state != JOB_FINISHED && row.state != JOB_CANCELLED && row.state != JOB_RESTORED)
		return error_set(err, ERROR_REFUSED, "cannot try '%s' again: it is %s", c->id,
				 job_state_name(row.state));
	if (row.state == JOB_FINISHED && row.verdict == VERDICT_SUCCEEDED)
		return error_set(err, ERROR_REFUSED, "cannot try '%s' again: it has succeeded", c->id);
	if (retry_state(l, c->id, row.state == JOB_RESTORED, &state, err) < 0 ||
	    ledger_do(l, SQL_QUEUE_AGAIN, err, value_text(c->id), value_text(job_state_name(state))) < 0)
		return -1;
	return queue_ring(l, err);
}

int ledger_retry(struct ledger *l, const char *id, struct error *err)
{
	struct change c = {.id = id};

	return ledger_transaction(l, retry, &c, err);
}
