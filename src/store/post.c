/*
 * Rows into the site's tables, inside the transaction of the attempt that they came from: what was printed, what the
 * site fills in, and a note of it all (posted_chunk). A row that the database does not take ends the transaction; the
 * message then names the line that was printed.
 */
#include "commit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "text.h"

enum { CHUNK_BYTES = 256 * 1024, CHUNK_ROWS = 4096 };

/* ---- columns ---- */

struct finding {
	const struct row_table *table;
	struct post_column *columns;
	size_t n_found;
};

static int take_column(void *arg, const struct value *row, struct error *err UNUSED)
{
	struct finding *f = arg;

	for (size_t i = 0; i < f->table->n_columns; i++) {
		struct post_column *c = &f->columns[i];

		if (row[0].kind != VALUE_TEXT || strcmp(row[0].data, f->table->columns[i].name) != 0)
			continue;
		c->type = row[1].kind == VALUE_TEXT && row[1].size ? *(const char *)row[1].data : '*';
		c->binary = row[2].kind == VALUE_TEXT && row[2].size ? *(const char *)row[2].data : 0;
		snprintf(c->words, sizeof c->words, "%.40s",
			 row[3].kind == VALUE_TEXT ? (const char *)row[3].data : "");
		f->n_found++;
	}
	return 0;
}

static int missing(const struct finding *f, struct error *err)
{
	char table[128], column[128];
	size_t i = 0;

	text_escape_into(table, sizeof table, f->table->name, strlen(f->table->name));
	if (f->n_found == 0) {
		error_set(err, ERROR_LEDGER, "the ledger's database has no table '%s' with such columns",
			  table);
		return -EBADMSG;
	}
	while (f->columns[i].type)
		i++;
	error_set(err, ERROR_LEDGER, "table '%s' has no column '%s'", table,
		  text_escape_into(column, sizeof column, f->table->columns[i].name,
				   strlen(f->table->columns[i].name)));
	return -EBADMSG;
}

int post_columns_find(struct backend *b, const struct row_table *t, struct post_column *ret,
		      struct error *err)
{
	struct finding f = {.table = t, .columns = ret};
	_cleanup_free_ char *quoted = sql_post_name(t);
	struct value name = value_text(b->ops->dialect == SQL_POSTGRES ? quoted : t->name);
	int r;

	if (!quoted)
		return error_memory(err);
	memset(ret, 0, t->n_columns * sizeof *ret);
	r = b->ops->run(b, SQL_POST_COLUMNS, &name, 1, take_column, &f, err);
	if (r == 0 && f.n_found < t->n_columns)
		r = missing(&f, err);
	return r;
}

static bool takes(char type, enum cell_kind kind)
{
	static const struct {
		char type;
		unsigned kinds;
	} table[] = {
		{'n', 1U << CELL_NUMBER},
		{'i', 1U << CELL_NUMBER | 1U << CELL_BOOL},
		{'b', 1U << CELL_BOOL},
		{'a', 1U << CELL_ARRAY},
		{'s', 1U << CELL_TEXT},
		{'d', 1U << CELL_TEXT | 1U << CELL_NUMBER},
		{'t', 1U << CELL_TEXT | 1U << CELL_ARRAY | 1U << CELL_OBJECT},
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (table[i].type == type)
			return table[i].kinds & 1U << kind;
	return true;
}

int post_cell_check(const struct row_table *t, size_t i, const struct post_column *c, const struct cell *cell,
		    struct error *err)
{
	static const char *const names[] = {"null", "a truth value", "a number",
					    "text", "a list",	     "an object"};
	char column[128];

	if (cell->kind == CELL_NULL || cell->filled || takes(c->type, cell->kind))
		return 0;
	text_escape_into(column, sizeof column, t->columns[i].name, strlen(t->columns[i].name));
	error_set(err, ERROR_LEDGER, "column '%s' is %s and does not take %s", column,
		  c->words[0] ? c->words : "of another type", names[cell->kind]);
	return -EBADMSG;
}

/* ---- rows ---- */

static int at_line(uint64_t line, struct error *err)
{
	error_prefix(err, 0, "line %" PRIu64, line);
	return -EBADMSG;
}

/* The database counts what it was given: which line was that? */
static int name_line(struct commit *c, size_t table, struct error *err)
{
	struct error ignored = ERROR_INIT;
	struct row_text text = {0};
	uint64_t n = c->l->backend->failed_row;

	if (n == 0 || c->rows->rewind(c->rows->arg, &ignored) < 0)
		return -EBADMSG;
	while (n > 0 && c->rows->next(c->rows->arg, table, &text, &ignored) == 1)
		n--;
	return n == 0 ? at_line(text.line, err) : -EBADMSG;
}

static int damaged(uint64_t line, struct error *err)
{
	return error_prefix(err, -EIO, "the rows that were set aside are damaged at line %" PRIu64, line);
}

static int post_rows(struct commit *c, size_t table, struct row *row, struct error *err)
{
	const struct row_table *t = &c->rows->tables->list[table];
	struct backend *b = c->l->backend;
	_cleanup_buffer_ struct buffer texts = {0};
	_cleanup_free_ struct cell *fill = calloc(ROW_COLUMNS_MAX, sizeof *fill);
	struct row_text text;
	uint64_t n = 0;
	int r = fill ? row_fill(t, c->a->id, c->number, fill, &texts, err) : error_memory(err);

	if (r == 0)
		r = c->rows->rewind(c->rows->arg, err);
	while (r == 0 && (r = c->rows->next(c->rows->arg, table, &text, err)) == 1) {
		r = row_parse_fields(t, text.fields, text.size, row, err);
		if (r < 0)
			return damaged(text.line, err);
		for (size_t i = 0; i < t->n_columns; i++)
			if (t->columns[i].fill)
				row->cells[i] = fill[i];
		n++;
		r = b->ops->post_add(b, row->cells, n, err);
		if (r == -EBADMSG) {
			b->failed_row = n;
			return at_line(text.line, err);
		}
	}
	if (r == 0 && n != c->rows->counts[table])
		r = error_set(err, ERROR_LEDGER, "the rows that were set aside are not complete");
	return r;
}

static int post_table(struct commit *c, size_t table, struct row *row, struct error *err)
{
	struct backend *b = c->l->backend;
	int r = b->ops->post_begin(b, &c->rows->tables->list[table], c->staged, err);

	if (r == -EBADMSG)
		b->failed_row = UINT64_MAX; /* none of them: the table itself */
	if (r == 0)
		r = post_rows(c, table, row, err);
	if (r < 0)
		return r;
	r = b->ops->post_end(b, err);
	return r == -EBADMSG ? name_line(c, table, err) : r;
}

/* ---- the note of it ---- */

struct chunk {
	struct buffer fields;
	int64_t first, count;
};

static int chunk_write(struct commit *c, const struct row_table *t, struct chunk *chunk, struct error *err)
{
	struct backend *b = c->l->backend;
	struct value row[] = {
		value_text(c->a->id),	 value_integer(c->number),    value_integer(chunk->first),
		value_text(t->name),	 value_integer(chunk->count), {.kind = VALUE_NULL},
		value_time(clock_utc()),
	};

	if (chunk->count == 0)
		return 0;
	if (buffer_puts(&chunk->fields, "]") < 0)
		return error_memory(err);
	row[5] = (struct value){VALUE_JSON, 0, chunk->fields.data, chunk->fields.size};
	chunk->first += chunk->count;
	chunk->count = 0;
	chunk->fields.size = 0;
	return b->ops->rows_add(b, row, err);
}

static int note_table(struct commit *c, size_t table, struct chunk *chunk, struct error *err)
{
	const struct row_table *t = &c->rows->tables->list[table];
	struct row_text text;
	int r = c->rows->rewind(c->rows->arg, err);

	while (r == 0 && (r = c->rows->next(c->rows->arg, table, &text, err)) == 1) {
		r = 0;
		if (chunk->count &&
		    (chunk->fields.size + text.size > CHUNK_BYTES || chunk->count == CHUNK_ROWS))
			r = chunk_write(c, t, chunk, err);
		if (r == 0 && (buffer_puts(&chunk->fields, chunk->count ? "," : "[") < 0 ||
			       buffer_append(&chunk->fields, text.fields, text.size) < 0))
			r = error_memory(err);
		chunk->count++;
	}
	return r < 0 ? r : chunk_write(c, t, chunk, err);
}

static int note_rows(struct commit *c, struct error *err)
{
	struct backend *b = c->l->backend;
	struct chunk chunk = {0};
	int r = b->ops->rows_begin(b, TABLE_POSTED, err);

	for (size_t i = 0; i < c->rows->tables->count && r == 0; i++)
		if (c->rows->counts[i])
			r = note_table(c, i, &chunk, err);
	buffer_free(&chunk.fields);
	return r < 0 ? r : b->ops->rows_end(b, err);
}

int commit_posts(struct commit *c, struct error *err)
{
	_cleanup_free_ struct row *row = NULL;
	uint64_t sum = 0;
	int r = 0;

	c->l->backend->failed_row = 0;
	for (size_t i = 0; c->rows && i < c->rows->tables->count; i++)
		sum += c->rows->counts[i];
	if (sum == 0)
		return 0;
	row = calloc(1, sizeof *row);
	if (!row)
		return error_memory(err);
	/* In the site's order: a table may refer to one above it. */
	for (size_t i = 0; i < c->rows->tables->count && r == 0; i++)
		if (c->rows->counts[i])
			r = post_table(c, i, row, err);
	row_done(row);
	return r < 0 ? r : note_rows(c, err);
}
