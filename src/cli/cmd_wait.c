/*
 * fumehood wait: until queued analyses have ended. Whoever stops waiting changes nothing.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "clock.h"
#include "meter.h"
#include "queue_words.h"
#include "signals.h"

enum { REDRAW_MS = 500, STATUS_CANCELLED = 143 };
/* A worker may die, or come, while one waits. */
static const uint64_t workers_every_ns = 10 * NSEC_PER_SEC;

static const char help[] =
	"  fumehood wait a42\n"
	"  fumehood wait a42 a43 a44           all of them\n"
	"  fumehood wait sweep                 every task of an array\n"
	"  fumehood wait a42 --json\n"
	"\n"
	"Ctrl-C ends the waiting, not the analyses.\n"
	"--db URL  --config FILE  --json  --quiet\n"
	"\n"
	"Exit status: 0 if all succeeded, else that of the first that did not, as 'run' has it.\n";

struct wait_answer {
	struct cli *cli;
	struct meter meter;
	size_t first; /* of those that did not succeed */
	int status;
	json_t *ends; /* with --json */
	bool has_one; /* only one is waited for */
	struct wait_counts counts;
	uint64_t workers_at; /* clock_now() of the next look for a worker */
	bool is_alone;	     /* there was none: said once */
};

static json_t *end_json(const struct queued *q, int status)
{
	return json_pack("{s:s, s:s, s:s, s:i, s:o, s:s?}", "id", q->id, "state", job_state_name(q->state),
			 "verdict", verdict_name(q->verdict), "status", status, "attempt",
			 q->attempt > 0 ? json_integer(q->attempt) : json_null(), "reason", q->reason);
}

static void on_ended(void *arg, size_t index, const struct queued *q)
{
	struct wait_answer *t = arg;
	bool ok = q->verdict == VERDICT_SUCCEEDED;
	int status = ok				 ? 0
		     : q->status > 0		 ? q->status
		     : q->state == JOB_CANCELLED ? STATUS_CANCELLED
						 : STATUS_OURS;
	_cleanup_free_ char *reason = !ok && q->reason ? text_safe(q->reason) : NULL;

	if (t->ends)
		json_array_append_new(t->ends, end_json(q, status));
	if (!ok && index < t->first) {
		t->first = index;
		t->status = status;
	}
	if (!ok || t->has_one)
		meter_say(&t->meter, "%s %s%s%s%s%s", q->id,
			  terminal_style(&t->cli->err, view_verdict_style(q->verdict)),
			  verdict_name(q->verdict), terminal_style(&t->cli->err, STYLE_RESET),
			  reason && *reason ? ": " : "", reason ? reason : "");
}

static void look_for_worker(struct wait_answer *t, const struct wait_counts *c)
{
	uint64_t now = clock_now();

	if (t->is_alone || c->succeeded + c->failed == c->total || now < t->workers_at || t->cli->json)
		return;
	t->workers_at = now + workers_every_ns;
	meter_end(&t->meter);
	t->is_alone = warn_of_no_worker(t->cli, c->queued + c->waiting > 0, NULL);
}

static void on_progress(void *arg, const struct wait_counts *c)
{
	struct wait_answer *t = arg;

	t->counts = *c;
	look_for_worker(t, c);
	meter_show(&t->meter, c);
}

static int tell_stop(struct wait_answer *t, int signal_fd, size_t n)
{
	unsigned char number = 0;

	(void)!read(signal_fd, &number, 1);
	if (n > 1)
		meter_say(&t->meter, "%s; they go on without you", t->meter.last);
	else
		meter_say(&t->meter, "it goes on without you");
	return 128 + number;
}

int wait_and_tell(struct cli *cli, char *const *ids, json_t *json, struct error *err)
{
	size_t n = strv_length(ids);
	struct wait_answer t = {.cli = cli,
				.meter = {.cli = cli},
				.first = n,
				.ends = cli->json ? json_array() : NULL,
				.has_one = n == 1};
	struct wait_hooks hooks = {.arg = &t,
				   .ended = on_ended,
				   .progress = on_progress,
				   .progress_ms =
					   cli->err.is_tty && !cli->quiet && !cli->json ? REDRAW_MS : 0,
				   .stop_fd = -1};
	int r = signals_open(&hooks.stop_fd, err);

	if (r == 0)
		r = wait_for(cli->ledger, ids, &hooks, err);
	meter_end(&t.meter);
	if (r == 0 && n > 1)
		meter_say(&t.meter, "%zu succeeded, %zu did not", t.counts.succeeded, t.counts.failed);
	if (r > 0)
		t.status = tell_stop(&t, hooks.stop_fd, n);
	fd_close(hooks.stop_fd);
	if (r >= 0 && !cli->json)
		return t.status;
	json_object_set_new(json, "ended", t.ends);
	if (r >= 0)
		r = cli_print_json(cli, json, err);
	else
		json_decref(json);
	return r < 0 ? r : t.status;
}

static int wait_main(struct cli *cli, struct error *err)
{
	_cleanup_strv_ char **ids = NULL;
	int r = queue_begin(cli, NULL, true, &ids, err);

	return r < 0 ? r : wait_and_tell(cli, ids, cli->json ? json_object() : NULL, err);
}

const struct command command_wait = {
	.name = "wait",
	.usage = "wait ID…",
	.summary = "waits until queued analyses have ended",
	.help = help,
	.main = wait_main,
	.words_min = 1,
	.words_max = 1 << 30,
	.opens = CLI_LEDGER,
};
