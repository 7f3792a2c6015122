/*
 * Rows for the site's tables, as a post-process prints them: JSON Lines {"table": …, "row": {…}}. Pure: bytes go in, a
 * table and its cells come out, or one sentence that says what is wrong with them.
 *
 * The site says which tables and columns there are (row_tables_read); a column that is filled in cannot be supplied.
 * row_parse_line reads what a stranger printed; row_parse_fields reads its "row" again when it is committed. Numbers
 * stay the text that they were, so that a database with exact numbers gets exact numbers.
 */
#ifndef MODEL_ROW_H
#define MODEL_ROW_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "buffer.h"
#include "error.h"

enum { ROW_LINE_MAX = 1024 * 1024, ROW_COLUMNS_MAX = 256, ROW_TABLES_MAX = 256 };

enum row_conflict { ROW_FAIL, ROW_IGNORE, ROW_UPDATE };

struct row_column {
	char *name;
	char *fill;   /* NULL: supplied; else a text in which {id} and {attempt} stand */
	bool is_null; /* fill: null */
	bool in_key;
};

struct row_table {
	char *name; /* "scores" or "schema.scores" */
	struct row_column *columns;
	size_t n_columns;
	size_t n_key;
	enum row_conflict on_conflict;
};

struct row_tables {
	struct row_table *list;
	size_t count;
};

/* The site's `post_process.tables`, whose shape was checked with the configuration. ERROR_USAGE for what makes no sense:
 * a column twice, a key that is no column, on_conflict without a key, a table of ours. */
int row_tables_read(struct row_tables *t, const json_t *json, struct error *err);
void row_tables_done(struct row_tables *t);
#define _cleanup_row_tables_ _cleanup_(row_tables_done)

enum cell_kind { CELL_NULL, CELL_BOOL, CELL_NUMBER, CELL_TEXT, CELL_ARRAY, CELL_OBJECT };

/* One value. json is what stands in the line; text is the decoded string of a CELL_TEXT, else the same as json. */
struct cell {
	enum cell_kind kind;
	bool filled; /* by us: a text that the database converts to the column's type */
	const char *text;
	size_t size;
	const char *json;
	size_t json_size;
};

struct row {
	const struct row_table *table;
	size_t table_index;
	const char *fields; /* the "row" object as it stands in the line */
	size_t fields_size;
	struct cell cells[ROW_COLUMNS_MAX]; /* one per column of the table; what was left out is null */
	struct buffer scratch;		    /* decoded strings */
};

/* Zero-initialise. What a row points to is the line's and its own until the next parse. */
void row_done(struct row *row);
#define _cleanup_row_ _cleanup_(row_done)

/* A line without its newline. ERROR_REFUSED says what is wrong, without the line's number. */
int row_parse_line(const struct row_tables *t, const char *line, size_t size, struct row *row,
		   struct error *err);
int row_parse_fields(const struct row_table *t, const char *fields, size_t size, struct row *row,
		     struct error *err);

/* The filled columns, for this attempt: text goes to *texts (reserved by the call), which must live as long as cells. */
int row_fill(const struct row_table *t, const char *id, int attempt, struct cell cells[ROW_COLUMNS_MAX],
	     struct buffer *texts, struct error *err);

/* The next element of a CELL_ARRAY: *at begins at NULL. 1, 0 at the end, -ENOMEM. Strings are decoded into scratch, which
 * is overwritten by each call. */
int cell_next(const struct cell *array, const char **at, struct cell *ret, struct buffer *scratch);

#endif
