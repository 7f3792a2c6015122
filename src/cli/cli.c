#include "cli.h"
#include "attempt_stream.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int cli_usage_error(const struct cli *cli, struct error *err)
{
	return error_set(err, ERROR_USAGE, "it is used as: fumehood %s", cli->command->usage);
}

enum { HELP_INDENT = 17, HELP_WIDTH = 100 };

/* One more option in a paragraph, on the next line where it does not fit; *column is where the last one ended. */
static void print_item(const char *item, size_t size, size_t *column)
{
	if (*column > HELP_INDENT && *column + 2 + size > HELP_WIDTH) {
		printf("\n%*s", HELP_INDENT, "");
		*column = HELP_INDENT;
	}
	*column += (size_t)printf("%s%.*s", *column > HELP_INDENT ? "  " : "", (int)size, item);
}

static void print_option(const struct option_info *o, size_t *column)
{
	char item[160];
	size_t n = (size_t)snprintf(item, sizeof item, "%s%s%s", o->name, o->value ? " " : "",
				    o->value ? o->value : "");
	const char *between = " ";

	for (size_t i = 0; o->choices && o->choices[i] && n < sizeof item; i++)
		if (*o->choices[i]) {
			n += (size_t)snprintf(item + n, sizeof item - n, "%s%s", between, o->choices[i]);
			between = "|";
		}
	if (o->remark && n < sizeof item)
		snprintf(item + n, sizeof item - n, " (%s)", o->remark);
	print_item(item, strlen(item), column);
}

static void print_group(const struct help_group *g)
{
	size_t column = (size_t)printf("%-*s", HELP_INDENT, g->title);
	struct option_info o;

	for (size_t i = 0; g->group != GROUP_NONE && request_option_at(i, &o); i++)
		if (o.group == g->group)
			print_option(&o, &column);
	for (const char *own = g->own, *end; own; own = end ? end + 2 : NULL) {
		end = strstr(own, "  ");
		print_item(own, end ? (size_t)(end - own) : strlen(own), &column);
	}
	printf("\n");
}

void cli_print_help(const struct cli *cli, const struct command *command)
{
	size_t n = strlen(command->help);

	printf("%sfumehood %s%s\n%s\n\n%s%s", terminal_style(&cli->out, STYLE_BOLD), command->usage,
	       terminal_style(&cli->out, STYLE_RESET), command->summary, command->help,
	       n > 0 && command->help[n - 1] == '\n' ? "" : "\n");
	for (const struct help_group *g = command->groups; g && g->title; g++)
		print_group(g);
	if (command->notes)
		printf("\n%s", command->notes);
}

/* Every user of the host can read our command line, and that of a child which has not executed anything. */
int cli_hide_password(struct cli *cli, struct error *err)
{
	_cleanup_free_ char *shown = ledger_url_redacted(cli->db);
	char *given = (char *)cli->db;
	size_t n = strlen(given);
	int r;

	if (!shown)
		return error_memory(err);
	if (strcmp(shown, given) == 0)
		return 0;
	r = text_set(&cli->whole_db, given, err);
	if (r < 0)
		return r;
	memset(given, 0, n);
	memcpy(given, shown, strlen(shown) < n ? strlen(shown) : n);
	cli->db = cli->whole_db;
	return 0;
}

static int parse(struct cli *cli, const struct option_row *own, struct error *err)
{
	const struct option_row shared[] = {
		{"--db", OPTION_TEXT, &cli->db, "URL",
		 "the ledger, instead of FUMEHOOD_DB and the configuration's"},
		{"--config", OPTION_TEXT, &cli->config, "FILE",
		 "a configuration that wins over the user's and the site's"},
		{"--json", OPTION_FLAG, &cli->json, NULL, "the answer as JSON on stdout, errors too"},
		{"--quiet", OPTION_FLAG, &cli->quiet, NULL, "nothing of our own but errors and warnings"},
		{"--help", OPTION_FLAG, &cli->help, NULL, "how the command is used"},
		{"-h", OPTION_FLAG, &cli->help, NULL, "the same"},
		{0},
	};
	struct options *o = &cli->o;
	int r;

	if (cli->survey) {
		cli->survey(cli->survey_arg, shared, own, o);
		return -ECANCELED;
	}
	o->shared = shared;
	o->table = own;
	r = options_parse(o, cli->argc, cli->argv, err);
	o->shared = o->table = NULL;
	if (cli->db && cli_hide_password(cli, err) < 0) {
		cli->help = false;
		return -ENOMEM;
	}
	if (cli->help) {
		cli_print_help(cli, cli->command);
		return -ECANCELED;
	}
	return r;
}

int cli_begin(struct cli *cli, const struct option_row *own, struct error *err)
{
	const struct command *c = cli->command;
	struct options *o = &cli->o;
	int r = parse(cli, own, err);

	if (r < 0)
		return r;
	/* Where "--" begins nothing of the command's own, it only ends the options. */
	for (; o->rest && !c->takes_rest && *o->rest; o->rest++)
		o->words[o->n_words++] = *o->rest;
	if (o->n_words < c->words_min || o->n_words > c->words_max)
		return cli_usage_error(cli, err);
	return cli_open(cli, c->opens, err);
}

/* Whoever waits for us kills what we have started when we end: a job of Slurm, a service of systemd, a container. */
static bool takes_all_along(void)
{
	const char *service = getenv("SYSTEMD_EXEC_PID");

	return getpid() == 1 || getenv("SLURM_JOB_ID") || (service && atol(service) == getpid());
}

int cli_open(struct cli *cli, unsigned what, struct error *err)
{
	struct hood_options options = {.config_file = cli->config,
				       .ledger = cli->db,
				       .remover = takes_all_along() ? REMOVER_NONE : REMOVER_CHILD,
				       .hand = true};
	int r = what & CLI_ID ? cli_take_id(cli, cli->o.words[0], err) : 0;

	if (r == 0 && (what & CLI_HOOD) && !cli->hood)
		r = hood_open(&options, &cli->hood, err);
	if (r == 0 && (what & CLI_LEDGER) == CLI_LEDGER && !cli->ledger)
		r = hood_ledger(cli->hood, LEDGER_CREATE, &cli->ledger, err);
	return r;
}

void cli_end(struct cli *cli)
{
	hood_close(cli->hood);
	options_done(&cli->o);
	cli->hood = NULL;
	cli->ledger = NULL;
}

void cli_set_id(struct cli *cli, const char *id)
{
	if (id && id_check(id, NULL) == 0)
		snprintf(cli->id, sizeof cli->id, "%s", id);
}

int cli_take_id(struct cli *cli, const char *id, struct error *err)
{
	cli_set_id(cli, id);
	return id_check(id, err);
}

int cli_print_json(const struct cli *cli, json_t *json, struct error *err)
{
	struct look look = terminal_look(&cli->out);
	int r = view_json(stdout, &look, json, err);

	json_decref(json);
	return r;
}

int cli_answer(const struct cli *cli, int r, json_t **json, struct error *err)
{
	int k = r < 0 ? r : cli_print_json(cli, *json, err);

	return k < 0 ? k : r;
}

static int put_stdout(const char *text, size_t size, void *arg UNUSED)
{
	return fwrite(text, 1, size, stdout) == size ? 0 : -1;
}

int cli_print_attempt(const struct cli *cli, const struct attempt *a, bool full, const json_t *over,
		      struct error *err)
{
	size_t flags = JSON_INDENT(2) | (cli->out.is_tty ? JSON_ENSURE_ASCII : 0);

	if (attempt_write_public(a, full, over, flags, put_stdout, NULL) < 0 && !ferror(stdout))
		return error_memory(err);
	fputc('\n', stdout);
	return 0;
}

/* A refusal in the shape that a run has. */
static json_t *refused_json(const struct cli *cli, const struct error *err)
{
	_cleanup_attempt_ struct attempt a;
	json_t *json = NULL;

	attempt_init(&a);
	snprintf(a.id, sizeof a.id, "%s", cli->id);
	if (attempt_refuse(&a, err) == 0)
		json = attempt_to_public_json(&a, false);
	if (json && !*cli->id)
		json_object_set_new(json, "id", json_null());
	if (json && cli->command == &command_run)
		for (int i = 0; i < STREAM_COUNT; i++)
			json_object_set_new(json, stream_name(i), json_null());
	return json;
}

static json_t *error_json(const struct cli *cli, const struct error *err)
{
	return json_pack("{s:s*, s:{s:s, s:s, s:s}}", "id", *cli->id ? cli->id : NULL, "error", "stage",
			 err->stage, "code", error_kind_name(err->kind), "message", err->message);
}

int cli_fail(struct cli *cli, struct error *err)
{
	_cleanup_free_ char *message = text_safe(err->message);
	struct error ignored = ERROR_INIT;

	if (message)
		snprintf(err->message, sizeof err->message, "%s", message);
	if (!err->stage)
		err->stage = err->kind == ERROR_USAGE ? "request"
			     : cli->command	      ? cli->command->name
						      : "command";
	if (cli->json && cli_print_json(cli,
					cli->command && cli->command->is_attempt ? refused_json(cli, err)
										 : error_json(cli, err),
					&ignored) == 0)
		return STATUS_OURS;
	fprintf(stderr, "%sfumehood:%s %s\n", terminal_style(&cli->err, STYLE_RED),
		terminal_style(&cli->err, STYLE_RESET), err->message);
	return STATUS_OURS;
}
