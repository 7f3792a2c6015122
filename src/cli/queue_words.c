#include "queue_words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct words {
	char **list;
	size_t n, room;
	json_t *added; /* NULL: none can be there twice */
};

struct tasks {
	unsigned long *numbers;
	size_t n, room;
};

static int note_known(void *known, const struct queued *q, struct error *err)
{
	return json_object_set_new(known, q->id, json_true()) < 0 ? error_memory(err) : 0;
}

static int note_task(void *arg, const char *id UNUSED, unsigned long number, struct error *err)
{
	struct tasks *t = arg;

	if (t->n == t->room) {
		size_t room = t->room ? 2 * t->room : 64;
		unsigned long *more = reallocarray(t->numbers, room, sizeof *more);

		if (!more)
			return error_memory(err);
		t->numbers = more;
		t->room = room;
	}
	t->numbers[t->n++] = number;
	return 0;
}

static int compare(const void *a, const void *b)
{
	unsigned long x = *(const unsigned long *)a, y = *(const unsigned long *)b;

	return x < y ? -1 : x > y;
}

static int add_once(struct words *w, const char *id, struct error *err)
{
	if (w->added && json_object_get(w->added, id))
		return 0;
	if (w->added && json_object_set_new(w->added, id, json_true()) < 0)
		return error_memory(err);
	if (w->n + 1 >= w->room) {
		size_t room = w->room ? 2 * w->room : 16;
		char **more = reallocarray(w->list, room, sizeof *more);

		if (!more)
			return error_memory(err);
		w->list = more;
		w->room = room;
	}
	w->list[w->n] = strdup(id);
	if (!w->list[w->n])
		return error_memory(err);
	w->list[++w->n] = NULL;
	return 0;
}

static int add_tasks(struct ledger *l, const char *array, bool and_ledger, struct words *w, struct error *err)
{
	struct tasks t = {0};
	char id[ID_ROOM + 32];
	int r = ledger_array_tasks(l, array, and_ledger, note_task, &t, err);

	if (t.n > 0)
		qsort(t.numbers, t.n, sizeof *t.numbers, compare);
	for (size_t i = 0; r == 0 && i < t.n; i++) {
		snprintf(id, sizeof id, "%s.%lu", array, t.numbers[i]);
		r = add_once(w, id, err);
	}
	/* Not an array either: whoever looks for it says that it is not there. */
	if (r == 0 && t.n == 0)
		r = add_once(w, array, err);
	free(t.numbers);
	return r;
}

int queue_ids(struct cli *cli, struct ledger *l, char *const *words, int n, bool and_ledger, char ***ret,
	      struct error *err)
{
	json_auto_t *known = json_object(), *added = n > 1 ? json_object() : NULL;
	struct words w = {.added = added};
	int r = 0;

	for (int i = 0; r == 0 && i < n; i++)
		r = n == 1 ? cli_take_id(cli, words[i], err) : id_check(words[i], err);
	if (r == 0)
		r = ledger_queue_look(l, words, note_known, known, err);
	if (r == 0 && and_ledger)
		r = ledger_ended_look(l, words, note_known, known, err);
	for (int i = 0; r == 0 && i < n; i++)
		r = json_object_get(known, words[i]) ? add_once(&w, words[i], err)
						     : add_tasks(l, words[i], and_ledger, &w, err);
	if (r == 0)
		*ret = w.list;
	else
		strv_free(w.list);
	return r;
}
