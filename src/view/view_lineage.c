/*
 * What came from what: `show --lineage`. From one attempt up to all that it came from, and down to all that came from it;
 * never sideways. Each attempt is there once, however many ways lead to it.
 */
#include "view.h"

#include <stdio.h>
#include <string.h>

#include "array.h"
#include "member.h"

/* What a page has room for, and what nobody's memory feels. */
const struct lineage_bounds lineage_page = {.depth = 8, .width = 10, .nodes = 200};
const struct lineage_bounds lineage_whole = {.depth = 1000, .width = 10000, .nodes = 10000};

void lineage_view_done(struct lineage_view *v)
{
	free(v->nodes);
	free(v->edges);
	lookup_done(&v->names);
	*v = (struct lineage_view){0};
}

/* ---- the graph ---- */

enum { KEY_ROOM = ID_ROOM + 16 };

static const char *key_of(const char *id, int attempt, char out[KEY_ROOM])
{
	snprintf(out, KEY_ROOM, "%s/%d", id, attempt);
	return out;
}

static int is_node(const void *arg, size_t i, const char *key)
{
	const struct lineage_point *p = &((const struct lineage_view *)arg)->nodes[i];
	char own[KEY_ROOM];

	return strcmp(key_of(p->node.id, p->node.attempt, own), key) == 0;
}

static int add_node(struct lineage_view *v, const struct lineage_node *node, size_t depth, struct error *err)
{
	struct lineage_point *more = ARRAY_ADD(v->nodes, v->n_nodes);
	char key[KEY_ROOM];

	if (!more || lookup_add(&v->names, key_of(node->id, node->attempt, key), v->n_nodes - 1) < 0)
		return error_memory(err);
	*more = (struct lineage_point){.node = *node, .depth = depth};
	return 0;
}

/* SIZE_MAX in *ret: there are too many. */
static int find_node(struct lineage_view *v, struct ledger *l, const struct lineage_link *link, size_t depth,
		     const struct lineage_bounds *bounds, size_t *ret, struct error *err)
{
	struct lineage_node node;
	char key[KEY_ROOM];

	*ret = lookup_find(&v->names, key_of(link->id, link->attempt, key), is_node, v);
	if (*ret != SIZE_MAX || v->n_nodes >= bounds->nodes)
		return 0;
	if (ledger_lineage_node(l, link->id, link->attempt, &node, err) < 0 ||
	    add_node(v, &node, depth, err) < 0)
		return -1;
	*ret = v->n_nodes - 1;
	return 0;
}

static int add_edge(struct lineage_view *v, size_t at, size_t other, bool down, int64_t files,
		    struct error *err)
{
	struct lineage_edge *more = ARRAY_ADD(v->edges, v->n_edges);

	if (!more)
		return error_memory(err);
	*more = (struct lineage_edge){.from = down ? at : other, .to = down ? other : at, .files = files};
	return 0;
}

/* The links of one, in one direction. */
static int expand(struct lineage_view *v, struct ledger *l, size_t at, bool down,
		  const struct lineage_bounds *bounds, struct error *err)
{
	_cleanup_(lineage_links_done) struct lineage_links links = {0};
	size_t depth = v->nodes[at].depth, width = depth < bounds->depth ? bounds->width : 0, n = 0;

	if (ledger_lineage_links(l, v->nodes[at].node.id, v->nodes[at].node.attempt, down, &links, err) < 0)
		return -1;
	for (; n < links.count && n < width; n++) {
		size_t other;

		if (find_node(v, l, &links.list[n], depth + 1, bounds, &other, err) < 0)
			return -1;
		if (other == SIZE_MAX)
			break;
		if (add_edge(v, at, other, down, links.list[n].files, err) < 0)
			return -1;
	}
	v->nodes[at].more[down] = links.count - n;
	v->omitted += links.count - n;
	return 0;
}

/* Those that are found are behind: each is looked at once. */
static int walk(struct lineage_view *v, struct ledger *l, bool down, const struct lineage_bounds *bounds,
		struct error *err)
{
	size_t next = v->n_nodes;

	if (expand(v, l, 0, down, bounds, err) < 0)
		return -1;
	for (; next < v->n_nodes; next++)
		if (expand(v, l, next, down, bounds, err) < 0)
			return -1;
	return 0;
}

int lineage_view_load(struct lineage_view *v, struct hood *h, const char *id, int attempt,
		      const struct lineage_bounds *bounds, struct error *err)
{
	struct lineage_node root;
	struct ledger *l;

	if (hood_ledger(h, LEDGER_CREATE, &l, err) < 0 ||
	    ledger_lineage_find(l, id, attempt, &root, err) < 0 || add_node(v, &root, 0, err) < 0 ||
	    walk(v, l, false, bounds, err) < 0)
		return -1;
	return walk(v, l, true, bounds, err);
}

/* ---- as JSON ---- */

static json_t *node_json(const struct lineage_point *p)
{
	const struct lineage_node *n = &p->node;
	const struct json_entry entries[] = {
		{"id", json_string(n->id)},
		{"attempt", json_integer(n->attempt)},
		{"verdict", n->verdict == VERDICT_NONE ? json_null() : json_string(verdict_name(n->verdict))},
		{"created", json_instant(n->created)},
		{"known", json_boolean(n->is_known)},
		{"removed", json_boolean(n->is_removed)},
	};

	return json_from_entries(entries, ARRAY_SIZE(entries));
}

static json_t *end_json(const struct lineage_view *v, size_t at)
{
	return json_pack("{s:s, s:i}", "id", v->nodes[at].node.id, "attempt", v->nodes[at].node.attempt);
}

json_t *lineage_view_json(const struct lineage_view *v)
{
	json_t *nodes = json_array(), *edges = json_array();

	for (size_t i = 0; i < v->n_nodes; i++)
		json_push(&nodes, node_json(&v->nodes[i]));
	for (size_t i = 0; i < v->n_edges; i++) {
		const struct lineage_edge *e = &v->edges[i];
		const struct json_entry entries[] = {
			{"from", end_json(v, e->from)},
			{"to", end_json(v, e->to)},
			{"files", e->files < 0 ? json_null() : json_integer(e->files)},
		};

		json_push(&edges, json_from_entries(entries, ARRAY_SIZE(entries)));
	}
	const struct json_entry whole[] = {
		{"id", json_string(v->nodes[0].node.id)},
		{"attempt", json_integer(v->nodes[0].node.attempt)},
		{"nodes", nodes},
		{"edges", edges},
		{"omitted", json_integer((json_int_t)v->omitted)},
	};

	return json_from_entries(whole, ARRAY_SIZE(whole));
}

int view_lineage(struct hood *h, const char *id, int attempt, json_t **ret, struct error *err)
{
	_cleanup_(lineage_view_done) struct lineage_view v = {0};

	if (lineage_view_load(&v, h, id, attempt, &lineage_whole, err) < 0)
		return -1;
	*ret = lineage_view_json(&v);
	return *ret ? 0 : error_memory(err);
}

/* ---- as a tree ---- */

struct drawing {
	FILE *to;
	const struct look *look;
	struct lineage_view *v;
	bool down;
	char indent[3 * 16 + 1]; /* more than lineage_page is deep */
};

static void put_node(const struct drawing *d, const struct lineage_node *n)
{
	fprintf(d->to, "%s%s%s, attempt %d", print_style(d->look->colour, STYLE_BOLD), n->id,
		print_style(d->look->colour, STYLE_RESET), n->attempt);
	if (n->verdict != VERDICT_NONE)
		fprintf(d->to, ": %s%s%s", print_style(d->look->colour, view_verdict_style(n->verdict)),
			verdict_name(n->verdict), print_style(d->look->colour, STYLE_RESET));
	if (n->is_removed)
		fprintf(d->to, " (removed)");
	else if (!n->is_known)
		fprintf(d->to, " (not in the ledger, or not yours)");
}

static void draw_below(struct drawing *d, size_t at);

static void draw_link(struct drawing *d, const struct lineage_edge *e, bool is_last)
{
	size_t other = d->down ? e->to : e->from, indent = strlen(d->indent);
	struct lineage_point *p = &d->v->nodes[other];

	fprintf(d->to, "%s%s", d->indent, is_last ? "`- " : "|- ");
	put_node(d, &p->node);
	if (e->files >= 0)
		fprintf(d->to, ", %lld file%s", (long long)e->files, e->files == 1 ? "" : "s");
	if (p->is_drawn) {
		fprintf(d->to, ", see above\n");
		return;
	}
	fprintf(d->to, "\n");
	p->is_drawn = true;
	snprintf(d->indent + indent, sizeof d->indent - indent, "%s", is_last ? "   " : "|  ");
	draw_below(d, other);
	d->indent[indent] = 0;
}

static void draw_below(struct drawing *d, size_t at)
{
	const struct lineage_view *v = d->v;
	const struct lineage_edge *before = NULL;
	size_t more = v->nodes[at].more[d->down];

	for (size_t i = 0; i < v->n_edges; i++) {
		if ((d->down ? v->edges[i].from : v->edges[i].to) != at)
			continue;
		if (before)
			draw_link(d, before, false);
		before = &v->edges[i];
	}
	if (before)
		draw_link(d, before, more == 0);
	if (more)
		fprintf(d->to, "%s`- ... and %zu more\n", d->indent, more);
}

static bool has_any(const struct lineage_view *v, bool down)
{
	for (size_t i = 0; i < v->n_edges; i++)
		if ((down ? v->edges[i].from : v->edges[i].to) == 0)
			return true;
	return v->nodes[0].more[down] > 0;
}

void lineage_view_draw(FILE *to, const struct look *look, struct lineage_view *v)
{
	static const char *const titles[][2] = {{"came from", "came from no other analysis"},
						{"went into", "went into no other analysis"}};
	struct drawing d = {.to = to, .look = look, .v = v};

	put_node(&d, &v->nodes[0].node);
	fprintf(to, "\n");
	for (int down = 0; down < 2; down++) {
		d.down = down;
		fprintf(to, "%s\n", titles[down][!has_any(v, down)]);
		draw_below(&d, 0);
	}
}
