/*
 * Claims and leases. What a claim costs grows with the submitters who have something queued and with what is running,
 * not with what is queued: it steps over the index of what is ready from one submitter to the next, and takes the first
 * of the one whose turn it is. It is first of all an owner's turn: more names do not make a larger share.
 *
 * In PostgreSQL claims pass by the rows that others are claiming, and so go on side by side; the shares of the
 * submitters are then as they were when the claim began. Only where there is a cap, which must hold, they take turns.
 */
#include "queue_private.h"

#include <errno.h>
#include <string.h>

enum { SERVED_STEP_NS = 1000 }; /* what PostgreSQL can tell apart */

/* Running and served: the fewer and the longer ago, the sooner. */
struct share {
	int64_t running, served;
};

/* All submitters of one owner follow each other. */
struct submitter {
	char *owner, *name;
	struct share own;
	size_t whose; /* index of the owner's first, which has its sum */
	struct share sum;
	bool empty;   /* has nothing for us */
	bool touched; /* has got something */
};

struct claim {
	const struct claim_order *order;
	struct submitter *submitters;
	size_t n_submitters;
	char (*tokens)
		[TOKEN_SIZE]; /* made before the first try, so that a second one knows what the first has got */
	int tries;
	uint64_t memory_free, cpus_free;
	int64_t now;
	struct job *ret;
	size_t max, n;
	bool full;
};

static void submitters_done(struct claim *c)
{
	for (size_t i = 0; i < c->n_submitters; i++) {
		free(c->submitters[i].owner);
		free(c->submitters[i].name);
	}
	free(c->submitters);
	c->submitters = NULL;
	c->n_submitters = 0;
}

static void jobs_done(struct claim *c)
{
	for (size_t i = 0; i < c->n; i++)
		job_done(&c->ret[i]);
	c->n = 0;
}

static void claim_done(struct claim *c)
{
	submitters_done(c);
	free(c->tokens);
}

/* What of the owner's is running but nowhere queued counts as well. */
static int take_submitter(void *arg, const struct value *row, struct error *err)
{
	struct claim *c = arg;
	struct submitter *more = reallocarray(c->submitters, c->n_submitters + 1, sizeof *more), *s, *first;

	if (!more)
		return error_memory(err);
	c->submitters = more;
	s = &more[c->n_submitters];
	*s = (struct submitter){.own = {value_to_integer(&row[2], 0), value_to_integer(&row[3], 0)},
				.sum = {value_to_integer(&row[4], 0), value_to_integer(&row[5], 0)},
				.whose = c->n_submitters};
	c->n_submitters++;
	if (value_to_text(&row[0], &s->owner, err) < 0 || value_to_text(&row[1], &s->name, err) < 0)
		return -ENOMEM;
	first = s > more ? &more[s[-1].whose] : s;
	if (s > more && s->owner && first->owner && strcmp(first->owner, s->owner) == 0)
		s->whose = s[-1].whose;
	return 0;
}

static int find_submitters(struct ledger *l, struct claim *c, struct error *err)
{
	submitters_done(c);
	return ledger_run(l, SQL_CLAIM_SUBMITTERS, NULL, 0, take_submitter, c, err);
}

static int share_compare(const struct share *a, const struct share *b)
{
	if (a->running != b->running)
		return a->running < b->running ? -1 : 1;
	return (a->served > b->served) - (a->served < b->served);
}

/* Whose turn it is; NULL: nobody's. */
static struct submitter *choose(const struct claim *c)
{
	struct submitter *best = NULL;

	for (size_t i = 0; i < c->n_submitters; i++) {
		struct submitter *s = &c->submitters[i];
		const struct share *sum = &c->submitters[s->whose].sum;
		int order;

		if (s->empty || (c->order->cap > 0 && sum->running >= c->order->cap))
			continue;
		order = best ? share_compare(sum, &c->submitters[best->whose].sum) : -1;
		if (order == 0 && s->whose == best->whose)
			order = share_compare(&s->own, &best->own);
		if (order < 0)
			best = s;
	}
	return best;
}

struct head {
	struct job *job;
	bool found;
};

static int take_head(void *arg, const struct value *row, struct error *err)
{
	struct head *h = arg;

	h->found = true;
	return queue_job_load(h->job, row, err);
}

static struct value at_most(uint64_t total)
{
	return value_integer(total && total < INT64_MAX ? (int64_t)total : INT64_MAX);
}

static bool fits(const struct claim *c, const struct job *j)
{
	return (!c->order->memory_total || j->memory_bytes <= c->memory_free) &&
	       (!c->order->cpus_total || j->cpus_milli <= c->cpus_free);
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static int take(struct ledger *l, struct claim *c, struct submitter *s, struct job *j, struct error *err)
{
	memcpy(j->token, c->tokens[c->n], TOKEN_SIZE);

	struct value params[] = {
		value_text(j->id),
		value_text(c->order->worker),
		value_text(j->token),
		value_integer(j->attempt),
		value_time(c->now + (int64_t)c->order->lease_ns),
	};
	int r = ledger_run(l, SQL_CLAIM_TAKE, params, ARRAY_SIZE(params), NULL, NULL, err);

	c->memory_free = less(c->memory_free, j->memory_bytes);
	c->cpus_free = less(c->cpus_free, j->cpus_milli);
	s->own.running++;
	s->own.served = c->now + (int64_t)c->n * SERVED_STEP_NS;
	s->touched = true;
	c->submitters[s->whose].sum.running++;
	c->submitters[s->whose].sum.served = s->own.served;
	return r;
}

/* The next one, if there is one and it fits: c->n counts it. */
static int claim_next(struct ledger *l, struct claim *c, struct submitter *s, struct error *err)
{
	struct value params[] = {value_text(s->owner), value_text(s->name), at_most(c->order->memory_total),
				 at_most(c->order->cpus_total)};
	struct head h = {.job = &c->ret[c->n]};
	int r;

	job_init(h.job);
	r = ledger_run(l, SQL_CLAIM_HEAD, params, ARRAY_SIZE(params), take_head, &h, err);
	s->empty = !h.found;
	c->full = h.found && !fits(c, h.job);
	if (r == 0 && h.found && !c->full)
		r = take(l, c, s, h.job, err);
	if (r < 0 || !h.found || c->full)
		job_done(h.job);
	else
		c->n++;
	return r;
}

static int note_served(struct ledger *l, const struct claim *c, struct error *err)
{
	int r = 0;

	for (size_t i = 0; i < c->n_submitters && r == 0; i++) {
		const struct submitter *s = &c->submitters[i];
		struct value params[] = {value_text(s->owner), value_text(s->name),
					 value_time(s->own.served)};

		if (s->touched)
			r = ledger_run(l, SQL_CLAIM_SERVED, params, ARRAY_SIZE(params), NULL, NULL, err);
	}
	return r;
}

static int take_claimed(void *arg, const struct value *row, struct error *err)
{
	struct claim *c = arg;

	return c->n < c->max ? queue_job_load(&c->ret[c->n++], row, err) : 0;
}

/* What a first try has got whose commit was never answered. */
static int find_claimed(struct ledger *l, struct claim *c, struct error *err)
{
	_cleanup_ids_ struct ids tokens = {0};
	int r = 0;

	for (size_t i = 0; i < c->max && r == 0; i++)
		r = ids_add(&tokens, c->tokens[i], err);
	return r < 0 ? r
		     : queue_run_ids(l, SQL_CLAIMED, tokens.list, tokens.count, NULL, take_claimed, c, err);
}

static int claim(struct ledger *l, void *arg, struct error *err)
{
	struct claim *c = arg;
	int r = 0;

	jobs_done(c);
	c->full = false;
	c->memory_free = c->order->memory_free;
	c->cpus_free = c->order->cpus_free;
	if (c->tries++)
		r = find_claimed(l, c, err);
	if (r < 0 || c->n)
		return r < 0 ? r : 1;
	if (c->order->cap > 0 && l->backend->ops->dialect == SQL_POSTGRES)
		r = ledger_run(l, SQL_CLAIM_LOCK, NULL, 0, NULL, NULL, err);
	if (r == 0)
		r = queue_now(l, &c->now, err);
	if (r == 0)
		r = find_submitters(l, c, err);
	while (r == 0 && c->n < c->max && !c->full) {
		struct submitter *s = choose(c);

		if (!s)
			break;
		r = claim_next(l, c, s, err);
	}
	return r < 0 ? r : note_served(l, c, err);
}

static int take_any(void *arg, const struct value *row UNUSED, struct error *err UNUSED)
{
	*(bool *)arg = true;
	return 0;
}

static int make_tokens(struct claim *c, struct error *err)
{
	int r = 0;

	c->tokens = calloc(c->max, TOKEN_SIZE);
	if (!c->tokens)
		return error_memory(err);
	for (size_t i = 0; i < c->max && r == 0; i++)
		r = token_make(c->tokens[i], err);
	return r;
}

int ledger_claim(struct ledger *l, const struct claim_order *o, struct job *ret, size_t max, size_t *ret_n,
		 bool *ret_full, struct error *err)
{
	_cleanup_(claim_done) struct claim c = {.order = o, .ret = ret, .max = max};
	bool any = false;
	/* Mostly there is nothing: that is found out without a transaction. */
	int r = max ? ledger_run(l, SQL_CLAIM_ANY, NULL, 0, take_any, &any, err) : 0;

	if (r == 0 && any) {
		r = make_tokens(&c, err);
		if (r == 0)
			r = queue_transaction(l, claim, &c, err);
	}
	if (r < 0) {
		jobs_done(&c);
		return r;
	}
	*ret_n = c.n;
	if (ret_full)
		*ret_full = c.full;
	return 0;
}

/* ---- leases ---- */

struct lease {
	char id[ID_ROOM];
	char token[TOKEN_SIZE];
	bool cancelling;
};

struct heartbeat {
	const char *worker;
	uint64_t lease_ns;
	struct lease *leases;
	size_t n;
};

static int take_lease(void *arg, const struct value *row, struct error *err)
{
	struct heartbeat *h = arg;
	struct lease *more = reallocarray(h->leases, h->n + 1, sizeof *more);

	if (!more)
		return error_memory(err);
	h->leases = more;
	value_to_fixed(&row[0], more[h->n].id, sizeof more->id);
	value_to_fixed(&row[1], more[h->n].token, sizeof more->token);
	more[h->n++].cancelling = value_to_integer(&row[2], 0) != 0;
	return 0;
}

static int look(struct ledger *l, struct heartbeat *h, struct error *err)
{
	struct value worker = value_text(h->worker);

	h->n = 0;
	return ledger_run(l, SQL_LEASES, &worker, 1, take_lease, h, err);
}

static int heartbeat(struct ledger *l, void *arg, struct error *err)
{
	struct heartbeat *h = arg;
	struct value params[] = {value_text(h->worker), {.kind = VALUE_NULL}};
	int64_t now = 0;
	int r = queue_now(l, &now, err);

	params[1] = value_time(now + (int64_t)h->lease_ns);
	if (r == 0)
		r = ledger_run(l, SQL_LEASE_PROLONG, params, 2, NULL, NULL, err);
	return r < 0 ? r : look(l, h, err);
}

static int tell(struct heartbeat *h, int r, lease_fn fn, void *arg)
{
	for (size_t i = 0; i < h->n && r == 0; i++)
		fn(arg, h->leases[i].id, h->leases[i].token, h->leases[i].cancelling);
	free(h->leases);
	return r;
}

int ledger_heartbeat(struct ledger *l, const char *worker, uint64_t lease_ns, lease_fn fn, void *arg,
		     struct error *err)
{
	struct heartbeat h = {.worker = worker, .lease_ns = lease_ns};

	return tell(&h, queue_transaction(l, heartbeat, &h, err), fn, arg);
}

int ledger_leases(struct ledger *l, const char *worker, lease_fn fn, void *arg, struct error *err)
{
	struct heartbeat h = {.worker = worker};

	return tell(&h, look(l, &h, err), fn, arg);
}
