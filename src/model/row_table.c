#include "row.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "text.h"

static void table_done(struct row_table *t)
{
	for (size_t i = 0; i < t->n_columns; i++) {
		free(t->columns[i].name);
		free(t->columns[i].fill);
	}
	free(t->columns);
	free(t->name);
}

void row_tables_done(struct row_tables *t)
{
	for (size_t i = 0; i < t->count; i++)
		table_done(&t->list[i]);
	free(t->list);
	*t = (struct row_tables){0};
}

static int wrong(const struct row_table *t, const char *what, const char *name, struct error *err)
{
	return error_set(err, ERROR_USAGE, "post_process.tables: '%s' %s '%s'", SHOWN(128, t->name), what,
			 SHOWN(128, name));
}

static struct row_column *column_named(const struct row_table *t, const char *name)
{
	for (size_t i = 0; i < t->n_columns; i++)
		if (strcmp(t->columns[i].name, name) == 0)
			return &t->columns[i];
	return NULL;
}

/* Room was made for all of them. */
static int add_column(struct row_table *t, const char *name, struct error *err)
{
	if (!*name || strlen(name) > 128)
		return wrong(t, "has a column whose name makes no sense:", name, err);
	if (column_named(t, name))
		return wrong(t, "has two columns", name, err);
	if (t->n_columns == ROW_COLUMNS_MAX)
		return wrong(t, "has too many columns, the first beyond is", name, err);
	return text_set(&t->columns[t->n_columns++].name, name, err);
}

static bool fill_is_known(const char *fill)
{
	for (const char *p = fill; (p = strchr(p, '{')); p++)
		if (strncmp(p, "{id}", 4) != 0 && strncmp(p, "{attempt}", 9) != 0)
			return false;
	return true;
}

/* A literal of any type becomes the text that the database then reads. */
static char *fill_text(const json_t *value)
{
	if (json_is_string(value))
		return strdup(json_string_value(value));
	return json_dumps(value, JSON_ENCODE_ANY);
}

static int read_fill(struct row_table *t, const json_t *fill, struct error *err)
{
	json_t *value;
	const char *name;
	int r = 0;

	json_object_foreach ((json_t *)fill, name, value) {
		struct row_column *c;

		r = add_column(t, name, err);
		if (r < 0)
			return r;
		c = &t->columns[t->n_columns - 1];
		c->is_null = json_is_null(value);
		if (c->is_null)
			continue;
		c->fill = fill_text(value);
		if (!c->fill)
			return error_memory(err);
		if (!fill_is_known(c->fill))
			return wrong(t,
				     "is filled with something that is neither {id} nor {attempt}:", c->fill,
				     err);
	}
	return r;
}

static int read_key(struct row_table *t, const json_t *key, struct error *err)
{
	size_t i;
	json_t *value;

	json_array_foreach (key, i, value) {
		const char *name = json_string_value(value);
		struct row_column *c = column_named(t, name ? name : "");

		if (!c)
			return wrong(t, "has a key that is none of its columns:", name ? name : "", err);
		t->n_key += !c->in_key;
		c->in_key = true;
	}
	return 0;
}

static int read_conflict(struct row_table *t, const json_t *json, struct error *err)
{
	const char *word = json_string_value(json_object_get(json, "on_conflict"));

	t->on_conflict = !word || strcmp(word, "fail") == 0 ? ROW_FAIL
			 : strcmp(word, "ignore") == 0	    ? ROW_IGNORE
							    : ROW_UPDATE;
	if (t->on_conflict != ROW_FAIL && t->n_key == 0)
		return wrong(t, "has no key, which it needs for on_conflict:", word, err);
	return 0;
}

/* The ledger's own tables are nobody's to fill, nor are the database's. */
static bool is_reserved(const char *name)
{
	static const char *const prefixes[] = {"fumehood_", "fumehood.", "sqlite_", "pg_",
					       "information_schema."};

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
		if (strncasecmp(name, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}

static int read_table(struct row_table *t, const char *name, const json_t *json, struct error *err)
{
	const json_t *columns = json_is_array(json) ? json : json_object_get(json, "columns");
	const json_t *fill = json_object_get(json, "fill");
	size_t i;
	json_t *value;
	int r = 0;

	t->name = strdup(name);
	t->columns = calloc(ROW_COLUMNS_MAX, sizeof *t->columns);
	if (!t->name || !t->columns)
		return error_memory(err);
	if (is_reserved(name) || !*name || strlen(name) > 200)
		return wrong(t, "is not a table that can be filled:", name, err);
	json_array_foreach (columns, i, value) {
		r = add_column(t, json_string_value(value) ? json_string_value(value) : "", err);
		if (r < 0)
			return r;
	}
	r = read_fill(t, fill, err);
	if (r == 0 && t->n_columns == 0)
		r = wrong(t, "has no columns:", name, err);
	if (r == 0)
		r = read_key(t, json_object_get(json, "key"), err);
	return r < 0 ? r : read_conflict(t, json, err);
}

int row_tables_read(struct row_tables *t, const json_t *json, struct error *err)
{
	json_t *value;
	const char *name;

	if (json_object_size(json) > ROW_TABLES_MAX)
		return error_set(err, ERROR_USAGE, "post_process.tables has more than %d tables",
				 ROW_TABLES_MAX);
	t->list = calloc(json_object_size(json) + 1, sizeof *t->list);
	if (!t->list)
		return error_memory(err);
	json_object_foreach ((json_t *)json, name, value) {
		int r = read_table(&t->list[t->count++], name, value, err);

		if (r < 0) {
			row_tables_done(t);
			return r;
		}
	}
	return 0;
}
