/*
 * fumehood ls: one row per analysis, those that are running first (view.h says where they come from).
 */
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "pager.h"

static const char help[] =
	"  fumehood ls\n"
	"  fumehood ls --verdict failed,timed_out --since 2h\n"
	"  fumehood ls --state queued          only these\n"
	"  fumehood ls a4                      ids that begin with a4\n"
	"  fumehood ls 'sweep.*7'              ids that are like that\n"
	"  fumehood ls --sort memory --limit 10\n"
	"  fumehood ls --json | jq -r '.[].id'\n"
	"\n"
	"--state S          waiting, queued, running, pending (gc finishes it), restored, cancelled, held, dead,\n"
	"                   finished, or a verdict\n"
	"--verdict V[,V]    with one of these verdicts\n"
	"--since TIME  --until TIME\n"
	"                   made at or after, and before: 2026-11-15, 2026-11-15T02:34 (UTC), or 2h, 7d ago\n"
	"--submitter NAME   of that submitter, or owner\n"
	"--sort ORDER       time (the newest first), id, or the most of wall, cpu, memory first\n"
	"--limit N          the newest N of the ledger; in another order the first N\n"
	"--no-pager         on a terminal it goes through $PAGER, else less\n"
	"--db URL  --config FILE  --json\n";

static int print_table(const struct cli *cli, const struct view_filter *f, bool by_pages, struct error *err)
{
	struct look look = terminal_look(&cli->out);

	return view_list_table(stdout, &look, cli->hood, f, by_pages, err);
}

static int print_paged(const struct cli *cli, const struct view_filter *f, struct error *err)
{
	struct pager pager;
	int r;

	pager_open(&pager);
	r = print_table(cli, f, true, err);
	pager_close(&pager);
	return r;
}

static int ls_main(struct cli *cli, struct error *err)
{
	const char *state = NULL, *verdict = NULL, *since = NULL, *until = NULL, *submitter = NULL,
		   *sort = NULL;
	struct view_filter f = {0};
	bool no_pager = false;
	json_t *json = NULL;
	const struct option_row own[] = {
		{"--state", OPTION_TEXT, &state,
		 "waiting|queued|running|pending|restored|held|dead|finished|VERDICT",
		 "only what is in that state, or has that verdict"},
		{"--verdict", OPTION_TEXT, &verdict, "VERDICT[,VERDICT]", "only with one of these verdicts"},
		{"--since", OPTION_TEXT, &since, "TIME",
		 "made at or after that time, or at most so long ago"},
		{"--until", OPTION_TEXT, &until, "TIME", "made before that time, or at least so long ago"},
		{"--submitter", OPTION_TEXT, &submitter, "NAME",
		 "only what that submitter, or owner, has submitted"},
		{"--sort", OPTION_TEXT, &sort, "time|id|wall|cpu|memory",
		 "the newest first, by id, or the one that used the most first"},
		{"--limit", OPTION_NUMBER, &f.limit, "N", "at most so many"},
		{"--no-pager", OPTION_FLAG, &no_pager, NULL, "not through a pager"},
		{0},
	};
	int r = cli_begin(cli, own, err);
	const struct {
		const char *name, *value;
	} words[] = {{"id", r < 0 ? NULL : cli->o.words[0]},
		     {"state", state},
		     {"verdict", verdict},
		     {"since", since},
		     {"until", until},
		     {"submitter", submitter},
		     {"sort", sort}};

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(words); i++)
		if (words[i].value)
			r = view_filter_set(&f, words[i].name, words[i].value, err);
	if (r < 0)
		return r;
	if (cli->json)
		return cli_answer(cli, view_list(cli->hood, &f, &json, err), &json, err);
	return cli->out.is_tty && !no_pager ? print_paged(cli, &f, err) : print_table(cli, &f, false, err);
}

const struct command command_ls = {
	.name = "ls",
	.usage = "ls [ID_OR_GLOB] [--state S] [--verdict V] [--since TIME] [--sort ORDER] [--limit N]",
	.summary = "lists analyses, the newest first",
	.help = help,
	.main = ls_main,
	.words_max = 1,
	.opens = CLI_HOOD,
};
