#include "tasks.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "text.h"

/* Digits, and the place behind them in *at. False: there are none, or it is more than a task can be. */
static bool number_take(const char **at, unsigned *ret)
{
	const char *p = *at;
	unsigned long n = 0;

	for (; *p >= '0' && *p <= '9' && n < 1UL << 31; p++)
		n = n * 10 + (unsigned long)(*p - '0');
	if (p == *at || n >= 1UL << 31)
		return false;
	*at = p;
	*ret = (unsigned)n;
	return true;
}

struct span {
	unsigned first, last, step;
};

/* "7", "1-99", "1-99:2" */
static bool span_take(const char **at, struct span *ret)
{
	if (!number_take(at, &ret->first))
		return false;
	ret->last = ret->first;
	ret->step = 1;
	if (**at != '-')
		return true;
	++*at;
	if (!number_take(at, &ret->last) || ret->last < ret->first)
		return false;
	if (**at != ':')
		return true;
	++*at;
	return number_take(at, &ret->step) && ret->step > 0;
}

static int span_add(struct tasks *t, const struct span *s, struct error *err)
{
	size_t count = (s->last - s->first) / s->step + 1;

	if (count > TASKS_MAX - t->count)
		return error_set(err, ERROR_USAGE, "--array has more than %d tasks: submit it in parts",
				 TASKS_MAX);
	for (size_t i = 0; i < count; i++) {
		unsigned *task = ARRAY_ADD(t->list, t->count);

		if (!task)
			return error_memory(err);
		*task = s->first + (unsigned)i * s->step;
	}
	return 0;
}

static int compare(const void *a, const void *b)
{
	unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;

	return (x > y) - (x < y);
}

static int refuse(const char *text, struct error *err)
{
	return error_set(err, ERROR_USAGE, "--array wants numbers like 1-1000, 1,3,5 or 1-99:2, not '%s'",
			 SHOWN(64, text));
}

int tasks_parse(const char *text, struct tasks *ret, struct error *err)
{
	_cleanup_tasks_ struct tasks t = {0};
	const char *at = text;

	for (;; at++) {
		struct span s;

		if (!span_take(&at, &s) || (*at && *at != ','))
			return refuse(text, err);
		if (span_add(&t, &s, err) < 0)
			return -1;
		if (!*at)
			break;
	}
	qsort(t.list, t.count, sizeof *t.list, compare);
	for (size_t i = 1; i < t.count; i++)
		if (t.list[i] == t.list[i - 1])
			return error_set(err, ERROR_USAGE, "--array has the task %u twice, in '%s'",
					 t.list[i], SHOWN(64, text));
	*ret = t;
	t = (struct tasks){0};
	return 0;
}

void tasks_done(struct tasks *t)
{
	free(t->list);
	*t = (struct tasks){0};
}
