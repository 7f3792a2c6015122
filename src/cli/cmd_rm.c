/*
 * fumehood rm: analyses that are no longer wanted, by their names.
 */
#include <stdio.h>
#include <string.h>

#include "cli.h"

static const char help[] =
	"  fumehood rm a42\n"
	"  fumehood rm sweep                   every task of an array\n"
	"  fumehood rm 'try-*' --dry-run       what would go\n"
	"  fumehood rm a42 --attempt 2         one attempt of it\n"
	"\n"
	"Removes all that the ledger has of them: attempts, outputs, logs, and what has ended in the queue. Either\n"
	"all of them go or none: refused is what has not ended, and what others were made from. Rows that a\n"
	"post-process has put into the site's own tables are the site's, and stay. A removed attempt's number\n"
	"is not given again, and show still knows what came from it.\n"
	"\n"
	"--attempt N        only that attempt\n"
	"--dry-run          tells what would go, and removes nothing\n"
	"--force            also what others were made from, or are to come after\n"
	"--db URL  --config FILE  --json  --quiet\n";

int remove_and_tell(struct cli *cli, char *const *words, const struct remove_order *o, struct error *err)
{
	_cleanup_free_ char *text = NULL;
	struct remove_report report;
	json_t *json = NULL;
	int r;

	if (cli->json)
		return cli_answer(cli, view_remove(cli->hood, words, o, &json, err), &json, err);
	r = hood_remove(cli->hood, words, o, &report, err);
	if (r < 0 || cli->quiet)
		return r;
	text = view_removed(o, &report);
	if (!text)
		return error_memory(err);
	fputs(text, stdout);
	return 0;
}

static int rm_main(struct cli *cli, struct error *err)
{
	struct remove_order o = {0};
	const struct option_row own[] = {
		{"--attempt", OPTION_NUMBER, &o.attempt, "N", "only that attempt"},
		{"--dry-run", OPTION_FLAG, &o.dry_run, NULL, "tells what would go, and removes nothing"},
		{"--force", OPTION_FLAG, &o.force, NULL,
		 "also what others were made from, or are to come after"},
		{0},
	};
	int r = cli_begin(cli, own, err);

	if (r < 0)
		return r;
	if (cli->o.n_words == 1 && !strpbrk(cli->o.words[0], "*?[") &&
	    (r = cli_take_id(cli, cli->o.words[0], err)) < 0)
		return r;
	return remove_and_tell(cli, cli->o.words, &o, err);
}

const struct command command_rm = {
	.name = "rm",
	.usage = "rm ID_OR_GLOB… [--attempt N] [--dry-run] [--force]",
	.summary = "removes analyses from the ledger",
	.help = help,
	.main = rm_main,
	.words_min = 1,
	.words_max = 1 << 30,
	.opens = CLI_LEDGER,
};
