/*
 * fumehood logs: what an analysis wrote, from the ledger, or, while it runs, from the files that the supervisor fills.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>

#include "cli.h"
#include "queue.h"
#include "screen.h"

enum { LOOK_AGAIN_MS = 500 }; /* for what a bell does not tell */

_Static_assert((int)STREAM_POST < (int)SCREEN_STREAMS, "a screen has a filter for each stream");

static const char help[] =
	"  fumehood logs a42                   stdout, then stderr\n"
	"  fumehood logs a42 --stderr          only that, byte for byte but for a note where some\n"
	"                                      were not kept\n"
	"  fumehood logs a42 --tail 20         the last lines of each\n"
	"  fumehood logs a42 --step 2          only what the second step wrote\n"
	"  fumehood logs -f a42                of a running one: as it comes, until it ends; of a queued\n"
	"                                      one from its start on\n"
	"\n"
	"-f  --tail N  --stdout  --stderr  --post-process  --step N  --attempt N  --db URL  --config FILE  --json\n";

static int report(int r, struct error *err)
{
	/* A reader who has seen enough is no error. */
	return r == 0 || r == -EPIPE ? r
				     : error_system(err, -r, "cannot write the log to the standard output");
}

static int show(void *screen, int stream, const char *data, size_t size, struct error *err)
{
	return report(screen_output(screen, stream, data, size), err);
}

static int show_omitted(void *screen, uint64_t omitted, struct error *err)
{
	char note[80];
	int n = snprintf(note, sizeof note, "[fumehood: %llu bytes were not kept]\n",
			 (unsigned long long)omitted);

	return report(screen_say(screen, note, (size_t)n), err);
}

static int take_state(void *arg, const struct queued *q, struct error *err UNUSED)
{
	*(enum job_state *)arg = q->state;
	return 0;
}

/* Queued: until it runs here (0, *live is to be followed) or has ended (1). What was never queued: 1 as well. */
static int wait_for_start(struct cli *cli, struct live *live, struct error *err)
{
	char *const ids[] = {cli->id, NULL};
	struct error ignored = ERROR_INIT;
	bool told = cli->quiet, is_here = false;
	int r = cli_open(cli, CLI_LEDGER, err);

	if (r < 0)
		return r;
	for (;;) {
		enum job_state state = JOB_FINISHED;
		struct pollfd bell = {.fd = ledger_bell(cli->ledger, &ignored), .events = POLLIN};

		if (hood_live(cli->hood, cli->id, live, &ignored) == 0) {
			is_here = live->alive && !live->held;
			if (is_here)
				break;
			live_done(live);
		}
		r = ledger_queue_look(cli->ledger, ids, take_state, &state, err);
		if (r < 0 || state == JOB_FINISHED || state == JOB_CANCELLED || state == JOB_RESTORED)
			break;
		if (!told)
			fprintf(stderr, "fumehood: %s is %s: waiting for it\n", cli->id,
				job_state_name(state));
		told = true;
		if (poll(&bell, 1, LOOK_AGAIN_MS) > 0)
			ledger_bell_read(cli->ledger, &ignored);
	}
	ledger_bell_end(cli->ledger);
	return r < 0 ? r : !is_here;
}

/* What lies in the files of a live one, and what it still writes. 1: the rest is in the ledger, and *number says of which
 * attempt; 0: that was all. */
static int show_live(struct cli *cli, struct log_reader *v, const struct live *live, bool follows,
		     int *number, struct error *err)
{
	/* Pending, or its supervisor is gone: what there is lies in its files. */
	bool running = live->alive && !live->pending;
	int r;

	if (live->held) {
		_cleanup_attempt_ struct attempt steps;

		r = hood_steps(cli->hood, live->id, &steps, err);
		if (r == 1)
			return log_read_held(v, &steps, err);
		*number = 0;
		return r < 0 ? r : 1;
	}
	*number = live->attempt;
	r = log_skip_live(v, live, err);
	if (r < 0)
		return r;
	if (!follows || !running)
		return log_read_live(v, live, err);
	r = log_follow(v, cli->hood, live, -1, err);
	return r < 0 ? r : 1;
}

/* The ledger has said that it is queued, if it is: and is there anybody to run it? Returns what was said, as it was. */
static int add_whether_alone(struct cli *cli, struct error *err)
{
	_cleanup_free_ char *said = strdup(err->message);
	char *const ids[] = {cli->id, NULL};
	struct error ignored = ERROR_INIT;
	enum job_state state = JOB_FINISHED;
	struct workers_view workers;

	if (!said || cli_open(cli, CLI_LEDGER, &ignored) < 0 ||
	    ledger_queue_look(cli->ledger, ids, take_state, &state, &ignored) < 0 ||
	    (state != JOB_QUEUED && state != JOB_WAITING) ||
	    workers_view_load(&workers, cli->ledger, &ignored) < 0 || workers.takes)
		return -1;
	return error_set(err, ERROR_NOT_FOUND,
			 "%s, and no worker is alive for this ledger: start one with 'fumehood worker'",
			 said);
}

static int show_logs(struct cli *cli, struct log_reader *v, int number, bool follows, struct error *err)
{
	_cleanup_attempt_ struct attempt a;
	struct error ignored = ERROR_INIT;
	json_t *json = NULL;
	struct live live;
	bool followed = false, is_live;
	char pruned[PRINT_ROOM];
	int r;

	attempt_init(&a);
	is_live = number == 0 && !cli->json && hood_live(cli->hood, cli->id, &live, &ignored) == 0;
	if (!is_live && number == 0 && follows) {
		r = wait_for_start(cli, &live, err);
		if (r < 0)
			return r;
		is_live = r == 0;
	}
	if (is_live) {
		r = show_live(cli, v, &live, follows, &number, err);
		followed = !live.held;
		live_done(&live);
		if (r <= 0)
			return r;
	}
	r = view_load(cli->hood, cli->id, number, &cli->ledger, &a, err);
	if (r < 0 && err->kind == ERROR_NOT_FOUND && number == 0 && !followed)
		return add_whether_alone(cli, err);
	/* A followed one that was not committed has been shown as far as it can be. */
	if (r < 0)
		return followed && err->kind == ERROR_NOT_FOUND ? 0 : r;
	if (a.pruned && !cli->json)
		fprintf(stderr,
			"fumehood: the logs of %s (attempt %d) were removed at %s; its outputs were kept\n",
			cli->id, a.number, print_instant(a.pruned, pruned));
	return cli->json ? cli_answer(cli, view_logs_load(cli->ledger, &a, v->wanted, v->lines, &json, err),
				      &json, err)
			 : log_read_kept(v, cli->ledger, &a, err);
}

static int logs_main(struct cli *cli, struct error *err)
{
	struct screen screen = {.fd = STDOUT_FILENO, .is_terminal = cli->out.is_tty};
	struct log_reader v = {.put = show, .omitted = show_omitted, .arg = &screen};
	bool follows = false;
	int number = 0, r;
	const struct option_row own[] = {
		{"-f", OPTION_FLAG, &follows, NULL, "follows one that is running until its end"},
		{"--follow", OPTION_FLAG, &follows, NULL, "the same"},
		{"--stdout", OPTION_FLAG, &v.wanted[STREAM_STDOUT], NULL, "only what it wrote to stdout"},
		{"--stderr", OPTION_FLAG, &v.wanted[STREAM_STDERR], NULL, "only what it wrote to stderr"},
		{"--post-process", OPTION_FLAG, &v.wanted[STREAM_POST], NULL,
		 "only what its post-process said"},
		{"--tail", OPTION_NUMBER, &v.lines, "N", "only the last lines of each"},
		{"--attempt", OPTION_NUMBER, &number, "N", "that attempt, instead of the latest"},
		{"--step", OPTION_NUMBER, &v.step, "N", "only what that step wrote"},
		{0},
	};

	r = cli_begin(cli, own, err);
	if (r < 0)
		return r;
	if (follows && cli->json)
		return error_set(err, ERROR_USAGE,
				 "-f and --json do not go together: one is a stream, the other one object");
	if (!v.wanted[STREAM_STDOUT] && !v.wanted[STREAM_STDERR] && !v.wanted[STREAM_POST])
		v.wanted[STREAM_STDOUT] = v.wanted[STREAM_STDERR] = true;
	r = cli_open(cli, CLI_ID | CLI_HOOD, err);
	if (r == 0)
		r = show_logs(cli, &v, number, follows, err);
	if (r == 0)
		r = report(screen_end(&screen), err);
	return r == -EPIPE ? 0 : r;
}

const struct command command_logs = {
	.name = "logs",
	.usage = "logs ID [-f] [--tail N] [--stdout|--stderr|--post-process]",
	.summary = "what an analysis wrote; -f follows a running one",
	.help = help,
	.main = logs_main,
	.words_min = 1,
	.words_max = 1,
};
