/*
 * fumehood cancel: what is queued never starts, what is running is told to end, what is pending is given up. Twice is as once.
 */
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "queue_words.h"

static const char help[] =
	"  fumehood cancel a42\n"
	"  fumehood cancel sweep               every task of an array\n"
	"\n"
	"What waits for it (--after) is cancelled too. A running one is ended by its worker, and its\n"
	"verdict is cancelled; fumehood wait waits for that. One that is pending (its command has ended, and\n"
	"it could not be finished) is given up: its outputs are thrown away, and it is recorded as cancelled.\n"
	"--db URL  --config FILE  --json  --quiet\n";

static const char *what_was_done(const char *was)
{
	static const char *const table[JOB_STATES] = {
		[JOB_WAITING] = "is cancelled",
		[JOB_QUEUED] = "is cancelled",
		[JOB_RUNNING] = "is running, and its worker is told to end it",
		[JOB_FINISHED] = "has ended already",
		[JOB_CANCELLED] = "was cancelled before",
	};

	for (int i = 0; i < JOB_STATES; i++)
		if (strcmp(was, job_state_name((enum job_state)i)) == 0)
			return table[i];
	return "was pending, and is given up: its outputs are thrown away, and it is recorded as cancelled";
}

struct cancel_answer {
	const struct cli *cli;
	struct hood *hood;
	json_t *pending; /* {id: true}: what could not be finished here */
	json_t *answers;
	struct error first; /* of those that are not there */
	int r;
};

static int note_pending(void *pending, const struct live *live)
{
	return live->pending ? json_object_set_new(pending, live->id, json_true()) : 0;
}

/* What is not in the queue, or has left something here, is a matter for the hood. */
static void on_cancelled(void *arg, const char *id, bool found, enum job_state before)
{
	const char *was = job_state_name(before), *here = was;
	struct error why = ERROR_INIT;
	struct cancel_answer *t = arg;

	if ((!found || json_object_get(t->pending, id)) && hood_cancel(t->hood, id, &here, &why) < 0) {
		if (t->r == 0)
			t->first = why;
		t->r = -1;
		return;
	}
	was = !found || strcmp(here, "pending") == 0 ? here : was;
	if (t->cli->json)
		json_array_append_new(t->answers, json_pack("{s:s, s:s}", "id", id, "was", was));
	else if (!t->cli->quiet)
		printf("%s %s\n", id, what_was_done(was));
}

/* Those that are there are cancelled whatever the others are. */
static int cancel_all(struct cli *cli, struct hood *hood, struct ledger *l, char *const *ids,
		      struct error *err)
{
	json_auto_t *pending = json_object();
	struct cancel_answer t = {
		.cli = cli, .hood = hood, .pending = pending, .answers = json_array(), .first = ERROR_INIT};
	json_t *object;
	int r = hood_live_each(hood, note_pending, pending, err);

	if (r < 0 && err->kind == ERROR_NONE)
		r = error_memory(err);
	if (r == 0)
		r = ledger_cancel_many(l, ids, on_cancelled, &t, err);
	if (r == 0 && t.r < 0) {
		*err = t.first;
		r = t.r;
	}
	object = json_pack("{s:o}", "analyses", t.answers);
	if (r < 0 || !cli->json) {
		json_decref(object);
		return r;
	}
	return cli_print_json(cli, object, err);
}

static int cancel_main(struct cli *cli, int argc, char **argv, struct error *err)
{
	_cleanup_hood_ struct hood *hood = NULL;
	_cleanup_strv_ char **ids = NULL;
	struct ledger *ledger;
	const struct option_row table[] = {CLI_OPTIONS(cli), {0}};
	_cleanup_options_ struct options o = {.table = table};
	int r = cli_parse(cli, &o, argc, argv, err);

	if (r != 0)
		return r < 0 ? r : 0;
	r = cli_hood(cli, &hood, err);
	if (r == 0)
		r = cli_ledger(hood, &ledger, err);
	if (r == 0)
		r = queue_ids(cli, ledger, o.words, o.n_words, false, &ids, err);
	return r < 0 ? r : cancel_all(cli, hood, ledger, ids, err);
}

const struct command command_cancel = {
	.name = "cancel",
	.usage = "cancel ID…",
	.summary = "cancels queued and running analyses",
	.help = help,
	.main = cancel_main,
	.words_min = 1,
	.words_max = 1 << 30,
};
