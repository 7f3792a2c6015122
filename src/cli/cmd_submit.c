/*
 * fumehood submit: the words of the command line, a file or many lines become jobs, and all of them go into the queue,
 * or none.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "asked.h"
#include "cli.h"
#include "member.h"
#include "meter.h"
#include "queue_words.h"
#include "submission.h"

enum { SUBMITTER_MAX = 128, LINE_MAX_BYTES = 1 << 20 };

static const char help[] =
	"  fumehood submit a42 -- python3 analysis.py         as run, later, by a worker\n"
	"  fumehood submit a43 --after a42 --priority 5 -- python3 next.py\n"
	"  fumehood submit sweep --array 1-1000 -- python3 fit.py --seed {task}\n"
	"  fumehood submit redo --array 3,17,40-60:5 -- python3 fit.py --seed {task}\n"
	"  fumehood submit -f request.yaml\n"
	"  fumehood submit -f many.jsonl                      one request per line, all or none\n"
	"  fumehood submit a44 --wait -- ./simulate           and wait for its end\n"
	"\n"
	"Every option of run (fumehood help run) but -i. Files are stored now: you may leave and delete them.\n";

static const struct help_group groups[] = {
	{"the queue", GROUP_QUEUE, "--submitter NAME (within the owner's share of the workers)"},
	{"many", GROUP_NONE,
	 "--array 1-9 (or 1,3,5, or 1-99:2; {task} is the number, ids are ID.1 …)  --lines FILE (JSON Lines; - is stdin)  "
	 "-f FILE (.jsonl: the same)"},
	{"the rest", GROUP_NONE,
	 "--if-absent (an id that is there already is left as it is)  --wait  --dry-run  --db URL  --config FILE  --json  --quiet"},
	{0},
};

static const char notes[] =
	"Prints the id, of many one per line. What is lost (a worker or its host died) is tried again, what\n"
	"failed only with --retry-on.\n";

struct submit_words {
	struct request request;
	const char *file, *lines, *array, *submitter;
	bool if_absent, waits, dry_run;
	struct tasks tasks; /* of an array */
};

static void submit_done(struct submit_words *s)
{
	request_done(&s->request);
	tasks_done(&s->tasks);
}

/* ---- what was asked ---- */

static bool is_lines(const char *file)
{
	size_t n = strlen(file);

	return (n > 6 && strcmp(file + n - 6, ".jsonl") == 0) ||
	       (n > 7 && strcmp(file + n - 7, ".ndjson") == 0);
}

static int check_submitter(const char *name, struct error *err)
{
	if (*name && strlen(name) <= SUBMITTER_MAX && utf8_valid(name, strlen(name)) && !strchr(name, '\n'))
		return 0;
	return error_set(err, ERROR_USAGE,
			 "submitter '%s' makes no sense: give a name of 1 to %d bytes in UTF-8",
			 SHOWN(64, name), SUBMITTER_MAX);
}

static int check_combination(const struct submit_words *s, struct error *err)
{
	if (s->lines && s->file)
		return error_set(err, ERROR_USAGE, "-f and --lines are two sources: choose one");
	if (s->lines && s->array)
		return error_set(err, ERROR_USAGE,
				 "--array and many lines do not go together: write the lines out");
	if (s->lines && s->request.id)
		return error_set(err, ERROR_USAGE, "'%s' cannot be the id of many: each line has its own",
				 s->request.id);
	if (s->lines && s->dry_run)
		return error_set(err, ERROR_USAGE, "--dry-run shows one: submit one, or use run --dry-run");
	if (s->request.stdin_open)
		return error_set(
			err, ERROR_REFUSED,
			"-i: a queued analysis has no standard input, its submitter may be gone: put it into a file, and name that");
	return s->submitter ? check_submitter(s->submitter, err) : 0;
}

static int parse(struct cli *cli, struct submit_words *s, struct error *err)
{
	const struct option_row own[] = {
		{"-f", OPTION_TEXT, &s->file, "FILE",
		 "a request as YAML or JSON, or many in a .jsonl file; - is stdin"},
		{"--lines", OPTION_TEXT, &s->lines, "FILE", "requests as JSON, one per line; - is stdin"},
		{"--array", OPTION_TEXT, &s->array, "A-B[:STEP][,N]", "one analysis for each number"},
		{"--submitter", OPTION_TEXT, &s->submitter, "NAME", "a name within the share of the owner"},
		{"--if-absent", OPTION_FLAG, &s->if_absent, NULL,
		 "an id that is there already is left as it is"},
		{"--wait", OPTION_FLAG, &s->waits, NULL, "waits for the end"},
		{"--dry-run", OPTION_FLAG, &s->dry_run, NULL, "shows the plan and queues nothing"},
		{0},
	};
	int r = asked_begin(cli, own, &s->request, err);

	if (r == 0)
		r = asked_take_words(cli, &s->request, s->file || s->lines, err);
	if (r < 0)
		return r;
	if (s->file && is_lines(s->file)) {
		if (s->lines)
			return error_set(err, ERROR_USAGE, "-f and --lines are two sources: choose one");
		s->lines = TAKE_PTR(s->file);
	}
	r = asked_complete(&s->request, s->file, err);
	if (r == 0)
		r = check_combination(s, err);
	return r == 0 && s->array ? tasks_parse(s->array, &s->tasks, err) : r;
}

/* ---- one, an array, many lines ---- */

static int add_one(struct submission *to, const struct request *r, struct error *err)
{
	int k = request_check(r, err);

	return k < 0 ? k : submission_add(to, r, err);
}

static int add_array(struct submit_words *s, struct submission *to, struct error *err)
{
	char id[ID_ROOM];
	int r;

	if (!s->request.id && ((r = id_make(id, err)) < 0 || (r = text_set(&s->request.id, id, err)) < 0))
		return r;
	return submission_add_array(to, &s->request, &s->tasks, err);
}

static bool is_blank(const char *line)
{
	return line[strspn(line, " \t\r\n")] == 0;
}

static int add_line(const struct submit_words *s, struct submission *to, const char *line, size_t size,
		    const char *file, unsigned number, struct error *err)
{
	_cleanup_request_ struct request r;
	int k;

	request_init(&r);
	if ((k = request_inherit(&r, &s->request, err)) < 0 ||
	    (k = request_parse_line(&r, line, size, file, number, err)) < 0)
		return k;
	k = add_one(to, &r, err);
	return k < 0 ? error_prefix(err, k, "%s:%u", file, number) : 0;
}

static int add_lines(const struct submit_words *s, struct submission *to, struct error *err)
{
	bool is_stdin = strcmp(s->lines, "-") == 0;
	const char *name = is_stdin ? "stdin" : s->lines;
	_cleanup_free_ char *line = NULL;
	FILE *f = is_stdin ? stdin : fopen(s->lines, "re");
	unsigned number = 0;
	size_t room = 0;
	ssize_t n;
	int r = 0;

	if (!f)
		return error_system(err, errno, "cannot open '%s'", s->lines);
	while (r == 0 && (n = getline(&line, &room, f)) > 0) {
		number++;
		if (n > LINE_MAX_BYTES)
			r = error_set(err, ERROR_USAGE, "%s:%u: longer than %d bytes", name, number,
				      LINE_MAX_BYTES);
		else if (!is_blank(line))
			r = add_line(s, to, line, (size_t)n, name, number, err);
	}
	if (r == 0 && ferror(f))
		r = error_system(err, errno, "cannot read '%s'", name);
	if (!is_stdin)
		fclose(f);
	if (r == 0 && submission_count(to) == 0)
		r = error_set(err, ERROR_USAGE, "'%s' has no request in it: one JSON object per line", name);
	return r;
}

/* ---- the answer ---- */

static json_t *answer_json(struct submission *from)
{
	json_t *ids = json_array(), *warnings = json_array(), *object;
	char *const *said = submission_notes(from);
	size_t n = submission_count(from), n_new = 0;

	for (size_t i = 0; i < n; i++) {
		json_array_append_new(ids, json_string(submission_id(from, i)));
		n_new += submission_is_new(from, i);
	}
	for (size_t i = 0; said && said[i]; i++)
		json_array_append_new(warnings, json_text(said[i]));
	object = json_pack("{s:o, s:I, s:o}", "ids", ids, "new", (json_int_t)n_new, "warnings", warnings);
	if (n == 1)
		json_object_set_new(object, "id", json_string(submission_id(from, 0)));
	return object;
}

static void print_warnings(const struct cli *cli, const struct submission *from)
{
	char *const *said = submission_notes(from);

	for (size_t i = 0; said && said[i]; i++) {
		_cleanup_free_ char *line = view_warning(said[i], cli->err.colour);

		if (line)
			fputs(line, stderr);
	}
}

static void print_ids(const struct cli *cli, struct submission *from)
{
	size_t n = submission_count(from);

	if (n > 1 && cli->out.is_tty) {
		printf("%zu analyses are queued: %s … ", n, submission_id(from, 0));
		printf("%s\n", submission_id(from, n - 1));
		return;
	}
	for (size_t i = 0; i < n; i++)
		printf("%s\n", submission_id(from, i));
	fflush(stdout);
}

static int wait_for_them(struct cli *cli, struct submission *s, json_t *json, struct error *err)
{
	_cleanup_strv_ char **ids = NULL;
	size_t n = 0;
	int r = cli_open(cli, CLI_LEDGER, err);

	for (size_t i = 0; r == 0 && i < submission_count(s); i++)
		r = strv_push(&ids, &n, submission_id(s, i), err);
	if (r == 0)
		return wait_and_tell(cli, ids, json, err);
	json_decref(json);
	return r;
}

static int answer(struct cli *cli, const struct submit_words *s, struct submission *made, struct error *err)
{
	json_t *json = cli->json ? answer_json(made) : NULL;
	struct error ignored = ERROR_INIT;
	unsigned alive = 0;

	if (!cli->json) {
		print_warnings(cli, made);
		print_ids(cli, made);
	}
	if (s->waits)
		return wait_for_them(cli, made, json, err);
	if (cli_open(cli, CLI_LEDGER, &ignored) == 0)
		warn_of_no_worker(cli, true, &alive);
	json_object_set_new(json, "workers_alive", json_integer(alive));
	return cli->json ? cli_print_json(cli, json, err) : 0;
}

static void on_bytes(void *meter, const char *what, uint64_t done, uint64_t total)
{
	meter_bytes(meter, what, done, total);
}

static int submit(struct cli *cli, struct submit_words *s, struct error *err)
{
	struct meter meter = {.cli = cli};
	_cleanup_submission_ struct submission *made = NULL;
	char room[SUBMITTER_ROOM];
	int r = s->submitter ? 0 : submitter_default(room, sizeof room, err);

	if (r == 0)
		r = submission_open(cli->hood, s->submitter ? s->submitter : room, &made, err);
	if (r < 0)
		return r;
	submission_watch(made, on_bytes, &meter);
	r = s->lines   ? add_lines(s, made, err)
	    : s->array ? add_array(s, made, err)
		       : add_one(made, &s->request, err);
	if (r == 0)
		r = submission_commit(made, s->if_absent ? SUBMIT_IF_ABSENT : 0, err);
	meter_end(&meter);
	return r < 0 ? r : answer(cli, s, made, err);
}

/* Of an array the first task. */
static int show_plan(struct cli *cli, struct submit_words *s, struct error *err)
{
	int r = s->array ? request_set_task(&s->request, s->tasks.list[0], err) : 0;

	if (r == 0)
		r = request_check(&s->request, err);
	return r < 0 ? r : dry_run(cli, &s->request, err);
}

static int submit_main(struct cli *cli, struct error *err)
{
	_cleanup_(submit_done) struct submit_words s = {0};
	int r;

	request_init(&s.request);
	r = parse(cli, &s, err);
	if (r == 0)
		r = cli_open(cli, CLI_HOOD, err);
	if (r < 0)
		return r;
	return s.dry_run ? show_plan(cli, &s, err) : submit(cli, &s, err);
}

const struct command command_submit = {
	.name = "submit",
	.usage = "submit [ID] [options] -- CMD [ARG…]",
	.summary = "puts analyses into the queue",
	.help = help,
	.groups = groups,
	.notes = notes,
	.main = submit_main,
	.words_max = 1 << 20,
	.takes_rest = true,
};
