#include "csv.h"

#include <stdlib.h>
#include <string.h>

#include "text.h"

/* Up to the quote that closes it; two are one that is meant. */
static const char *take_quoted(const char *at, const char *end, struct buffer *field)
{
	for (; at < end; at++) {
		if (*at == '"' && (at + 1 == end || at[1] != '"'))
			return at + 1;
		at += *at == '"';
		buffer_append(field, at, 1);
	}
	return at;
}

bool csv_field(const char **at, const char *end, struct buffer *field)
{
	const char *from = *at, *to;

	if (from < end && *from == '"')
		from = take_quoted(from + 1, end, field);
	for (to = from; to < end && *to != ',' && *to != '\n'; to++)
		;
	buffer_append(field, from, (size_t)(to - from));
	if (to > from && to[-1] == '\r' && (to == end || *to == '\n'))
		field->data[--field->size] = 0;
	*at = to < end ? to + 1 : to;
	return to == end || *to == '\n';
}

/* ---- a table ---- */

void csv_sheet_done(struct csv_sheet *s)
{
	for (size_t i = 0; s->cells && i < s->n_rows * SHEET_COLUMNS; i++)
		free(s->cells[i]);
	free(s->cells);
	*s = (struct csv_sheet){0};
}

const char *csv_cell(const struct csv_sheet *s, size_t row, size_t column)
{
	const char *cell =
		row < s->n_rows && column < SHEET_COLUMNS ? s->cells[row * SHEET_COLUMNS + column] : NULL;

	return cell ? cell : "";
}

/* A NUL would hide what is behind it from whoever compares. */
static char *cell_text(const struct buffer *field)
{
	const char *data = field->data ? field->data : "";

	return memchr(data, 0, field->size) ? text_escape(data, field->size) : strndup(data, field->size);
}

static int read_row(struct csv_sheet *s, const char **at, const char *end)
{
	char **row = &s->cells[s->n_rows++ * SHEET_COLUMNS];
	bool is_last = false;

	for (size_t column = 0; !is_last; column++) {
		_cleanup_buffer_ struct buffer field = {0};

		is_last = csv_field(at, end, &field);
		if (column >= SHEET_COLUMNS) {
			s->is_cut = true;
			continue;
		}
		row[column] = cell_text(&field);
		if (!row[column] || buffer_check(&field, NULL) < 0)
			return -1;
		s->n_columns = column >= s->n_columns ? column + 1 : s->n_columns;
	}
	return 0;
}

int csv_sheet_read(struct csv_sheet *s, const char *text, size_t size, struct error *err)
{
	const char *at = text, *end = text + size;

	s->cells = calloc((size_t)SHEET_ROWS * SHEET_COLUMNS, sizeof *s->cells);
	if (!s->cells)
		return error_memory(err);
	while (at < end && s->n_rows < SHEET_ROWS)
		if (read_row(s, &at, end) < 0)
			return error_memory(err);
	s->is_cut = s->is_cut || at < end;
	return 0;
}
