/*
 * A backend that has none of its own: every call goes to one that is lent for it. What is learned there and asked for here (whose
 * rights it has, which row has failed) is brought along.
 */
#include "lending_private.h"

#include <assert.h>
#include <stdlib.h>

#include "text.h"

enum { BRIEF_MS = 100 };

struct lent {
	struct backend base;
	struct backend_ops ops;
	struct lending *from;
	unsigned flags;
	struct backend *real; /* lent to us; NULL: nothing is */
	bool in_transaction;
};

static struct lent *lent_of(struct backend *b)
{
	return (struct lent *)b;
}

int lending_open(const char *url, int most, struct lending **ret, struct error *err)
{
	struct lending *l = calloc(1, sizeof *l);

	assert(most > 0 && most <= LENDING_MOST);
	if (!l)
		return error_memory(err);
	pthread_mutex_init(&l->lock, NULL);
	pthread_mutex_init(&l->turn, NULL);
	pthread_cond_init(&l->given_back, NULL);
	pthread_mutex_init(&l->joint.patience, NULL);
	l->joint.brief_ms = BRIEF_MS;
	l->most = most;
	if (text_set(&l->text, url, err) < 0 || ledger_url_parse(url, &l->url, err) < 0) {
		lending_close(l);
		return -1;
	}
	*ret = l;
	return 0;
}

struct lending *lending_close(struct lending *l)
{
	if (!l)
		return NULL;
	assert(l->n_idle == l->n_open);
	while (l->n_idle > 0) {
		struct backend *b = l->idle[--l->n_idle].backend;

		b->ops->close(b);
	}
	pthread_mutex_destroy(&l->joint.patience);
	pthread_cond_destroy(&l->given_back);
	pthread_mutex_destroy(&l->turn);
	pthread_mutex_destroy(&l->lock);
	ledger_url_done(&l->url);
	free(l->text);
	free(l);
	return NULL;
}

const char *lending_url(const struct lending *l)
{
	return l->text;
}

/* ---- lent, and given back ---- */

static int connect_new(const struct lending *l, unsigned flags, struct backend **ret, struct error *err)
{
	return (l->url.is_postgres ? postgres_open : sqlite_open)(&l->url, flags, ret, err);
}

static void take_turns(struct lending *l, struct backend *b)
{
	if (b->ops->take_turns)
		b->ops->take_turns(b, &l->turn);
}

void ledger_take_turns(struct ledger *l, struct lending *with)
{
	take_turns(with, l->backend);
	with->is_own = l->backend->is_own;
}

/* One that is idle, or NULL: there is room for a new one. */
static struct backend *wait_for_one(struct lending *l)
{
	struct idle found = {0};
	bool is_doubtful;

	pthread_mutex_lock(&l->lock);
	while (l->n_idle == 0 && l->n_open == l->most)
		pthread_cond_wait(&l->given_back, &l->lock);
	if (l->n_idle > 0)
		found = l->idle[--l->n_idle];
	else
		l->n_open++;
	is_doubtful = found.backend && found.losses != l->losses;
	pthread_mutex_unlock(&l->lock);
	if (is_doubtful && found.backend->ops->distrust)
		found.backend->ops->distrust(found.backend);
	return found.backend;
}

/* NULL: it could not be opened. */
static void give(struct lending *l, struct backend *b)
{
	bool is_lost = b && b->ops->is_lost && b->ops->is_lost(b);

	if (b)
		b->work = NULL;
	pthread_mutex_lock(&l->lock);
	l->losses += is_lost;
	if (b)
		l->idle[l->n_idle++] = (struct idle){b, l->losses};
	else
		l->n_open--;
	pthread_cond_signal(&l->given_back);
	pthread_mutex_unlock(&l->lock);
}

static int take(struct lent *t, struct error *err)
{
	struct backend *b;

	if (t->real)
		return 0;
	b = wait_for_one(t->from);
	if (!b && connect_new(t->from, t->flags, &b, err) < 0) {
		give(t->from, NULL);
		return -1;
	}
	take_turns(t->from, b);
	t->real = b;
	b->work = t->base.work;
	return 0;
}

/* What a reconnection may have changed stays known. */
static void note(struct lent *t)
{
	t->base.is_pooled = t->real->is_pooled;
	t->base.only_submits = t->real->only_submits;
	t->base.connection = t->real->connection;
}

static void give_back(struct lent *t)
{
	if (t->in_transaction || !t->real)
		return;
	note(t);
	give(t->from, TAKE_PTR(t->real));
}

void lent_join(struct backend *b, struct backend *leader)
{
	struct lent *t = lent_of(b);

	assert(!t->real && lent_of(leader)->in_transaction);
	t->real = lent_of(leader)->real;
	t->in_transaction = true;
}

void lent_part(struct backend *b)
{
	struct lent *t = lent_of(b);

	t->real = NULL;
	t->in_transaction = false;
}

/* ---- the calls ---- */

static int lent_begin(struct backend *b, int *ret_version, struct error *err)
{
	struct lent *t = lent_of(b);
	int r = take(t, err);

	if (r < 0)
		return r;
	r = t->real->ops->begin(t->real, ret_version, err);
	t->in_transaction = r == 0;
	note(t);
	give_back(t);
	return r;
}

/* One that failed is still to be rolled back. */
static int lent_commit(struct backend *b, struct error *err)
{
	struct lent *t = lent_of(b);
	int r = t->real->ops->commit(t->real, err);

	t->in_transaction = r < 0;
	give_back(t);
	return r;
}

static void lent_rollback(struct backend *b)
{
	struct lent *t = lent_of(b);

	if (!t->real)
		return;
	t->real->ops->rollback(t->real);
	t->in_transaction = false;
	give_back(t);
}

/* After a statement by itself; one of a transaction keeps what it has. */
static int done(struct lent *t, int r)
{
	give_back(t);
	return r;
}

static int lent_migrate_prepare(struct backend *b, struct error *err)
{
	struct lent *t = lent_of(b);

	if (take(t, err) < 0)
		return -1;
	return done(t, t->real->ops->migrate_prepare(t->real, err));
}

static int lent_migrate_lock(struct backend *b, struct error *err)
{
	struct lent *t = lent_of(b);

	if (take(t, err) < 0)
		return -1;
	return done(t, t->real->ops->migrate_lock(t->real, err));
}

/* Outside of a transaction it would be for the session, which is anybody's. */
static int lent_script(struct backend *b, const char *text, struct error *err)
{
	struct lent *t = lent_of(b);

	assert(t->in_transaction);
	return t->real->ops->script(t->real, text, err);
}

static int lent_version(struct backend *b, int *ret, struct error *err)
{
	struct lent *t = lent_of(b);

	if (take(t, err) < 0)
		return -1;
	return done(t, t->real->ops->version(t->real, ret, err));
}

static int lent_run(struct backend *b, enum sql which, const struct value *params, size_t n_params, row_fn fn,
		    void *arg, struct error *err)
{
	struct lent *t = lent_of(b);

	if (take(t, err) < 0)
		return -1;
	return done(t, t->real->ops->run(t->real, which, params, n_params, fn, arg, err));
}

static int lent_rows_begin(struct backend *b, enum sql_table table, struct error *err)
{
	struct lent *t = lent_of(b);

	assert(t->in_transaction);
	return t->real->ops->rows_begin(t->real, table, err);
}

static int lent_rows_add(struct backend *b, const struct value *row, struct error *err)
{
	struct backend *real = lent_of(b)->real;

	return real->ops->rows_add(real, row, err);
}

static int lent_rows_end(struct backend *b, struct error *err)
{
	struct backend *real = lent_of(b)->real;

	return real->ops->rows_end(real, err);
}

static int lent_blob_states(struct backend *b, const uint8_t (*sha256)[DIGEST_SIZE], size_t n,
			    enum blob_state *ret, struct error *err)
{
	struct lent *t = lent_of(b);

	if (take(t, err) < 0)
		return -1;
	return done(t, t->real->ops->blob_states(t->real, sha256, n, ret, err));
}

static int lent_post_begin(struct backend *b, const struct row_table *table, bool staged, struct error *err)
{
	struct lent *t = lent_of(b);
	int r;

	assert(t->in_transaction);
	t->real->failed_row = b->failed_row;
	r = t->real->ops->post_begin(t->real, table, staged, err);
	b->failed_row = t->real->failed_row;
	return r;
}

static int lent_post_add(struct backend *b, const struct cell *cells, uint64_t line, struct error *err)
{
	struct backend *real = lent_of(b)->real;
	int r = real->ops->post_add(real, cells, line, err);

	b->failed_row = real->failed_row;
	return r;
}

static int lent_post_end(struct backend *b, struct error *err)
{
	struct backend *real = lent_of(b)->real;
	int r = real->ops->post_end(real, err);

	b->failed_row = real->failed_row;
	return r;
}

/* A stranger's takes as long as it likes: on one that nobody else waits for. */
static int lent_query(struct backend *b, const struct ledger_query *q, query_line_fn fn, void *arg,
		      struct error *err)
{
	struct backend *own = NULL;
	int r = connect_new(lent_of(b)->from, lent_of(b)->flags, &own, err);

	if (r < 0)
		return r;
	r = own->ops->query(own, q, fn, arg, err);
	own->ops->close(own);
	return r;
}

static int lent_ring(struct backend *b, struct error *err)
{
	struct lent *t = lent_of(b);

	assert(t->in_transaction);
	return t->real->ops->ring(t->real, err);
}

static bool lent_is_writable(struct backend *b)
{
	struct error ignored = ERROR_INIT;
	struct lent *t = lent_of(b);
	bool is;

	if (take(t, &ignored) < 0)
		return false;
	is = t->real->ops->is_writable(t->real);
	give_back(t);
	return is;
}

static int lent_verify(struct backend *b, row_fn fn, void *arg, struct error *err)
{
	struct lent *t = lent_of(b);

	if (take(t, err) < 0)
		return -1;
	return done(t, t->real->ops->verify(t->real, fn, arg, err));
}

static struct backend *lent_close(struct backend *b)
{
	struct lent *t = lent_of(b);

	if (!b)
		return NULL;
	lent_rollback(b);
	free(b->name);
	free(t);
	return NULL;
}
DEFINE_CLEANUP(struct backend *, lent_close);

/* What needs a session is not here: nobody who has one of these asks for it. */
static const struct backend_ops lent_ops = {
	.close = lent_close,
	.begin = lent_begin,
	.commit = lent_commit,
	.rollback = lent_rollback,
	.migrate_prepare = lent_migrate_prepare,
	.migrate_lock = lent_migrate_lock,
	.script = lent_script,
	.version = lent_version,
	.run = lent_run,
	.rows_begin = lent_rows_begin,
	.rows_add = lent_rows_add,
	.rows_end = lent_rows_end,
	.blob_states = lent_blob_states,
	.post_begin = lent_post_begin,
	.post_add = lent_post_add,
	.post_end = lent_post_end,
	.query = lent_query,
	.ring = lent_ring,
	.is_writable = lent_is_writable,
	.verify = lent_verify,
};

/* What the database does not have, nobody has who is lent it. */
static void ops_like(struct backend_ops *o, const struct backend_ops *real)
{
	*o = lent_ops;
	o->dialect = real->dialect;
	if (!real->migrate_prepare)
		o->migrate_prepare = NULL;
	if (!real->migrate_lock)
		o->migrate_lock = NULL;
	if (!real->rows_end)
		o->rows_end = NULL;
	if (!real->is_writable)
		o->is_writable = NULL;
	if (!real->verify)
		o->verify = NULL;
}

int lending_lend(struct lending *from, unsigned flags, struct backend **ret, struct error *err)
{
	_cleanup_(lent_closep) struct backend *b = calloc(1, sizeof(struct lent));
	struct lent *t = lent_of(b);

	if (!b)
		return error_memory(err);
	t->from = from;
	t->flags = flags;
	if (take(t, err) < 0)
		return -1;
	b->is_own = from->is_own;
	ops_like(&t->ops, t->real->ops);
	b->ops = &t->ops;
	if (text_set(&b->name, t->real->name, err) < 0)
		return -1;
	give_back(t);
	*ret = TAKE_PTR(b);
	return 0;
}
