/*
 * Statements for the site's tables. Their names come from the site's configuration, and are quoted all the same; no
 * value is ever part of a statement.
 */
#include "sql.h"

#include <string.h>

#include "buffer.h"

/* Where rows wait, with the number of each, until they are moved to their table. */
#define STAGE	   "pg_temp.\"fumehood stage\""
#define STAGE_LINE "\"fumehood line\""

/* Names that the platform's own triggers and checks use are found as on any connection of this user. */
const char sql_postgres_post_path[] = "SELECT set_config('search_path', reset_val, true) FROM pg_settings "
				      "WHERE name = 'search_path'";
const char sql_postgres_own_path[] = "SET CONSTRAINTS ALL IMMEDIATE; SET LOCAL search_path = pg_catalog";

static void put_quoted(struct buffer *b, const char *name, size_t size)
{
	buffer_puts(b, "\"");
	for (size_t i = 0; i < size; i++)
		buffer_printf(b, name[i] == '"' ? "\"%c" : "%c", name[i]);
	buffer_puts(b, "\"");
}

static void put_table(struct buffer *b, const struct row_table *t, bool has_schemas)
{
	const char *dot = has_schemas ? strchr(t->name, '.') : NULL, *name = dot ? dot + 1 : t->name;

	if (dot) {
		put_quoted(b, t->name, (size_t)(dot - t->name));
		buffer_puts(b, ".");
	}
	put_quoted(b, name, strlen(name));
}

enum which { WHICH_ALL, WHICH_KEY, WHICH_SET };

/* "a", "b"; for WHICH_SET: "a" = excluded."a", … */
static void put_columns(struct buffer *b, const struct row_table *t, enum which which)
{
	const char *before = "";

	for (size_t i = 0; i < t->n_columns; i++) {
		const struct row_column *c = &t->columns[i];

		if ((which == WHICH_KEY && !c->in_key) || (which == WHICH_SET && c->in_key))
			continue;
		buffer_puts(b, before);
		before = ", ";
		put_quoted(b, c->name, strlen(c->name));
		if (which != WHICH_SET)
			continue;
		buffer_puts(b, " = excluded.");
		put_quoted(b, c->name, strlen(c->name));
	}
}

static void put_conflict(struct buffer *b, const struct row_table *t)
{
	if (t->on_conflict == ROW_FAIL)
		return;
	buffer_puts(b, " ON CONFLICT (");
	put_columns(b, t, WHICH_KEY);
	if (t->on_conflict == ROW_IGNORE || t->n_key == t->n_columns) {
		buffer_puts(b, ") DO NOTHING");
		return;
	}
	buffer_puts(b, ") DO UPDATE SET ");
	put_columns(b, t, WHICH_SET);
}

char *sql_quote_name(const char *name)
{
	_cleanup_buffer_ struct buffer b = {0};

	put_quoted(&b, name, strlen(name));
	return buffer_take(&b);
}

char *sql_post_name(const struct row_table *t)
{
	_cleanup_buffer_ struct buffer b = {0};

	put_table(&b, t, true);
	return buffer_take(&b);
}

char *sql_post_insert(const struct row_table *t)
{
	_cleanup_buffer_ struct buffer b = {0};

	buffer_puts(&b, "INSERT INTO main.");
	put_table(&b, t, false);
	buffer_puts(&b, "(");
	put_columns(&b, t, WHICH_ALL);
	buffer_puts(&b, ") VALUES (");
	for (size_t i = 0; i < t->n_columns; i++)
		buffer_printf(&b, "%s?%zu", i ? ", " : "", i + 1);
	buffer_puts(&b, ")");
	put_conflict(&b, t);
	return buffer_take(&b);
}

char *sql_post_copy(const struct row_table *t, bool staged, bool binary)
{
	_cleanup_buffer_ struct buffer b = {0};

	buffer_puts(&b, "COPY ");
	if (staged)
		buffer_puts(&b, STAGE);
	else
		put_table(&b, t, true);
	buffer_puts(&b, staged ? "(" STAGE_LINE ", " : "(");
	put_columns(&b, t, WHICH_ALL);
	buffer_puts(&b, binary ? ") FROM STDIN (FORMAT binary)" : ") FROM STDIN");
	return buffer_take(&b);
}

char *sql_post_stage(const struct row_table *t)
{
	_cleanup_buffer_ struct buffer b = {0};

	buffer_puts(&b, "DROP TABLE IF EXISTS " STAGE "; CREATE TEMPORARY TABLE \"fumehood stage\" "
			"ON COMMIT DROP AS SELECT 0::bigint AS " STAGE_LINE ", ");
	put_columns(&b, t, WHICH_ALL);
	buffer_puts(&b, " FROM ");
	put_table(&b, t, true);
	buffer_puts(&b, " WITH NO DATA");
	return buffer_take(&b);
}

/* Of several rows with the same key the last one counts, as if they had come one by one. */
char *sql_post_move(const struct row_table *t)
{
	_cleanup_buffer_ struct buffer b = {0};
	bool distinct = t->on_conflict == ROW_UPDATE;

	buffer_puts(&b, "INSERT INTO ");
	put_table(&b, t, true);
	buffer_puts(&b, "(");
	put_columns(&b, t, WHICH_ALL);
	buffer_puts(&b, ") SELECT ");
	if (distinct) {
		buffer_puts(&b, "DISTINCT ON (");
		put_columns(&b, t, WHICH_KEY);
		buffer_puts(&b, ") ");
	}
	put_columns(&b, t, WHICH_ALL);
	buffer_puts(&b, " FROM " STAGE " WHERE " STAGE_LINE " <= $1::bigint ORDER BY ");
	if (distinct)
		put_columns(&b, t, WHICH_KEY);
	buffer_puts(&b, distinct ? ", " STAGE_LINE " DESC" : STAGE_LINE);
	put_conflict(&b, t);
	return buffer_take(&b);
}
