/*
 * PostgreSQL, 13 or newer, through libpq. READ COMMITTED, whatever the server's default: a commit that waited for
 * another one's lock must see what that one did.
 */
#include "postgres.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "ledger.h"
#include "pq_copy.h"
#include "text.h"

enum {
	SILENCE_MORE_MS =
		1000, /* than one and a half times what the server itself waits for locks: then we ask */
	RECONNECT_MS = 5000, /* a server that restarts is back by then */
	RECONNECT_STEP_MS = 100,
	DIGESTS_AT_ONCE = 4096,
	PARAMS_MAX = 10,
};

static int session_set(struct postgres *p, const char *settings, struct error *err)
{
	_cleanup_free_ char *peer = pq_peer_settings(&p->q), *text = NULL;

	if (!peer)
		return error_memory(err);
	return text_print(&text, err, "%s%s", settings, peer) < 0 ? -1 : pq_exec(&p->q, text, err);
}

/* What we want set is set for the session, if it is ours; else for each transaction, so that others find theirs as it
 * was. */
static int connect_and_set(struct postgres *p, struct error *err)
{
	_cleanup_free_ char *text = NULL;
	int part = PART_DIRECT;

	if (pq_connect(&p->q, p->url, err) < 0 || pq_exec_number(&p->q, sql_postgres_part, &part, err) < 0)
		return -1;
	p->base.connection++;
	memset(p->plans, 0, sizeof p->plans);
	p->part = (enum sql_part)part;
	p->base.only_submits = p->part == PART_SUBMITTER;
	p->base.is_pooled = p->q.is_pooled;
	text = sql_postgres_settings(p->q.is_pooled, p->part, p->busy_ms, (uint64_t)p->q.statement_ms);
	free(p->begin_first);
	free(p->begin);
	p->begin_first = text ? sql_postgres_begin(p->q.is_pooled ? text : "", false) : NULL;
	p->begin = text ? sql_postgres_begin(p->q.is_pooled ? text : "", true) : NULL;
	if (!p->begin_first || !p->begin)
		return error_memory(err);
	if (p->q.is_pooled)
		return 0;
	if (session_set(p, text, err) < 0 ||
	    (p->only_looks && pq_exec(&p->q, "SET default_transaction_read_only = on", err) < 0))
		return -1;
	return p->listening ? pq_exec(&p->q, sql_postgres_listen, err) : 0;
}

/* A server that was restarted refuses at first. */
int postgres_reconnect(struct postgres *p, struct error *err)
{
	uint64_t deadline = clock_now() + RECONNECT_MS * NSEC_PER_MSEC;
	int r;

	while ((r = connect_and_set(p, err)) < 0 && clock_now() < deadline)
		poll(NULL, 0, RECONNECT_STEP_MS);
	/* Not ERROR_AGAIN: this was the second try. */
	if (r < 0 && err)
		err->kind = error_kind_shown(err->kind);
	return r;
}

static int postgres_commit(struct backend *b, struct error *err)
{
	int r = pq_exec(&postgres_of(b)->q, "COMMIT", err);

	postgres_of(b)->in_transaction = r < 0;
	return r;
}

static void postgres_rollback(struct backend *b)
{
	struct postgres *p = postgres_of(b);
	struct pq *q = &p->q;

	if (!q->lost && p->copying && q->PQputCopyEnd(q->conn, "given up") < 0)
		q->lost = true;
	p->in_transaction = p->copying = false;
	buffer_free(&p->rows); /* it may have failed, and the next transaction begins anew */
	pq_drain(q);
	if (!q->lost && q->PQtransactionStatus(q->conn) != PQTRANS_IDLE)
		(void)pq_exec(q, "ROLLBACK", NULL);
}

/* Who has read the version holds a lock on its table that a migration waits for. */
static int postgres_begin(struct backend *b, int *ret_version, struct error *err)
{
	struct postgres *p = postgres_of(b);
	int r = p->q.lost ? postgres_reconnect(p, err) : 0;

	if (r == 0)
		r = pq_exec_number(&p->q, ret_version ? p->begin : p->begin_first, ret_version, err);
	p->in_transaction = r == 0;
	p->has_rung = false;
	if (r < 0)
		postgres_rollback(b);
	return r;
}

static int postgres_migrate_lock(struct backend *b, struct error *err)
{
	return pq_exec(&postgres_of(b)->q, sql_postgres_migrate_lock, err);
}

static int postgres_script(struct backend *b, const char *text, struct error *err)
{
	return pq_exec(&postgres_of(b)->q, text, err);
}

/* The parameters as libpq wants them: bytes in binary form, all else as text of a type that the server infers. */
struct params {
	const char *values[PARAMS_MAX];
	int lengths[PARAMS_MAX];
	int formats[PARAMS_MAX];
	char texts[PARAMS_MAX][CLOCK_TEXT_SIZE];
	char *escaped[PARAMS_MAX];
};

static void params_done(struct params *p)
{
	for (size_t i = 0; i < PARAMS_MAX; i++)
		free(p->escaped[i]);
}

/* As in a COPY: the server takes UTF-8 only, and a message may have a path in it that is not. */
static int params_set_text(struct params *p, size_t i, const struct value *v)
{
	p->values[i] = v->data;
	if (utf8_valid(v->data, v->size))
		return 0;
	p->values[i] = p->escaped[i] = text_escape(v->data, v->size);
	return p->escaped[i] ? 0 : -ENOMEM;
}

static int params_set(struct params *p, size_t i, const struct value *v)
{
	switch (v->kind) {
	case VALUE_NULL:
		break;
	case VALUE_TIME:
		clock_format(v->integer, p->texts[i]);
		p->values[i] = p->texts[i];
		break;
	case VALUE_INTEGER:
	case VALUE_BOOL:
		snprintf(p->texts[i], sizeof p->texts[i], "%lld", (long long)v->integer);
		p->values[i] = p->texts[i];
		break;
	case VALUE_TEXT:
		return params_set_text(p, i, v);
	case VALUE_JSON:
		p->values[i] = v->data;
		break;
	case VALUE_BYTES:
		p->values[i] = v->data;
		p->lengths[i] = (int)v->size;
		p->formats[i] = 1;
	}
	return 0;
}

struct rows {
	row_fn fn;
	void *arg;
	bool any; /* fn has had one */
};

static int take_rows(void *arg, struct pq *q, const PGresult *result, struct error *err)
{
	struct rows *rows = arg;
	struct value row[ROW_MAX];
	int n_columns = q->PQnfields(result), r = 0;

	assert(n_columns <= ROW_MAX);
	for (int i = 0; rows->fn && i < q->PQntuples(result) && r >= 0; i++) {
		for (int k = 0; k < n_columns; k++)
			row[k] = result_value(q, result, i, k);
		rows->any = true;
		r = rows->fn(rows->arg, row, err);
	}
	return r < 0 ? r : 0;
}

static int send_once(struct pq *q, const char *plan, const char *text, const struct params *params, int n)
{
	if (plan)
		return q->PQsendQueryPrepared(q->conn, plan, n, params->values, params->lengths,
					      params->formats, 1);
	return q->PQsendQueryParams(q->conn, text, n, NULL, params->values, params->lengths, params->formats,
				    1);
}

/* which: SQL_COUNT if it is none of the table's. */
static int run_once(struct postgres *p, enum sql which, const char *text, const struct params *params,
		    size_t n, struct rows *rows, struct error *err)
{
	int is_planned = 0;
	char plan[PLAN_NAME_SIZE] = "";
	struct pq *q = &p->q;

	if (which != SQL_COUNT && !q->lost) {
		is_planned = postgres_plan(p, which, text, plan, err);
		if (is_planned < 0)
			return is_planned;
	}
	if (q->lost || !send_once(q, is_planned ? plan : NULL, text, params, (int)n))
		return pq_lost(q, err);
	(void)q->PQsetSingleRowMode(q->conn);
	return pq_results(q, take_rows, rows, pq_error, err);
}

/* A statement by itself. In a session that is only lent it needs a transaction, to have our settings. */
static int run_alone(struct postgres *p, enum sql which, const char *text, const struct params *params,
		     size_t n, struct rows *rows, struct error *err)
{
	if (p->q.lost && postgres_reconnect(p, err) < 0)
		return -1;
	if (!p->q.is_pooled)
		return run_once(p, which, text, params, n, rows, err);
	if (postgres_begin(&p->base, NULL, err) < 0)
		return -1;
	if (run_once(p, which, text, params, n, rows, err) == 0 && postgres_commit(&p->base, err) == 0)
		return 0;
	postgres_rollback(&p->base);
	return -1;
}

int postgres_call(struct postgres *p, const char *text, const struct value *param, struct error *err)
{
	struct rows none = {0};
	struct params params = {0};

	params_set(&params, 0, param);
	return run_once(p, SQL_COUNT, text, &params, 1, &none, err);
}

static int postgres_run(struct backend *b, enum sql which, const struct value *values, size_t n, row_fn fn,
			void *arg, struct error *err)
{
	_cleanup_free_ char *text =
		sql_expand(which, postgres_of(b)->part == PART_SUBMITTER ? SQL_SUBMITTER : SQL_POSTGRES);
	struct rows rows = {.fn = fn, .arg = arg};
	struct postgres *p = postgres_of(b);
	_cleanup_(params_done) struct params params = {0};
	int r;

	assert(n <= PARAMS_MAX);
	if (!text)
		return error_memory(err);
	for (size_t i = 0; i < n; i++)
		if (params_set(&params, i, &values[i]) < 0)
			return error_memory(err);
	if (p->in_transaction)
		return run_once(p, which, text, &params, n, &rows, err);
	r = run_alone(p, which, text, &params, n, &rows, err);
	/* Nobody may have used the connection for hours, while the analysis ran. */
	if (r < 0 && err && err->kind == ERROR_AGAIN && p->q.lost && !rows.any)
		r = run_alone(p, which, text, &params, n, &rows, err);
	return r;
}

/* A query that fails would end a migration's transaction, so ask first whether there is a table to ask. */
static int postgres_version(struct backend *b, int *ret, struct error *err)
{
	int64_t there = 0, version = 0;

	if (postgres_run(b, SQL_VERSION_THERE, NULL, 0, take_integer, &there, err) < 0 ||
	    (there && postgres_run(b, SQL_VERSION, NULL, 0, take_integer, &version, err) < 0))
		return -1;
	*ret = version < 0 ? INT32_MAX : (int)version;
	return 0;
}

int copy_in_begin(struct postgres *p, const char *text, pq_fail_fn fail, struct error *err)
{
	struct pq *q = &p->q;
	PGresult *result = NULL;
	int r = 0;

	if (q->lost || !q->PQsendQuery(q->conn, text))
		return pq_lost(q, err);
	if (pq_result(q, &result, err) < 0)
		return -1;
	p->copying = q->PQresultStatus(result) == PGRES_COPY_IN;
	if (!p->copying)
		r = fail(q, result, err);
	q->PQclear(result);
	p->rows.size = 0;
	return r;
}

int copy_in_send(struct postgres *p, struct error *err)
{
	struct pq *q = &p->q;

	if (buffer_check(&p->rows, err) < 0)
		return -1;
	/* All that was put before is flushed, so it takes this one; what it cannot send now it keeps. */
	if (q->PQputCopyData(q->conn, p->rows.data, (int)p->rows.size) != 1)
		return pq_lost(q, err);
	p->rows.size = 0;
	return pq_flush(q, err);
}

int copy_in_end(struct postgres *p, pq_fail_fn fail, struct error *err)
{
	struct pq *q = &p->q;

	if (copy_in_send(p, err) < 0)
		return -1;
	p->copying = false;
	if (q->PQputCopyEnd(q->conn, NULL) != 1)
		return pq_lost(q, err);
	return pq_results(q, NULL, NULL, fail, err);
}

static int postgres_rows_begin(struct backend *b, enum sql_table table, struct error *err)
{
	struct postgres *p = postgres_of(b);
	_cleanup_free_ char *text = NULL;

	p->table = table;
	if (p->part == PART_SUBMITTER) {
		p->rows.size = 0;
		return 0;
	}
	text = sql_copy(table);
	if (!text)
		return error_memory(err);
	if (copy_in_begin(p, text, pq_error, err) < 0)
		return -1;
	copy_head(&p->rows);
	return 0;
}

static int postgres_rows_add(struct backend *b, const struct value *row, struct error *err)
{
	struct postgres *p = postgres_of(b);

	if (p->part == PART_SUBMITTER)
		return postgres_put_add(p, row, err);
	copy_row(&p->rows, sql_tables[p->table].types, row);
	return p->rows.size < COPY_CHUNK ? 0 : copy_in_send(p, err);
}

static int postgres_rows_end(struct backend *b, struct error *err)
{
	struct postgres *p = postgres_of(b);

	if (p->part == PART_SUBMITTER)
		return postgres_put_end(p, err);
	copy_end(&p->rows);
	return copy_in_end(p, pq_error, err);
}

struct states {
	const uint8_t (*sha256)[DIGEST_SIZE];
	size_t n;
	enum blob_state *ret;
};

static int digest_compare(const void *a, const void *b)
{
	return memcmp(a, b, DIGEST_SIZE);
}

static int take_state(void *arg, const struct value *row, struct error *err)
{
	const struct states *s = arg;
	uint8_t sha256[DIGEST_SIZE];
	const uint8_t(*found)[DIGEST_SIZE];

	if (value_to_digest(&row[0], sha256, err) < 0)
		return -1;
	found = bsearch(sha256, s->sha256, s->n, DIGEST_SIZE, digest_compare);
	if (found)
		s->ret[found - s->sha256] = value_to_integer(&row[1], 0) ? BLOB_OBJECT : BLOB_IN_DATABASE;
	return 0;
}

/* Thousands in one round trip. For a submitter a function does so (roles.sql). */
static int postgres_blob_states(struct backend *b, const uint8_t (*sha256)[DIGEST_SIZE], size_t n,
				enum blob_state *ret, struct error *err)
{
	bool holds = postgres_of(b)->in_transaction && postgres_of(b)->part != PART_SUBMITTER;
	_cleanup_buffer_ struct buffer array = {0};

	for (size_t i = 0; i < n; i++)
		ret[i] = BLOB_UNKNOWN;
	for (size_t i = 0; i < n; i += DIGESTS_AT_ONCE) {
		struct states some = {sha256 + i, n - i < DIGESTS_AT_ONCE ? n - i : DIGESTS_AT_ONCE, ret + i};
		struct value param;

		array.size = 0;
		if (copy_digests(&array, some.sha256, some.n, err) < 0)
			return -1;
		param = value_bytes(array.data, array.size);
		if (postgres_run(b, holds ? SQL_BLOB_HOLD : SQL_BLOB_STATE, &param, 1, take_state, &some,
				 err) < 0)
			return -1;
	}
	return 0;
}

static struct backend *postgres_close(struct backend *b)
{
	struct postgres *p = postgres_of(b);

	if (!b)
		return NULL;
	pq_done(&p->q);
	buffer_free(&p->rows);
	free(p->post_columns);
	free(p->url);
	free(p->begin_first);
	free(p->begin);
	free(b->name);
	free(p);
	return NULL;
}
DEFINE_CLEANUP(struct backend *, postgres_close);

static void postgres_hurry(struct backend *b, uint64_t silence_ms)
{
	pq_hurry(&postgres_of(b)->q, silence_ms < INT_MAX ? (int)silence_ms : INT_MAX);
}

static bool postgres_is_lost(const struct backend *b)
{
	return ((const struct postgres *)b)->q.lost;
}

static void postgres_distrust(struct backend *b)
{
	postgres_of(b)->q.lost = true;
}

static const struct backend_ops postgres_ops = {
	.dialect = SQL_POSTGRES,
	.close = postgres_close,
	.begin = postgres_begin,
	.commit = postgres_commit,
	.rollback = postgres_rollback,
	.migrate_lock = postgres_migrate_lock,
	.script = postgres_script,
	.version = postgres_version,
	.run = postgres_run,
	.rows_begin = postgres_rows_begin,
	.rows_add = postgres_rows_add,
	.rows_end = postgres_rows_end,
	.blob_states = postgres_blob_states,
	.post_begin = postgres_post_begin,
	.post_add = postgres_post_add,
	.post_end = postgres_post_end,
	.query = postgres_query,
	.ring = postgres_ring,
	.is_lost = postgres_is_lost,
	.distrust = postgres_distrust,
	.hurry = postgres_hurry,
	.bell = postgres_bell,
	.bell_read = postgres_bell_read,
	.bell_end = postgres_bell_end,
	.dump_begin = postgres_dump_begin,
	.dump = postgres_dump,
	.load = postgres_load,
	.is_empty = postgres_is_empty,
};

/* 'URL', as it may be shown. */
static char *quoted(const char *url)
{
	_cleanup_free_ char *shown = ledger_url_redacted(url), *escaped = NULL;
	char *name = NULL;

	escaped = shown ? text_escape(shown, strlen(shown)) : NULL;
	return escaped && asprintf(&name, "'%s'", escaped) >= 0 ? name : NULL;
}

int postgres_open(const struct ledger_url *url, unsigned flags, struct backend **ret, struct error *err)
{
	_cleanup_(postgres_closep) struct backend *b = calloc(1, sizeof(struct postgres));
	struct postgres *p = postgres_of(b);

	if (!b)
		return error_memory(err);
	b->ops = &postgres_ops;
	b->name = quoted(url->location);
	p->url = strdup(url->location);
	p->busy_ms = url->busy_ms;
	p->only_looks = flags & LEDGER_LOOK;
	if (!b->name || !p->url)
		return error_memory(err);
	p->q.name = b->name;
	p->q.silence_ms = (int)(url->busy_ms + url->busy_ms / 2) + SILENCE_MORE_MS;
	p->q.statement_ms = (int)url->statement_ms;
	if (pq_load(&p->q, err) < 0 || connect_and_set(p, err) < 0)
		return -1;
	*ret = TAKE_PTR(b);
	return 0;
}
