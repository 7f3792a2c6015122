#include "csv_differ.h"

#include <string.h>

enum { NONE = -1 };

struct pair {
	const struct csv_sheet *a, *b;
	/* What stands beside each other: columns of both, one of them NONE where only the other has it. */
	int columns[2 * SHEET_COLUMNS][2];
	size_t n_columns;
	bool by_key;
	int key_of_b; /* the column of b in which the first of a is */
	struct csv_differ found;
};

/* ---- what belongs together ---- */

static bool is_taken(const struct pair *p, int column_of_b)
{
	for (size_t i = 0; i < p->n_columns; i++)
		if (p->columns[i][1] == column_of_b)
			return true;
	return false;
}

static int find_column(const struct pair *p, const char *name)
{
	for (int i = 0; i < (int)p->b->n_columns; i++)
		if (strcmp(csv_cell(p->b, 0, (size_t)i), name) == 0 && !is_taken(p, i))
			return i;
	return NONE;
}

static void pair_columns(struct pair *p)
{
	for (int i = 0; i < (int)p->a->n_columns; i++) {
		p->columns[p->n_columns][1] = find_column(p, csv_cell(p->a, 0, (size_t)i));
		p->columns[p->n_columns++][0] = i;
	}
	for (int i = 0; i < (int)p->b->n_columns; i++)
		if (!is_taken(p, i)) {
			p->columns[p->n_columns][0] = NONE;
			p->columns[p->n_columns++][1] = i;
		}
}

static bool is_unique(const struct csv_sheet *s, int column)
{
	for (size_t i = 1; i < s->n_rows; i++)
		for (size_t k = i + 1; k < s->n_rows; k++)
			if (strcmp(csv_cell(s, i, (size_t)column), csv_cell(s, k, (size_t)column)) == 0)
				return false;
	return true;
}

static void choose_key(struct pair *p)
{
	p->key_of_b = p->a->n_columns ? p->columns[0][1] : NONE;
	p->by_key = p->key_of_b != NONE && is_unique(p->a, 0) && is_unique(p->b, p->key_of_b);
}

/* NONE: b has no such row. */
static int row_of_b(const struct pair *p, size_t row)
{
	if (!p->by_key)
		return row < p->b->n_rows ? (int)row : NONE;
	for (size_t i = 1; i < p->b->n_rows; i++)
		if (strcmp(csv_cell(p->b, i, (size_t)p->key_of_b), csv_cell(p->a, row, 0)) == 0)
			return (int)i;
	return NONE;
}

static bool is_in_a(const struct pair *p, size_t row)
{
	if (!p->by_key)
		return row < p->a->n_rows;
	for (size_t i = 1; i < p->a->n_rows; i++)
		if (strcmp(csv_cell(p->a, i, 0), csv_cell(p->b, row, (size_t)p->key_of_b)) == 0)
			return true;
	return false;
}

/* ---- how it looks ---- */

static const char *text_at(const struct csv_sheet *s, int row, int column)
{
	return row == NONE || column == NONE ? "" : csv_cell(s, (size_t)row, (size_t)column);
}

static bool differs(const struct pair *p, int a, int b, size_t column)
{
	const int *both = p->columns[column];

	return strcmp(text_at(p->a, a, both[0]), text_at(p->b, b, both[1])) != 0;
}

static void draw_cell(struct html *h, const struct pair *p, int a, int b, size_t column)
{
	const char *of_a = text_at(p->a, a, p->columns[column][0]),
		   *of_b = text_at(p->b, b, p->columns[column][1]);

	if (a == NONE || b == NONE || !differs(p, a, b, column)) {
		html_element(h, "td", NULL, a == NONE ? of_b : of_a);
		return;
	}
	html_raw(h, "<td class=\"changed\">");
	if (*of_a)
		html_element(h, "del", NULL, of_a);
	html_raw(h, " ");
	if (*of_b)
		html_element(h, "ins", NULL, of_b);
	html_raw(h, "</td>");
}

static void draw_row(struct html *h, struct pair *p, int a, int b)
{
	size_t changed = 0;

	for (size_t i = 0; a != NONE && b != NONE && i < p->n_columns; i++)
		changed += differs(p, a, b, i);
	p->found.cells += changed;
	p->found.rows_a += b == NONE;
	p->found.rows_b += a == NONE;
	html_raw(h, "<tr><td class=\"mark\">");
	html_raw(h, b == NONE ? "only in A" : a == NONE ? "only in B" : changed ? "differs" : "");
	html_raw(h, "</td>");
	for (size_t i = 0; i < p->n_columns; i++)
		draw_cell(h, p, a, b, i);
	html_raw(h, "</tr>\n");
}

static void draw_head(struct html *h, const struct pair *p)
{
	html_raw(h, "<thead><tr><td></td>");
	for (size_t i = 0; i < p->n_columns; i++) {
		const int *both = p->columns[i];

		html_raw(h, "<th scope=\"col\">");
		html_text(h, both[0] == NONE ? text_at(p->b, 0, both[1]) : text_at(p->a, 0, both[0]));
		html_raw(h, both[0] == NONE ? " (only in B)" : both[1] == NONE ? " (only in A)" : "");
		html_raw(h, "</th>");
	}
	html_raw(h, "</tr></thead>");
}

struct csv_differ csv_differ_draw(struct html *h, const char *title, const struct csv_sheet *a,
				  const struct csv_sheet *b)
{
	struct pair p = {.a = a, .b = b};

	pair_columns(&p);
	choose_key(&p);
	html_raw(h, "<div class=\"wide\" tabindex=\"0\" role=\"region\"");
	html_attr(h, "aria-label", title);
	html_raw(h, "><table class=\"csv\">\n");
	draw_head(h, &p);
	html_raw(h, "<tbody>\n");
	for (size_t i = 1; i < a->n_rows; i++)
		draw_row(h, &p, (int)i, row_of_b(&p, i));
	for (size_t i = 1; i < b->n_rows; i++)
		if (!is_in_a(&p, i))
			draw_row(h, &p, NONE, (int)i);
	html_raw(h, "</tbody></table></div>\n");
	return p.found;
}
