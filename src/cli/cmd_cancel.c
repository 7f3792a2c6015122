/*
 * fumehood cancel: what is queued never starts, what is running is told to end, what is pending is given up. Twice is as once.
 */
#include <stdio.h>
#include <string.h>

#include "array.h"
#include "cli.h"
#include "queue_words.h"
#include "signals.h"

static const char help[] =
	"  fumehood cancel a42\n"
	"  fumehood cancel sweep               every task of an array\n"
	"\n"
	"What waits for it (--after) is cancelled too. A running one is ended by its worker, and its\n"
	"verdict is cancelled; fumehood wait waits for that. What 'run' or a program has started here, as the\n"
	"same user, is ended as by Ctrl-C, and waited for; a step of a held workspace likewise. One that is\n"
	"pending (its command has ended, and it could not be finished) is given up: its outputs are thrown away,\n"
	"and it is recorded as cancelled.\n"
	"--db URL  --config FILE  --json  --quiet\n";

static const char *what_was_done(const char *was)
{
	static const char *const table[JOB_STATES] = {
		[JOB_WAITING] = "is cancelled",
		[JOB_QUEUED] = "is cancelled",
		[JOB_RUNNING] = "is running, and its worker is told to end it",
		[JOB_FINISHED] = "has ended already",
		[JOB_CANCELLED] = "was cancelled before",
		[JOB_RESTORED] = "is cancelled",
	};

	for (int i = 0; i < JOB_STATES; i++)
		if (strcmp(was, job_state_name((enum job_state)i)) == 0)
			return table[i];
	return "was pending, and is given up: its outputs are thrown away, and it is recorded as cancelled";
}

struct cancel_answer {
	const struct cli *cli;
	json_t *here; /* {id: true}: what could not be finished here, or runs here and is no worker's */
	json_t *answers;
	struct run_stop *stops; /* to be waited for */
	size_t n_stops;
	struct error first; /* of those that are not there */
	int r;
};

static int note_here(void *here, const struct live *live)
{
	bool is_ours = live->pending || (live->alive && !live->held && !live->queued);

	return is_ours ? json_object_set_new(here, live->id, json_true()) : 0;
}

static void note_failure(struct cancel_answer *t, const struct error *why)
{
	if (t->r == 0)
		t->first = *why;
	t->r = -1;
}

/* What is not in the queue, or is something here, is a matter for the hood. */
static void on_cancelled(void *arg, const char *id, bool found, enum job_state before)
{
	const char *was = job_state_name(before), *here = was;
	struct run_stop stop = {.fd = -1}, *added;
	struct error why = ERROR_INIT;
	struct cancel_answer *t = arg;

	if ((!found || json_object_get(t->here, id)) &&
	    hood_cancel(t->cli->hood, id, &here, &stop, &why) < 0) {
		note_failure(t, &why);
		return;
	}
	if (stop.fd >= 0) {
		added = ARRAY_ADD(t->stops, t->n_stops);
		if (added) {
			*added = stop;
			return;
		}
		run_stop_done(&stop); /* it is told, and nobody waits for it */
	}
	was = !found || strcmp(here, "pending") == 0 ? here : was;
	if (t->cli->json)
		json_array_append_new(t->answers, json_pack("{s:s, s:s}", "id", id, "was", was));
	else if (!t->cli->quiet)
		printf("%s %s\n", id, what_was_done(was));
}

static void tell_stopped(struct cancel_answer *t, const struct run_stop *s, enum verdict v)
{
	const struct cli *cli = t->cli;
	char step[32] = "";

	if (s->step)
		snprintf(step, sizeof step, " step %zu", s->step);
	if (cli->json)
		json_array_append_new(
			t->answers,
			json_pack("{s:s, s:s, s:o}", "id", s->id, "was", "running", "verdict",
				  v == VERDICT_NONE ? json_null() : json_string(verdict_name(v))));
	else if (cli->quiet)
		return;
	else if (v == VERDICT_CANCELLED)
		printf("%s%s was running here, and is cancelled\n", s->id, step);
	else if (v == VERDICT_NONE)
		printf("%s%s was running here, and has ended without a verdict: fumehood show %s\n", s->id,
		       step, s->id);
	else
		printf("%s%s was running here, and had ended before it could be cancelled: %s\n", s->id, step,
		       verdict_name(v));
}

/* All were told at once, and end side by side. 1: nobody waits any longer. */
static int wait_for_stops(struct cancel_answer *t, int signal_fd, struct error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < t->n_stops; i++) {
		enum verdict v = VERDICT_NONE;

		r = run_stop_wait(t->cli->hood, &t->stops[i], signal_fd, &v, err);
		if (r == 0)
			tell_stopped(t, &t->stops[i], v);
	}
	for (size_t i = 0; i < t->n_stops; i++)
		run_stop_done(&t->stops[i]);
	free(t->stops);
	return r > 0 ? error_set(err, ERROR_BUSY,
				 "stopped waiting: what runs here was told to end, and ends without you")
		     : r;
}

/* Those that are there are cancelled whatever the others are. */
static int cancel_all(struct cli *cli, char *const *ids, struct error *err)
{
	json_auto_t *here = json_object();
	json_auto_t *answers = json_array();
	struct cancel_answer t = {.cli = cli, .here = here, .answers = answers, .first = ERROR_INIT};
	_cleanup_close_ int signal_fd = -1;
	int r = hood_live_each(cli->hood, note_here, here, err), waited;

	if (r < 0)
		return err->kind == ERROR_NONE ? error_memory(err) : r;
	/* Who is told must not be told by halves: Ctrl-C only ends the waiting. */
	if (json_object_size(here) > 0 && signals_open(&signal_fd, err) < 0)
		return -1;
	r = ledger_cancel_many(cli->ledger, ids, on_cancelled, &t, err);
	waited = wait_for_stops(&t, signal_fd, r < 0 ? &t.first : err);
	if (r < 0 || waited < 0)
		return r < 0 ? r : waited;
	if (t.r < 0) {
		*err = t.first;
		return t.r;
	}
	return cli->json ? cli_print_json(cli, json_pack("{s:O}", "analyses", answers), err) : 0;
}

static int cancel_main(struct cli *cli, struct error *err)
{
	_cleanup_strv_ char **ids = NULL;
	int r = queue_begin(cli, NULL, false, &ids, err);

	return r < 0 ? r : cancel_all(cli, ids, err);
}

const struct command command_cancel = {
	.name = "cancel",
	.usage = "cancel ID…",
	.summary = "cancels queued and running analyses",
	.help = help,
	.main = cancel_main,
	.words_min = 1,
	.words_max = 1 << 30,
	.opens = CLI_LEDGER,
};
