/*
 * A commit with so many contents that writing them takes as long as a lease, in a database that has one writer at a time.
 * Nobody else could claim, commit or prolong a lease meanwhile. So they go in before the commit, in transactions of bounded
 * size with room for others in between, each with a mark (blob_staged) that nobody refers to it yet. The commit itself, one
 * transaction still, then has only rows to write, and takes the marks of its contents away.
 *
 * The commit does not rely on any of this: what it does not find, it writes. A crash leaves contents with marks, and those
 * are what the sweep removes, under the lock of the object store, which whoever stages holds until his commit is done.
 */
#include "commit.h"

#include <time.h>

#include "clock.h"

/* As long as this the lock is held, or until so much is written; a single content is 16 MiB at most. */
static const uint64_t STAGE_NS = 150 * NSEC_PER_MSEC;
enum { STAGE_BYTES = 16 << 20, SWEEP_ROWS = 64 };
/* Whoever waits for the lock looks for it every 100 ms at least, which is SQLite's way of waiting. */
static const struct timespec STAGE_PAUSE = {.tv_nsec = 120 * NSEC_PER_MSEC};

struct batch {
	bool is_open;
	uint64_t begun, bytes;
	bool has_waited; /* there was one before */
};

static int batch_begin(struct commit *c, struct batch *b, struct error *err)
{
	if (b->is_open)
		return 0;
	if (b->has_waited)
		nanosleep(&STAGE_PAUSE, NULL);
	if (ledger_begin(c->l, err) < 0)
		return -1;
	*b = (struct batch){.is_open = true, .begun = clock_now(), .has_waited = true};
	return ledger_rows_begin(c->l, TABLE_BLOB, err);
}

static int batch_end(struct commit *c, struct batch *b, struct error *err)
{
	struct backend *backend = c->l->backend;

	if (b->is_open && (ledger_rows_end(c->l, err) < 0 || backend->ops->commit(backend, err) < 0))
		return -1;
	b->is_open = false;
	return 0;
}

static int stage_one(struct commit *c, const struct content *content, struct batch *b, struct error *err)
{
	struct backend *backend = c->l->backend;
	const uint8_t(*sha256)[DIGEST_SIZE] = (const uint8_t(*)[DIGEST_SIZE])content->output->sha256;
	enum blob_state state = BLOB_UNKNOWN;

	if (batch_begin(c, b, err) < 0 || backend->ops->blob_states(backend, sha256, 1, &state, err) < 0)
		return -1;
	if (state == BLOB_UNKNOWN) {
		if (commit_blob_add(c, content, err) < 0 ||
		    ledger_do(c->l, SQL_STAGED_ADD, err, value_bytes(*sha256, DIGEST_SIZE)) < 0)
			return -1;
		b->bytes += content->output->size;
	}
	return b->bytes >= STAGE_BYTES || clock_now() - b->begun >= STAGE_NS ? batch_end(c, b, err) : 0;
}

/* Contents that are to go into the database. */
static bool is_small(const struct commit *c, const struct content *content)
{
	return !content->is_object && content->output->size <= c->l->blob_max;
}

static bool is_much(const struct commit *c)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < c->n_contents; i++)
		sum += is_small(c, &c->contents[i]) ? c->contents[i].output->size : 0;
	return sum > STAGE_BYTES;
}

static int stage_all(struct commit *c, struct batch *b, struct error *err)
{
	for (size_t i = 0; i < c->n_contents; i++)
		if (is_small(c, &c->contents[i]) && stage_one(c, &c->contents[i], b, err) < 0)
			return -1;
	return batch_end(c, b, err);
}

int commit_stage(struct commit *c, struct error *err)
{
	struct backend *backend = c->l->backend;
	struct batch b = {0};
	int r;

	if (!backend->ops->is_writable || !is_much(c))
		return 0;
	r = c->a ? ledger_has_token(c->l, c->a->token, NULL, err) : 0;
	if (r != 0)
		return r < 0 ? r : 0;
	if (objects_hold(&c->l->objects, err) < 0)
		return -1;
	r = stage_all(c, &b, err);
	if (b.is_open)
		backend->ops->rollback(backend);
	return r;
}

static int staged_any(struct ledger *l, int64_t *ret, struct error *err)
{
	*ret = 0;
	return l->backend->ops->is_writable ? ledger_run(l, SQL_STAGED_ANY, NULL, 0, take_integer, ret, err)
					    : 0;
}

static int take_marks(struct commit *c, enum sql any_statement, enum sql take, struct error *err)
{
	int64_t any = 0;

	if (ledger_run(c->l, any_statement, NULL, 0, take_integer, &any, err) < 0)
		return -1;
	for (size_t i = 0; any && i < c->n_contents; i++)
		if (ledger_do(c->l, take, err, value_bytes(c->contents[i].output->sha256, DIGEST_SIZE)) < 0)
			return -1;
	return 0;
}

int commit_unstage(struct commit *c, struct error *err)
{
	/* PostgreSQL did so when it was asked for their states. */
	if (!c->l->backend->ops->is_writable)
		return 0;
	if (take_marks(c, SQL_STAGED_ANY, SQL_STAGED_TAKE, err) < 0)
		return -1;
	return take_marks(c, SQL_LOOSE_ANY, SQL_LOOSE_TAKE, err);
}

struct sweep {
	int64_t removed, any;
};

/* Not all at once either. */
static int sweep_some(struct ledger *l, void *arg, struct error *err)
{
	struct value most = value_integer(SWEEP_ROWS);
	struct sweep *s = arg;

	if (ledger_do(l, SQL_STAGED_SWEEP, err, most) < 0 ||
	    ledger_run(l, SQL_CHANGES, NULL, 0, take_integer, &s->removed, err) < 0 ||
	    ledger_do(l, SQL_STAGED_FORGET, err, most) < 0)
		return -1;
	return staged_any(l, &s->any, err);
}

static int sweep_all(struct ledger *l, uint64_t *removed, struct error *err)
{
	struct sweep s = {.any = true};

	/* Nobody refers to them: to have that proved, for each, would be a walk through all outputs there are. */
	if (l->backend->ops->script(l->backend, sql_sqlite_trusting, err) < 0)
		return -1;
	while (s.any) {
		if (ledger_once(l, sweep_some, &s, err) < 0)
			return -1;
		*removed += (uint64_t)s.removed;
		if (s.any)
			nanosleep(&STAGE_PAUSE, NULL);
	}
	return 0;
}

int ledger_sweep_staged(struct ledger *l, uint64_t *removed, struct error *err)
{
	int64_t any;
	int r, alone;

	if (staged_any(l, &any, err) < 0)
		return -1;
	if (!any)
		return 0;
	/* Whoever stages has made the store: without it nobody does. */
	alone = objects_lock_alone(&l->objects, err);
	if (alone < 0 || alone == OBJECTS_BUSY)
		return alone < 0 ? alone : 0;
	r = sweep_all(l, removed, err);
	if (l->backend->ops->script(l->backend, sql_sqlite_checking, r < 0 ? NULL : err) < 0)
		r = -1;
	if (alone == OBJECTS_LOCKED)
		objects_unlock(&l->objects);
	return r;
}
