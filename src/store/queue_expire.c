/*
 * Time: leases that are over, and waiting that is. One lease to a transaction, so that nobody waits long for a lock; and
 * none at all while nothing is due.
 */
#include "queue_private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "commit.h"

static const int64_t LOCKED_PAUSE_NS = 1000000000;

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

struct over {
	struct job job;
	char *worker;
	bool found;
};

static void over_done(struct over *o)
{
	job_done(&o->job);
	free(o->worker);
}

static int take_over(void *arg, const struct value *row, struct error *err)
{
	struct over *o = arg;
	int r = queue_job_load(&o->job, row, err);

	o->found = true;
	return r < 0 ? r : value_to_text(&row[QUEUE_WORKER], &o->worker, err);
}

/* All that can be said of an attempt whose worker is not heard of any more. */
static int describe(struct attempt *a, const struct over *o, int64_t now, struct error *err)
{
	memcpy(a->id, o->job.id, sizeof a->id);
	memcpy(a->token, o->job.token, sizeof a->token);
	a->number = o->job.attempt;
	a->created = a->ended = now;
	a->verdict = VERDICT_LOST;
	a->exit_code = -1;
	a->status = 125;
	a->queued = true;
	a->request = json_incref(o->job.request);
	if (asprintf(&a->reason, "its worker %s was not heard of for the time of its lease",
		     o->worker ? o->worker : "?") < 0) {
		a->reason = NULL;
		return error_memory(err);
	}
	return attempt_event(a, "lost", "recorded when its lease was over") < 0 ? error_memory(err) : 0;
}

/* 1: there was none. */
static int expire_one(struct ledger *l, void *arg, struct error *err)
{
	_cleanup_attempt_ struct attempt a;
	_cleanup_(over_done) struct over o = {0};
	struct value param;
	int64_t now = 0;
	int number = 0, r = queue_now(l, &now, err);

	*(bool *)arg = false;
	attempt_init(&a);
	param = value_time(now);
	if (r == 0)
		r = ledger_run(l, SQL_LEASE_OVER, &param, 1, take_over, &o, err);
	if (r < 0 || !o.found)
		return r < 0 ? r : 1;
	r = describe(&a, &o, now, err);
	if (r == 0)
		r = commit_within(l, &a, &number, err);
	*(bool *)arg = r == 0;
	return r;
}

static int wake_due(struct ledger *l, void *arg UNUSED, struct error *err)
{
	struct value param;
	int64_t now = 0;
	int r = queue_now(l, &now, err);

	param = value_time(now);
	if (r == 0)
		r = ledger_run(l, SQL_QUEUE_DUE, &param, 1, NULL, NULL, err);
	return r < 0 ? r : queue_ring(l, err);
}

static bool is_over(int64_t at, const struct next *n)
{
	return at && at <= n->now;
}

/* In terms of this host's clock, which may be another. */
static int64_t first(const struct next *n)
{
	int64_t at = n->lease && (!n->due || n->lease < n->due) ? n->lease : n->due;

	if (!at)
		return 0;
	/* One that is over and still there is being committed at this moment: not again at once. */
	return clock_utc() + (at > n->now ? at - n->now : LOCKED_PAUSE_NS);
}

int ledger_expire(struct ledger *l, unsigned *ret_expired, int64_t *ret_next, struct error *err)
{
	unsigned expired = 0;
	struct next n;
	int r = look(l, &n, err);

	if (r == 0 && is_over(n.lease, &n)) {
		bool more = true;

		while (r == 0 && more) {
			r = queue_transaction(l, expire_one, &more, err);
			expired += r == 0 && more;
		}
	}
	if (r == 0 && is_over(n.due, &n))
		r = queue_transaction(l, wake_due, NULL, err);
	if (r == 0 && (is_over(n.lease, &n) || is_over(n.due, &n)))
		r = look(l, &n, err);
	if (r < 0)
		return r;
	if (ret_expired)
		*ret_expired = expired;
	if (ret_next)
		*ret_next = first(&n);
	return 0;
}
