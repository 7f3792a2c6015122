#include "lineage.h"

#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "queue_private.h"
#include "text.h"

/* ---- successes ---- */

struct latest {
	const char *owner;
	int number;
};

static int take_latest(void *arg, const struct value *row, struct error *err UNUSED)
{
	struct latest *latest = arg;

	if (!latest->owner || strcmp(latest->owner, value_words(&row[1])) == 0)
		latest->number = (int)value_to_integer(&row[0], 0);
	return 0;
}

int ledger_success(struct ledger *l, const char *id, const char *owner, int *ret_number, struct error *err)
{
	struct latest latest = {.owner = owner};

	if (ledger_run(l, SQL_SUCCESS, LEDGER_VALUES(value_text(id)), take_latest, &latest, err) < 0)
		return -1;
	*ret_number = latest.number;
	return latest.number > 0;
}

struct taking {
	struct successes *to;
	const char *owner;
};

static int take_success(void *arg, const struct value *row, struct error *err)
{
	struct taking *taking = arg;
	struct latest latest = {.owner = taking->owner};
	struct success *more = ARRAY_ADD(taking->to->list, taking->to->count);

	if (!more)
		return error_memory(err);
	value_to_fixed(&row[0], more->id, sizeof more->id);
	(void)take_latest(&latest, row + 1, err);
	more->number = latest.number;
	return 0;
}

static int compare_successes(const void *a, const void *b)
{
	return strverscmp(((const struct success *)a)->id, ((const struct success *)b)->id);
}

void successes_done(struct successes *s)
{
	free(s->list);
	*s = (struct successes){0};
}

int ledger_successes(struct ledger *l, const char *array, const char *owner, struct successes *ret,
		     struct error *err)
{
	_cleanup_(successes_done) struct successes found = {0};
	struct taking taking = {&found, owner};
	struct array_range range = {0};

	array_range_of(array, &range);
	if (ledger_run(l, SQL_SUCCESSES,
		       LEDGER_VALUES(value_text(range.from), value_text(range.to), value_text(owner)),
		       take_success, &taking, err) < 0)
		return -1;
	if (found.count)
		qsort(found.list, found.count, sizeof *found.list, compare_successes);
	*ret = found;
	found = (struct successes){0};
	return 0;
}

/* ---- nodes ---- */

static int take_node(void *arg, const struct value *row, struct error *err UNUSED)
{
	struct lineage_node *node = arg;

	if (verdict_parse(value_words(&row[0]), &node->verdict) < 0)
		node->verdict = VERDICT_NONE;
	node->created = value_to_integer(&row[1], 0);
	node->is_removed = value_to_integer(&row[2], 0) != 0;
	node->is_known = true;
	return 0;
}

int ledger_lineage_node(struct ledger *l, const char *id, int attempt, struct lineage_node *ret,
			struct error *err)
{
	struct lineage_node node = {.attempt = attempt};

	snprintf(node.id, sizeof node.id, "%s", id);
	if (ledger_run(l, SQL_LINEAGE_NODE, LEDGER_VALUES(value_text(id), value_integer(attempt)), take_node,
		       &node, err) < 0)
		return -1;
	*ret = node;
	return 0;
}

int ledger_lineage_find(struct ledger *l, const char *id, int attempt, struct lineage_node *ret,
			struct error *err)
{
	int64_t latest = 0;

	if (id_check(id, err) < 0 || ledger_ask(l, SQL_LINEAGE_LATEST, &latest, err, value_text(id)) < 0)
		return -1;
	if (latest == 0)
		return error_set(err, ERROR_NOT_FOUND, "'%s' has no attempt in the ledger %s", id,
				 l->backend->name);
	if (ledger_lineage_node(l, id, attempt > 0 ? attempt : (int)latest, ret, err) < 0)
		return -1;
	if (!ret->is_known)
		return error_set(err, ERROR_NOT_FOUND, "analysis '%s' has no attempt %d: its latest is %d",
				 id, attempt, (int)latest);
	return 0;
}

/* ---- links ---- */

void lineage_links_done(struct lineage_links *links)
{
	free(links->list);
	*links = (struct lineage_links){0};
}

static int take_link(void *arg, const struct value *row, struct error *err)
{
	struct lineage_links *links = arg;
	struct lineage_link *more = ARRAY_ADD(links->list, links->count);

	if (!more)
		return error_memory(err);
	value_to_fixed(&row[0], more->id, sizeof more->id);
	more->attempt = (int)value_to_integer(&row[1], 0);
	more->files = value_to_integer(&row[2], -1);
	return 0;
}

static int compare_links(const void *a, const void *b)
{
	const struct lineage_link *x = a, *y = b;
	int r = strverscmp(x->id, y->id);

	return r ? r : (x->attempt > y->attempt) - (x->attempt < y->attempt);
}

int ledger_lineage_links(struct ledger *l, const char *id, int attempt, bool down, struct lineage_links *ret,
			 struct error *err)
{
	_cleanup_(lineage_links_done) struct lineage_links links = {0};

	if (ledger_run(l, down ? SQL_LINEAGE_DOWN : SQL_LINEAGE_UP,
		       LEDGER_VALUES(value_text(id), value_integer(attempt)), take_link, &links, err) < 0)
		return -1;
	links.count = array_sort_distinct(links.list, links.count, sizeof *links.list, compare_links);
	*ret = links;
	links = (struct lineage_links){0};
	return 0;
}
