/*
 * What came from what: a column for each step away from the analysis, what it came from to its left, what came from it to its right. The list
 * below the graph says the same.
 */
#include "one.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pages.h"
#include "text.h"

enum { NODES_MAX = 200, COLUMNS_MAX = 32, BOX = 170, GAP = 50, ROW = 30, UNKNOWN = 1000, CHARACTERS = 24 };

struct node {
	const json_t *json;
	int column, row; /* column UNKNOWN: nothing leads to it */
};

struct graph {
	const struct one *one;
	struct node nodes[NODES_MAX];
	size_t n;
	int first, last, rows;
};

/* ---- where everything is ---- */

static struct node *find_node(struct graph *g, const json_t *end)
{
	for (size_t i = 0; i < g->n; i++)
		if (strcmp(words_of(g->nodes[i].json, "id"), words_of(end, "id")) == 0 &&
		    json_equal(json_object_get(g->nodes[i].json, "attempt"), json_object_get(end, "attempt")))
			return &g->nodes[i];
	return NULL;
}

/* From what has a column to what has none; did any get one? */
static bool spread(struct graph *g)
{
	const json_t *edges = json_object_get(g->one->lineage, "edges"), *edge;
	bool any = false;
	size_t i;

	json_array_foreach (edges, i, edge) {
		struct node *from = find_node(g, json_object_get(edge, "from")),
			    *to = find_node(g, json_object_get(edge, "to"));

		if (!from || !to || (from->column == UNKNOWN) == (to->column == UNKNOWN))
			continue;
		if (from->column == UNKNOWN)
			from->column = to->column - 1;
		else
			to->column = from->column + 1;
		any = true;
	}
	return any;
}

static void graph_make(struct graph *g)
{
	const json_t *nodes = json_object_get(g->one->lineage, "nodes");
	int heights[2 * COLUMNS_MAX + 1] = {0};

	for (; g->n < json_array_size(nodes) && g->n < NODES_MAX; g->n++)
		g->nodes[g->n] = (struct node){json_array_get(nodes, g->n), g->n ? UNKNOWN : 0, 0};
	while (spread(g))
		;
	for (size_t i = 0; i < g->n; i++) {
		struct node *n = &g->nodes[i];

		if (n->column < -COLUMNS_MAX || n->column > COLUMNS_MAX)
			n->column = UNKNOWN;
		if (n->column == UNKNOWN)
			continue;
		n->row = heights[n->column + COLUMNS_MAX]++;
		g->rows = n->row >= g->rows ? n->row + 1 : g->rows;
		g->first = n->column < g->first ? n->column : g->first;
		g->last = n->column > g->last ? n->column : g->last;
	}
}

/* ---- how it looks ---- */

static int left_of(const struct graph *g, const struct node *n)
{
	return (n->column - g->first) * (BOX + GAP) + 1;
}

static int top_of(const struct node *n)
{
	return n->row * ROW + 1;
}

/* Numbers of ours, as an attribute's. */
static void attr(struct html *h, const char *name, int value)
{
	char text[16];

	snprintf(text, sizeof text, "%d", value);
	html_attr(h, name, text);
}

static void draw_edge(struct html *h, struct graph *g, const json_t *edge)
{
	const struct node *from = find_node(g, json_object_get(edge, "from")),
			  *to = find_node(g, json_object_get(edge, "to"));

	if (!from || !to || from->column == UNKNOWN || to->column == UNKNOWN)
		return;
	html_raw(h, "<line class=\"edge\"");
	attr(h, "x1", left_of(g, from) + BOX);
	attr(h, "y1", top_of(from) + ROW / 2 - 3);
	attr(h, "x2", left_of(g, to));
	attr(h, "y2", top_of(to) + ROW / 2 - 3);
	html_raw(h, "/>");
}

static const char *box_class(const json_t *node)
{
	const char *verdict = words_of(node, "verdict");

	return strcmp(verdict, "succeeded") == 0 ? "box-good" : *verdict ? "box-bad" : "box-open";
}

static void draw_node(struct html *h, const struct graph *g, const struct node *n)
{
	char name[CHARACTERS * 4];

	if (n->column == UNKNOWN)
		return;
	snprintf(name, sizeof name, "%.*s%s", CHARACTERS, words_of(n->json, "id"),
		 strlen(words_of(n->json, "id")) > CHARACTERS ? "…" : "");
	if (!g->one->is_report) {
		char number[16];

		snprintf(number, sizeof number, "%d",
			 (int)json_integer_value(json_object_get(n->json, "attempt")));
		html_raw(h, "<a tabindex=\"-1\"");
		html_href(h, "/a/", words_of(n->json, "id"), "attempt", number);
		html_raw(h, ">");
	}
	html_raw(h, "<rect rx=\"3\"");
	html_attr(h, "class", box_class(n->json));
	attr(h, "x", left_of(g, n));
	attr(h, "y", top_of(n));
	attr(h, "width", BOX);
	attr(h, "height", ROW - 6);
	html_raw(h, "/><text");
	attr(h, "x", left_of(g, n) + 8);
	attr(h, "y", top_of(n) + 16);
	html_raw(h, ">");
	html_text(h, name);
	html_raw(h, g->one->is_report ? "</text>" : "</text></a>");
}

static void draw_graph(struct html *h, struct graph *g)
{
	const json_t *edges = json_object_get(g->one->lineage, "edges"), *edge;
	int width = (g->last - g->first + 1) * (BOX + GAP) - GAP + 2, height = g->rows * ROW;
	char box[64];
	size_t i;

	snprintf(box, sizeof box, "0 0 %d %d", width, height);
	html_raw(h, "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Graph of ");
	html_text(h, words_of(g->one->analysis, "id"));
	html_raw(h, "\"><svg class=\"graph\" aria-hidden=\"true\"");
	html_attr(h, "viewBox", box);
	attr(h, "width", width);
	attr(h, "height", height);
	html_raw(h, ">");
	json_array_foreach (edges, i, edge)
		draw_edge(h, g, edge);
	for (i = 0; i < g->n; i++)
		draw_node(h, g, &g->nodes[i]);
	html_raw(h, "</svg></div>\n");
}

static void draw_end(struct html *h, const struct one *o, const json_t *end)
{
	json_int_t attempt = json_integer_value(json_object_get(end, "attempt"));

	one_link(h, o, words_of(end, "id"), json_object_get(end, "attempt"));
	if (attempt > 1)
		html_printf(h, " (attempt %" JSON_INTEGER_FORMAT ")", attempt);
}

static void draw_list(struct html *h, const struct one *o)
{
	const json_t *edges = json_object_get(o->lineage, "edges"), *edge;
	size_t i;

	html_raw(h, "<ul>\n");
	json_array_foreach (edges, i, edge) {
		const json_t *files = json_object_get(edge, "files");

		if (i == NODES_MAX)
			break;
		html_raw(h, "<li>");
		draw_end(h, o, json_object_get(edge, "from"));
		html_raw(h, " → ");
		draw_end(h, o, json_object_get(edge, "to"));
		if (json_is_integer(files))
			html_printf(h, ", %" JSON_INTEGER_FORMAT " file%s", json_integer_value(files),
				    json_integer_value(files) == 1 ? "" : "s");
		html_raw(h, "</li>\n");
	}
	html_raw(h, "</ul>\n");
	one_more(h,
		 json_array_size(edges) + (size_t)json_integer_value(json_object_get(o->lineage, "omitted")),
		 json_array_size(edges) < NODES_MAX ? json_array_size(edges) : NODES_MAX);
}

void one_draw_lineage(struct html *h, const struct one *o)
{
	_cleanup_free_ struct graph *g = NULL;

	if (!o->lineage || json_array_size(json_object_get(o->lineage, "edges")) == 0)
		return;
	g = calloc(1, sizeof *g);
	if (!g) {
		buffer_fail(&h->out);
		return;
	}
	g->one = o;
	graph_make(g);
	one_section(h, o, "lineage", "What came from what");
	draw_graph(h, g);
	draw_list(h, o);
	html_raw(h, "</section>\n");
}
