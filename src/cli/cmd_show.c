/*
 * fumehood show: one attempt, whole: what was asked, what was in force, what happened, what came out.
 */
#include <stdio.h>

#include "cli.h"

static const char help[] =
	"  fumehood show a42\n"
	"  fumehood show a42 --attempt 1       an earlier one\n"
	"  fumehood show a42 --json | jq .usage\n"
	"  fumehood show a42 --trace           one line with the columns of a Nextflow trace\n"
	"\n"
	"--attempt N  --trace  --db URL  --config FILE  --json (with request, plan, events, attempts)\n";

static int show_page(const struct cli *cli, const struct subject *s, struct error *err)
{
	struct look look = terminal_look(&cli->out);

	return view_page(stdout, &look, s, err);
}

static int show_json(const struct cli *cli, const struct subject *s, struct error *err)
{
	json_auto_t *own = subject_own_json(s);

	return own ? cli_print_attempt(cli, &s->attempt, true, own, err) : error_memory(err);
}

static int show_trace(const struct attempt *a, struct error *err)
{
	_cleanup_free_ char *text = view_trace(a);

	if (!text)
		return error_memory(err);
	fputs(text, stdout);
	return 0;
}

static int show_main(struct cli *cli, struct error *err)
{
	_cleanup_(subject_done) struct subject s;
	int number = 0, r;
	bool trace = false;
	const struct option_row own[] = {
		{"--attempt", OPTION_NUMBER, &number}, {"--trace", OPTION_FLAG, &trace}, {0}};

	subject_init(&s);
	r = cli_begin(cli, own, err);
	if (r < 0)
		return r;
	if (trace && cli->json)
		return error_set(err, ERROR_USAGE, "--trace and --json are two forms: choose one");
	r = cli_open(cli, CLI_ID | CLI_HOOD, err);
	if (r == 0)
		r = subject_load(&s, cli->hood, cli->id, number, err);
	if (r < 0)
		return r;
	if (trace)
		return show_trace(&s.attempt, err);
	return cli->json ? show_json(cli, &s, err) : show_page(cli, &s, err);
}

const struct command command_show = {
	.name = "show",
	.usage = "show ID [--attempt N] [--trace]",
	.summary = "one analysis: verdict, usage, walls, outputs, events",
	.help = help,
	.main = show_main,
	.words_min = 1,
	.words_max = 1,
};
