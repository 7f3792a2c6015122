/*
 * Numbers, times, tables and colours for people. What is not known is "-", never 0.
 */
#ifndef VIEW_PRINT_H
#define VIEW_PRINT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "error.h"
#include "macros.h"

enum { PRINT_ROOM = 48 };

enum style { STYLE_RESET, STYLE_BOLD, STYLE_DIM, STYLE_RED, STYLE_GREEN, STYLE_YELLOW };
/* What whoever reads can be shown. */
struct look {
	bool colour;
	bool utf8;
	bool obeys; /* a terminal, which obeys what names may hold: JSON has nothing beyond ASCII then */
};
/* The sequence, or "" where there are no colours. */
const char *print_style(bool colour, enum style style);

/* ✓ or ✗, or what a terminal without UTF-8 can show. */
const char *print_mark(const struct look *look, bool ok);
/* text_escape() that never fails: for one name in a message or a cell. Freed by the caller. */
char *print_escape(const char *text);

const char *print_size(int64_t bytes, char out[PRINT_ROOM]);	 /* "45 MiB" */
const char *print_duration(int64_t ms, char out[PRINT_ROOM]);	 /* "1.2 s", "3 min 20 s" */
const char *print_instant(int64_t utc_ns, char out[PRINT_ROOM]); /* "2026-11-15 02:34:08Z"; 0: "-" */
/* "1 output", "3 outputs", "no outputs" */
const char *print_count(uint64_t n, const char *noun, char out[PRINT_ROOM]);

/* At the end of out, as far as there is room. */
void print_add(char *out, size_t room, const char *format, ...) PRINTF_LIKE(3, 4);

/* Columns as wide as their widest cell, two blanks between. table_add copies the cells, which have been escaped by
 * whoever knows where they came from; a failed table_add shows when the table is printed. */
struct table {
	size_t n_columns;
	unsigned right; /* bit i: column i is aligned to the right */
	int indent;
	char **cells;
	size_t n_cells;
	bool failed;
	size_t *widths; /* of the parts that were printed: the next ones are no narrower */
};

void table_add(struct table *t, ...); /* n_columns strings; NULL is "-" */
int table_print(struct table *t, FILE *to, struct error *err);
void table_empty(struct table *t); /* for the next part of it, with the same columns */
void table_done(struct table *t);
#define _cleanup_table_ _cleanup_(table_done)

/* A row of bars, one for each of `columns` slices of the values; unknown ones (-1) are blank. */
char *print_bars(const int64_t *values, size_t n, size_t columns, int64_t highest, bool utf8);

#endif
