/*
 * Rows of the site's tables in SQLite: one prepared INSERT, each value bound. SQLite itself would take any value in any
 * column, so what a column's declared type says is checked here.
 */
#include "sqlite_private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* As PostgreSQL would understand the word. An INTEGER may be a truth value, TEXT may hold JSON: SQLite has neither. */
static char type_of(const char *words)
{
	static const struct {
		const char *word;
		char type;
	} table[] = {
		{"BOOL", 'b'}, {"JSON", 'j'}, {"DATE", 'd'}, {"TIME", 'd'}, {"INT", 'i'},
		{"CHAR", 't'}, {"CLOB", 't'}, {"TEXT", 't'}, {"REAL", 'n'}, {"FLOA", 'n'},
		{"DOUB", 'n'}, {"NUM", 'n'},  {"DEC", 'n'},
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (strcasestr(words, table[i].word))
			return table[i].type;
	return '*';
}

void sqlite_post_forget(struct sqlite *s)
{
	if (s->db)
		sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	sqlite3_finalize(s->posting);
	s->posting = NULL;
	free(s->post_columns);
	s->post_columns = NULL;
}

/* The rows are at fault where it is not the database itself. */
static int post_error(struct sqlite *s, int code, struct error *err)
{
	switch (code & 0xff) {
	case SQLITE_CONSTRAINT:
	case SQLITE_ERROR:
	case SQLITE_MISMATCH:
	case SQLITE_TOOBIG:
	case SQLITE_RANGE:
	case SQLITE_AUTH:
		return error_set(err, ERROR_BAD_ROW, "%s", sqlite3_errmsg(s->db));
	}
	return sqlite_error(s, code, "write to", err);
}

int sqlite_post_begin(struct backend *b, const struct row_table *t, bool staged UNUSED, struct error *err)
{
	struct sqlite *s = sqlite_of(b);
	_cleanup_free_ char *text = sql_post_insert(t);
	int code;

	sqlite_post_forget(s);
	s->post_table = t;
	s->post_columns = calloc(t->n_columns, sizeof *s->post_columns);
	if (!text || !s->post_columns)
		return error_memory(err);
	if (post_columns_find(b, t, s->post_columns, err) < 0)
		return -1;
	for (size_t i = 0; i < t->n_columns; i++)
		s->post_columns[i].type = type_of(s->post_columns[i].words);
	sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 1, NULL);
	code = sqlite3_prepare_v2(s->db, text, -1, &s->posting, NULL);
	return code == SQLITE_OK ? 0 : post_error(s, code, err);
}

/* An integer where it is one, else the nearest double. The text ends with something that is no part of a number. */
static int bind_number(sqlite3_stmt *statement, int i, const char *text, size_t size)
{
	char copy[64], *end;
	long long n;

	if (size < sizeof copy) {
		memcpy(copy, text, size);
		copy[size] = 0;
		if (!strpbrk(copy, ".eE")) {
			errno = 0;
			n = strtoll(copy, &end, 10);
			if (errno == 0 && !*end)
				return sqlite3_bind_int64(statement, i, n);
		}
	}
	return sqlite3_bind_double(statement, i, strtod(text, NULL));
}

static int bind_cell(sqlite3_stmt *statement, int i, char type, const struct cell *c)
{
	/* As JSON it is whole. */
	switch (type == 'j' && c->kind != CELL_NULL ? CELL_OBJECT : c->kind) {
	case CELL_NULL:
		return sqlite3_bind_null(statement, i);
	case CELL_BOOL:
		return sqlite3_bind_int(statement, i, c->text[0] == 't');
	case CELL_NUMBER:
		return bind_number(statement, i, c->text, c->size);
	case CELL_TEXT:
		return sqlite3_bind_text64(statement, i, c->text, c->size, SQLITE_STATIC, SQLITE_UTF8);
	case CELL_ARRAY:
	case CELL_OBJECT:
		break;
	}
	return sqlite3_bind_text64(statement, i, c->json, c->json_size, SQLITE_STATIC, SQLITE_UTF8);
}

int sqlite_post_add(struct backend *b, const struct cell *cells, uint64_t line UNUSED, struct error *err)
{
	struct sqlite *s = sqlite_of(b);
	int code = SQLITE_OK;

	for (size_t i = 0; i < s->post_table->n_columns && code == SQLITE_OK; i++) {
		const struct post_column *c = &s->post_columns[i];

		if (post_cell_check(s->post_table, i, c, &cells[i], err) < 0)
			return -1;
		code = bind_cell(s->posting, (int)i + 1, c->type, &cells[i]);
	}
	if (code == SQLITE_OK)
		code = sqlite3_step(s->posting);
	if (code != SQLITE_DONE && code != SQLITE_ROW)
		post_error(s, code, err);
	sqlite3_reset(s->posting);
	return code == SQLITE_DONE || code == SQLITE_ROW ? 0 : -1;
}

/* What is deferred to the commit would fail there, where nobody knows any more that it was the rows. */
int sqlite_post_end(struct backend *b, struct error *err)
{
	struct sqlite *s = sqlite_of(b);
	int deferred = 0, unused;

	sqlite_post_forget(s);
	if (sqlite3_db_status(s->db, SQLITE_DBSTATUS_DEFERRED_FKS, &deferred, &unused, 0) == SQLITE_OK &&
	    deferred)
		return error_set(err, ERROR_BAD_ROW, "a foreign key of table '%s' is violated",
				 s->post_table->name);
	return 0;
}
