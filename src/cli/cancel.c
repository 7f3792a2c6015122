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

static int cancel_one(struct cli *cli, struct hood *hood, const char *id, json_t *answers, struct error *err)
{
	const char *was;
	int r = hood_cancel(hood, id, &was, err);

	if (r < 0)
		return r;
	if (cli->json)
		return json_array_append_new(answers, json_pack("{s:s, s:s}", "id", id, "was", was)) < 0
			       ? error_memory(err)
			       : 0;
	if (!cli->quiet)
		printf("%s %s\n", id, what_was_done(was));
	return 0;
}

/* Those that are there are cancelled whatever the others are. */
static int cancel_all(struct cli *cli, struct hood *hood, char *const *ids, struct error *err)
{
	json_t *answers = json_array(), *object;
	struct error first = ERROR_INIT;
	int r = 0;

	for (size_t i = 0; ids[i]; i++) {
		struct error why = ERROR_INIT;

		if (cancel_one(cli, hood, ids[i], answers, &why) < 0 && r == 0) {
			first = why;
			r = -1;
		}
	}
	object = json_pack("{s:o}", "analyses", answers);
	if (r < 0 || !cli->json) {
		json_decref(object);
		*err = first;
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
	return r < 0 ? r : cancel_all(cli, hood, ids, err);
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
