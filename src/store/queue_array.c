/*
 * Arrays: many analyses whose ids are one name, a dot and a number. There is no table of them: in the index of ids they lie
 * side by side, between "NAME." and "NAME/".
 */
#include "queue_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 10000 };

void array_range_of(const char *name, struct array_range *ret)
{
	snprintf(ret->from, sizeof ret->from, "%s.", name);
	snprintf(ret->to, sizeof ret->to, "%s/", name);
}

struct page {
	size_t prefix;
	char last[ID_ROOM];
	size_t n;
	task_fn fn;
	void *arg;
};

static int take_task(void *arg, const struct value *row, struct error *err)
{
	struct page *p = arg;
	const char *rest;

	value_to_fixed(&row[0], p->last, sizeof p->last);
	p->n++;
	rest = strlen(p->last) > p->prefix ? p->last + p->prefix : "";
	if (!*rest || rest[strspn(rest, "0123456789")])
		return 0;
	return p->fn(p->arg, p->last, strtoul(rest, NULL, 10), err);
}

int ledger_array_tasks(struct ledger *l, const char *array, bool and_ledger, task_fn fn, void *arg,
		       struct error *err)
{
	struct page p = {.fn = fn, .arg = arg};
	struct array_range range;
	int r = id_check(array, err);

	if (r < 0)
		return r;
	array_range_of(array, &range);
	p.prefix = strlen(range.from);
	do {
		struct value params[] = {value_text(p.n ? p.last : range.from), value_text(range.to),
					 value_integer(PAGE)};

		p.n = 0;
		r = ledger_run(l, and_ledger ? SQL_ARRAY_KNOWN : SQL_ARRAY_QUEUED, params, ARRAY_SIZE(params),
			       take_task, &p, err);
	} while (r == 0 && p.n == PAGE);
	return r;
}
