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

struct ls_table {
	const struct cli *cli;
	struct table *table;
};

static int add_row(void *arg, const struct view_row *row)
{
	char number[16], since[PRINT_ROOM], wall[PRINT_ROOM], cpu[PRINT_ROOM], memory[PRINT_ROOM], shown[64];
	struct ls_table *l = arg;
	const struct terminal *t = &l->cli->out;
	const struct attempt *a = row->attempt;
	_cleanup_free_ char *owner = a->owner ? cli_escape(a->owner) : NULL;

	snprintf(number, sizeof number, "%d", a->number);
	snprintf(shown, sizeof shown, "%s%s%s", terminal_style(t, view_verdict_style(a->verdict)),
		 row->verdict ? row->verdict : row->state, terminal_style(t, STYLE_RESET));
	table_add(l->table, a->id, a->number > 0 ? number : "-", shown,
		  print_instant(a->started ? a->started : a->created, since),
		  print_duration(a->usage.wall_ms, wall), print_duration(a->usage.cpu_ms, cpu),
		  print_size(a->usage.memory_peak_bytes, memory), owner ? owner : "-");
	return 0;
}

static int print_table(const struct cli *cli, const struct view_filter *f, struct error *err)
{
	_cleanup_table_ struct table t = {.n_columns = 8, .right = 0x72};
	struct ls_table l = {cli, &t};
	int r;

	table_add(&t, "ID", "ATTEMPT", "VERDICT", "STARTED", "WALL", "CPU", "MEMORY", "OWNER");
	r = view_list_each(cli->hood, f, add_row, &l, err);
	return r < 0 ? r : table_print(&t, stdout, err);
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
