#include "queue_line.h"

#include <assert.h>
#include <string.h>

#include "array.h"

void line_done(struct line *line)
{
	for (size_t i = 0; i < line->n; i++)
		line_done(&line->lines[i]);
	free(line->lines);
	free(line->groups);
	free(line->name);
	*line = (struct line){0};
}

/* A window of owners, or of submitters of one. */
struct window {
	struct line *of;
	size_t taken;
};

static int take_line(void *arg, const struct value *row, struct error *err)
{
	struct window *w = arg;
	struct line *of = w->of, *more;
	_cleanup_free_ char *name = NULL;

	w->taken++;
	if (value_to_text(&row[0], &name, err) < 0)
		return -1;
	/* They stand in a circle. */
	if (!name || of->is_whole || (of->n && strcmp(of->lines[0].name, name) == 0)) {
		of->is_whole = true;
		return 0;
	}
	more = ARRAY_ADD(of->lines, of->n);
	if (!more)
		return error_memory(err);
	more->name = TAKE_PTR(name);
	more->share = (struct share){value_to_integer(&row[1], 0), value_to_integer(&row[2], 0)};
	return 0;
}

/* The next few. owner: NULL for owners. */
static int look_further(struct ledger *l, struct line *of, const char *owner, struct error *err)
{
	struct window w = {.of = of};
	struct value after = value_text(of->n ? of->lines[of->n - 1].name : NULL);
	struct value params[] = {after, after};
	int r;

	if (owner)
		params[0] = value_text(owner);
	r = ledger_run(l, owner ? SQL_CLAIM_SUBMITTERS : SQL_CLAIM_OWNERS, params, owner ? 2 : 1, take_line,
		       &w, err);
	if (w.taken < LINE_WINDOW)
		of->is_whole = true;
	return r;
}

static int take_group(void *arg, const struct value *row, struct error *err)
{
	struct line *s = arg;
	struct group *g = ARRAY_ADD(s->groups, s->n_groups);

	if (!g)
		return error_memory(err);
	*g = (struct group){value_to_integer(&row[0], 0), value_to_integer(&row[1], 0),
			    value_to_integer(&row[2], 0), value_to_integer(&row[3], 0)};
	return 0;
}

static struct value at_most(uint64_t total)
{
	return value_integer(total && total < INT64_MAX ? (int64_t)total : INT64_MAX);
}

static int look_groups(struct ledger *l, const char *owner, struct line *s, const struct line_order *o,
		       struct error *err)
{
	struct value params[] = {value_text(owner), value_text(s->name), at_most(o->memory_total),
				 at_most(o->cpus_total)};

	s->is_fresh = true;
	return ledger_run(l, SQL_CLAIM_GROUPS, params, ARRAY_SIZE(params), take_group, s, err);
}

static int share_compare(const struct share *a, const struct share *b)
{
	if (a->running != b->running)
		return a->running < b->running ? -1 : 1;
	return (a->served > b->served) - (a->served < b->served);
}

static struct line *choose(const struct line *of, int cap)
{
	struct line *best = NULL;

	for (size_t i = 0; i < of->n; i++) {
		struct line *line = &of->lines[i];

		if (line->is_empty || (cap > 0 && line->share.running >= cap))
			continue;
		if (!best || share_compare(&line->share, &best->share) < 0)
			best = line;
	}
	return best;
}

/* The one whose turn it is, among those that are known, or further on. */
static int choose_further(struct ledger *l, struct line *of, const char *owner, int cap, struct line **ret,
			  struct error *err)
{
	while (!(*ret = choose(of, cap)) && !of->is_whole)
		if (look_further(l, of, owner, err) < 0)
			return -1;
	return 0;
}

/* NULL: none of his has anything for us. */
static int next_submitter(struct ledger *l, struct line *owner, const struct line_order *o, struct line **ret,
			  struct error *err)
{
	for (;;) {
		if (choose_further(l, owner, owner->name, 0, ret, err) < 0)
			return -1;
		if (!*ret || (*ret)->n_groups)
			return 0;
		if (look_groups(l, owner->name, *ret, o, err) < 0)
			return -1;
		(*ret)->is_empty = (*ret)->n_groups == 0;
	}
}

int line_next(struct ledger *l, struct line *root, const struct line_order *o, struct line **ret_owner,
	      struct line **ret_submitter, struct error *err)
{
	for (;;) {
		*ret_submitter = NULL;
		if (choose_further(l, root, NULL, o->cap, ret_owner, err) < 0)
			return -1;
		if (!*ret_owner)
			return 0;
		if (next_submitter(l, *ret_owner, o, ret_submitter, err) < 0)
			return -1;
		if (*ret_submitter)
			return 0;
		(*ret_owner)->is_empty = true;
	}
}

struct group *line_group(const struct line *submitter)
{
	struct group *best = NULL;

	for (size_t i = 0; i < submitter->n_groups; i++) {
		struct group *g = &submitter->groups[i];

		if (!best || g->priority > best->priority ||
		    (g->priority == best->priority && g->seq < best->seq))
			best = g;
	}
	return best;
}

void line_drop(struct line *submitter, const struct group *g)
{
	assert(submitter->n_groups > 0);
	submitter->groups[g - submitter->groups] = submitter->groups[--submitter->n_groups];
	if (submitter->n_groups == 0 && submitter->is_fresh)
		submitter->is_empty = true;
}
