#include "queue_words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tasks {
	const char *array;
	long *numbers;
	size_t n;
};

static int note_known(void *known, const struct queued *q, struct error *err)
{
	return json_object_set_new(known, q->id, json_true()) < 0 ? error_memory(err) : 0;
}

/* "sweep.17" of "sweep" */
static int note_task(void *arg, const struct queued *q, struct error *err)
{
	struct tasks *t = arg;
	const char *rest = q->id + strlen(t->array) + 1;
	long *more;

	if (!*rest || rest[strspn(rest, "0123456789")])
		return 0;
	more = reallocarray(t->numbers, t->n + 1, sizeof *more);
	if (!more)
		return error_memory(err);
	t->numbers = more;
	t->numbers[t->n++] = strtol(rest, NULL, 10);
	return 0;
}

static int compare(const void *a, const void *b)
{
	long x = *(const long *)a, y = *(const long *)b;

	return x < y ? -1 : x > y;
}

static int add_once(json_t *added, char ***ids, const char *id, struct error *err)
{
	if (json_object_get(added, id))
		return 0;
	return json_object_set_new(added, id, json_true()) < 0 || strv_append(ids, id) < 0 ? error_memory(err)
											   : 0;
}

static int add_tasks(struct ledger *l, const char *array, json_t *added, char ***ids, struct error *err)
{
	struct tasks t = {.array = array};
	char id[ID_ROOM + 16];
	int r;

	snprintf(id, sizeof id, "%s.", array);
	r = ledger_queue_list(l, -1, id, 0, note_task, &t, err);
	if (t.n > 0)
		qsort(t.numbers, t.n, sizeof *t.numbers, compare);
	for (size_t i = 0; r == 0 && i < t.n; i++) {
		snprintf(id, sizeof id, "%s.%ld", array, t.numbers[i]);
		r = add_once(added, ids, id, err);
	}
	/* Not an array either: whoever looks for it says that it is not there. */
	if (r == 0 && t.n == 0)
		r = add_once(added, ids, array, err);
	free(t.numbers);
	return r;
}

int queue_ids(struct cli *cli, struct ledger *l, char *const *words, int n, char ***ret, struct error *err)
{
	json_auto_t *known = json_object(), *added = json_object();
	_cleanup_strv_ char **ids = NULL;
	int r = 0;

	for (int i = 0; r == 0 && i < n; i++)
		r = n == 1 ? cli_take_id(cli, words[i], err) : id_check(words[i], err);
	if (r == 0)
		r = ledger_queue_look(l, words, note_known, known, err);
	for (int i = 0; r == 0 && i < n; i++)
		r = json_object_get(known, words[i]) ? add_once(added, &ids, words[i], err)
						     : add_tasks(l, words[i], added, &ids, err);
	if (r == 0)
		*ret = TAKE_PTR(ids);
	return r;
}
