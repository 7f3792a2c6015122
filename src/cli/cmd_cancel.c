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

	if ((!found || json_object_get(t->pending, id)) && hood_cancel(t->cli->hood, id, &here, &why) < 0) {
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
static int cancel_all(struct cli *cli, char *const *ids, struct error *err)
{
	json_auto_t *pending = json_object();
	json_auto_t *answers = json_array();
	struct cancel_answer t = {.cli = cli, .pending = pending, .answers = answers, .first = ERROR_INIT};
	int r = hood_live_each(cli->hood, note_pending, pending, err);

	if (r < 0)
		return err->kind == ERROR_NONE ? error_memory(err) : r;
	r = ledger_cancel_many(cli->ledger, ids, on_cancelled, &t, err);
	if (r < 0)
		return r;
	if (t.r < 0) {
		*err = t.first;
		return t.r;
	}
	return cli->json ? cli_print_json(cli, json_pack("{s:O}", "analyses", answers), err) : 0;
}

static int cancel_main(struct cli *cli, struct error *err)
{
	_cleanup_strv_ char **ids = NULL;
	int r = queue_begin(cli, false, &ids, err);

	return r < 0 ? r : cancel_all(cli, ids, err);
}

const struct command command_cancel = {
	.name = "cancel",
	.usage = "cancel ID…",
	.summary = "cancels queued and running analyses",
	.help = help,
	.main = cancel_main,
	.words_min = 1,
	.words_max = 1 << 30,
	.opens = CLI_LEDGER,
};
