/*
 * Rows of the site's tables in PostgreSQL, by COPY: binary where every column is of a type whose binary form is plain,
 * else as text, which the server's own types read. With on_conflict, or to find out which row was wrong, they go to
 * a temporary table first and from there into the site's.
 */
#include "postgres.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "pq_copy.h"
#include "text.h"

/* ---- what the server says of them ---- */

/* "COPY scores, line 12, column value: …" */
static uint64_t line_in(const char *context)
{
	const char *at = context ? strstr(context, ", line ") : NULL;
	unsigned long long n = 0;

	return at && sscanf(at, ", line %llu", &n) == 1 ? n : 0;
}

/* The rows are at fault where it is not the server, the connection or another transaction. */
static int post_fail(struct postgres *p, const PGresult *result, struct error *err)
{
	static const char *const not_theirs[] = {"08", "40", "53", "55", "57", "58", "XX", "25"};
	const char *said = p->q.PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
	const char *detail = p->q.PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL);
	char a[320], b[320];

	for (size_t i = 0; i < ARRAY_SIZE(not_theirs); i++)
		if (!said || pq_state_is(&p->q, result, not_theirs[i]))
			return pq_error(&p->q, result, err);
	p->base.failed_row = line_in(p->q.PQresultErrorField(result, PG_DIAG_CONTEXT));
	error_set(err, ERROR_LEDGER, "%s%s%s", text_escape_into(a, sizeof a, said, strlen(said)),
		  detail ? ": " : "", detail ? text_escape_into(b, sizeof b, detail, strlen(detail)) : "");
	return -EBADMSG;
}

/* One or several statements without parameters. */
static int post_exec(struct postgres *p, const char *text, struct error *err)
{
	struct pq *q = &p->q;
	int r = 0;

	if (q->lost || !q->PQsendQuery(q->conn, text))
		return pq_lost(q, err);
	for (;;) {
		PGresult *result = NULL;
		int n = pq_result(q, &result, r < 0 ? NULL : err);
		ExecStatusType status;

		if (n < 0 || !result)
			return r < 0 ? r : n;
		status = q->PQresultStatus(result);
		if (r == 0 && status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
			r = post_fail(p, result, err);
		q->PQclear(result);
	}
}

/* ---- values ---- */

static int put_escaped(struct buffer *b, const char *text, size_t size)
{
	static const char from[] = "\\\n\r\t", to[] = "\\nrt";
	int r = 0;

	for (size_t i = 0; i < size && r == 0;) {
		const char *end = text + i, *found;

		while (end < text + size && !memchr(from, *end, sizeof from - 1))
			end++;
		r = buffer_append(b, text + i, (size_t)(end - (text + i)));
		i = (size_t)(end - text);
		if (i < size && r == 0) {
			char escape[2] = {'\\', 0};

			found = strchr(from, text[i++]);
			escape[1] = to[found - from];
			r = buffer_append(b, escape, 2);
		}
	}
	return r;
}

static int put_array(struct buffer *b, const struct cell *array);

static int put_element(struct buffer *b, const struct cell *c)
{
	int r;

	if (c->kind == CELL_ARRAY)
		return put_array(b, c);
	if (c->kind == CELL_NULL)
		return buffer_puts(b, "NULL");
	r = buffer_puts(b, "\"");
	for (size_t i = 0; i < c->size && r == 0; i++)
		r = c->text[i] == '"' || c->text[i] == '\\' ? buffer_printf(b, "\\%c", c->text[i])
							    : buffer_append(b, c->text + i, 1);
	return r < 0 ? r : buffer_puts(b, "\"");
}

/* {1,NULL,"a"}: how PostgreSQL writes an array. */
static int put_array(struct buffer *b, const struct cell *array)
{
	_cleanup_buffer_ struct buffer scratch = {0};
	const char *at = NULL;
	struct cell element;
	int r = buffer_puts(b, "{"), more = 1;

	for (bool first = true; r == 0 && (more = cell_next(array, &at, &element, &scratch)) == 1;
	     first = false) {
		if (!first)
			r = buffer_puts(b, ",");
		if (r == 0)
			r = put_element(b, &element);
	}
	if (more < 0)
		return more;
	return r < 0 ? r : buffer_puts(b, "}");
}

static int put_text_cell(struct buffer *b, const struct post_column *c, const struct cell *cell)
{
	_cleanup_buffer_ struct buffer array = {0};

	if (cell->kind == CELL_NULL)
		return buffer_puts(b, "\\N");
	if (c->type == 'a' && cell->kind == CELL_ARRAY) {
		if (put_array(&array, cell) < 0)
			return -ENOMEM;
		return put_escaped(b, array.data, array.size);
	}
	if (c->type == 'j' && !cell->filled)
		return put_escaped(b, cell->json, cell->json_size);
	return put_escaped(b, cell->text, cell->size);
}

static int put_text_row(struct postgres *p, const struct cell *cells, uint64_t line)
{
	struct buffer *b = &p->rows;
	int r = p->post_staged ? buffer_printf(b, "%" PRIu64 "\t", line) : 0;

	for (size_t i = 0; i < p->post_table->n_columns && r == 0; i++) {
		if (i)
			r = buffer_puts(b, "\t");
		if (r == 0)
			r = put_text_cell(b, &p->post_columns[i], &cells[i]);
	}
	return r < 0 ? r : buffer_puts(b, "\n");
}

static int bad_number(const struct postgres *p, size_t i, const struct cell *c, struct error *err)
{
	char column[128], text[64];

	text_escape_into(column, sizeof column, p->post_table->columns[i].name,
			 strlen(p->post_table->columns[i].name));
	error_set(err, ERROR_LEDGER, "column '%s' is %s and does not take %s", column,
		  p->post_columns[i].words, text_escape_into(text, sizeof text, c->text, c->size));
	return -EBADMSG;
}

/* Integers have no fraction; what is beyond the column's width is refused. */
static int parse_integer(const struct cell *c, int64_t least, int64_t most, int64_t *ret)
{
	char copy[32], *end;

	if (c->size >= sizeof copy)
		return -EINVAL;
	memcpy(copy, c->text, c->size);
	copy[c->size] = 0;
	errno = 0;
	*ret = strtoll(copy, &end, 10);
	return errno || *end || *ret < least || *ret > most ? -EINVAL : 0;
}

/* A number's text is always followed by something that is no part of it. */
static int parse_real(const struct cell *c, bool is_single, double *ret)
{
	*ret = strtod(c->text, NULL);
	return isinf(*ret) || (is_single && isinf((float)*ret)) ? -EINVAL : 0;
}

static int put_integer(struct postgres *p, size_t i, const struct cell *c, struct error *err)
{
	static const struct {
		char letter;
		int64_t least, most;
	} widths[] = {{'h', INT16_MIN, INT16_MAX}, {'i', INT32_MIN, INT32_MAX}, {'I', INT64_MIN, INT64_MAX}};
	char letter = p->post_columns[i].binary;
	size_t k = letter == 'h' ? 0 : letter == 'i' ? 1 : 2;
	int64_t n;

	if (parse_integer(c, widths[k].least, widths[k].most, &n) < 0)
		return bad_number(p, i, c, err);
	return copy_integer(&p->rows, 2 << k, n) < 0 ? error_memory(err) : 0;
}

static int put_real(struct postgres *p, size_t i, const struct cell *c, struct error *err)
{
	bool is_single = p->post_columns[i].binary == 'f';
	union {
		double d;
		float f;
		uint64_t u64;
		uint32_t u32;
	} u;
	double d;

	if (parse_real(c, is_single, &d) < 0)
		return bad_number(p, i, c, err);
	if (is_single)
		u.f = (float)d;
	else
		u.d = d;
	return copy_integer(&p->rows, is_single ? 4 : 8, (int64_t)(is_single ? u.u32 : u.u64)) < 0
		       ? error_memory(err)
		       : 0;
}

static int put_binary_cell(struct postgres *p, size_t i, const struct cell *c, struct error *err)
{
	struct buffer *b = &p->rows;
	int r;

	if (c->kind == CELL_NULL)
		return copy_null(b) < 0 ? error_memory(err) : 0;
	switch (p->post_columns[i].binary) {
	case 'h':
	case 'i':
	case 'I':
		return put_integer(p, i, c, err);
	case 'f':
	case 'd':
		return put_real(p, i, c, err);
	case 'o':
		r = copy_bytes(b, "", c->text[0] == 't' ? "\1" : "\0", 1);
		break;
	case 'j':
		r = copy_bytes(b, "\1", c->json, c->json_size);
		break;
	case 'J':
		r = copy_bytes(b, "", c->json, c->json_size);
		break;
	default:
		r = copy_bytes(b, "", c->text, c->size);
	}
	return r < 0 ? error_memory(err) : 0;
}

static int put_binary_row(struct postgres *p, const struct cell *cells, uint64_t line, struct error *err)
{
	size_t n = p->post_table->n_columns;
	int r = copy_count(&p->rows, (int16_t)(n + p->post_staged));

	if (r == 0 && p->post_staged)
		r = copy_integer(&p->rows, 8, (int64_t)line);
	if (r < 0)
		return error_memory(err);
	for (size_t i = 0; i < n && r == 0; i++)
		r = put_binary_cell(p, i, &cells[i], err);
	return r;
}

/* ---- the way in ---- */

static bool can_be_binary(const struct postgres *p)
{
	for (size_t i = 0; i < p->post_table->n_columns; i++) {
		char letter = p->post_columns[i].binary;

		/* What we fill in is text, which only the server can make a number of. */
		if (!letter || (p->post_table->columns[i].fill && letter != 't'))
			return false;
	}
	return true;
}

int postgres_post_begin(struct backend *b, const struct row_table *t, bool staged, struct error *err)
{
	struct postgres *p = postgres_of(b);
	_cleanup_free_ char *copy = NULL, *stage = NULL;
	int r;

	free(p->post_columns);
	p->post_table = t;
	p->post_count = 0;
	p->post_staged = staged || t->on_conflict != ROW_FAIL;
	p->post_columns = calloc(t->n_columns, sizeof *p->post_columns);
	if (!p->post_columns)
		return error_memory(err);
	r = post_exec(p, sql_postgres_post_path, err);
	if (r == 0)
		r = post_columns_find(b, t, p->post_columns, err);
	if (r < 0)
		return r;
	p->post_binary = can_be_binary(p);
	copy = sql_post_copy(t, p->post_staged, p->post_binary);
	stage = sql_post_stage(t);
	if (!copy || !stage)
		return error_memory(err);
	if (p->post_staged)
		r = post_exec(p, stage, err);
	if (r == 0)
		r = copy_in_begin(p, copy, post_fail, err);
	if (r == 0 && p->post_binary && copy_head(&p->rows) < 0)
		r = error_memory(err);
	return r;
}

int postgres_post_add(struct backend *b, const struct cell *cells, uint64_t line, struct error *err)
{
	struct postgres *p = postgres_of(b);
	int r = 0;

	p->post_count = line;
	for (size_t i = 0; i < p->post_table->n_columns && r == 0; i++)
		r = post_cell_check(p->post_table, i, &p->post_columns[i], &cells[i], err);
	if (r == 0 && p->post_binary)
		r = put_binary_row(p, cells, line, err);
	else if (r == 0 && put_text_row(p, cells, line) < 0)
		r = error_memory(err);
	if (r < 0)
		return r;
	return p->rows.size < COPY_CHUNK ? 0 : copy_in_send(p, err);
}

/* The staged rows up to this one, into their table. */
static int move_rows(struct postgres *p, const char *text, uint64_t last, struct error *err)
{
	struct pq *q = &p->q;
	char number[24];
	const char *values[] = {number};
	int r = 0;

	snprintf(number, sizeof number, "%" PRIu64, last);
	if (!q->PQsendQueryParams(q->conn, text, 1, NULL, values, NULL, NULL, 1))
		return pq_lost(q, err);
	for (;;) {
		PGresult *result = NULL;
		int n = pq_result(q, &result, r < 0 ? NULL : err);

		if (n < 0 || !result)
			return r < 0 ? r : n;
		if (r == 0 && q->PQresultStatus(result) != PGRES_COMMAND_OK)
			r = post_fail(p, result, err);
		q->PQclear(result);
	}
}

static int move_and_undo(struct postgres *p, const char *text, uint64_t last, struct error *err)
{
	int r = move_rows(p, text, last, err);

	if (r == 0)
		r = post_exec(p, "SET CONSTRAINTS ALL IMMEDIATE", err);
	if (r == 0 || r == -EBADMSG) {
		int undone = post_exec(p, "ROLLBACK TO SAVEPOINT fumehood_move", NULL);

		r = undone < 0 ? undone : r;
	}
	return r;
}

/* Which row was it? The first one with which it fails, found by halves. */
static int find_failed(struct postgres *p, const char *text, struct error *err)
{
	uint64_t good = 0, bad = p->post_count;
	struct error why = *err;
	int r = post_exec(p, "ROLLBACK TO SAVEPOINT fumehood_move", err);

	while (r == 0 && bad - good > 1) {
		uint64_t middle = good + (bad - good) / 2;

		r = move_and_undo(p, text, middle, &why);
		if (r == -EBADMSG) {
			bad = middle;
			*err = why;
			r = 0;
		} else if (r == 0) {
			good = middle;
		}
	}
	p->base.failed_row = bad;
	return r < 0 ? r : -EBADMSG;
}

static int move_all(struct postgres *p, struct error *err)
{
	_cleanup_free_ char *text = sql_post_move(p->post_table);
	int r = text ? post_exec(p, "SAVEPOINT fumehood_move", err) : error_memory(err);

	if (r == 0)
		r = move_rows(p, text, p->post_count, err);
	if (r == 0)
		r = post_exec(p, "SET CONSTRAINTS ALL IMMEDIATE", err);
	return r == -EBADMSG ? find_failed(p, text, err) : r;
}

int postgres_post_end(struct backend *b, struct error *err)
{
	struct postgres *p = postgres_of(b);
	int r = 0;

	if (p->post_binary && copy_end(&p->rows) < 0)
		return error_memory(err);
	r = copy_in_end(p, post_fail, err);
	if (r == 0 && p->post_staged)
		r = move_all(p, err);
	if (r == 0)
		r = post_exec(p, sql_postgres_own_path, err);
	return r;
}
