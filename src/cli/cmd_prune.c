/*
 * fumehood prune: attempts that are no longer wanted, by their age.
 */
#include "cli.h"

static const char help[] =
	"  fumehood prune --older 90d --dry-run\n"
	"  fumehood prune --older 90d\n"
	"  fumehood prune --older 7d --verdict failed,lost\n"
	"  fumehood prune --older 30d --keep-outputs\n"
	"\n"
	"Removes attempts that were made longer ago than that, and what has ended in the queue since. What has not\n"
	"ended, or what others were made from that stays, is left alone and counted. In small steps: workers and\n"
	"others go on meanwhile. `retain` in the configuration has gc and workers do the same.\n"
	"\n"
	"--older TIME       30m, 12h, 90d\n"
	"--verdict V[,V]    only with one of these verdicts\n"
	"--keep-outputs     attempts, outputs and lineage stay; logs, events, samples, inputs and the like go\n"
	"--dry-run          tells what would go, and removes nothing\n"
	"--force            also what others were made from, or are to come after\n"
	"--db URL  --config FILE  --json  --quiet\n";

static int prune_main(struct cli *cli, struct error *err)
{
	const char *older = NULL, *verdict = NULL;
	struct remove_order o = {0};
	const struct option_row own[] = {
		{"--older", OPTION_TEXT, &older, "TIME", "what was made longer ago than that: 30m, 12h, 90d"},
		{"--verdict", OPTION_TEXT, &verdict, "VERDICT[,VERDICT]", "only with one of these verdicts"},
		{"--keep-outputs", OPTION_FLAG, &o.keeps_outputs, NULL,
		 "attempts, outputs and lineage stay, logs and the like go"},
		{"--dry-run", OPTION_FLAG, &o.dry_run, NULL, "tells what would go, and removes nothing"},
		{"--force", OPTION_FLAG, &o.force, NULL,
		 "also what others were made from, or are to come after"},
		{0},
	};
	int r = cli_begin(cli, own, err);

	if (r < 0)
		return r;
	if (!older)
		return error_set(err, ERROR_USAGE,
				 "how old is what is to go? Say it with --older, such as --older 90d");
	r = view_remove_age(&o, older, verdict, err);
	return r < 0 ? r : remove_and_tell(cli, NULL, &o, err);
}

const struct command command_prune = {
	.name = "prune",
	.usage = "prune --older TIME [--verdict V] [--keep-outputs] [--dry-run] [--force]",
	.summary = "removes what is older than that from the ledger",
	.help = help,
	.main = prune_main,
	.opens = CLI_LEDGER,
};
