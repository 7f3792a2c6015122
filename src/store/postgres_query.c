/*
 * A stranger's query on PostgreSQL: a connection of its own as the role that the site gives to queries
 * (postgres_login.c), a read-only transaction, a timeout, and COPY … TO STDOUT, which takes one query and nothing else.
 *
 * The login is the wall: whatever text a function runs as a query, nothing is there but that role's rights, and a role
 * that could do harm is refused. In front of it, names that are not for strangers are refused (query_words.c), and
 * what is left is parsed by itself before it is put between the brackets of COPY.
 */
#include "postgres.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ledger.h"
#include "query.h"
#include "text.h"

enum { SILENCE_MS = 5000, ANSWER_ROW_MAX = 16 * 1024 * 1024 };

/* What the server says of it: the query is at fault unless the server is. */
static int query_fail(struct pq *q, const PGresult *result, struct error *err)
{
	const char *said = q->PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
	enum pq_state state = pq_state(q, result);
	char shown[400];

	if (!said || state == PQ_ENDING || state == PQ_CUT_OFF)
		return pq_error(q, result, err);
	if (state == PQ_TOO_LONG)
		return error_set(err, ERROR_REFUSED, "it took longer than query.timeout allows");
	if (state == PQ_DIVIDED_BY_ZERO)
		return error_set(err, ERROR_REFUSED,
				 "it divides by zero, or a row of its answer is larger than %d MiB",
				 ANSWER_ROW_MAX >> 20);
	return error_set(err, ERROR_REFUSED, "%s", text_escape_into(shown, sizeof shown, said, strlen(said)));
}

/* Is the first column of the only row true? */
static int take_truth(void *arg, struct pq *q, const PGresult *result, struct error *err UNUSED)
{
	if (q->PQntuples(result) == 1)
		*(bool *)arg = q->PQgetvalue(result, 0, 0)[0] == 't';
	return 0;
}

static int ask(struct pq *q, const char *text, const char *param, bool *ret_truth, struct error *err)
{
	const char *values[] = {param};

	*ret_truth = false;
	if (!q->PQsendQueryParams(q->conn, text, 1, NULL, values, NULL, NULL, 0))
		return pq_lost(q, err);
	return pq_results(q, take_truth, ret_truth, query_fail, err);
}

/* A superuser, or the ledger's own user, is no role for strangers. */
static int check_role(struct pq *q, const char *role, const char *own, struct error *err)
{
	char shown[128];
	bool fit;
	int r = ask(q, sql_postgres_query_role, own, &fit, err);

	if (r < 0 || fit)
		return r;
	return error_set(
		err, ERROR_REFUSED,
		"query.role '%s' is a superuser, the ledger's own user, a member of a role that may do more than read, or "
		"may write into the ledger: make one with CREATE ROLE … LOGIN and grant it SELECT on what queries may see",
		text_escape_into(shown, sizeof shown, role, strlen(role)));
}

static int begin(struct pq *q, const struct ledger_query *query, const char *own, struct error *err)
{
	_cleanup_free_ char *text = sql_postgres_query_begin(query->timeout_ms);

	if (!text)
		return error_memory(err);
	if ((!q->is_pooled && pq_exec(q, sql_postgres_query_session, err) < 0) ||
	    pq_exec(q, sql_postgres_query_start, err) < 0 || check_role(q, query->role, own, err) < 0)
		return -1;
	return pq_exec(q, text, err);
}

/* By itself it must be one statement: then nothing in it can close the bracket that it is put into. */
static int parse_alone(struct pq *q, const char *sql, struct error *err)
{
	if (!q->PQsendPrepare(q->conn, "", sql, 0, NULL))
		return pq_lost(q, err);
	return pq_results(q, NULL, NULL, query_fail, err);
}

/* Lines until the end of the COPY; what follows is its result. */
static int read_lines(struct pq *q, query_line_fn fn, void *arg, struct error *err)
{
	int r = 0, n;

	for (;;) {
		char *line = NULL;

		n = q->PQgetCopyData(q->conn, &line, 1);
		if (n > 0) {
			r = fn(arg, line, (size_t)n, err);
			q->PQfreemem(line);
		} else if (n == 0) {
			r = pq_wait(q, err);
		} else {
			return n == -1 ? pq_results(q, NULL, NULL, query_fail, err) : pq_lost(q, err);
		}
		if (r < 0)
			return r;
	}
}

static int copy_out(struct pq *q, const char *sql, query_line_fn fn, void *arg, struct error *err)
{
	_cleanup_free_ char *text = sql_postgres_query_copy(sql, ANSWER_ROW_MAX);
	PGresult *result = NULL;
	int r = 0;

	if (!text)
		return error_memory(err);
	if (!q->PQsendQueryParams(q->conn, text, 0, NULL, NULL, NULL, NULL, 0))
		return pq_lost(q, err);
	if (pq_result(q, &result, err) < 0)
		return -1;
	if (q->PQresultStatus(result) != PGRES_COPY_OUT)
		r = query_fail(q, result, err);
	q->PQclear(result);
	return r < 0 ? r : read_lines(q, fn, arg, err);
}

static int check_after(struct pq *q, const char *role, struct error *err)
{
	bool same;
	int r = ask(q, sql_postgres_query_after, role, &same, err);

	return r < 0 || same ? r : error_set(err, ERROR_REFUSED, "it changed its own rights");
}

static int run(struct pq *q, const struct ledger_query *query, const char *own, const char *sql,
	       query_line_fn fn, void *arg, struct error *err)
{
	if (begin(q, query, own, err) < 0 || parse_alone(q, sql, err) < 0 ||
	    copy_out(q, sql, fn, arg, err) < 0)
		return -1;
	return check_after(q, query->role, err);
}

int postgres_query(struct backend *b, const struct ledger_query *query, query_line_fn fn, void *arg,
		   struct error *err)
{
	struct postgres *p = postgres_of(b);
	struct pq q = {.name = b->name,
		       .silence_ms = SILENCE_MS,
		       .statement_ms = (int)query->timeout_ms,
		       .is_pooled = b->is_pooled};
	_cleanup_free_ char *sql = NULL;
	size_t size = 0;
	int r;

	if (!query->role)
		return error_set(
			err, ERROR_REFUSED,
			"no role is set for queries, and they must not run with the ledger's own rights: the "
			"configuration's query.role names one");
	if (query_trim(query->sql, &size, err) < 0 || query_check_words(query->sql, size, err) < 0)
		return -1;
	sql = strndup(query->sql, size);
	if (!sql)
		return error_memory(err);
	if (pq_load(&q, err) < 0)
		return -1;
	r = postgres_login(p, &q, query, err);
	if (r == 0)
		r = run(&q, query, p->q.PQuser(p->q.conn), sql, fn, arg, err);
	/* The connection ends with it, and so does whatever the query did to its session; one that is only lent is given
	 * back as it was, or in the midst of an answer ended by the pooler. */
	if (q.conn && !q.lost && q.PQtransactionStatus(q.conn) != PQTRANS_ACTIVE)
		(void)pq_exec(&q, sql_postgres_query_end, NULL);
	pq_done(&q);
	return r;
}
