#include "row.h"

#include <errno.h>
#include <string.h>

#include "json_scan.h"
#include "text.h"

void row_done(struct row *row)
{
	buffer_free(&row->scratch);
}

static const char *shown(char out[128], const char *text, size_t size)
{
	return text_escape_into(out, 128, text, size);
}

/* ERROR_REFUSED for what the scan found, with the column where it is. */
static int not_json(const struct json_scan *s, const char *line, struct error *err)
{
	return error_set(err, ERROR_REFUSED, "it is not JSON: %s (byte %zu)", s->why,
			 (size_t)(s->where - line) + 1);
}

struct span {
	const char *at;
	size_t size;
};

/* A string that was scanned, decoded if need be. The scratch has room for the whole line: nothing that points into it
 * moves. */
static struct span text_of(struct row *row, const char *p, const char *end, bool escaped)
{
	struct span text = {p + 1, (size_t)(end - p) - 2};

	if (escaped) {
		char *out = row->scratch.data + row->scratch.size;

		text.size = json_decode(text.at, text.size, out);
		row->scratch.size += text.size;
		text.at = out;
	}
	return text;
}

static bool span_is(struct span s, const char *word)
{
	return strlen(word) == s.size && memcmp(s.at, word, s.size) == 0;
}

static void cell_take(struct cell *c, const char *p, const char *end)
{
	*c = (struct cell){.text = p, .size = (size_t)(end - p), .json = p, .json_size = (size_t)(end - p)};
	c->kind = *p == 'n'		   ? CELL_NULL
		  : *p == 't' || *p == 'f' ? CELL_BOOL
		  : *p == '"'		   ? CELL_TEXT
		  : *p == '['		   ? CELL_ARRAY
		  : *p == '{'		   ? CELL_OBJECT
					   : CELL_NUMBER;
}

static size_t column_find(const struct row_table *t, struct span name, size_t guess)
{
	/* Rows of one table mostly have their columns in the same order. */
	for (size_t i = 0; i < t->n_columns; i++) {
		size_t k = (guess + i) % t->n_columns;

		if (span_is(name, t->columns[k].name))
			return k;
	}
	return SIZE_MAX;
}

static int refuse_column(const struct row_table *t, struct span name, size_t column, struct error *err)
{
	char a[128], b[128];

	shown(a, name.at, name.size);
	shown(b, t->name, strlen(t->name));
	if (column == SIZE_MAX)
		return error_set(err, ERROR_REFUSED, "the site does not allow a column '%s' in table '%s'", a,
				 b);
	if (t->columns[column].fill || t->columns[column].is_null)
		return error_set(err, ERROR_REFUSED,
				 "column '%s' of table '%s' is filled in and cannot be supplied", a, b);
	return error_set(err, ERROR_REFUSED, "column '%s' is there twice", a);
}

/* One member; where the next begins. */
static const char *parse_member(const struct row_table *t, struct row *row, struct json_scan *s,
				const char *p, const char *line, size_t *column, bool seen[],
				struct error *err)
{
	bool escaped;
	const char *name_at = p, *name_end = scan_string(s, p, &escaped), *value, *end;
	struct span name;

	value = name_end ? scan_mark(s, name_end, ':') : NULL;
	end = value ? scan_value(s, value, 2) : NULL;
	if (!end) {
		not_json(s, line, err);
		return NULL;
	}
	name = text_of(row, name_at, name_end, escaped);
	*column = column_find(t, name, *column + 1);
	if (*column == SIZE_MAX || t->columns[*column].fill || t->columns[*column].is_null || seen[*column]) {
		refuse_column(t, name, *column, err);
		return NULL;
	}
	seen[*column] = true;
	cell_take(&row->cells[*column], value, end);
	if (*value == '"') {
		struct span text;

		escaped = memchr(value, '\\', (size_t)(end - value)) != NULL;
		text = text_of(row, value, end, escaped);
		row->cells[*column].text = text.at;
		row->cells[*column].size = text.size;
	}
	return end;
}

static int parse_fields(const struct row_table *t, struct row *row, struct json_scan *s, const char *p,
			const char *line, struct error *err)
{
	bool seen[ROW_COLUMNS_MAX] = {false};
	size_t column = t->n_columns - 1;

	for (size_t i = 0; i < t->n_columns; i++)
		row->cells[i] = (struct cell){
			.kind = CELL_NULL, .text = "null", .size = 4, .json = "null", .json_size = 4};
	p = scan_blanks(s, p + 1);
	if (p < s->end && *p == '}')
		return 0;
	for (;;) {
		p = parse_member(t, row, s, p, line, &column, seen, err);
		if (!p)
			return -EINVAL;
		p = scan_blanks(s, p);
		if (p < s->end && *p == '}')
			return 0;
		p = scan_mark(s, p, ',');
		if (!p)
			return not_json(s, line, err);
	}
}

int row_parse_fields(const struct row_table *t, const char *fields, size_t size, struct row *row,
		     struct error *err)
{
	struct json_scan s = {.end = fields + size};

	row->scratch.size = 0;
	if (buffer_reserve(&row->scratch, size + 1) < 0)
		return error_memory(err);
	row->table = t;
	row->fields = fields;
	row->fields_size = size;
	if (size == 0 || *fields != '{')
		return error_set(err, ERROR_REFUSED, "\"row\" is not an object");
	return parse_fields(t, row, &s, fields, fields, err);
}

/* Where the two members of a line lie. */
struct row_line {
	struct span table, fields;
	bool table_escaped;
};

static int take_member(struct row_line *l, struct row *row, const char *p, const char *name_end, bool escaped,
		       const char *value, const char *end, struct error *err)
{
	struct span name = text_of(row, p, name_end, escaped), whole = {value, (size_t)(end - value)};
	struct span *to = span_is(name, "table") ? &l->table : span_is(name, "row") ? &l->fields : NULL;
	char text[128];

	if (!to)
		return error_set(err, ERROR_REFUSED, "it has '%s' in it: there is only \"table\" and \"row\"",
				 shown(text, name.at, name.size));
	if (to->at)
		return error_set(err, ERROR_REFUSED, "it has \"%s\" twice",
				 to == &l->table ? "table" : "row");
	*to = whole;
	return 0;
}

static int split_line(struct row_line *l, struct row *row, struct json_scan *s, const char *line,
		      struct error *err)
{
	const char *p = scan_blanks(s, line);

	if (p == s->end)
		return error_set(err, ERROR_REFUSED, "it is empty");
	if (*p != '{')
		return error_set(err, ERROR_REFUSED,
				 "it is not {\"table\": …, \"row\": {…}}: only rows may be printed, all else "
				 "belongs on stderr");
	p = scan_blanks(s, p + 1);
	while (p < s->end && *p != '}') {
		bool escaped;
		const char *name_end = scan_string(s, p, &escaped), *value, *end;

		value = name_end ? scan_mark(s, name_end, ':') : NULL;
		end = value ? scan_value(s, value, 1) : NULL;
		if (!end)
			return not_json(s, line, err);
		if (take_member(l, row, p, name_end, escaped, value, end, err) < 0)
			return -EINVAL;
		p = scan_blanks(s, end);
		if (p < s->end && *p == '}')
			break;
		p = scan_mark(s, p, ',');
		if (!p)
			return not_json(s, line, err);
		if (p < s->end && *p == '}') {
			s->why = "a ',' is followed by nothing";
			s->where = p;
			return not_json(s, line, err);
		}
	}
	if (p >= s->end) {
		s->why = "it ends too early";
		s->where = p;
		return not_json(s, line, err);
	}
	p = scan_blanks(s, p + 1);
	return p == s->end ? 0 : error_set(err, ERROR_REFUSED, "there is more than one value on it");
}

static int find_table(const struct row_tables *t, struct row *row, const struct row_line *l,
		      struct error *err)
{
	bool escaped = memchr(l->table.at, '\\', l->table.size) != NULL;
	struct span name = text_of(row, l->table.at, l->table.at + l->table.size, escaped);
	char text[128];

	for (size_t i = 0; i < t->count; i++)
		if (span_is(name, t->list[i].name)) {
			row->table_index = i;
			return 0;
		}
	return error_set(err, ERROR_REFUSED, "the site does not allow a table '%s'",
			 shown(text, name.at, name.size));
}

int row_parse_line(const struct row_tables *t, const char *line, size_t size, struct row *row,
		   struct error *err)
{
	struct json_scan s = {.end = line + size};
	struct row_line l = {0};
	int r;

	row->scratch.size = 0;
	if (buffer_reserve(&row->scratch, size + 1) < 0)
		return error_memory(err);
	r = split_line(&l, row, &s, line, err);
	if (r < 0)
		return r;
	if (!l.table.at || *l.table.at != '"')
		return error_set(err, ERROR_REFUSED, "it has no \"table\"");
	if (!l.fields.at || *l.fields.at != '{')
		return error_set(err, ERROR_REFUSED, "it has no \"row\": {…}");
	r = find_table(t, row, &l, err);
	return r < 0 ? r : row_parse_fields(&t->list[row->table_index], l.fields.at, l.fields.size, row, err);
}

/* Appends what `fill` means for this attempt. */
static void expand(const char *fill, const char *id, int attempt, struct buffer *b)
{
	while (*fill) {
		size_t n = strcspn(fill, "{");

		buffer_append(b, fill, n);
		fill += n;
		if (strncmp(fill, "{id}", 4) == 0) {
			buffer_puts(b, id);
			fill += 4;
		} else if (strncmp(fill, "{attempt}", 9) == 0) {
			buffer_printf(b, "%d", attempt);
			fill += 9;
		} else if (*fill) {
			buffer_append(b, fill++, 1);
		}
	}
}

int row_fill(const struct row_table *t, const char *id, int attempt, struct cell cells[ROW_COLUMNS_MAX],
	     struct buffer *texts, struct error *err)
{
	size_t at[ROW_COLUMNS_MAX] = {0};

	texts->size = 0;
	for (size_t i = 0; i < t->n_columns; i++) {
		at[i] = texts->size;
		if (t->columns[i].fill)
			expand(t->columns[i].fill, id, attempt, texts);
		cells[i].size = texts->size - at[i];
	}
	if (buffer_check(texts, err) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < t->n_columns; i++) {
		const char *text = texts->data ? texts->data + at[i] : "";
		size_t size = cells[i].size;

		cells[i] = (struct cell){.kind = t->columns[i].fill ? CELL_TEXT : CELL_NULL, .filled = true};
		cells[i].text = cells[i].json = text;
		cells[i].size = cells[i].json_size = size;
	}
	return 0;
}

int cell_next(const struct cell *array, const char **at, struct cell *ret, struct buffer *scratch)
{
	struct json_scan s = {.end = array->json + array->json_size};
	const char *p = scan_blanks(&s, *at ? *at : array->json + 1), *end;

	if (*at && p < s.end && *p == ',')
		p = scan_blanks(&s, p + 1);
	if (p >= s.end || *p == ']')
		return 0;
	end = scan_value(&s, p, 1);
	if (!end)
		return 0;
	cell_take(ret, p, end);
	if (*p == '"') {
		scratch->size = 0;
		if (buffer_reserve(scratch, ret->size + 1) < 0)
			return -ENOMEM;
		ret->size = json_decode(p + 1, (size_t)(end - p) - 2, scratch->data);
		ret->text = scratch->data;
	}
	*at = end;
	return 1;
}
