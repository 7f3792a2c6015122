/*
 * fumehood show: one attempt, whole: what was asked, what was in force, what happened, what came out.
 */
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "show.h"

static const char help[] =
	"  fumehood show a42\n"
	"  fumehood show a42 --attempt 1       an earlier one\n"
	"  fumehood show a42 --json | jq .usage\n"
	"  fumehood show a42 --trace           one line with the columns of a Nextflow trace\n"
	"\n"
	"--attempt N  --trace  --db URL  --config FILE  --json (with request, plan, events, attempts)\n";

struct subject {
	struct attempt attempt; /* as the ledger has it */
	json_t *attempts;
	bool in_ledger;
	struct live live;
	bool is_live; /* a run is going on, or a workspace is held */
	struct queue_view queue;
};

static void subject_done(struct subject *s)
{
	attempt_done(&s->attempt);
	json_decref(s->attempts);
	if (s->is_live)
		live_done(&s->live);
	queue_view_done(&s->queue);
}

/* Either source will do: a first run that is going on is not in the ledger yet. */
static int subject_load(struct subject *s, struct hood *h, const char *id, int number, struct error *err)
{
	struct error live_err = ERROR_INIT;
	struct ledger *ledger;
	int r = cli_ledger(h, &ledger, err);

	if (r < 0)
		return r;
	s->is_live = hood_live(h, id, &s->live, &live_err) == 0;
	r = queue_view_load(&s->queue, ledger, id, err);
	if (r < 0)
		return r;
	r = ledger_load(ledger, id, number, &s->attempt, err);
	s->in_ledger = r == 0;
	if (s->in_ledger)
		return ledger_attempts(ledger, id, &s->attempts, err);
	if (err->kind == ERROR_NOT_FOUND && (s->is_live || s->queue.found) && number == 0) {
		s->attempts = json_array();
		return 0;
	}
	return r;
}

static const char *subject_state(const struct subject *s)
{
	if (s->is_live && !s->live.held)
		return s->live.alive ? "running" : "dead";
	if (s->queue.found)
		return job_state_name(s->queue.state);
	return s->in_ledger ? "finished" : "held";
}

/* A first run that is going on, as far as an attempt can say it. */
static void subject_complete(struct subject *s)
{
	if (s->in_ledger)
		return;
	if (s->queue.found) {
		memcpy(s->attempt.id, s->queue.job.id, sizeof s->attempt.id);
		s->attempt.created = s->queue.submitted;
		s->attempt.request = json_incref(s->queue.job.request);
	}
	if (!s->is_live)
		return;
	snprintf(s->attempt.id, sizeof s->attempt.id, "%s", s->live.id);
	s->attempt.number = s->live.attempt;
	s->attempt.created = s->live.created;
	s->attempt.workspace = s->live.path ? strdup(s->live.path) : NULL;
}

static json_t *subject_json(struct subject *s)
{
	json_t *json = attempt_to_public_json(&s->attempt, true);

	if (!json)
		return NULL;
	if (!s->in_ledger)
		json_object_set_new(json, "verdict", json_null());
	json_object_set_new(json, "state", json_string(subject_state(s)));
	json_object_set(json, "attempts", s->attempts);
	json_object_set_new(json, "queue", s->queue.found ? queue_view_json(&s->queue) : json_null());
	return json;
}

static void print_live(const struct cli *cli, const struct subject *s)
{
	char since[PRINT_ROOM];
	_cleanup_free_ char *path = cli_escape(s->live.path);
	const char *id = s->live.id;

	print_instant(s->live.created, since);
	if (s->live.held)
		printf("%s has a workspace that is held since %s: %s\n", id, since, path);
	else if (s->live.alive)
		printf("%s%s attempt %d is running%s since %s: fumehood logs -f %s\n",
		       terminal_style(&cli->out, STYLE_YELLOW), id, s->live.attempt,
		       terminal_style(&cli->out, STYLE_RESET), since, id);
	else
		printf("%s attempt %d of %s was left by a supervisor that died: fumehood gc finishes it\n",
		       id, s->live.attempt, since);
}

static int show_main(struct cli *cli, int argc, char **argv, struct error *err)
{
	_cleanup_(subject_done) struct subject s = {0};
	_cleanup_hood_ struct hood *hood = NULL;
	int number = 0;
	bool trace = false;
	const struct option_row table[] = {CLI_OPTIONS(cli),
					   {"--attempt", OPTION_NUMBER, &number},
					   {"--trace", OPTION_FLAG, &trace},
					   {0}};
	_cleanup_options_ struct options o = {.table = table};
	int r;

	attempt_init(&s.attempt);
	r = cli_parse(cli, &o, argc, argv, err);
	if (r != 0)
		return r < 0 ? r : 0;
	if (trace && cli->json)
		return error_set(err, ERROR_USAGE, "--trace and --json are two forms: choose one");
	r = cli_take_id(cli, o.words[0], err);
	if (r == 0)
		r = cli_hood(cli, &hood, err);
	if (r == 0)
		r = subject_load(&s, hood, o.words[0], number, err);
	if (r < 0)
		return r;
	subject_complete(&s);
	if (trace) {
		show_trace(&s.attempt);
		return 0;
	}
	if (cli->json)
		return cli_print_json(cli, subject_json(&s), err);
	if (s.is_live)
		print_live(cli, &s);
	if (s.queue.found && (!s.in_ledger || s.queue.state != JOB_FINISHED))
		show_queued(cli, o.words[0], &s.queue);
	if (s.queue.found && !s.in_ledger)
		return show_request(cli, &s.queue, err);
	return s.in_ledger ? show_attempt(cli, &s.attempt, s.attempts, err) : 0;
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
