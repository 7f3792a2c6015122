/*
 * CSV as people write it (RFC 4180, and what is nearly that): fields between commas, quoted ones with commas, quotes and line breaks in them.
 */
#ifndef WEB_CSV_H
#define WEB_CSV_H

#include <stdbool.h>

#include "buffer.h"
#include "error.h"

/* The field at *at, without its quotes, into an empty buffer; *at is behind it and its comma or line break then. Was it the last one of its line? */
bool csv_field(const char **at, const char *end, struct buffer *field);

/* The beginning of a table: so many lines, and of each so many fields. Zero-initialise, and csv_sheet_done(). */
enum { SHEET_ROWS = 201, SHEET_COLUMNS = 40 };
struct csv_sheet {
	char **cells; /* SHEET_COLUMNS for each row; NULL where its line has fewer */
	size_t n_rows, n_columns;
	bool is_cut; /* there is more of it */
};
int csv_sheet_read(struct csv_sheet *s, const char *text, size_t size, struct error *err);
void csv_sheet_done(struct csv_sheet *s);
/* As it is shown: what is no text in it is escaped. "": there is none. */
const char *csv_cell(const struct csv_sheet *s, size_t row, size_t column);

#endif
