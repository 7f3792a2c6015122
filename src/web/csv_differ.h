/*
 * Two tables beside each other, as one: columns by their names, rows by their first field where that names each row once in both, else by their place.
 */
#ifndef WEB_CSV_DIFFER_H
#define WEB_CSV_DIFFER_H

#include "csv.h"
#include "html.h"

struct csv_differ {
	size_t cells, rows_a, rows_b; /* that differ; that only one has */
};
/* Marked by words and signs, not by colour alone. */
struct csv_differ csv_differ_draw(struct html *h, const char *title, const struct csv_sheet *a,
				  const struct csv_sheet *b);

#endif
