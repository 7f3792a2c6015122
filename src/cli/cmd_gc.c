/*
 * fumehood gc: finishes or removes what dead owners left, expires what was kept.
 */
#include <stdio.h>

#include "bar.h"
#include "cli.h"

static const char help[] =
	"  fumehood gc                         from a timer, after a crash, whenever\n"
	"\n"
	"Finishes what is pending, records what was lost, removes workspaces whose owner is gone or\n"
	"whose time is over, removes what the configuration's `retain` no longer wants, sweeps the object store.\n"
	"What is running or held is left alone.\n"
	"\n"
	"--dry-run          only tells what `retain` would remove\n"
	"--db URL  --config FILE  --json  --quiet\n";

static void print_report(const struct gc_report *g)
{
	struct gc_row rows[GC_ROWS];
	bool any = false;

	view_gc_rows(g, rows);
	for (size_t i = 0; i < GC_ROWS; i++) {
		if (rows[i].n > 0)
			printf("%6llu  %s\n", (unsigned long long)rows[i].n, rows[i].what);
		any |= rows[i].n > 0;
	}
	if (!any)
		printf("nothing to do\n");
}

static int tell_retained(struct cli *cli, struct error *err)
{
	struct gc_report g = {0};
	int r = hood_retain(cli->hood, true, &g, err);

	if (r < 0)
		return r;
	if (cli->json)
		return cli_print_json(
			cli, json_pack("{s:b, s:I}", "dry_run", true, "pruned", (json_int_t)g.pruned), err);
	printf("%6llu  no longer retained, would be removed from the ledger\n", (unsigned long long)g.pruned);
	return 0;
}

static int gc_main(struct cli *cli, struct error *err)
{
	struct gc_report g = {0};
	bool dry = false;
	json_t *json = NULL;
	struct bar bar;
	const struct option_row own[] = {
		{"--dry-run", OPTION_FLAG, &dry, NULL, "only tells what `retain` would remove"}, {0}};
	int r = cli_begin(cli, own, err);

	if (r < 0)
		return r;
	if (dry)
		return tell_retained(cli, err);
	if (cli->json) {
		r = cli_answer(cli, view_gc(cli->hood, &json, err), &json, err);
		return r > 0 ? STATUS_OURS : r;
	}
	hood_watch(cli->hood, bar_open(&bar, cli));
	r = hood_gc(cli->hood, &g, err);
	bar_clear(&bar);
	if (r < 0 && g.failed == 0)
		return r;
	if (!cli->quiet)
		print_report(&g);
	return g.failed > 0 ? cli_fail(cli, err) : 0;
}

const struct command command_gc = {
	.name = "gc",
	.usage = "gc [--dry-run]",
	.summary = "finishes or removes what dead owners left",
	.help = help,
	.main = gc_main,
	.opens = CLI_HOOD,
};
