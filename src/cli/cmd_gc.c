/*
 * fumehood gc: finishes or removes what dead owners left, expires what was kept.
 */
#include <stdio.h>

#include "cli.h"
#include "print.h"
#include "view.h"

static const char help[] =
	"  fumehood gc                         from a timer, after a crash, whenever\n"
	"\n"
	"Finishes what is pending, records what was lost, removes workspaces whose owner is gone or\n"
	"whose time is over, sweeps the object store. What is running or held is left alone.\n"
	"\n"
	"--db URL  --config FILE  --json  --quiet\n";

static void print_report(const struct gc_report *g)
{
	const struct {
		uint64_t n;
		const char *what;
	} rows[] = {
		{g->committed, "pending or finished, and now committed"},
		{g->lost, "recorded as lost"},
		{g->given_up, "pending, cancelled, and given up"},
		{g->removed, "removed"},
		{g->objects, "unused objects removed"},
		{g->alive, "alive, left alone"},
		{g->foreign, "not ours, left alone"},
		{g->failed, "failed"},
	};
	bool any = false;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (rows[i].n > 0)
			printf("%6llu  %s\n", (unsigned long long)rows[i].n, rows[i].what);
		any |= rows[i].n > 0;
	}
	if (!any)
		printf("nothing to do\n");
}

static int print_json(struct cli *cli, struct hood *hood, struct error *err)
{
	json_t *json = NULL;
	int failed = view_gc(hood, &json, err), r = failed;

	if (r >= 0)
		r = cli_print_json(cli, json, err);
	return r < 0 ? r : failed ? STATUS_OURS : 0;
}

static int gc_main(struct cli *cli, int argc, char **argv, struct error *err)
{
	_cleanup_hood_ struct hood *hood = NULL;
	struct gc_report g = {0};
	const struct option_row table[] = {CLI_OPTIONS(cli), {0}};
	_cleanup_options_ struct options o = {.table = table};
	int r = cli_parse(cli, &o, argc, argv, err);

	if (r != 0)
		return r < 0 ? r : 0;
	r = cli_hood(cli, &hood, err);
	if (r == 0 && cli->json)
		return print_json(cli, hood, err);
	if (r == 0)
		r = hood_gc(hood, &g, err);
	if (r < 0 && g.failed == 0)
		return r;
	if (!cli->quiet)
		print_report(&g);
	return g.failed > 0 ? cli_fail(cli, err) : 0;
}

const struct command command_gc = {
	.name = "gc",
	.usage = "gc",
	.summary = "finishes or removes what dead owners left",
	.help = help,
	.main = gc_main,
};
