/*
 * fumehood workers: who is there to run what is queued.
 */
#include <stdio.h>

#include "cli.h"

static const char help[] =
	"  fumehood workers                    host, seats, what they run, and when each was heard of last\n"
	"  fumehood workers --json\n"
	"\n"
	"A worker that was not heard of for longer than its lease is silent: it is dead, or cut off. One that ends\n"
	"in order is in the list no more; fumehood gc forgets those that were silent for a day.\n"
	"--db URL  --config FILE  --json\n";

static int workers_main(struct cli *cli, struct error *err)
{
	struct look look = terminal_look(&cli->out);
	json_t *json = NULL;
	int r = cli_begin(cli, NULL, err);

	if (r < 0)
		return r;
	if (cli->json)
		return cli_answer(cli, view_workers(cli->hood, &json, err), &json, err);
	return view_workers_table(stdout, &look, cli->hood, err);
}

const struct command command_workers = {
	.name = "workers",
	.usage = "workers",
	.summary = "who is there to run what is queued",
	.help = help,
	.main = workers_main,
	.opens = CLI_LEDGER,
};
