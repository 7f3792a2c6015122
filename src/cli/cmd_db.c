/*
 * fumehood db: the ledger itself.
 */
#include <stdio.h>
#include <string.h>

#include "backup.h"
#include "bar.h"
#include "cli.h"

static const char help[] =
	"  fumehood db init                    makes it (the first run does so, too)\n"
	"  fumehood db init --roles            with roles for readers, submitters, workers and owners\n"
	"  fumehood db status                  where it is, what is in it\n"
	"  fumehood db check                   reads everything, compares every digest\n"
	"  fumehood db upgrade                 brings it to this version's schema\n"
	"  fumehood db backup DIR              all of it, database and objects, while others go on\n"
	"  fumehood db restore DIR             into an empty ledger; --force: over what is there\n"
	"\n"
	"Exit status of check: 0, or 1 when something is wrong.\n"
	"\n"
	"--db URL  --config FILE  --json\n";

/* Flat objects of names and plain values, as a list. */
static void print_object(const json_t *object)
{
	const char *key;
	json_t *value;

	json_object_foreach ((json_t *)object, key, value) {
		_cleanup_free_ char *text = json_is_string(value)
						    ? print_escape(json_string_value(value))
						    : json_dumps(value, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);

		printf("%-14s%s\n", key, text ? text : "?");
	}
}

static int print_status(struct cli *cli, struct ledger *ledger, struct error *err)
{
	json_t *status;
	int r = ledger_status(ledger, &status, err);

	if (r < 0)
		return r;
	if (cli->json)
		return cli_print_json(cli, status, err);
	if (!cli->quiet)
		print_object(status);
	json_decref(status);
	return 0;
}

static void print_problem(const json_t *problem)
{
	static const char *const keys[] = {"kind", "object", "message"};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		_cleanup_free_ char *text =
			print_escape(json_string_value(json_object_get(problem, keys[i])));

		printf("%s%s", i == 0 ? "" : i == 1 ? " " : ": ", text);
	}
	printf("\n");
}

static int print_check(struct cli *cli, struct ledger *ledger, struct error *err)
{
	json_t *check, *problems, *problem;
	struct bar bar;
	size_t i, n;
	int r;

	ledger_watch(ledger, bar_open(&bar, cli));
	r = ledger_check(ledger, &check, err);
	bar_clear(&bar);
	ledger_watch(ledger, NULL);
	if (r < 0)
		return r;
	problems = json_object_get(check, "problems");
	n = json_array_size(problems);
	if (cli->json) {
		r = cli_print_json(cli, check, err);
		return r < 0 ? r : n > 0;
	}
	json_array_foreach (problems, i, problem)
		print_problem(problem);
	if (!cli->quiet)
		printf("%lld checked, %zu wrong\n",
		       (long long)json_integer_value(json_object_get(check, "checked")), n);
	json_decref(check);
	return n > 0;
}

static int print_copy(struct cli *cli, const char *verb, json_t *json, struct error *err)
{
	char size[PRINT_ROOM];

	if (cli->json)
		return cli_print_json(cli, json, err);
	if (!cli->quiet)
		printf("%s: %lld attempts of %lld analyses, %lld objects, %s\n", verb,
		       (long long)json_integer_value(json_object_get(json, "attempts")),
		       (long long)json_integer_value(json_object_get(json, "analyses")),
		       (long long)json_integer_value(json_object_get(json, "objects")),
		       print_size(json_integer_value(json_object_get(json, "bytes")), size));
	json_decref(json);
	return 0;
}

static int backup(struct cli *cli, struct ledger *ledger, struct error *err)
{
	json_t *json = NULL;
	int r = ledger_backup(ledger, cli->o.words[1], &json, err);

	return r < 0 ? r : print_copy(cli, "backed up", json, err);
}

static int restore(struct cli *cli, struct ledger *ledger, bool force, struct error *err)
{
	json_t *json = NULL;
	int r = ledger_restore(ledger, cli->o.words[1], force, &json, err);

	r = r < 0 ? r : print_copy(cli, "restored", json, err);
	if (r == 0 && !cli->json && !cli->quiet)
		puts("what had not ended waits: 'fumehood ls --state restored' lists it, 'fumehood retry' lets it go");
	return r;
}

static int restore_empty(struct cli *cli, struct ledger *ledger, struct error *err)
{
	return restore(cli, ledger, false, err);
}

static int restore_over(struct cli *cli, struct ledger *ledger, struct error *err)
{
	return restore(cli, ledger, true, err);
}

static const struct verb {
	const char *name;
	unsigned flags;
	int (*answer)(struct cli *cli, struct ledger *ledger, struct error *err);
	int (*forced)(struct cli *cli, struct ledger *ledger, struct error *err); /* with --force */
	int words;
} verbs[] = {
	{"init", LEDGER_CREATE, print_status, NULL, 1},
	{"status", LEDGER_READ_ONLY, print_status, NULL, 1},
	{"check", LEDGER_READ_ONLY, print_check, NULL, 1},
	{"upgrade", LEDGER_UPGRADE, print_status, NULL, 1},
	{"backup", LEDGER_READ_ONLY, backup, NULL, 2},
	{"restore", LEDGER_CREATE, restore_empty, restore_over, 2},
};

/* After it was made or upgraded. */
static int give_roles(const struct verb *verb, struct ledger *ledger, struct error *err)
{
	if (!(verb->flags & (LEDGER_CREATE | LEDGER_UPGRADE)))
		return error_set(err, ERROR_USAGE, "--roles belongs to 'db init' and 'db upgrade'");
	return ledger_roles(ledger, err);
}

static const struct verb *find_verb(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (strcmp(verbs[i].name, name) == 0)
			return &verbs[i];
	return NULL;
}

static int db_main(struct cli *cli, struct error *err)
{
	bool roles = false, force = false;
	const struct option_row own[] = {
		{"--roles", OPTION_FLAG, &roles, NULL,
		 "PostgreSQL: roles for readers, submitters, workers and owners"},
		{"--force", OPTION_FLAG, &force, NULL, "restore: over what is in the ledger"},
		{0}};
	const struct verb *verb;
	struct ledger *ledger;
	int r = cli_begin(cli, own, err);

	if (r < 0)
		return r;
	verb = find_verb(cli->o.words[0]);
	if (!verb || cli->o.n_words != verb->words)
		return cli_usage_error(cli, err);
	if (force && !verb->forced)
		return error_set(err, ERROR_USAGE, "--force belongs to 'db restore'");
	r = cli_open(cli, CLI_HOOD, err);
	if (r == 0)
		r = hood_ledger(cli->hood, verb->flags, &ledger, err);
	if (r == 0 && roles)
		r = give_roles(verb, ledger, err);
	if (r < 0)
		return r;
	return (force ? verb->forced : verb->answer)(cli, ledger, err);
}

const struct command command_db = {
	.name = "db",
	.usage = "db init|status|check|upgrade|backup|restore [DIR] [--roles] [--force]",
	.summary = "the ledger itself",
	.help = help,
	.main = db_main,
	.words_min = 1,
	.words_max = 2,
};
