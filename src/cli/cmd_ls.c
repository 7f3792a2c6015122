/*
 * fumehood ls: one row per analysis, those that are running first (view.h says where they come from).
 */
#include <stdio.h>

#include "cli.h"

static const char help[] =
	"  fumehood ls\n"
	"  fumehood ls --state failed          only these\n"
	"  fumehood ls --state queued\n"
	"  fumehood ls a4                      ids that begin with a4\n"
	"  fumehood ls --json | jq -r '.[].id'\n"
	"\n"
	"--state S   waiting, queued, running, pending (gc finishes it), cancelled, held, dead, finished,\n"
	"            or a verdict\n"
	"--limit N   the newest N of the ledger\n"
	"--db URL  --config FILE  --json\n";

static int print_table(const struct cli *cli, const struct view_filter *f, struct error *err)
{
	struct look look = terminal_look(&cli->out);

	return view_list_table(stdout, &look, cli->hood, f, err);
}

static int ls_main(struct cli *cli, struct error *err)
{
	struct view_filter f = {0};
	json_t *json = NULL;
	const struct option_row own[] = {
		{"--state", OPTION_TEXT, &f.state}, {"--limit", OPTION_NUMBER, &f.limit}, {0}};
	int r = cli_begin(cli, own, err);

	if (r < 0)
		return r;
	f.prefix = cli->o.words[0];
	return cli->json ? cli_answer(cli, view_list(cli->hood, &f, &json, err), &json, err)
			 : print_table(cli, &f, err);
}

const struct command command_ls = {
	.name = "ls",
	.usage = "ls [PREFIX] [--state S] [--limit N]",
	.summary = "lists analyses, the newest first",
	.help = help,
	.main = ls_main,
	.words_max = 1,
	.opens = CLI_HOOD,
};
