/*
 * fumehood shell: a kept workspace, looked around in under the hood that its analysis had.
 */
#include <stdio.h>

#include "cli.h"
#include "console.h"
#include "signals.h"

static const char help[] =
	"  fumehood run a42 --keep on-failure -- python3 fit.py     it fails, and its workspace is kept\n"
	"  fumehood shell a42                                       look, run it again by hand, leave\n"
	"  fumehood shell a42 -- python3 fit.py                     only that, with its exit status\n"
	"\n"
	"The same walls, environment, inputs and limits as the analysis had, and a terminal of its own; a shell is\n"
	"as long as you like. ~. typed at the beginning of a line ends it, whatever runs there. What is changed in\n"
	"the workspace stays there; nothing is recorded. It is kept for as long as before; `fumehood workspace\n"
	"cleanup ID` removes it.\n"
	"\n"
	"--attempt N        of that attempt, instead of the latest that is kept\n"
	"-t                 a terminal for the command too, wherever stdin comes from\n"
	"--db URL  --config FILE  --json (with a command)  --quiet\n";

struct shell_words {
	struct shell_order order;
	bool wants_terminal;
};

/* A shell has one where there is somebody to look at it. */
static int parse(struct cli *cli, struct shell_words *s, struct error *err)
{
	const struct option_row own[] = {{"--attempt", OPTION_NUMBER, &s->order.attempt, "N",
					  "of that attempt, instead of the latest that is kept"},
					 {"-t", OPTION_FLAG, &s->wants_terminal, NULL,
					  "a terminal for the command too, wherever stdin comes from"},
					 {0}};
	int r = cli_begin(cli, own, err);

	if (r < 0)
		return r;
	s->order.command = cli->o.rest && cli->o.rest[0] ? cli->o.rest : NULL;
	if (cli->o.rest && !s->order.command)
		return error_set(err, ERROR_USAGE,
				 "there is no command behind '--': name one, or leave out '--'");
	if (cli->json && (!s->order.command || s->wants_terminal))
		return error_set(
			err, ERROR_USAGE,
			"--json tells what one command came to, without a terminal: name it behind '--'");
	s->order.terminal = s->wants_terminal || (!cli->json && isatty(STDIN_FILENO) && cli->out.is_tty);
	return 0;
}

static int finish(struct cli *cli, struct console *console, const struct attempt *a, bool is_shell,
		  int cancel_fd)
{
	char line[700] = "";
	struct error err = ERROR_INIT;

	/* How a command failed it says itself; what ended it from outside is told. */
	if (!cli->quiet && !cli->json && a->reason && a->verdict != VERDICT_SUCCEEDED &&
	    (a->verdict != VERDICT_FAILED || a->exit_code < 0 || a->exit_code >= 126) &&
	    !(is_shell && a->verdict == VERDICT_FAILED && a->exit_code >= 0))
		snprintf(line, sizeof line, "fumehood: shell %s: %s\n", a->id, a->reason);
	console_say(console, line);
	if (console_close(console, cancel_fd, &err) < 0)
		fprintf(stderr, "fumehood: %s\n", err.message);
	if (cli->json && cli_print_attempt_with_streams(cli, a, &err) < 0)
		return cli_fail(cli, &err);
	return a->status;
}

static int shell_main(struct cli *cli, struct error *err)
{
	_cleanup_attempt_ struct attempt attempt;
	struct shell_words s = {0};
	struct console console;
	int cancel_fd = -1, r;

	attempt_init(&attempt);
	r = parse(cli, &s, err);
	if (r < 0)
		return r;
	r = s.order.terminal ? console_open_terminal(&console, cli, err) : console_open(&console, cli, err);
	if (r < 0)
		return r;
	r = signals_open(&cancel_fd, err);
	if (r == 0) {
		const struct run_hooks hooks = {
			.arg = &console,
			.output = cli->json ? NULL : console_output,
			.started = console_started,
			.ended = console_ended,
			.cancel_fd = cancel_fd,
			.stdin_fd = cli->json ? -1 : STDIN_FILENO,
			.terminal = s.order.terminal ? &console.look : NULL,
		};

		r = hood_shell(cli->hood, cli->id, &s.order, &hooks, &attempt, err);
	}
	if (r == 0)
		return finish(cli, &console, &attempt, !s.order.command, cancel_fd);
	console_close(&console, cancel_fd, NULL);
	return r;
}

const struct command command_shell = {
	.name = "shell",
	.usage = "shell ID [--attempt N] [-- CMD [ARG…]]",
	.summary = "a shell under the same hood in a kept workspace",
	.help = help,
	.main = shell_main,
	.words_min = 1,
	.words_max = 1,
	.opens = CLI_ID | CLI_HOOD,
	.is_attempt = true,
	.takes_rest = true,
};
