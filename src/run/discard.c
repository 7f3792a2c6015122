/*
 * `rm` and `prune`: which analyses are meant, which of them have something on this host that has not ended, and then the ledger's part.
 */
#include "private.h"
#include "queue.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "output_glob.h"
#include "text.h"

/* ---- which are meant ---- */

struct meant {
	struct ledger *ledger;
	const char *pattern;
	json_t *ids;  /* {id: true} */
	size_t found; /* by the word at hand */
};

static int add_id(struct meant *m, const char *id, struct error *err)
{
	m->found++;
	return json_object_set_new(m->ids, id, json_true()) < 0 ? error_memory(err) : 0;
}

static int add_listed(void *arg, const struct attempt *a, struct error *err)
{
	return add_id(arg, a->id, err);
}

static int add_queued(void *arg, const struct queued *q, struct error *err)
{
	struct meant *m = arg;

	return m->pattern && !output_glob_match(m->pattern, q->id) ? 0 : add_id(m, q->id, err);
}

static int add_task(void *arg, const char *id, unsigned long number UNUSED, struct error *err)
{
	return add_id(arg, id, err);
}

static int find_pattern(struct meant *m, const char *pattern, struct error *err)
{
	size_t n = strcspn(pattern, "*?[");
	_cleanup_free_ char *prefix = strndup(pattern, n);
	const struct ledger_filter f = {.prefix = prefix, .pattern = pattern};

	if (!prefix)
		return error_memory(err);
	m->pattern = pattern;
	if (ledger_list(m->ledger, &f, add_listed, m, err) < 0 ||
	    ledger_queue_list(m->ledger, -1, prefix, 0, add_queued, m, err) < 0)
		return -1;
	m->pattern = NULL;
	if (m->found)
		return 0;
	return error_set(err, ERROR_NOT_FOUND, "nothing in the ledger has an id like '%s'",
			 SHOWN(160, pattern));
}

/* An id that nobody has may be the name of an array; else whoever looks for it says that it is not there. */
static int find_id(struct meant *m, const char *id, struct error *err)
{
	char *const ids[] = {(char *)id, NULL};

	if (id_check(id, err) < 0 || ledger_queue_look(m->ledger, ids, add_queued, m, err) < 0 ||
	    ledger_ended_look(m->ledger, ids, add_queued, m, err) < 0)
		return -1;
	if (!m->found && ledger_array_tasks(m->ledger, id, true, add_task, m, err) < 0)
		return -1;
	return m->found ? 0 : add_id(m, id, err);
}

static int text_compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int find_all(struct ledger *l, char *const *words, char ***ret, struct error *err)
{
	json_auto_t *ids = json_object();
	struct meant m = {.ledger = l, .ids = ids};
	_cleanup_strv_ char **list = NULL;
	size_t n = 0;
	const char *id;
	json_t *ignored;

	for (; *words; words++) {
		m.found = 0;
		if ((strpbrk(*words, "*?[") ? find_pattern : find_id)(&m, *words, err) < 0)
			return -1;
	}
	json_object_foreach (ids, id, ignored)
		if (strv_push(&list, &n, id, err) < 0)
			return -1;
	if (n)
		qsort(list, n, sizeof *list, text_compare);
	*ret = TAKE_PTR(list);
	return 0;
}

/* ---- what is here ---- */

struct here {
	const char *url;
	json_t *ids;
};

static int note_here(void *arg, const struct live *live)
{
	const struct here *here = arg;

	/* A kept workspace is only files; what belongs to another ledger is none of this one's business. */
	if (live->kept)
		return 0;
	if (live->ledger && ledger_url_same(live->ledger, here->url) == 0)
		return 0;
	return json_object_set_new(here->ids, live->id, json_true());
}

static bool is_here(void *arg, const char *id)
{
	return json_object_get(((struct here *)arg)->ids, id) != NULL;
}

int hood_remove(struct hood *h, char *const *words, const struct remove_order *o, struct remove_report *ret,
		struct error *err)
{
	struct remove_order order = *o;
	json_auto_t *ids = json_object();
	struct here here = {.url = h->ledger_url, .ids = ids};
	_cleanup_strv_ char **named = NULL;
	struct error later = ERROR_INIT;
	struct ledger *ledger;
	uint64_t objects = 0;
	int r;

	*ret = (struct remove_report){0};
	if ((r = hood_ledger(h, LEDGER_CREATE, &ledger, err)) < 0)
		return r;
	r = hood_live_each(h, note_here, &here, err);
	if (r < 0)
		return err->kind == ERROR_NONE ? error_memory(err) : r;
	if (words && (r = find_all(ledger, words, &named, err)) < 0)
		return r;
	order.ids = named;
	order.arg = &here;
	order.is_busy = is_here;
	r = ledger_remove(ledger, &order, ret, err);
	if (r < 0 || o->dry_run)
		return r;
	/* What cannot be swept now is swept by the next gc, which says why. */
	if (ledger_sweep_loose(ledger, &ret->contents, &ret->freed, &later) == 0)
		(void)ledger_sweep(ledger, &objects, &later);
	return 0;
}

/* One rule after the other: what one has removed, the next does not find. */
int hood_retain(struct hood *h, bool dry_run, struct gc_report *ret, struct error *err)
{
	for (size_t i = 0; i < h->config.n_retain; i++) {
		const struct retain_rule *rule = &h->config.retain[i];
		const struct remove_order order = {.before = clock_utc() - (int64_t)rule->older_ns,
						   .verdicts = rule->verdicts,
						   .keeps_outputs = rule->keeps_outputs,
						   .dry_run = dry_run};
		struct remove_report report;
		int r;

		if (order.before <= 0)
			continue;
		r = hood_remove(h, NULL, &order, &report, err);
		if (r < 0)
			return error_prefix(err, r, "cannot do what 'retain' says");
		ret->pruned += report.attempts;
	}
	return 0;
}
