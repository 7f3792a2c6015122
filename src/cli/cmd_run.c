/*
 * fumehood run: the words of the command line become a request, the story is told, its end is said.
 */
#include <stdio.h>
#include <string.h>

#include "asked.h"
#include "cli.h"
#include "console.h"
#include "member.h"
#include "signals.h"

enum { PROGRESS_INTERVAL_MS = 200, SHOWN_LOG_MAX = 64 * 1024 };

static const char help[] =
	"  fumehood run a42 -- python3 analysis.py            files named here are copied in\n"
	"  fumehood run a42 --data ./genes --output '*.csv' -- Rscript fit.R\n"
	"  fumehood run --wall 10m --memory 2G --cpus 2 -- ./simulate --seed 7\n"
	"  fumehood run -f request.yaml                       the same from a file\n"
	"  fumehood run a42 --dry-run -- python3 analysis.py  what would be done, every default shown\n"
	"\n";

static const struct help_group groups[] = {
	{"what it sees", GROUP_INPUTS, NULL},
	{"what comes out", GROUP_OUTPUTS, NULL},
	{"limits", GROUP_LIMITS, NULL},
	{"the rest", GROUP_REST, "-f FILE  --db URL  --config FILE  --dry-run  --json  --quiet"},
	{0},
};

static const char notes[] =
	"Sizes are 512M, 2G; times 90s, 10m, 2h. Without --output every file that it makes is an output.\n"
	"Exit status: the analysis's own; 124 timed out, 137 out of memory, 122 an output is missing,\n"
	"123 the post-process failed, "
	"130/143/129 cancelled, 125 refused or not committed.\n";

/* How it is told. */
struct telling {
	bool is_dry;
	bool for_agent; /* ten lines on stdout, and nothing else */
};

static int take_form(const struct cli *cli, const char *explain, struct request *request, struct telling *ret,
		     struct error *err)
{
	if (!explain)
		return 0;
	ret->for_agent = *explain;
	if (*explain && strcmp(explain, "agent") != 0)
		return error_set(err, ERROR_USAGE, "--explain=%s is no form: there is --explain=agent",
				 SHOWN(64, explain));
	if (ret->for_agent && cli->json)
		return error_set(err, ERROR_USAGE, "--explain=agent and --json are two forms: choose one");
	return request_option(request, "--explain", NULL, err) < 0 ? -1 : 0;
}

static int parse(struct cli *cli, struct request *request, struct telling *ret, struct error *err)
{
	const char *file = NULL, *explain = NULL;
	const struct option_row own[] = {
		{"-f", OPTION_TEXT, &file, "FILE", "a request as YAML or JSON; - is stdin"},
		{"--dry-run", OPTION_FLAG, &ret->is_dry, NULL, "shows the plan and touches nothing"},
		{"--explain", OPTION_FORM, &explain, "[=agent]",
		 "tells also of files that are not there under the hood, or not writable, and of connections; =agent: ten lines for a prompt"},
		{0}};
	int r = asked_begin(cli, own, request, err);

	if (r == 0)
		r = take_form(cli, explain, request, ret, err);
	if (r == 0)
		r = asked_take_words(cli, request, file != NULL, err);
	if (r == 0)
		r = asked_complete(request, file, err);
	if (r < 0)
		return r;
	cli_set_id(cli, request->id);
	return request_check(request, err);
}

/* What it wrote, beside the attempt: the object is all that a caller of --json sees of it. */
static json_t *streams_json(const struct attempt *a)
{
	const struct json_entry entries[] = {
		{"stdout",
		 a->started ? captured_to_json(&a->logs[STREAM_STDOUT], SHOWN_LOG_MAX) : json_null()},
		{"stderr",
		 a->started ? captured_to_json(&a->logs[STREAM_STDERR], SHOWN_LOG_MAX) : json_null()},
	};

	return json_from_entries(entries, ARRAY_SIZE(entries));
}

int cli_print_attempt_with_streams(const struct cli *cli, const struct attempt *a, struct error *err)
{
	json_auto_t *streams = streams_json(a);

	return streams ? cli_print_attempt(cli, a, false, streams, err) : error_memory(err);
}

/* The verdict is said, and what is still in the queue is shown. The exit status. */
static int finish(struct cli *cli, struct console *console, const struct attempt *a, int cancel_fd)
{
	_cleanup_free_ char *line =
		cli->json ? NULL : view_line_after(a, console->told, cli->err.colour, cli->quiet);
	int status = attempt_status(a);
	struct error err = ERROR_INIT;

	console_say(console, line ? line : "");
	if (console_close(console, cancel_fd, &err) < 0)
		fprintf(stderr, "fumehood: %s; fumehood logs %s has what it wrote\n", err.message, a->id);
	if (cli->json && cli_print_attempt_with_streams(cli, a, &err) < 0)
		return cli_fail(cli, &err);
	return status;
}

static int print_agent(const struct attempt *a, struct error *err)
{
	_cleanup_free_ char *text = view_agent(a);

	if (!text)
		return error_memory(err);
	fputs(text, stdout);
	return attempt_status(a);
}

/* The same when it was refused. */
static int tell_agent(struct cli *cli, const struct request *request, int cancel_fd, struct error *err)
{
	_cleanup_attempt_ struct attempt attempt;
	struct run_hooks hooks = {.cancel_fd = cancel_fd,
				  .stdin_fd = request->stdin_open ? STDIN_FILENO : -1};
	int r;

	attempt_init(&attempt);
	r = hood_run(cli->hood, request, &hooks, &attempt, err);
	if (r < 0 && attempt_refuse(&attempt, err) < 0)
		return r;
	return print_agent(&attempt, err);
}

static int tell(struct cli *cli, const struct request *request, struct error *err)
{
	_cleanup_attempt_ struct attempt attempt;
	bool shows_progress = cli->err.is_tty && !cli->quiet && !cli->json && !request->terminal;
	bool types = request->stdin_open || (request->terminal && !cli->json);
	struct console console;
	int cancel_fd = -1, r;

	attempt_init(&attempt);
	r = request->terminal && !cli->json ? console_open_terminal(&console, cli, err)
					    : console_open(&console, cli, err);
	if (r < 0)
		return r;
	r = signals_open(&cancel_fd, err);
	if (r == 0) {
		struct run_hooks hooks = {
			.arg = &console,
			.output = cli->json ? NULL : console_output,
			.progress = shows_progress ? console_progress : NULL,
			.progress_interval_ms = shows_progress ? PROGRESS_INTERVAL_MS : 0,
			.warned = console_warned,
			.started = console_started,
			.ended = console_ended,
			.cancel_fd = cancel_fd,
			.stdin_fd = types ? STDIN_FILENO : -1,
			.terminal = console.shows_terminal ? &console.look : NULL,
		};

		r = hood_run(cli->hood, request, &hooks, &attempt, err);
	}
	if (r == 0)
		return finish(cli, &console, &attempt, cancel_fd);
	cli_set_id(cli, attempt.id);
	console_close(&console, cancel_fd, NULL);
	return r;
}

int dry_run(struct cli *cli, const struct request *request, struct error *err)
{
	struct look look = terminal_look(&cli->out);
	_cleanup_plan_ struct plan plan;
	int r;

	plan_init(&plan);
	r = hood_plan(cli->hood, request, &plan, err);
	if (r < 0)
		return r;
	return cli->json ? cli_print_json(cli, plan_to_json(&plan), err)
			 : view_plan(stdout, &look, &plan, err);
}

static int run_main(struct cli *cli, struct error *err)
{
	_cleanup_request_ struct request request;
	struct telling telling = {0};
	int cancel_fd = -1, r;

	request_init(&request);
	r = parse(cli, &request, &telling, err);
	if (r == 0)
		r = cli_open(cli, CLI_HOOD, err);
	if (r < 0)
		return r;
	if (telling.is_dry)
		return dry_run(cli, &request, err);
	if (!telling.for_agent)
		return tell(cli, &request, err);
	r = signals_open(&cancel_fd, err);
	return r < 0 ? r : tell_agent(cli, &request, cancel_fd, err);
}

const struct command command_run = {
	.name = "run",
	.usage = "run [ID] [options] -- CMD [ARG…]",
	.summary = "runs one analysis under the hood and commits its results",
	.help = help,
	.groups = groups,
	.notes = notes,
	.main = run_main,
	.words_max = 1 << 20,
	.is_attempt = true,
	.takes_rest = true,
};
