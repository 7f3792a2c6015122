/*
 * fumehood ls: one row per analysis, those that are running first (view.h says where they come from).
 */
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "pager.h"

enum { ROWS_AT_ONCE = 500, COMMAND_WIDTH = 60, CELL_ROOM = 64 };

static const char help[] =
	"  fumehood ls\n"
	"  fumehood ls --verdict failed,timed_out --since 2h\n"
	"  fumehood ls --state queued          only these\n"
	"  fumehood ls a4                      ids that begin with a4\n"
	"  fumehood ls 'sweep.*7'              ids that are like that\n"
	"  fumehood ls --sort memory --limit 10\n"
	"  fumehood ls --json | jq -r '.[].id'\n"
	"\n"
	"--state S          waiting, queued, running, pending (gc finishes it), cancelled, held, dead, finished,\n"
	"                   or a verdict\n"
	"--verdict V[,V]    with one of these verdicts\n"
	"--since TIME  --until TIME\n"
	"                   made at or after, and before: 2026-11-15, 2026-11-15T02:34 (UTC), or 2h, 7d ago\n"
	"--submitter NAME   of that submitter, or owner\n"
	"--sort ORDER       time (the newest first), id, or the most of wall, cpu, memory first\n"
	"--limit N          the newest N of the ledger; in another order the first N\n"
	"--no-pager         on a terminal it goes through $PAGER, else less\n"
	"--db URL  --config FILE  --json\n";

struct ls_table {
	const struct cli *cli;
	struct table *table;
	size_t rows; /* since it was printed */
	bool by_pages;
};

static void print_exit(const struct attempt *a, char out[CELL_ROOM])
{
	if (a->signal)
		snprintf(out, CELL_ROOM, "signal %d", a->signal);
	else if (a->exit_code >= 0)
		snprintf(out, CELL_ROOM, "%d", a->exit_code);
	else
		snprintf(out, CELL_ROOM, "-");
}

/* Its beginning, no character of it cut. */
static void cut_command(char *command)
{
	size_t n = 0;

	if (!command || strlen(command) <= COMMAND_WIDTH)
		return;
	for (n = COMMAND_WIDTH - 3; ((unsigned char)command[n] & 0xc0) == 0x80; n--)
		;
	memcpy(command + n, "…", sizeof "…");
}

/* What one looks at for an hour keeps nothing of the ledger's open, and not a million rows in memory. */
static int print_page(struct ls_table *l)
{
	struct error ignored = ERROR_INIT;
	int r = table_print(l->table, stdout, &ignored);

	table_empty(l->table);
	l->rows = 0;
	return r < 0 || fflush(stdout) != 0 ? -1 : 0;
}

static int add_row(void *arg, const struct view_row *row)
{
	char number[16], since[PRINT_ROOM], wall[PRINT_ROOM], cpu[PRINT_ROOM], memory[PRINT_ROOM],
		shown[CELL_ROOM], left[CELL_ROOM];
	struct ls_table *l = arg;
	const struct terminal *t = &l->cli->out;
	const struct attempt *a = row->attempt;
	_cleanup_free_ char *owner = a->owner ? cli_escape(a->owner) : NULL, *command = view_command(a);

	snprintf(number, sizeof number, "%d", a->number);
	snprintf(shown, sizeof shown, "%s%s%s", terminal_style(t, view_verdict_style(a->verdict)),
		 row->verdict ? row->verdict : row->state, terminal_style(t, STYLE_RESET));
	print_exit(a, left);
	cut_command(command);
	table_add(l->table, a->id, a->number > 0 ? number : "-", shown, left,
		  print_instant(a->started ? a->started : a->created, since),
		  print_duration(a->usage.wall_ms, wall), print_duration(a->usage.cpu_ms, cpu),
		  print_size(a->usage.memory_peak_bytes, memory), owner ? owner : "-",
		  command ? command : "-");
	return l->by_pages && ++l->rows == ROWS_AT_ONCE ? print_page(l) : 0;
}

static int print_table(const struct cli *cli, const struct view_filter *f, bool by_pages, struct error *err)
{
	_cleanup_table_ struct table t = {.n_columns = 10, .right = 0xea};
	struct ls_table l = {.cli = cli, .table = &t, .by_pages = by_pages};
	int r;

	table_add(&t, "ID", "ATTEMPT", "VERDICT", "EXIT", "STARTED", "WALL", "CPU", "MEMORY", "OWNER",
		  "COMMAND");
	r = view_list_each(cli->hood, f, add_row, &l, err);
	/* A reader who has seen enough is no error. */
	if (by_pages && ferror(stdout))
		return 0;
	return r < 0 ? r : table_print(&t, stdout, err);
}

static int print_paged(const struct cli *cli, const struct view_filter *f, struct error *err)
{
	struct pager pager;
	int r;

	pager_open(&pager);
	r = print_table(cli, f, true, err);
	pager_close(&pager);
	return r;
}

static int ls_main(struct cli *cli, struct error *err)
{
	const char *state = NULL, *verdict = NULL, *since = NULL, *until = NULL, *submitter = NULL,
		   *sort = NULL;
	struct view_filter f = {0};
	bool no_pager = false;
	json_t *json = NULL;
	const struct option_row own[] = {
		{"--state", OPTION_TEXT, &state},
		{"--verdict", OPTION_TEXT, &verdict},
		{"--since", OPTION_TEXT, &since},
		{"--until", OPTION_TEXT, &until},
		{"--submitter", OPTION_TEXT, &submitter},
		{"--sort", OPTION_TEXT, &sort},
		{"--limit", OPTION_NUMBER, &f.limit},
		{"--no-pager", OPTION_FLAG, &no_pager},
		{0},
	};
	int r = cli_begin(cli, own, err);
	const struct {
		const char *name, *value;
	} words[] = {{"id", r < 0 ? NULL : cli->o.words[0]},
		     {"state", state},
		     {"verdict", verdict},
		     {"since", since},
		     {"until", until},
		     {"submitter", submitter},
		     {"sort", sort}};

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(words); i++)
		if (words[i].value)
			r = view_filter_set(&f, words[i].name, words[i].value, err);
	if (r < 0)
		return r;
	if (cli->json)
		return cli_answer(cli, view_list(cli->hood, &f, &json, err), &json, err);
	return cli->out.is_tty && !no_pager ? print_paged(cli, &f, err) : print_table(cli, &f, false, err);
}

const struct command command_ls = {
	.name = "ls",
	.usage = "ls [ID_OR_GLOB] [--state S] [--verdict V] [--since TIME] [--sort ORDER] [--limit N]",
	.summary = "lists analyses, the newest first",
	.help = help,
	.main = ls_main,
	.words_max = 1,
	.opens = CLI_HOOD,
};
