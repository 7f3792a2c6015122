#include "queue_words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"

struct words {
	char **list;
	size_t n;
	json_t *added; /* NULL: none can be there twice */
};

struct numbers {
	unsigned long *numbers;
	size_t n;
};

static int note_known(void *known, const struct queued *q, struct error *err)
{
	return json_object_set_new(known, q->id, json_true()) < 0 ? error_memory(err) : 0;
}

static int note_task(void *arg, const char *id UNUSED, unsigned long number, struct error *err)
{
	struct numbers *t = arg;
	unsigned long *added = ARRAY_ADD(t->numbers, t->n);

	if (!added)
		return error_memory(err);
	*added = number;
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
	return strv_push(&w->list, &w->n, id, err);
}

static int add_tasks(struct ledger *l, const char *array, bool and_ledger, struct words *w, struct error *err)
{
	struct numbers t = {0};
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

static int find_ids(struct cli *cli, bool and_ledger, struct words *w, struct error *err)
{
	json_auto_t *known = json_object();
	char *const *words = cli->o.words;
	int n = cli->o.n_words, r = 0;

	for (int i = 0; r == 0 && i < n; i++)
		r = n == 1 ? cli_take_id(cli, words[i], err) : id_check(words[i], err);
	if (r < 0)
		return r;
	r = ledger_queue_look(cli->ledger, words, note_known, known, err);
	if (r == 0 && and_ledger)
		r = ledger_ended_look(cli->ledger, words, note_known, known, err);
	for (int i = 0; r == 0 && i < n; i++)
		r = json_object_get(known, words[i]) ? add_once(w, words[i], err)
						     : add_tasks(cli->ledger, words[i], and_ledger, w, err);
	return r;
}

int queue_begin(struct cli *cli, const struct option_row *own, bool and_ledger, char ***ret,
		struct error *err)
{
	json_auto_t *added = NULL;
	struct words w = {0};
	int r = cli_begin(cli, own, err);

	if (r < 0)
		return r;
	w.added = added = cli->o.n_words > 1 ? json_object() : NULL;
	r = find_ids(cli, and_ledger, &w, err);
	if (r < 0)
		strv_free(w.list);
	else
		*ret = w.list;
	return r;
}

bool warn_of_no_worker(const struct cli *cli, bool has_queued, unsigned *ret_alive)
{
	_cleanup_free_ char *line = NULL;
	struct error ignored = ERROR_INIT;
	struct workers_view v;

	/* What was asked for is done, or goes on: that this cannot be told is no failure of it. */
	if (workers_view_load(&v, cli->ledger, &ignored) < 0)
		return false;
	if (ret_alive)
		*ret_alive = v.alive;
	if (has_queued ? v.takes : v.alive)
		return false;
	line = workers_view_warning(&v, cli->hood);
	if (line && !cli->json)
		fprintf(stderr, "fumehood: %swarning%s: %s\n", terminal_style(&cli->err, STYLE_YELLOW),
			terminal_style(&cli->err, STYLE_RESET), line);
	return true;
}
