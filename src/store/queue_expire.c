/*
 * Time: leases that are over, and waiting that is. One lease to a transaction, so that nobody waits long for a lock; and
 * none at all while nothing is due.
 *
 * That a lease is over by the clock says little: SQLite's clock is the host's, which may be set, and a database that was
 * away has heard no heartbeat. So what is over is only watched at first (struct lease_watch).
 */
#include "queue_private.h"

#include <stdio.h>
#include <string.h>

#include "array.h"
#include "commit.h"
#include "config.h"

static const int64_t LOCKED_PAUSE_NS = 1000000000;
/* Claimed before an upgrade, its row does not say how long its lease is: whoever lives has prolonged it within a third of the
 * longest that there is. */
static const uint64_t UNKNOWN_WATCH_NS = QUEUE_LEASE_MAX_NS / 2;

struct watched {
	char id[ID_ROOM];
	char token[TOKEN_SIZE];
	int64_t until;
	uint64_t seen_ns; /* clock_now() of the first look */
	uint64_t watch_ns;
};

static void leases_done(struct lease_watch *w)
{
	free(w->list);
	w->list = NULL;
	w->count = 0;
}

void lease_watch_done(struct lease_watch *w)
{
	leases_done(w);
	dues_done(w);
}

struct next {
	int64_t now, lease, due; /* of the database's clock; 0: none */
};

static int take_next(void *arg, const struct value *row, struct error *err UNUSED)
{
	struct next *n = arg;

	n->now = value_to_integer(&row[0], 0);
	n->lease = value_to_integer(&row[1], 0);
	n->due = value_to_integer(&row[2], 0);
	return 0;
}

static int look(struct ledger *l, struct next *ret, struct error *err)
{
	int r;

	*ret = (struct next){0};
	r = ledger_run(l, SQL_QUEUE_NEXT, NULL, 0, take_next, ret, err);
	if (ret->now == 0)
		ret->now = clock_utc();
	return r;
}

static const char NOT_TAKEN[] = "its dispatcher was not heard of for the time of its lease";

static void describe(struct attempt *a, const struct handed_row *o, int64_t now)
{
	handed_row_describe(o, a, now);
	attempt_conclude(a, VERDICT_LOST, "its worker %s was not heard of for the time of its lease",
			 o->worker ? o->worker : "?");
	attempt_event(a, "lost", "recorded when its lease was over");
}

struct expiring {
	const struct watched *lease;
	unsigned connection;
	bool done;
};

/* 1: it has moved, or somebody is committing it, or the connection is another since it was seen. */
static int expire_one(struct ledger *l, void *arg, struct error *err)
{
	struct expiring *e = arg;
	_cleanup_attempt_ struct attempt a;
	_cleanup_(handed_row_done) struct handed_row o = {0};
	struct value params[] = {value_text(e->lease->id), value_text(e->lease->token),
				 value_time(e->lease->until)};
	int64_t now = 0;
	int number = 0;

	e->done = false;
	attempt_init(&a);
	if (queue_lock_for(l, LOCK_BRIEF_MS, err) < 0 || queue_now(l, &now, err) < 0)
		return -1;
	if (l->backend->connection != e->connection)
		return 1;
	if (ledger_run(l, SQL_LEASE_OVER, params, ARRAY_SIZE(params), handed_row_take, &o, err) < 0)
		return -1;
	if (!o.found)
		return 1;
	describe(&a, &o, now);
	/* What nobody has taken did not run, and has lost nothing. */
	if (handed_row_is_taken(&o) ? commit_within(l, &a, &number, err) < 0
				    : queue_put_back(l, o.job.id, o.cancelling, 0, NOT_TAKEN, err) < 0)
		return -1;
	e->done = true;
	return 0;
}

static int wake_due(struct ledger *l, void *arg UNUSED, struct error *err)
{
	int64_t now = 0;

	claim_memory_forget(l);
	if (queue_now(l, &now, err) < 0 || ledger_do(l, SQL_QUEUE_DUE, err, value_time(now)) < 0)
		return -1;
	return queue_ring(l, err);
}

/* ---- the two looks ---- */

struct looking {
	const struct lease_watch *before;
	struct watched *list;
	size_t count;
	int64_t now;
};

/* As it was at an earlier look: since when. */
static uint64_t seen_before(const struct lease_watch *w, const struct watched *x)
{
	for (size_t i = 0; i < w->count; i++)
		if (w->list[i].until == x->until && strcmp(w->list[i].token, x->token) == 0)
			return w->list[i].seen_ns;
	return 0;
}

static int take_watched(void *arg, const struct value *row, struct error *err)
{
	struct looking *k = arg;
	struct watched *x = ARRAY_ADD(k->list, k->count);

	if (!x)
		return error_memory(err);
	value_to_fixed(&row[0], x->id, sizeof x->id);
	value_to_fixed(&row[1], x->token, sizeof x->token);
	x->until = value_to_integer(&row[2], 0);
	x->seen_ns = seen_before(k->before, x);
	/* Its own lease, if that is longer than the watcher's: it need not have been heard of. */
	x->watch_ns = (uint64_t)value_to_integer(&row[3], 0) * NSEC_PER_MSEC;
	if (x->watch_ns < k->before->lease_ns)
		x->watch_ns = k->before->lease_ns;
	if (row[3].kind == VALUE_NULL && x->until > k->now)
		x->watch_ns = UNKNOWN_WATCH_NS;
	return 0;
}

/* What is watched where there is one writer is looked at so often that nobody writes for long between two looks unseen. */
static uint64_t look_every(const struct lease_watch *w)
{
	return w->lease_ns / 8;
}

/* Nobody can have prolonged anything since the last look, or we cannot tell. */
static bool was_shut(struct ledger *l, const struct lease_watch *w)
{
	if (!l->backend->ops->is_writable || w->count == 0)
		return false;
	return clock_now() - w->looked_ns > w->lease_ns / 2 || !l->backend->ops->is_writable(l->backend);
}

/* The leases that are over now. What was seen over another connection was not seen. */
static int watch_look(struct ledger *l, struct lease_watch *w, int64_t now, struct error *err)
{
	struct looking k = {.before = w, .now = now};
	struct value params[] = {value_time(now), value_integer(QUEUE_LEASE_MAX_NS / NSEC_PER_MSEC),
				 value_text(w->worker ? w->worker : "")};

	if (w->connection != l->backend->connection || was_shut(l, w))
		leases_done(w);
	w->connection = l->backend->connection;
	if (ledger_run(l, SQL_LEASES_OVER, params, ARRAY_SIZE(params), take_watched, &k, err) < 0) {
		free(k.list);
		return -1;
	}
	for (size_t i = 0; i < k.count; i++)
		if (!k.list[i].seen_ns || w->connection != l->backend->connection)
			k.list[i].seen_ns = clock_now();
	leases_done(w);
	w->list = k.list;
	w->count = k.count;
	w->connection = l->backend->connection;
	w->looked_ns = clock_now();
	return 0;
}

static bool is_ripe(const struct watched *x, uint64_t now)
{
	return x->seen_ns + x->watch_ns <= now;
}

/* begun: before the look began, so that what the look found held for the whole time. */
static int watch_expire(struct ledger *l, struct lease_watch *w, uint64_t begun, unsigned *expired,
			struct error *err)
{
	for (size_t i = 0; i < w->count; i++) {
		struct expiring e = {.lease = &w->list[i], .connection = w->connection};

		if (w->lease_ns && !is_ripe(e.lease, begun))
			continue;
		if (ledger_transaction(l, expire_one, &e, err) < 0) {
			if (err->kind != ERROR_LOCKED) /* who waits for it is locked: next time */
				return -1;
		} else if (e.done) {
			++*expired;
			w->list[i--] = w->list[--w->count];
		}
	}
	return 0;
}

/* How long until there is something to do; negative: nothing. */
static int64_t wait_of(const struct ledger *l, const struct next *n, const struct lease_watch *w)
{
	uint64_t now = clock_now();
	int64_t least = dues_wait(w);

	for (size_t i = 0; i < w->count; i++) {
		uint64_t at = w->list[i].seen_ns + w->list[i].watch_ns;
		/* One that is ripe and still there is being committed at this moment: not again at once. */
		int64_t wait = at > now ? (int64_t)(at - now) : LOCKED_PAUSE_NS;

		least = least < 0 || wait < least ? wait : least;
	}
	if (w->count && l->backend->ops->is_writable && least > (int64_t)look_every(w))
		least = (int64_t)look_every(w);
	for (const int64_t *at = (const int64_t[]){n->lease, n->due, -1}; *at >= 0; at++)
		if (*at > n->now && (least < 0 || *at - n->now < least))
			least = *at - n->now;
	/* Our own, which the next heartbeat prolongs. */
	if (least < 0 && (n->lease || n->due))
		least = LOCKED_PAUSE_NS;
	return least;
}

static int look_at_both(struct ledger *l, struct lease_watch *w, const struct next *n, struct error *err)
{
	if (n->lease && watch_look(l, w, n->now, err) < 0)
		return -1;
	if (!n->lease)
		leases_done(w);
	if (n->due)
		return dues_look(l, w, n->now, err);
	dues_done(w);
	return 0;
}

int ledger_expire(struct ledger *l, struct lease_watch *watch, unsigned *ret_expired, int64_t *ret_next,
		  struct error *err)
{
	uint64_t begun = clock_now();
	unsigned expired = 0;
	bool has_woken = false;
	struct next n;
	bool was_due;

	if (look(l, &n, err) < 0)
		return -1;
	was_due = n.due && n.due <= n.now;
	if (look_at_both(l, watch, &n, err) < 0 || watch_expire(l, watch, begun, &expired, err) < 0 ||
	    (was_due && ledger_transaction(l, wake_due, NULL, err) < 0) ||
	    dues_wake(l, watch, &has_woken, err) < 0 ||
	    ((expired || was_due || has_woken) && look(l, &n, err) < 0) ||
	    (has_woken && dues_look(l, watch, n.now, err) < 0))
		return -1;
	if (ret_expired)
		*ret_expired = expired;
	if (ret_next) {
		int64_t wait = wait_of(l, &n, watch);

		*ret_next = wait < 0 ? 0 : clock_utc() + wait;
	}
	return 0;
}
