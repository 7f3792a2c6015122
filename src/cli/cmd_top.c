/*
 * fumehood top: what runs now, here and on other hosts, and how the queue is.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "clock.h"
#include "full_screen.h"
#include "limit.h"
#include "signals.h"

/* A changed size is noticed so soon. */
enum { LOOK_MS = 200 };
static const uint64_t interval_least = 100 * NSEC_PER_MSEC, interval_most = 3600 * NSEC_PER_SEC,
		      interval_default = NSEC_PER_SEC;

static const char help[] =
	"  fumehood top                        what runs now and the queue, again every second; q ends it\n"
	"  fumehood top --once                 only once, as where there is no terminal\n"
	"  fumehood top --json\n"
	"\n"
	"What this user runs here is as its supervisor saw it within the last second; what workers of other\n"
	"hosts run is as they said with their last heartbeat. What is not known is -.\n"
	"--once  --interval TIME  --db URL  --config FILE  --json\n";

static int read_interval(const char *text, uint64_t *ret, struct error *err)
{
	*ret = interval_default;
	if (!text || (duration_parse(text, ret) == 0 && *ret >= interval_least && *ret <= interval_most))
		return 0;
	return error_set(err, ERROR_USAGE, "--interval wants a time from 100ms to 1h, not '%s'",
			 SHOWN(64, text));
}

static int print_once(struct cli *cli, FILE *to, struct error *err)
{
	_cleanup_(top_view_done) struct top_view v;
	struct look look = terminal_look(&cli->out);
	int r = top_view_load(&v, cli->hood, err);

	return r < 0 ? r : top_view_table(to, &look, &v, err);
}

/* A page as text, to be drawn in one go. */
static int make_page(struct cli *cli, char **ret, struct error *err)
{
	size_t size = 0;
	FILE *to;
	int r;

	free(*ret);
	*ret = NULL;
	to = open_memstream(ret, &size);
	if (!to)
		return error_memory(err);
	r = print_once(cli, to, err);
	if (fclose(to) != 0 && r == 0)
		r = error_memory(err);
	return r;
}

/* 0: time is up. 1: somebody wants it to end; *ret_status says how. */
static int await(struct full_screen *screen, int signal_fd, uint64_t until, const char *page, int *ret_status,
		 struct error *err)
{
	for (uint64_t now = clock_now(); now < until; now = clock_now()) {
		struct pollfd p[] = {{.fd = signal_fd, .events = POLLIN},
				     {.fd = screen->in, .events = POLLIN}};
		uint64_t left = (until - now) / NSEC_PER_MSEC + 1;
		unsigned char byte = 0;

		(void)poll(p, ARRAY_SIZE(p), left < LOOK_MS ? (int)left : LOOK_MS);
		if (p[0].revents && read(signal_fd, &byte, 1) == 1) {
			*ret_status = 128 + byte;
			return 1;
		}
		/* The terminal is gone, or its keys are. */
		if (p[1].revents && read(screen->in, &byte, 1) != 1)
			return 1;
		if (p[1].revents && (byte == 'q' || byte == 'Q'))
			return 1;
		if (full_screen_is_resized(screen) && full_screen_draw(screen, page, err) < 0)
			return -1;
	}
	return 0;
}

static int watch(struct cli *cli, struct full_screen *screen, int signal_fd, uint64_t interval,
		 int *ret_status, struct error *err)
{
	_cleanup_free_ char *page = NULL;
	int r = 0;

	while (r == 0) {
		r = make_page(cli, &page, err);
		if (r == 0)
			r = full_screen_draw(screen, page, err);
		if (r == 0)
			r = await(screen, signal_fd, clock_now() + interval, page, ret_status, err);
	}
	return r;
}

static int watch_on_terminal(struct cli *cli, uint64_t interval, struct error *err)
{
	_cleanup_close_ int signal_fd = -1;
	struct full_screen screen;
	int status = 0, r = signals_open(&signal_fd, err);

	if (r == 0)
		r = full_screen_open(&screen, STDIN_FILENO, STDOUT_FILENO, err);
	if (r < 0)
		return r;
	r = watch(cli, &screen, signal_fd, interval, &status, err);
	full_screen_close(&screen);
	return r < 0 ? r : status;
}

static int top_main(struct cli *cli, struct error *err)
{
	const char *interval = NULL;
	bool once = false;
	uint64_t every;
	json_t *json = NULL;
	const struct option_row own[] = {
		{"--once", OPTION_FLAG, &once, NULL, "prints it once"},
		{"--interval", OPTION_TEXT, &interval, "TIME", "how often it is drawn again, 1s if not said"},
		{0},
	};
	int r = cli_begin(cli, own, err);

	if (r < 0 || (r = read_interval(interval, &every, err)) < 0)
		return r;
	if (cli->json)
		return cli_answer(cli, view_top(cli->hood, &json, err), &json, err);
	if (once || !cli->out.is_tty)
		return print_once(cli, stdout, err);
	return watch_on_terminal(cli, every, err);
}

const struct command command_top = {
	.name = "top",
	.usage = "top [--once] [--interval TIME]",
	.summary = "what runs now, and the queue, live",
	.help = help,
	.main = top_main,
	.opens = CLI_LEDGER,
};
