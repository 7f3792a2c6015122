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

#include <errno.h>
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
	struct backend *backend = c->l->backend;
	int r;

	if (b->is_open)
		return 0;
	if (b->has_waited)
		nanosleep(&STAGE_PAUSE, NULL);
	r = ledger_begin(c->l, err);
	if (r < 0)
		return r;
	*b = (struct batch){.is_open = true, .begun = clock_now(), .has_waited = true};
	return backend->ops->rows_begin(backend, TABLE_BLOB, err);
}

static int batch_end(struct commit *c, struct batch *b, struct error *err)
{
	struct backend *backend = c->l->backend;
	int r = b->is_open ? backend->ops->rows_end(backend, err) : 0;

	if (r == 0 && b->is_open)
		r = backend->ops->commit(backend, err);
	b->is_open = r < 0;
	return r;
}

static int stage_one(struct commit *c, const struct content *content, struct batch *b, struct error *err)
{
	struct backend *backend = c->l->backend;
	const uint8_t(*sha256)[DIGEST_SIZE] = (const uint8_t(*)[DIGEST_SIZE])content->output->sha256;
	struct value key = value_bytes(*sha256, DIGEST_SIZE);
	enum blob_state state = BLOB_UNKNOWN;
	int r = batch_begin(c, b, err);

	if (r == 0)
		r = backend->ops->blob_states(backend, sha256, 1, &state, err);
	if (r == 0 && state == BLOB_UNKNOWN) {
		r = commit_blob_add(c, content, err);
		if (r == 0)
			r = ledger_run(c->l, SQL_STAGED_ADD, &key, 1, NULL, NULL, err);
		b->bytes += content->output->size;
	}
	if (r == 0 && (b->bytes >= STAGE_BYTES || clock_now() - b->begun >= STAGE_NS))
		r = batch_end(c, b, err);
	return r;
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
	r = objects_hold(&c->l->objects, err);
	for (size_t i = 0; i < c->n_contents && r == 0; i++)
		if (is_small(c, &c->contents[i]))
			r = stage_one(c, &c->contents[i], &b, err);
	if (r == 0)
		r = batch_end(c, &b, err);
	if (b.is_open)
		backend->ops->rollback(backend);
	return r;
}

static int take_truth(void *arg, const struct value *row, struct error *err UNUSED)
{
	*(bool *)arg = value_to_integer(row, 0) != 0;
	return 0;
}

static int take_count(void *arg, const struct value *row, struct error *err UNUSED)
{
	*(int64_t *)arg = value_to_integer(row, 0);
	return 0;
}

static int staged_any(struct ledger *l, bool *ret, struct error *err)
{
	*ret = false;
	return l->backend->ops->is_writable ? ledger_run(l, SQL_STAGED_ANY, NULL, 0, take_truth, ret, err)
					    : 0;
}

int commit_unstage(struct commit *c, struct error *err)
{
	bool any;
	int r = staged_any(c->l, &any, err);

	for (size_t i = 0; r == 0 && any && i < c->n_contents; i++) {
		struct value key = value_bytes(c->contents[i].output->sha256, DIGEST_SIZE);

		r = ledger_run(c->l, SQL_STAGED_TAKE, &key, 1, NULL, NULL, err);
	}
	return r;
}

/* Not all at once either. */
static int sweep_some(struct ledger *l, uint64_t *removed, bool *ret_any, struct error *err)
{
	struct backend *backend = l->backend;
	struct value most = value_integer(SWEEP_ROWS);
	int64_t n = 0;
	int r = ledger_begin(l, err);

	if (r < 0)
		return r;
	r = ledger_run(l, SQL_STAGED_SWEEP, &most, 1, NULL, NULL, err);
	if (r == 0)
		r = ledger_run(l, SQL_CHANGES, NULL, 0, take_count, &n, err);
	if (r == 0)
		r = ledger_run(l, SQL_STAGED_FORGET, &most, 1, NULL, NULL, err);
	if (r == 0)
		r = staged_any(l, ret_any, err);
	if (r == 0)
		r = backend->ops->commit(backend, err);
	if (r < 0)
		backend->ops->rollback(backend);
	else
		*removed += (uint64_t)n;
	return r;
}

int ledger_sweep_staged(struct ledger *l, uint64_t *removed, struct error *err)
{
	bool any;
	int r = staged_any(l, &any, err), alone;

	if (r < 0 || !any)
		return r;
	/* Whoever stages has made the store: without it nobody does. */
	alone = objects_lock_alone(&l->objects, err);
	if (alone < 0)
		return alone == -EBUSY ? 0 : alone;
	/* Nobody refers to them: to have that proved, for each, would be a walk through all outputs there are. */
	r = l->backend->ops->script(l->backend, sql_sqlite_trusting, err);
	while (r == 0 && any) {
		r = sweep_some(l, removed, &any, err);
		if (any)
			nanosleep(&STAGE_PAUSE, NULL);
	}
	if (l->backend->ops->script(l->backend, sql_sqlite_checking, r < 0 ? NULL : err) < 0 && r == 0)
		r = -EIO;
	if (alone)
		objects_unlock(&l->objects);
	return r;
}
