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

static int put_quoted(struct buffer *b, const char *name, size_t size)
{
	int r = buffer_puts(b, "\"");

	for (size_t i = 0; i < size && r == 0; i++)
		r = name[i] == '"' ? buffer_puts(b, "\"\"") : buffer_append(b, name + i, 1);
	return r < 0 ? r : buffer_puts(b, "\"");
}

static int put_table(struct buffer *b, const struct row_table *t, bool has_schemas)
{
	const char *dot = has_schemas ? strchr(t->name, '.') : NULL;
	int r = dot ? put_quoted(b, t->name, (size_t)(dot - t->name)) : 0;

	if (r == 0 && dot)
		r = buffer_puts(b, ".");
	return r < 0 ? r : put_quoted(b, dot ? dot + 1 : t->name, strlen(dot ? dot + 1 : t->name));
}

enum which { WHICH_ALL, WHICH_KEY, WHICH_SET };

/* "a", "b"; for WHICH_SET: "a" = excluded."a", … */
static int put_columns(struct buffer *b, const struct row_table *t, enum which which)
{
	bool first = true;
	int r = 0;

	for (size_t i = 0; i < t->n_columns && r == 0; i++) {
		const struct row_column *c = &t->columns[i];

		if ((which == WHICH_KEY && !c->in_key) || (which == WHICH_SET && c->in_key))
			continue;
		r = first ? 0 : buffer_puts(b, ", ");
		first = false;
		if (r == 0)
			r = put_quoted(b, c->name, strlen(c->name));
		if (r == 0 && which == WHICH_SET)
			r = buffer_puts(b, " = excluded.");
		if (r == 0 && which == WHICH_SET)
			r = put_quoted(b, c->name, strlen(c->name));
	}
	return r;
}

static int put_conflict(struct buffer *b, const struct row_table *t)
{
	int r;

	if (t->on_conflict == ROW_FAIL)
		return 0;
	r = buffer_puts(b, " ON CONFLICT (");
	if (r == 0)
		r = put_columns(b, t, WHICH_KEY);
	if (r < 0)
		return r;
	if (t->on_conflict == ROW_IGNORE || t->n_key == t->n_columns)
		return buffer_puts(b, ") DO NOTHING");
	r = buffer_puts(b, ") DO UPDATE SET ");
	return r < 0 ? r : put_columns(b, t, WHICH_SET);
}

static char *done(struct buffer *b, int r)
{
	return r < 0 ? NULL : buffer_take(b);
}

char *sql_post_name(const struct row_table *t)
{
	_cleanup_buffer_ struct buffer b = {0};

	return done(&b, put_table(&b, t, true));
}

char *sql_post_insert(const struct row_table *t)
{
	_cleanup_buffer_ struct buffer b = {0};
	int r = buffer_puts(&b, "INSERT INTO main.");

	if (r == 0)
		r = put_table(&b, t, false);
	if (r == 0)
		r = buffer_puts(&b, "(");
	if (r == 0)
		r = put_columns(&b, t, WHICH_ALL);
	if (r == 0)
		r = buffer_puts(&b, ") VALUES (");
	for (size_t i = 0; i < t->n_columns && r == 0; i++)
		r = buffer_printf(&b, "%s?%zu", i ? ", " : "", i + 1);
	if (r == 0)
		r = buffer_puts(&b, ")");
	if (r == 0)
		r = put_conflict(&b, t);
	return done(&b, r);
}

char *sql_post_copy(const struct row_table *t, bool staged, bool binary)
{
	_cleanup_buffer_ struct buffer b = {0};
	int r = buffer_puts(&b, "COPY ");

	if (r == 0)
		r = staged ? buffer_puts(&b, STAGE) : put_table(&b, t, true);
	if (r == 0)
		r = buffer_puts(&b, staged ? "(" STAGE_LINE ", " : "(");
	if (r == 0)
		r = put_columns(&b, t, WHICH_ALL);
	if (r == 0)
		r = buffer_puts(&b, binary ? ") FROM STDIN (FORMAT binary)" : ") FROM STDIN");
	return done(&b, r);
}

char *sql_post_stage(const struct row_table *t)
{
	_cleanup_buffer_ struct buffer b = {0};
	int r = buffer_puts(&b, "DROP TABLE IF EXISTS " STAGE "; CREATE TEMPORARY TABLE \"fumehood stage\" "
				"ON COMMIT DROP AS SELECT 0::bigint AS " STAGE_LINE ", ");

	if (r == 0)
		r = put_columns(&b, t, WHICH_ALL);
	if (r == 0)
		r = buffer_puts(&b, " FROM ");
	if (r == 0)
		r = put_table(&b, t, true);
	if (r == 0)
		r = buffer_puts(&b, " WITH NO DATA");
	return done(&b, r);
}

/* Of several rows with the same key the last one counts, as if they had come one by one. */
char *sql_post_move(const struct row_table *t)
{
	_cleanup_buffer_ struct buffer b = {0};
	bool distinct = t->on_conflict == ROW_UPDATE;
	int r = buffer_puts(&b, "INSERT INTO ");

	if (r == 0)
		r = put_table(&b, t, true);
	if (r == 0)
		r = buffer_puts(&b, "(");
	if (r == 0)
		r = put_columns(&b, t, WHICH_ALL);
	if (r == 0)
		r = buffer_puts(&b, distinct ? ") SELECT DISTINCT ON (" : ") SELECT ");
	if (r == 0 && distinct)
		r = put_columns(&b, t, WHICH_KEY);
	if (r == 0 && distinct)
		r = buffer_puts(&b, ") ");
	if (r == 0)
		r = put_columns(&b, t, WHICH_ALL);
	if (r == 0)
		r = buffer_puts(&b, " FROM " STAGE " WHERE " STAGE_LINE " <= $1::bigint ORDER BY ");
	if (r == 0 && distinct)
		r = put_columns(&b, t, WHICH_KEY);
	if (r == 0)
		r = buffer_puts(&b, distinct ? ", " STAGE_LINE " DESC" : STAGE_LINE);
	if (r == 0)
		r = put_conflict(&b, t);
	return done(&b, r);
}
