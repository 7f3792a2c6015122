/*
 * Claims and leases. A claim looks who stands in line (queue_line.h) and takes the first of the one whose turn it is. It is
 * first of all an owner's turn: more names do not make a larger share.
 *
 * In PostgreSQL claims pass by the rows that others are claiming, and so go on side by side; the shares of the
 * submitters are then as they were when the claim began. Only where there is a cap, which must hold, they take turns.
 *
 * What was claimed and has ended stays in PostgreSQL's indexes until it is vacuumed, and while anybody has an old snapshot (a
 * pg_dump) it cannot be: a look has to pass by all of it. So a look that had to read many pages is believed for as many claims
 * as would have cost the same, five seconds at most: those go on from where the one before has found something.
 */
#include "queue_private.h"

#include <string.h>

#include "array.h"
#include "queue_line.h"

enum { SERVED_STEP_NS = 1000 }; /* what PostgreSQL can tell apart */
/* From how many pages on a look is dear; and what each of those that go on from it has to pay, which is a quarter of what a
 * look costs that has nothing to pass by. */
enum { PAGES_FAIR = 10, PAGES_DEAR = 100 };
/* The longer it took, the longer it is believed. */
enum { BELIEVED_TIMES = 20 };
static const uint64_t BELIEVED_MAX_NS = 5 * NSEC_PER_SEC;

/* A look that was dear. */
struct claim_memory {
	struct line root;
	uint64_t memory_total, cpus_total;
	uint64_t until;	 /* clock_now() */
	uint64_t claims; /* so many more */
	unsigned connection;
};

struct claim {
	const struct claim_order *order;
	bool believed; /* the memory, and not the index */
	char (*tokens)
		[TOKEN_SIZE]; /* made before the first try, so that a second one knows what the first has got */
	int tries;
	uint64_t memory_free, cpus_free;
	int64_t now;
	uint64_t begun;				 /* clock_now() */
	int64_t pages_before, pages_look, pages; /* the look's: until the first was found */
	struct job *ret;
	size_t max, n;
	bool full;
};

void claim_memory_forget(struct ledger *l)
{
	if (!l->claims)
		return;
	line_done(&l->claims->root);
	free(l->claims);
	l->claims = NULL;
}

static int memory_make(struct ledger *l, struct error *err)
{
	if (!l->claims)
		l->claims = calloc(1, sizeof *l->claims);
	return l->claims ? 0 : error_memory(err);
}

static bool is_believed(const struct ledger *l, const struct claim_order *o)
{
	const struct claim_memory *m = l->claims;

	return m && m->claims > 0 && o->cap == 0 && m->memory_total == o->memory_total &&
	       m->cpus_total == o->cpus_total && m->connection == l->backend->connection &&
	       clock_now() < m->until;
}

static void jobs_done(struct claim *c)
{
	for (size_t i = 0; i < c->n; i++)
		job_done(&c->ret[i]);
	c->n = 0;
}

static void claim_done(struct claim *c)
{
	free(c->tokens);
}

struct head {
	struct job *job;
	int64_t seq;
	bool found;
};

static int take_head(void *arg, const struct value *row, struct error *err)
{
	struct head *h = arg;

	h->found = true;
	h->seq = value_to_integer(&row[QUEUE_SEQ], 0);
	return queue_job_load(h->job, row, err);
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

static void serve(struct line *line, int64_t at)
{
	line->share.running++;
	line->share.served = at;
	line->is_touched = true;
	line->is_fresh = false;
}

static int take(struct ledger *l, struct claim *c, struct line *owner, struct line *s, struct job *j,
		struct error *err)
{
	int64_t at = c->now + (int64_t)c->n * SERVED_STEP_NS;

	memcpy(j->token, c->tokens[c->n], TOKEN_SIZE);
	if (ledger_ask(l, SQL_CLAIM_TAKE, &c->pages, err, value_text(j->id), value_text(c->order->worker),
		       value_text(j->token), value_integer(j->attempt),
		       value_time(c->now + (int64_t)c->order->lease_ns),
		       value_integer((int64_t)(c->order->lease_ns / NSEC_PER_MSEC)),
		       value_text(c->order->hands_over ? c->order->worker : NULL)) < 0)
		return -1;
	if (c->n == 0)
		c->pages_look = c->pages - c->pages_before;
	c->memory_free = less(c->memory_free, j->memory_bytes);
	c->cpus_free = less(c->cpus_free, j->cpus_milli);
	serve(owner, at);
	serve(s, at);
	return 0;
}

/* The next one of this submitter's, if there is one and it fits: c->n counts it. */
static int claim_next(struct ledger *l, struct claim *c, struct line *owner, struct line *s,
		      struct error *err)
{
	struct group *g = line_group(s);
	struct value params[] = {value_text(owner->name),      value_text(s->name),
				 value_integer(g->priority),   value_integer(g->memory_bytes),
				 value_integer(g->cpus_milli), value_integer(g->seq)};
	struct head h = {.job = &c->ret[c->n]};
	int r;

	job_init(h.job);
	r = ledger_run(l, SQL_CLAIM_HEAD, params, ARRAY_SIZE(params), take_head, &h, err);
	c->full = h.found && !fits(c, h.job);
	if (r == 0 && h.found && !c->full)
		r = take(l, c, owner, s, h.job, err);
	if (r < 0 || !h.found || c->full) {
		job_done(h.job);
	} else {
		g->seq = h.seq + 1;
		c->n++;
	}
	if (!h.found)
		line_drop(s, g);
	return r;
}

/* When who was served last; a memory's at its end. */
static int note_served(struct ledger *l, struct error *err)
{
	const struct line *root = &l->claims->root;

	for (size_t i = 0; i < root->n; i++) {
		const struct line *owner = &root->lines[i];

		for (size_t k = 0; k < owner->n; k++) {
			struct line *s = &owner->lines[k];

			if (s->is_touched && ledger_do(l, SQL_CLAIM_SERVED, err, value_text(owner->name),
						       value_text(s->name), value_time(s->share.served)) < 0)
				return -1;
			s->is_touched = false;
		}
	}
	return 0;
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

	for (size_t i = 0; i < c->max; i++)
		if (ids_add(&tokens, c->tokens[i], err) < 0)
			return -1;
	return queue_run_ids(l, SQL_CLAIMED, tokens.list, tokens.count, NULL, take_claimed, c, err);
}

static int take_begin(void *arg, const struct value *row, struct error *err UNUSED)
{
	struct claim *c = arg;

	c->now = value_to_integer(&row[0], 0);
	c->pages_before = c->pages = value_to_integer(&row[1], 0);
	return 0;
}

static int claim_begin(struct ledger *l, struct claim *c, struct error *err)
{
	if (l->backend->ops->dialect == SQL_SQLITE)
		return queue_now(l, &c->now, err);
	return ledger_run(l, SQL_CLAIM_BEGIN, NULL, 0, take_begin, c, err);
}

static int claim_some(struct ledger *l, struct claim *c, struct error *err)
{
	struct line_order o = {c->order->memory_total, c->order->cpus_total, c->order->cap};

	while (c->n < c->max && !c->full) {
		struct line *owner, *s;

		if (line_next(l, &l->claims->root, &o, &owner, &s, err) < 0)
			return -1;
		if (!owner)
			break;
		if (claim_next(l, c, owner, s, err) < 0)
			return -1;
	}
	return 0;
}

/* Was it so dear that the next ones go on from here? SQLite has no dead rows: there it never is. */
static void remember(struct ledger *l, const struct claim *c)
{
	struct claim_memory *m = l->claims;
	int64_t pages = c->pages - c->pages_before;
	uint64_t now = clock_now(), believed;

	l->claim_cost.claims += c->n;
	l->claim_cost.looks += !c->believed;
	l->claim_cost.pages += pages > 0 ? (uint64_t)pages : 0;
	if (c->believed) {
		m->claims -= c->n < m->claims ? c->n : m->claims;
		return;
	}
	m->memory_total = c->order->memory_total;
	m->cpus_total = c->order->cpus_total;
	m->connection = l->backend->connection;
	m->claims = c->pages_look > PAGES_DEAR ? (uint64_t)c->pages_look / PAGES_FAIR : 0;
	believed = BELIEVED_TIMES * (now - c->begun);
	m->until = now + (believed < BELIEVED_MAX_NS ? believed : BELIEVED_MAX_NS);
}

static int claim(struct ledger *l, void *arg, struct error *err)
{
	struct claim *c = arg;

	jobs_done(c);
	c->full = false;
	c->begun = clock_now();
	c->memory_free = c->order->memory_free;
	c->cpus_free = c->order->cpus_free;
	if (c->tries++) {
		claim_memory_forget(l);
		if (find_claimed(l, c, err) < 0)
			return -1;
		if (c->n)
			return 1;
	}
	c->believed = is_believed(l, c->order);
	if ((c->order->cap > 0 && l->backend->ops->dialect == SQL_POSTGRES &&
	     ledger_run(l, SQL_CLAIM_LOCK, NULL, 0, NULL, NULL, err) < 0) ||
	    memory_make(l, err) < 0 || claim_begin(l, c, err) < 0 ||
	    (c->believed && claim_some(l, c, err) < 0))
		return -1;
	if (c->n || c->full)
		return 0;
	c->believed = false;
	if (note_served(l, err) < 0)
		return -1;
	line_done(&l->claims->root);
	if (claim_some(l, c, err) < 0)
		return -1;
	return note_served(l, err);
}

static int make_tokens(struct claim *c, struct error *err)
{
	c->tokens = calloc(c->max, TOKEN_SIZE);
	if (!c->tokens)
		return error_memory(err);
	for (size_t i = 0; i < c->max; i++)
		if (token_make(c->tokens[i], err) < 0)
			return -1;
	return 0;
}

static int claim_any(struct ledger *l, struct claim *c, struct error *err)
{
	int64_t any = is_believed(l, c->order);

	/* Mostly there is nothing: that is found out without a transaction. */
	if (c->max && !any && ledger_run(l, SQL_CLAIM_ANY, NULL, 0, take_integer, &any, err) < 0)
		return -1;
	if (!c->max || !any)
		return 0;
	return make_tokens(c, err) < 0 ? -1 : ledger_transaction(l, claim, c, err);
}

int ledger_claim(struct ledger *l, const struct claim_order *o, struct job *ret, size_t max, size_t *ret_n,
		 bool *ret_full, struct error *err)
{
	_cleanup_(claim_done) struct claim c = {.order = o, .ret = ret, .max = max};

	if (claim_any(l, &c, err) < 0) {
		claim_memory_forget(l);
		jobs_done(&c);
		return -1;
	}
	if (l->claims)
		remember(l, &c);
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
	const struct worker_sign *sign; /* NULL: none */
	struct lease *leases;
	size_t n;
};

static int take_lease(void *arg, const struct value *row, struct error *err)
{
	struct heartbeat *h = arg;
	struct lease *lease = ARRAY_ADD(h->leases, h->n);

	if (!lease)
		return error_memory(err);
	value_to_fixed(&row[0], lease->id, sizeof lease->id);
	value_to_fixed(&row[1], lease->token, sizeof lease->token);
	lease->cancelling = value_to_integer(&row[2], 0) != 0;
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
	int64_t now = 0;

	if (queue_now(l, &now, err) < 0 ||
	    ledger_do(l, SQL_LEASE_PROLONG, err, value_text(h->worker),
		      value_time(now + (int64_t)h->lease_ns),
		      value_integer((int64_t)(h->lease_ns / NSEC_PER_MSEC)),
		      value_json(h->sign ? h->sign->live : NULL)) < 0 ||
	    (h->sign && worker_sign(l, h->sign, now, err) < 0))
		return -1;
	return look(l, h, err);
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

	return tell(&h, ledger_transaction(l, heartbeat, &h, err), fn, arg);
}

int ledger_sign(struct ledger *l, const struct worker_sign *s, lease_fn fn, void *arg, struct error *err)
{
	struct heartbeat h = {.worker = s->name, .lease_ns = s->lease_ns, .sign = s};

	return tell(&h, ledger_transaction(l, heartbeat, &h, err), fn, arg);
}

int ledger_leases(struct ledger *l, const char *worker, lease_fn fn, void *arg, struct error *err)
{
	struct heartbeat h = {.worker = worker};

	return tell(&h, look(l, &h, err), fn, arg);
}
