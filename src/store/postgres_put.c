/*
 * What a submitter writes: not tables, but calls of functions that check each row (roles.sql). Rows go as JSON, many to
 * a call; contents one by one, as bytes, since it is the server who hashes them.
 */
#include "postgres.h"

#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "text.h"

static json_t *value_json_of(char type, const struct value *v)
{
	char at[CLOCK_TEXT_SIZE];

	switch (v->kind) {
	case VALUE_NULL:
		return json_null();
	case VALUE_TIME:
		clock_format(v->integer, at);
		return json_string(at);
	case VALUE_BOOL:
		return json_boolean(v->integer != 0);
	case VALUE_INTEGER:
		return json_integer(v->integer);
	default:
		if (type == 'j')
			return json_loadb(v->data, v->size, JSON_DECODE_ANY, NULL);
	}
	if (utf8_valid(v->data, v->size))
		return json_stringn(v->data, v->size);

	_cleanup_free_ char *escaped = text_escape(v->data, v->size);

	return escaped ? json_string(escaped) : NULL;
}

/* {"id": …, "state": …}, by the names that the table's columns have. */
static char *row_json(enum sql_table table, const struct value *row)
{
	const struct sql_table_info *t = &sql_tables[table];
	json_auto_t *object = json_object();
	const char *name = t->columns;

	for (size_t i = 0; t->types[i]; i++) {
		size_t n = strcspn(name, ",");
		char key[64];

		snprintf(key, sizeof key, "%.*s", (int)n, name);
		if (json_object_set_new(object, key, value_json_of(t->types[i], &row[i])) < 0)
			return NULL;
		name += n + strspn(name + n, ", ");
	}
	return json_dumps(object, JSON_COMPACT);
}

static int put(struct postgres *p, const struct value *param, struct error *err)
{
	_cleanup_free_ char *text = sql_put(p->table);

	if (!text)
		return error_set(
			err, ERROR_REFUSED,
			"cannot write to the ledger %s: its user may submit, and not commit; 'fumehood submit' leaves it to a "
			"worker",
			p->base.name);
	return postgres_call(p, text, param, err);
}

int postgres_put_add(struct postgres *p, const struct value *row, struct error *err)
{
	_cleanup_free_ char *text = NULL;

	if (p->table == TABLE_BLOB)
		return put(p, &row[2], err);
	text = row_json(p->table, row);
	if (text)
		buffer_printf(&p->rows, "%s%s", p->rows.size ? "," : "[", text);
	else
		buffer_fail(&p->rows);
	return p->rows.size < COPY_CHUNK ? 0 : postgres_put_end(p, err);
}

int postgres_put_end(struct postgres *p, struct error *err)
{
	struct value rows;
	int r;

	if (p->rows.size == 0)
		return buffer_check(&p->rows, err);
	buffer_puts(&p->rows, "]");
	if (buffer_check(&p->rows, err) < 0)
		return -1;
	rows = value_text(p->rows.data);
	r = put(p, &rows, err);
	p->rows.size = 0;
	return r;
}
