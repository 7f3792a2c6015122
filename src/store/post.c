/*
 * Rows into the site's tables, inside the transaction of the attempt that they came from: what was printed, what the
 * site fills in, and a note of it all (posted_chunk). A row that the database does not take ends the transaction; the
 * message then names the line that was printed.
 */
#include "commit.h"

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
		c->type = *value_words(&row[1]) ? *value_words(&row[1]) : '*';
		c->binary = *value_words(&row[2]);
		snprintf(c->words, sizeof c->words, "%.40s", value_words(&row[3]));
		f->n_found++;
	}
	return 0;
}

static int missing(const struct finding *f, struct error *err)
{
	char table[128], column[128];
	const char *name;
	size_t i = 0;

	text_escape_into(table, sizeof table, f->table->name, strlen(f->table->name));
	if (f->n_found == 0)
		return error_set(err, ERROR_BAD_ROW,
				 "the ledger's database has no table '%s' with such columns", table);
	while (f->columns[i].type)
		i++;
	name = f->table->columns[i].name;
	return error_set(err, ERROR_BAD_ROW, "table '%s' has no column '%s'", table,
			 text_escape_into(column, sizeof column, name, strlen(name)));
}

int post_columns_find(struct backend *b, const struct row_table *t, struct post_column *ret,
		      struct error *err)
{
	struct finding f = {.table = t, .columns = ret};
	_cleanup_free_ char *quoted = sql_post_name(t);
	struct value name = value_text(b->ops->dialect == SQL_POSTGRES ? quoted : t->name);

	if (!quoted)
		return error_memory(err);
	memset(ret, 0, t->n_columns * sizeof *ret);
	if (b->ops->run(b, SQL_POST_COLUMNS, &name, 1, take_column, &f, err) < 0)
		return -1;
	return f.n_found < t->n_columns ? missing(&f, err) : 0;
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
	return error_set(err, ERROR_BAD_ROW, "column '%s' is %s and does not take %s", column,
			 c->words[0] ? c->words : "of another type", names[cell->kind]);
}

/* ---- rows ---- */

static int at_line(uint64_t line, struct error *err)
{
	return error_prefix(err, -1, "line %" PRIu64, line);
}

/* The database counts what it was given: which line was that? */
static int name_line(struct commit *c, size_t table, struct error *err)
{
	struct error ignored = ERROR_INIT;
	struct row_text text = {0};
	uint64_t n = c->l->backend->failed_row;

	if (n == 0 || c->rows->rewind(c->rows->arg, &ignored) < 0)
		return -1;
	while (n > 0 && c->rows->next(c->rows->arg, table, &text, &ignored) == 1)
		n--;
	return n == 0 ? at_line(text.line, err) : -1;
}

static int damaged(uint64_t line, struct error *err)
{
	return error_prefix(err, -1, "the rows that were set aside are damaged at line %" PRIu64, line);
}

static int post_rows(struct commit *c, size_t table, struct row *row, struct error *err)
{
	const struct row_table *t = &c->rows->tables->list[table];
	struct backend *b = c->l->backend;
	_cleanup_buffer_ struct buffer texts = {0};
	_cleanup_free_ struct cell *fill = calloc(ROW_COLUMNS_MAX, sizeof *fill);
	struct row_text text;
	uint64_t n = 0;
	int more;

	if (!fill)
		return error_memory(err);
	if (row_fill(t, c->a->id, c->number, fill, &texts, err) < 0 || c->rows->rewind(c->rows->arg, err) < 0)
		return -1;
	while ((more = c->rows->next(c->rows->arg, table, &text, err)) == 1) {
		if (row_parse_fields(t, text.fields, text.size, row, err) < 0)
			return damaged(text.line, err);
		for (size_t i = 0; i < t->n_columns; i++)
			if (t->columns[i].fill)
				row->cells[i] = fill[i];
		n++;
		if (b->ops->post_add(b, row->cells, n, err) == 0)
			continue;
		if (err->kind != ERROR_BAD_ROW)
			return -1;
		b->failed_row = n;
		return at_line(text.line, err);
	}
	if (more < 0)
		return more;
	if (n != c->rows->counts[table])
		return error_set(err, ERROR_LEDGER, "the rows that were set aside are not complete");
	return 0;
}

static int post_table(struct commit *c, size_t table, struct row *row, struct error *err)
{
	struct backend *b = c->l->backend;

	if (b->ops->post_begin(b, &c->rows->tables->list[table], c->staged, err) < 0) {
		if (err->kind == ERROR_BAD_ROW)
			b->failed_row = UINT64_MAX; /* none of them: the table itself */
		return -1;
	}
	if (post_rows(c, table, row, err) < 0)
		return -1;
	if (b->ops->post_end(b, err) == 0)
		return 0;
	return err->kind == ERROR_BAD_ROW ? name_line(c, table, err) : -1;
}

/* ---- the note of it ---- */

struct chunk {
	struct buffer fields;
	int64_t first, count;
};

static int chunk_write(struct commit *c, const struct row_table *t, struct chunk *chunk, struct error *err)
{
	struct value row[] = {
		value_text(c->a->id),	 value_integer(c->number),    value_integer(chunk->first),
		value_text(t->name),	 value_integer(chunk->count), {.kind = VALUE_NULL},
		value_time(clock_utc()),
	};

	if (chunk->count == 0)
		return 0;
	buffer_puts(&chunk->fields, "]");
	if (buffer_check(&chunk->fields, err) < 0)
		return -1;
	row[5] = (struct value){VALUE_JSON, 0, chunk->fields.data, chunk->fields.size};
	chunk->first += chunk->count;
	chunk->count = 0;
	chunk->fields.size = 0;
	return ledger_rows_add(c->l, row, err);
}

static int note_table(struct commit *c, size_t table, struct chunk *chunk, struct error *err)
{
	const struct row_table *t = &c->rows->tables->list[table];
	struct row_text text;
	int more;

	if (c->rows->rewind(c->rows->arg, err) < 0)
		return -1;
	while ((more = c->rows->next(c->rows->arg, table, &text, err)) == 1) {
		if ((chunk->fields.size + text.size > CHUNK_BYTES || chunk->count == CHUNK_ROWS) &&
		    chunk_write(c, t, chunk, err) < 0)
			return -1;
		buffer_puts(&chunk->fields, chunk->count ? "," : "[");
		buffer_append(&chunk->fields, text.fields, text.size);
		chunk->count++;
	}
	return more < 0 ? more : chunk_write(c, t, chunk, err);
}

static void chunk_done(struct chunk *chunk)
{
	buffer_free(&chunk->fields);
}

static int note_rows(struct commit *c, struct error *err)
{
	_cleanup_(chunk_done) struct chunk chunk = {0};

	if (ledger_rows_begin(c->l, TABLE_POSTED, err) < 0)
		return -1;
	for (size_t i = 0; i < c->rows->tables->count; i++)
		if (c->rows->counts[i] && note_table(c, i, &chunk, err) < 0)
			return -1;
	return ledger_rows_end(c->l, err);
}

bool commit_wants_staged(struct commit *c, const struct error *err)
{
	c->staged = err->kind == ERROR_BAD_ROW && c->l->backend->failed_row == 0;
	return c->staged;
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
