/*
 * fumehood show: one attempt, whole: what was asked, what was in force, what happened, what came out.
 */
#include <stdio.h>
#include <string.h>

#include "cli.h"

static const char help[] =
	"  fumehood show a42\n"
	"  fumehood show a42 --attempt 1       an earlier one\n"
	"  fumehood show a42 --json | jq .usage\n"
	"  fumehood show sweep                 an array: how many of which verdict, the first that failed\n"
	"  fumehood show a42 --trace           one line with the columns of a Nextflow trace\n"
	"  fumehood show a42 --lineage         what it came from and what came from it (--from)\n"
	"  fumehood show a42 --explain=agent   why it failed, in ten lines for a prompt\n"
	"\n"
	"--attempt N  --trace  --lineage  --explain=agent  --db URL  --config FILE  --json (with request, plan, events, attempts)\n";

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

/* ---- an array ---- */

static void add_count(const char *title, size_t n, const char *name, bool *begun)
{
	if (n == 0)
		return;
	if (*begun)
		printf(", %zu %s", n, name);
	else
		printf("%-12s%zu %s", title, n, name);
	*begun = true;
}

static void print_array(const struct cli *cli, const struct array_view *v)
{
	bool begun = false;

	printf("%s%s%s is an array of %zu task%s\n", terminal_style(&cli->out, STYLE_BOLD), cli->id,
	       terminal_style(&cli->out, STYLE_RESET), v->tasks, v->tasks == 1 ? "" : "s");
	for (int i = 0; i < JOB_STATES; i++)
		if (i != JOB_FINISHED && i != JOB_CANCELLED)
			add_count("to come", v->states[i], job_state_name((enum job_state)i), &begun);
	printf("%s", begun ? "\n" : "");
	begun = false;
	for (int i = VERDICT_NONE + 1; i < VERDICT_COUNT; i++)
		add_count("ended", v->verdicts[i], verdict_name((enum verdict)i), &begun);
	printf("%s", begun ? "\n" : "");
	for (size_t i = 0; i < v->n_failures; i++) {
		const struct array_failure *f = &v->failures[i];
		_cleanup_free_ char *reason = f->reason ? text_safe(f->reason) : NULL;

		printf("%-12s%s %s%s%s\n", i ? "" : "failed", f->id, verdict_name(f->verdict),
		       reason ? ": " : "", reason ? reason : "");
	}
	if (v->wrong > v->n_failures)
		printf("%-12sand %zu more: fumehood ls '%s.*'\n", "", v->wrong - v->n_failures, cli->id);
}

/* What is no analysis may be an array: else r, and err says what it said. */
static int show_array(struct cli *cli, int r, struct error *err)
{
	_cleanup_(array_view_done) struct array_view v = {0};
	struct error why = ERROR_INIT;
	int k = array_view_load(&v, cli->hood, cli->id, &why);

	if (k > 0)
		return r;
	if (k < 0) {
		*err = why;
		return k;
	}
	*err = (struct error)ERROR_INIT;
	if (cli->json)
		return cli_print_json(cli, array_view_json(&v, cli->id), err);
	print_array(cli, &v);
	return 0;
}

static int show_lineage(struct cli *cli, int number, struct error *err)
{
	_cleanup_(lineage_view_done) struct lineage_view v = {0};
	struct look look = terminal_look(&cli->out);

	if (lineage_view_load(&v, cli->hood, cli->id, number, cli->json ? &lineage_whole : &lineage_page,
			      err) < 0)
		return -1;
	if (cli->json)
		return cli_print_json(cli, lineage_view_json(&v), err);
	lineage_view_draw(stdout, &look, &v);
	return 0;
}

static int show_agent(struct cli *cli, int number, struct error *err)
{
	_cleanup_free_ char *text = NULL;
	int r = view_explain(cli->hood, cli->id, number, &text, err);

	if (r == 0)
		fputs(text, stdout);
	return r;
}

static int show_main(struct cli *cli, struct error *err)
{
	_cleanup_(subject_done) struct subject s;
	const char *explain = NULL;
	int number = 0, r;
	bool trace = false, lineage = false;
	const struct option_row own[] = {
		{"--attempt", OPTION_NUMBER, &number, "N", "that attempt, instead of the latest"},
		{"--trace", OPTION_FLAG, &trace, NULL, "one line with the columns of a Nextflow trace"},
		{"--lineage", OPTION_FLAG, &lineage, NULL, "what it came from, and what came from it"},
		{"--explain", OPTION_FORM, &explain, "=agent",
		 "with =agent: why it failed, in ten lines for a prompt"},
		{0}};

	subject_init(&s);
	r = cli_begin(cli, own, err);
	if (r < 0)
		return r;
	if (trace && cli->json)
		return error_set(err, ERROR_USAGE, "--trace and --json are two forms: choose one");
	if (trace && lineage)
		return error_set(err, ERROR_USAGE, "--trace and --lineage are two things: choose one");
	if (explain && strcmp(explain, "agent") != 0)
		return error_set(err, ERROR_USAGE,
				 "show has --explain=agent; what was denied is on its page anyway");
	if (explain && (cli->json || trace || lineage))
		return error_set(err, ERROR_USAGE, "--explain=agent is a form of its own: choose one");
	r = cli_open(cli, CLI_ID | CLI_HOOD, err);
	if (r == 0 && explain)
		return show_agent(cli, number, err);
	if (r == 0 && lineage)
		return show_lineage(cli, number, err);
	if (r == 0)
		r = subject_load(&s, cli->hood, cli->id, number, err);
	if (r < 0 && cli->hood && err->kind == ERROR_NOT_FOUND && number == 0 && !trace)
		return show_array(cli, r, err);
	if (r < 0)
		return r;
	if (trace)
		return show_trace(&s.attempt, err);
	return cli->json ? show_json(cli, &s, err) : show_page(cli, &s, err);
}

const struct command command_show = {
	.name = "show",
	.usage = "show ID [--attempt N] [--trace] [--lineage] [--explain=agent]",
	.summary = "one analysis: verdict, usage, walls, outputs, events",
	.help = help,
	.main = show_main,
	.words_min = 1,
	.words_max = 1,
};
