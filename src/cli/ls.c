/*
 * fumehood ls: one row per analysis, those that are running first. What is running is in no ledger yet: it comes from
 * the state directory, and replaces the row of an earlier attempt.
 */
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "print.h"
#include "queue.h"

static const char help[] =
	"  fumehood ls\n"
	"  fumehood ls --state failed          only these\n"
	"  fumehood ls --state queued\n"
	"  fumehood ls a4                      ids that begin with a4\n"
	"  fumehood ls --json | jq -r '.[].id'\n"
	"\n"
	"--state S   waiting, queued, running, cancelled, held, dead (gc finishes it), finished,\n"
	"            or a verdict\n"
	"--limit N   the newest N of the ledger\n"
	"--db URL  --config FILE  --json\n";

/* What is no verdict: of the state directory, and of the queue. */
static const char *const live_states[] = {"running", "held", "dead", "waiting", "queued"};

struct listing {
	struct cli *cli;
	const char *state;  /* NULL: all */
	const char *prefix; /* NULL: all */
	struct table table;
	json_t *array; /* with --json */
	json_t *live;  /* ids that have a row from the state directory or the queue: {"a42": true} */
	json_t *held;  /* held or kept ones, shown only if the ledger does not know them */
};

static void listing_done(struct listing *l)
{
	table_done(&l->table);
	json_decref(l->array);
	json_decref(l->live);
	json_decref(l->held);
}

static bool is_live_state(const char *state)
{
	for (size_t i = 0; i < ARRAY_SIZE(live_states); i++)
		if (strcmp(live_states[i], state) == 0)
			return true;
	return false;
}

static const char *live_state(const struct live *l)
{
	return l->held ? "held" : l->alive ? "running" : "dead";
}

static json_t *row_json(const struct attempt *a, const char *state, const char *verdict)
{
	char created[CLOCK_TEXT_SIZE] = "", started[CLOCK_TEXT_SIZE] = "";

	if (a->created)
		clock_format(a->created, created);
	if (a->started)
		clock_format(a->started, started);
	return json_pack("{s:s, s:s, s:s?, s:o, s:s?, s:s?, s:o}", "id", a->id, "state", state, "verdict",
			 verdict, "attempt", a->number > 0 ? json_integer(a->number) : json_null(), "created",
			 *created ? created : NULL, "started", *started ? started : NULL, "usage",
			 usage_to_json(&a->usage));
}

/* A row of either source; verdict NULL: none yet. */
static int add_row(struct listing *l, const struct attempt *a, const char *state, const char *verdict)
{
	char number[16], since[PRINT_ROOM], wall[PRINT_ROOM], cpu[PRINT_ROOM], memory[PRINT_ROOM], shown[64];
	const struct terminal *t = &l->cli->out;

	if (l->cli->json)
		return json_array_append_new(l->array, row_json(a, state, verdict));
	snprintf(number, sizeof number, "%d", a->number);
	snprintf(shown, sizeof shown, "%s%s%s", terminal_style(t, cli_verdict_style(a->verdict)),
		 verdict ? verdict : state, terminal_style(t, STYLE_RESET));
	table_add(&l->table, a->id, a->number > 0 ? number : "-", shown,
		  print_instant(a->started ? a->started : a->created, since),
		  print_duration(a->usage.wall_ms, wall), print_duration(a->usage.cpu_ms, cpu),
		  print_size(a->usage.memory_peak_bytes, memory));
	return 0;
}

static int add_live_row(struct listing *l, const char *id, int number, int64_t created, const char *state)
{
	struct attempt a;
	int r;

	if ((l->state && strcmp(l->state, state) != 0) ||
	    (l->prefix && strncmp(id, l->prefix, strlen(l->prefix)) != 0))
		return 0;
	attempt_init(&a);
	snprintf(a.id, sizeof a.id, "%s", id);
	a.number = number;
	a.created = created;
	if (strcmp(state, "running") == 0)
		a.usage.wall_ms = (clock_utc() - created) / (int64_t)NSEC_PER_MSEC;
	r = add_row(l, &a, state, NULL);
	attempt_done(&a);
	return r;
}

static int on_live(void *arg, const struct live *live)
{
	struct listing *l = arg;

	if (live->held)
		return json_object_set_new(l->held, live->id, json_integer(live->created));
	if (json_object_set_new(l->live, live->id, json_true()) < 0)
		return -1;
	return add_live_row(l, live->id, live->attempt, live->created, live_state(live));
}

static int on_ledger_row(void *arg, const struct attempt *a, struct error *err)
{
	struct listing *l = arg;

	if (!l->state)
		json_object_del(l->held, a->id);
	if (json_object_get(l->live, a->id) || (l->state && is_live_state(l->state)))
		return 0;
	return add_row(l, a, "finished", verdict_name(a->verdict)) < 0 ? error_memory(err) : 0;
}

static bool wants(const struct listing *l, const char *state, const char *id)
{
	return (!l->state || strcmp(l->state, state) == 0) &&
	       (!l->prefix || strncmp(id, l->prefix, strlen(l->prefix)) == 0);
}

/* What the queue has replaces the row of an earlier attempt. */
static int on_queued(void *arg, const struct queued *q, struct error *err)
{
	const char *state = job_state_name(q->state);
	struct listing *l = arg;
	struct attempt a;
	int r = 0;

	if (json_object_get(l->live, q->id))
		return 0;
	if (json_object_set_new(l->live, q->id, json_true()) < 0)
		return error_memory(err);
	attempt_init(&a);
	memcpy(a.id, q->id, sizeof a.id);
	a.number = q->attempt;
	a.created = q->submitted;
	if (wants(l, state, q->id))
		r = add_row(l, &a, state, q->state == JOB_CANCELLED ? state : NULL);
	attempt_done(&a);
	return r < 0 ? error_memory(err) : 0;
}

static int list_queue(struct listing *l, struct ledger *ledger, int limit, struct error *err)
{
	static const enum job_state shown[] = {JOB_RUNNING, JOB_QUEUED, JOB_WAITING, JOB_CANCELLED};
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(shown); i++)
		r = ledger_queue_list(ledger, (int)shown[i], l->prefix, limit, on_queued, l, err);
	return r;
}

static int check_state(const char *state, struct error *err)
{
	enum verdict v;
	char shown[64];

	if (!state || is_live_state(state) || strcmp(state, "finished") == 0 || verdict_parse(state, &v) == 0)
		return 0;
	return error_set(err, ERROR_USAGE, "there is no state '%s': fumehood help ls names them",
			 text_escape_into(shown, sizeof shown, state, strlen(state)));
}

static int list(struct listing *l, int limit, struct error *err)
{
	_cleanup_hood_ struct hood *hood = NULL;
	struct ledger *ledger;
	bool is_verdict = l->state && !is_live_state(l->state) && strcmp(l->state, "finished") != 0;
	struct ledger_filter filter = {
		.state = is_verdict ? l->state : NULL, .prefix = l->prefix, .limit = limit};
	const char *id;
	json_t *created;
	int r = cli_hood(l->cli, &hood, err);

	if (r == 0)
		r = hood_live_each(hood, on_live, l, err);
	if (r < 0 && err->kind == ERROR_NONE)
		return error_memory(err);
	if (r == 0)
		r = cli_ledger(hood, &ledger, err);
	if (r == 0)
		r = list_queue(l, ledger, limit, err);
	if (r == 0)
		r = ledger_list(ledger, &filter, on_ledger_row, l, err);
	if (r < 0 || is_verdict)
		return r;
	json_object_foreach (l->held, id, created)
		if (add_live_row(l, id, 0, json_integer_value(created), "held") < 0)
			return error_memory(err);
	return 0;
}

static int ls_main(struct cli *cli, int argc, char **argv, struct error *err)
{
	_cleanup_(listing_done) struct listing l = {.cli = cli, .table = {.n_columns = 7, .right = 0x72}};
	int limit = 0;
	const struct option_row table[] = {CLI_OPTIONS(cli),
					   {"--state", OPTION_TEXT, &l.state},
					   {"--limit", OPTION_NUMBER, &limit},
					   {0}};
	_cleanup_options_ struct options o = {.table = table};
	int r = cli_parse(cli, &o, argc, argv, err);

	if (r != 0)
		return r < 0 ? r : 0;
	l.prefix = o.words[0];
	l.array = json_array();
	l.live = json_object();
	l.held = json_object();
	table_add(&l.table, "ID", "ATTEMPT", "VERDICT", "STARTED", "WALL", "CPU", "MEMORY");
	if (!l.array || !l.live || !l.held)
		return error_memory(err);
	r = check_state(l.state, err);
	if (r == 0)
		r = list(&l, limit, err);
	if (r < 0)
		return r;
	return cli->json ? cli_print_json(cli, TAKE_PTR(l.array), err) : table_print(&l.table, stdout, err);
}

const struct command command_ls = {
	.name = "ls",
	.usage = "ls [PREFIX] [--state S] [--limit N]",
	.summary = "lists analyses, the newest first",
	.help = help,
	.main = ls_main,
	.words_max = 1,
};
