/*
 * fumehood post-process: the rows of an attempt once more, from what the ledger has of it.
 */
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "signals.h"

static const char help[] =
	"  fumehood post-process a42                       as its run would have done it, or the site\n"
	"  fumehood post-process a42 --post-process 'python3 better.py'\n"
	"\n"
	"Reads the outputs from the ledger, not from a workspace. Doing it twice is as doing it once: rows\n"
	"that are there already stay, and where the site names a key they are replaced. An attempt that\n"
	"only lacked its rows has succeeded then.\n"
	"\n"
	"--attempt N  --post-process CMD  --db URL  --config FILE  --json\n"
	"Exit status: 0; 123 it failed, and no row was changed; 125 refused.\n";

static int print_end(struct cli *cli, const struct attempt *a, bool posted, struct error *err)
{
	bool ok = a->verdict == VERDICT_SUCCEEDED;
	_cleanup_free_ char *reason = a->reason ? text_safe(a->reason) : NULL;
	char rows[PRINT_ROOM];

	if (cli->json) {
		int r = cli_print_attempt(cli, a, false, NULL, err);

		return r < 0 ? r : a->status;
	}
	if (!ok)
		fprintf(stderr, "fumehood: %s attempt %d %s: %s\n", a->id, a->number,
			verdict_name(a->verdict), reason ? reason : "?");
	else if (!cli->quiet)
		printf("%s attempt %d: %s %s\n", a->id, a->number, print_count((size_t)a->rows, "row", rows),
		       posted ? "committed" : "were there already");
	return a->status;
}

static int post_process_main(struct cli *cli, struct error *err)
{
	_cleanup_attempt_ struct attempt a;
	const char *command = NULL;
	int number = 0, cancel_fd = -1, r;
	bool posted = false;
	const struct option_row own[] = {
		{"--attempt", OPTION_NUMBER, &number, "N", "that attempt, instead of the latest"},
		{"--post-process", OPTION_TEXT, &command, "CMD",
		 "this command, instead of the one that ran before"},
		{0}};

	attempt_init(&a);
	r = cli_begin(cli, own, err);
	if (r == 0)
		r = signals_open(&cancel_fd, err);
	if (r == 0)
		r = hood_post_process(cli->hood, cli->id, number, command, cancel_fd, &a, &posted, err);
	return r < 0 ? r : print_end(cli, &a, posted, err);
}

const struct command command_post_process = {
	.name = "post-process",
	.usage = "post-process ID [--attempt N] [--post-process CMD]",
	.summary = "repeats the post-process from the ledger's outputs",
	.help = help,
	.main = post_process_main,
	.words_min = 1,
	.words_max = 1,
	.opens = CLI_ID | CLI_HOOD,
	.is_attempt = true,
};
