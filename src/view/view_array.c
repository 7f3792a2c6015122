/*
 * An array as a whole: how many of its tasks are in which state, with which verdict, and the first that went wrong.
 */
#include "view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "member.h"
#include "text.h"

struct task {
	unsigned long number;
	bool is_known;
	enum job_state state;
	enum verdict verdict;
};

struct tasks_seen {
	const char *name;
	struct task *list;
	size_t n;
};

static int note_task(void *arg, const char *id UNUSED, unsigned long number, struct error *err)
{
	struct tasks_seen *s = arg;
	struct task *t = ARRAY_ADD(s->list, s->n);

	if (!t)
		return error_memory(err);
	t->number = number;
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct task *x = a, *y = b;

	return (x->number > y->number) - (x->number < y->number);
}

static struct task *task_of(const struct tasks_seen *s, const char *id)
{
	struct task wanted = {.number = strtoul(id + strlen(s->name) + 1, NULL, 10)};

	return bsearch(&wanted, s->list, s->n, sizeof *s->list, compare);
}

static int note_state(void *arg, const struct queued *q, struct error *err UNUSED)
{
	struct task *t = task_of(arg, q->id);

	if (t)
		*t = (struct task){t->number, true, q->state, q->verdict};
	return 0;
}

/* Those that the queue knows, or of which only the ledger has an attempt. */
static int look(struct tasks_seen *s, struct ledger *l, bool at_queue, struct error *err)
{
	_cleanup_strv_ char **ids = NULL;
	size_t n = 0;
	char id[TASK_ID_ROOM];

	for (size_t i = 0; i < s->n; i++) {
		snprintf(id, sizeof id, "%s.%lu", s->name, s->list[i].number);
		if (!s->list[i].is_known && strv_push(&ids, &n, id, err) < 0)
			return -1;
	}
	if (n == 0)
		return 0;
	return (at_queue ? ledger_queue_look : ledger_ended_look)(l, ids, note_state, s, err);
}

static int count(struct array_view *v, const struct tasks_seen *s, char ***failures, struct error *err)
{
	char id[TASK_ID_ROOM];

	for (size_t i = 0; i < s->n; i++) {
		const struct task *t = &s->list[i];
		bool has_ended = t->state == JOB_FINISHED || t->state == JOB_CANCELLED;

		/* Between two looks it may have gone. */
		if (!t->is_known)
			continue;
		v->tasks++;
		v->states[t->state]++;
		v->verdicts[t->verdict] += has_ended;
		if (!has_ended || t->verdict == VERDICT_SUCCEEDED || v->wrong++ >= ARRAY_FAILURES)
			continue;
		snprintf(id, sizeof id, "%s.%lu", s->name, t->number);
		if (strv_append(failures, id, err) < 0)
			return -1;
		memcpy(v->failures[v->n_failures++].id, id, sizeof id);
	}
	return 0;
}

static int note_failure(void *arg, const struct queued *q, struct error *err)
{
	struct array_view *v = arg;

	for (size_t i = 0; i < v->n_failures; i++) {
		struct array_failure *f = &v->failures[i];

		if (strcmp(f->id, q->id) != 0 || f->verdict != VERDICT_NONE)
			continue;
		f->verdict = q->verdict;
		f->status = q->status;
		if (q->reason && text_set(&f->reason, q->reason, err) < 0)
			return -1;
	}
	return 0;
}

void array_view_done(struct array_view *v)
{
	for (size_t i = 0; i < v->n_failures; i++)
		free(v->failures[i].reason);
}

static int load(struct array_view *v, struct tasks_seen *s, struct ledger *l, struct error *err)
{
	_cleanup_strv_ char **failures = NULL;
	int r;

	qsort(s->list, s->n, sizeof *s->list, compare);
	if ((r = look(s, l, true, err)) < 0 || (r = look(s, l, false, err)) < 0 ||
	    (r = count(v, s, &failures, err)) < 0 || !failures)
		return r;
	/* What the ledger has of an attempt says more than the queue's row. */
	if ((r = ledger_ended_look(l, failures, note_failure, v, err)) < 0)
		return r;
	return ledger_queue_look(l, failures, note_failure, v, err);
}

int array_view_load(struct array_view *v, struct hood *h, const char *name, struct error *err)
{
	struct tasks_seen s = {.name = name};
	struct ledger *ledger;
	int r = id_check(name, err);

	if (r == 0)
		r = hood_ledger(h, LEDGER_CREATE, &ledger, err);
	if (r == 0)
		r = ledger_array_tasks(ledger, name, true, note_task, &s, err);
	if (r == 0)
		r = s.n == 0 ? 1 : load(v, &s, ledger, err);
	free(s.list);
	return r;
}

/* ---- JSON ---- */

static json_t *states_json(const struct array_view *v)
{
	json_auto_t *json = json_object();

	for (int i = 0; i < JOB_STATES; i++)
		if (json_object_set_new(json, job_state_name((enum job_state)i),
					json_integer((json_int_t)v->states[i])) < 0)
			return NULL;
	return json_incref(json);
}

static json_t *verdicts_json(const struct array_view *v)
{
	json_auto_t *json = json_object();

	for (int i = VERDICT_NONE + 1; i < VERDICT_COUNT; i++)
		if (v->verdicts[i] && json_object_set_new(json, verdict_name((enum verdict)i),
							  json_integer((json_int_t)v->verdicts[i])) < 0)
			return NULL;
	return json_incref(json);
}

static json_t *failures_json(const struct array_view *v)
{
	json_auto_t *list = json_array();

	for (size_t i = 0; i < v->n_failures; i++) {
		const struct array_failure *f = &v->failures[i];
		const struct json_entry entries[] = {
			{"id", json_string(f->id)},
			{"verdict", json_string(verdict_name(f->verdict))},
			{"status", json_integer(f->status)},
			{"reason", json_shown(f->reason)},
		};

		if (json_array_append_new(list, json_from_entries(entries, ARRAY_SIZE(entries))) < 0)
			return NULL;
	}
	return json_incref(list);
}

json_t *array_view_json(const struct array_view *v, const char *name)
{
	const struct json_entry entries[] = {
		{"array", json_string(name)},
		{"tasks", json_integer((json_int_t)v->tasks)},
		{"states", states_json(v)},
		{"verdicts", verdicts_json(v)},
		{"failures", failures_json(v)},
		{"failures_more", json_integer((json_int_t)(v->wrong - v->n_failures))},
	};

	return json_from_entries(entries, ARRAY_SIZE(entries));
}
