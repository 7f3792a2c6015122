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

static struct postgres *postgres_of_pq(struct pq *q)
{
	return (struct postgres *)(void *)((char *)q - offsetof(struct postgres, q));
}

/* ---- what the server says of them ---- */

/* "COPY scores, line 12, column value: …" */
static uint64_t line_in(const char *context)
{
	const char *at = context ? strstr(context, ", line ") : NULL;
	unsigned long long n = 0;

	return at && sscanf(at, ", line %llu", &n) == 1 ? n : 0;
}

/* The rows are at fault where it is not the server, the connection or another transaction. */
static int post_fail(struct pq *q, const PGresult *result, struct error *err)
{
	const char *said = q->PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
	const char *detail = q->PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL);
	char a[320], b[320];

	if (!said || pq_state(q, result) >= PQ_SERVER)
		return pq_error(q, result, err);
	postgres_of_pq(q)->base.failed_row = line_in(q->PQresultErrorField(result, PG_DIAG_CONTEXT));
	return error_set(err, ERROR_BAD_ROW, "%s%s%s", text_escape_into(a, sizeof a, said, strlen(said)),
			 detail ? ": " : "",
			 detail ? text_escape_into(b, sizeof b, detail, strlen(detail)) : "");
}

/* One or several statements without parameters. */
static int post_exec(struct postgres *p, const char *text, struct error *err)
{
	return pq_query(&p->q, text, NULL, NULL, post_fail, err);
}

/* ---- values ---- */

static int put_escaped(struct buffer *b, const char *text, size_t size)
{
	static const char from[] = "\\\n\r\t", to[] = "\\nrt";
	const char *end = text + size, *plain;

	for (; text < end; text++) {
		for (plain = text; text < end && !memchr(from, *text, sizeof from - 1);)
			text++;
		buffer_append(b, plain, (size_t)(text - plain));
		if (text == end)
			break;
		buffer_append(b, (char[]){'\\', to[strchr(from, *text) - from]}, 2);
	}
	return buffer_append(b, "", 0);
}

static void put_array(struct buffer *b, const struct cell *array);

static void put_element(struct buffer *b, const struct cell *c)
{
	if (c->kind == CELL_ARRAY) {
		put_array(b, c);
		return;
	}
	if (c->kind == CELL_NULL) {
		buffer_puts(b, "NULL");
		return;
	}
	buffer_puts(b, "\"");
	for (size_t i = 0; i < c->size; i++) {
		if (c->text[i] == '"' || c->text[i] == '\\')
			buffer_puts(b, "\\");
		buffer_append(b, c->text + i, 1);
	}
	buffer_puts(b, "\"");
}

/* {1,NULL,"a"}: how PostgreSQL writes an array. */
static void put_array(struct buffer *b, const struct cell *array)
{
	_cleanup_buffer_ struct buffer scratch = {0};
	const char *at = NULL, *before = "{";
	struct cell element;
	int more;

	for (; (more = cell_next(array, &at, &element, &scratch)) == 1; before = ",") {
		buffer_puts(b, before);
		put_element(b, &element);
	}
	buffer_puts(b, *before == '{' ? "{}" : "}");
	if (more < 0)
		buffer_fail(b);
}

static void put_text_cell(struct buffer *b, const struct post_column *c, const struct cell *cell)
{
	_cleanup_buffer_ struct buffer array = {0};

	if (cell->kind == CELL_NULL) {
		buffer_puts(b, "\\N");
	} else if (c->type == 'a' && cell->kind == CELL_ARRAY) {
		put_array(&array, cell);
		put_escaped(b, array.data, array.size);
		if (array.failed)
			buffer_fail(b);
	} else if (c->type == 'j' && !cell->filled) {
		put_escaped(b, cell->json, cell->json_size);
	} else {
		put_escaped(b, cell->text, cell->size);
	}
}

static void put_text_row(struct postgres *p, const struct cell *cells, uint64_t line)
{
	struct buffer *b = &p->rows;

	if (p->post_staged)
		buffer_printf(b, "%" PRIu64 "\t", line);
	for (size_t i = 0; i < p->post_table->n_columns; i++) {
		if (i)
			buffer_puts(b, "\t");
		put_text_cell(b, &p->post_columns[i], &cells[i]);
	}
	buffer_puts(b, "\n");
}

static int bad_number(const struct postgres *p, size_t i, const struct cell *c, struct error *err)
{
	const char *name = p->post_table->columns[i].name;
	char column[128], text[64];

	text_escape_into(column, sizeof column, name, strlen(name));
	return error_set(err, ERROR_BAD_ROW, "column '%s' is %s and does not take %s", column,
			 p->post_columns[i].words, text_escape_into(text, sizeof text, c->text, c->size));
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
	copy_integer(&p->rows, 2 << k, n);
	return 0;
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
	copy_integer(&p->rows, is_single ? 4 : 8, (int64_t)(is_single ? u.u32 : u.u64));
	return 0;
}

static int put_binary_cell(struct postgres *p, size_t i, const struct cell *c, struct error *err)
{
	struct buffer *b = &p->rows;

	if (c->kind == CELL_NULL) {
		copy_null(b);
		return 0;
	}
	switch (p->post_columns[i].binary) {
	case 'h':
	case 'i':
	case 'I':
		return put_integer(p, i, c, err);
	case 'f':
	case 'd':
		return put_real(p, i, c, err);
	case 'o':
		copy_bytes(b, "", c->text[0] == 't' ? "\1" : "\0", 1);
		break;
	case 'j':
		copy_bytes(b, "\1", c->json, c->json_size);
		break;
	case 'J':
		copy_bytes(b, "", c->json, c->json_size);
		break;
	default:
		copy_bytes(b, "", c->text, c->size);
	}
	return 0;
}

static int put_binary_row(struct postgres *p, const struct cell *cells, uint64_t line, struct error *err)
{
	size_t n = p->post_table->n_columns;

	copy_count(&p->rows, (int16_t)(n + p->post_staged));
	if (p->post_staged)
		copy_integer(&p->rows, 8, (int64_t)line);
	for (size_t i = 0; i < n; i++)
		if (put_binary_cell(p, i, &cells[i], err) < 0)
			return -1;
	return 0;
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

	free(p->post_columns);
	p->post_table = t;
	p->post_count = 0;
	p->post_staged = staged || t->on_conflict != ROW_FAIL;
	p->post_columns = calloc(t->n_columns, sizeof *p->post_columns);
	if (!p->post_columns)
		return error_memory(err);
	if (post_exec(p, sql_postgres_post_path, err) < 0 ||
	    post_columns_find(b, t, p->post_columns, err) < 0)
		return -1;
	p->post_binary = can_be_binary(p);
	copy = sql_post_copy(t, p->post_staged, p->post_binary);
	stage = sql_post_stage(t);
	if (!copy || !stage)
		return error_memory(err);
	if ((p->post_staged && post_exec(p, stage, err) < 0) || copy_in_begin(p, copy, post_fail, err) < 0)
		return -1;
	if (p->post_binary)
		copy_head(&p->rows);
	return 0;
}

int postgres_post_add(struct backend *b, const struct cell *cells, uint64_t line, struct error *err)
{
	struct postgres *p = postgres_of(b);

	p->post_count = line;
	for (size_t i = 0; i < p->post_table->n_columns; i++)
		if (post_cell_check(p->post_table, i, &p->post_columns[i], &cells[i], err) < 0)
			return -1;
	if (p->post_binary && put_binary_row(p, cells, line, err) < 0)
		return -1;
	if (!p->post_binary)
		put_text_row(p, cells, line);
	return p->rows.size < COPY_CHUNK ? 0 : copy_in_send(p, err);
}

/* The staged rows up to this one, into their table, with all that they must satisfy. */
static int move_rows(struct postgres *p, const char *text, uint64_t last, struct error *err)
{
	struct pq *q = &p->q;
	char number[24];
	const char *values[] = {number};

	snprintf(number, sizeof number, "%" PRIu64, last);
	if (!q->PQsendQueryParams(q->conn, text, 1, NULL, values, NULL, NULL, 1))
		return pq_lost(q, err);
	if (pq_results(q, NULL, NULL, post_fail, err) < 0)
		return -1;
	return post_exec(p, "SET CONSTRAINTS ALL IMMEDIATE", err);
}

static int undo_move(struct postgres *p, struct error *err)
{
	return post_exec(p, "ROLLBACK TO SAVEPOINT fumehood_move", err);
}

/* Which row was it? The first one with which it fails, found by halves. */
static int find_failed(struct postgres *p, const char *text, struct error *err)
{
	uint64_t good = 0, bad = p->post_count;
	struct error why = *err;

	if (undo_move(p, err) < 0)
		return -1;
	while (bad - good > 1) {
		uint64_t middle = good + (bad - good) / 2;
		bool is_good = move_rows(p, text, middle, err) == 0;

		if (!is_good && err->kind != ERROR_BAD_ROW)
			return -1;
		*(is_good ? &good : &bad) = middle;
		if (!is_good)
			why = *err;
		if (undo_move(p, err) < 0)
			return -1;
	}
	p->base.failed_row = bad;
	*err = why;
	return -1;
}

static int move_all(struct postgres *p, struct error *err)
{
	_cleanup_free_ char *text = sql_post_move(p->post_table);

	if (!text)
		return error_memory(err);
	if (post_exec(p, "SAVEPOINT fumehood_move", err) < 0)
		return -1;
	if (move_rows(p, text, p->post_count, err) == 0)
		return 0;
	return err->kind == ERROR_BAD_ROW ? find_failed(p, text, err) : -1;
}

int postgres_post_end(struct backend *b, struct error *err)
{
	struct postgres *p = postgres_of(b);

	if (p->post_binary)
		copy_end(&p->rows);
	if (copy_in_end(p, post_fail, err) < 0 || (p->post_staged && move_all(p, err) < 0))
		return -1;
	return post_exec(p, sql_postgres_own_path, err);
}
