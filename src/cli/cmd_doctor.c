/*
 * fumehood doctor: what this host can enforce, each item tried, and what to do about the rest.
 */
#include <stdio.h>

#include "buffer.h"
#include "cli.h"

static const char help[] =
	"  fumehood doctor\n"
	"  fumehood doctor --attack            break out, with and without the hood, and see\n"
	"  fumehood doctor --json | jq '.items[] | select(.ok | not)'\n"
	"\n"
	"Exit status: 0 when everything that is required is there, 1 when not.\n"
	"\n"
	"--attack  --delegate USER  --db URL  --config FILE  --json  --quiet (only what is not there)\n";

struct findings {
	const struct cli *cli;
	struct table *table;
	struct buffer not_held, missing; /* names, with commas between them */
};

static void findings_done(struct findings *f)
{
	buffer_free(&f->not_held);
	buffer_free(&f->missing);
}

static void on_item(void *arg, const struct doctor_item *item)
{
	struct findings *f = arg;
	_cleanup_free_ char *detail = text_safe(item->detail), *remedy = text_safe(item->remedy),
			    *line = NULL;

	if (!item->ok) {
		struct buffer *b = item->required ? &f->missing : &f->not_held;

		buffer_printf(b, "%s%s", b->size ? ", " : "", item->name);
	}
	if (!detail || !remedy || (f->cli->quiet && item->ok))
		return;
	table_add(f->table, cli_mark(&f->cli->out, item->ok), item->name, detail);
	if (*remedy && asprintf(&line, "%s%s: %s", f->cli->out.utf8 ? "→ " : "-> ",
				item->required ? "needed" : "better", remedy) >= 0)
		table_add(f->table, "", "", line);
}

/* The last word is what is not held. */
static void conclude(const struct findings *f)
{
	printf("\n");
	if (f->missing.size)
		printf("Analyses will be refused: what is required is missing: %s.\n", f->missing.data);
	if (f->not_held.size)
		printf("%s: %s.\n",
		       f->missing.size ? "Not held either" : "Analyses run, but not held here is",
		       f->not_held.data);
	if (!f->missing.size && !f->not_held.size)
		printf("All of it is held.\n");
}

static int examine(struct cli *cli, struct error *err)
{
	_cleanup_table_ struct table t = {.n_columns = 3};
	_cleanup_(findings_done) struct findings f = {.cli = cli, .table = &t};
	int found = hood_doctor(cli->hood, on_item, &f, err);

	if (found < 0)
		return found;
	if (table_print(&t, stdout, err) < 0)
		return -1;
	if (buffer_check(&f.missing, err) < 0 || buffer_check(&f.not_held, err) < 0)
		return -1;
	if (!cli->quiet)
		conclude(&f);
	return found;
}

static int do_delegate(struct cli *cli, const char *user, struct error *err)
{
	_cleanup_free_ char *done = NULL;
	int r = hood_delegate(user, &done, err);

	if (r < 0)
		return r;
	if (cli->json)
		return cli_print_json(cli, json_pack("{s:s, s:s}", "user", user, "done", done), err);
	if (!cli->quiet)
		printf("%s\n", done);
	return 0;
}

static int doctor_main(struct cli *cli, struct error *err)
{
	const char *delegate = NULL;
	bool attack = false;
	json_t *json = NULL;
	const struct option_row own[] = {
		{"--attack", OPTION_FLAG, &attack}, {"--delegate", OPTION_TEXT, &delegate}, {0}};
	int r = cli_begin(cli, own, err);

	if (r < 0)
		return r;
	if (delegate)
		return do_delegate(cli, delegate, err);
	r = cli_open(cli, CLI_HOOD, err);
	if (r < 0)
		return r;
	if (attack)
		return doctor_attack(cli, err);
	return cli->json ? cli_answer(cli, view_doctor(cli->hood, &json, err), &json, err)
			 : examine(cli, err);
}

const struct command command_doctor = {
	.name = "doctor",
	.usage = "doctor [--attack] [--delegate USER]",
	.summary = "what this host can enforce, and what to do about the rest",
	.help = help,
	.main = doctor_main,
};
