/*
 * run --dry-run: the plan, readable. Nothing has been touched to make it.
 */
#include <stdio.h>
#include <string.h>

#include "cli.h"

static void print_field(const char *name, const char *value)
{
	_cleanup_free_ char *text = value ? cli_escape(value) : NULL;

	if (text)
		printf("%-12s%s\n", name, text);
}

/* Words as they would be typed, so that it can be seen where one ends. */
static void print_command(char *const *command)
{
	printf("%-12s", "command");
	for (size_t i = 0; command && command[i]; i++) {
		_cleanup_free_ char *word = cli_escape(command[i]);
		bool bare = word && *word && !strpbrk(word, " '\"$&|;<>()*?[]~#`\\");

		printf(bare ? "%s%s" : "%s'%s'", i ? " " : "", word ? word : "?");
	}
	printf("\n");
}

static void print_list(const char *name, char *const *list)
{
	for (size_t i = 0; list && list[i]; i++)
		print_field(i ? "" : name, list[i]);
}

static void print_outputs(const struct plan *p)
{
	if (strv_length(p->outputs) + strv_length(p->optional_outputs) == 0)
		print_field("outputs", "every file that it makes");
	print_list("outputs", p->outputs);
	print_list("optional", p->optional_outputs);
}

static const char *origin_text(enum limit_origin origin)
{
	switch (origin) {
	case LIMIT_ASKED:
		return "asked for";
	case LIMIT_SITE:
		return "the site's";
	case LIMIT_BUILT_IN:
		return "built in";
	case LIMIT_UNSET:
		break;
	}
	return "not set";
}

static int print_limits(const struct plan *p, struct error *err)
{
	_cleanup_table_ struct table t = {.n_columns = 4, .indent = 2};
	char text[LIMIT_TEXT_SIZE];

	printf("limits\n");
	for (int i = 0; i < LIMIT_COUNT; i++)
		table_add(&t, limit_table[i].name, limit_format((enum limit)i, p->limits.value[i], text),
			  origin_text(p->limits.origin[i]), limit_table[i].help);
	return table_print(&t, stdout, err);
}

/* From the plan's JSON, which has the one table of what kinds of mount are called. */
static int print_mounts(const struct plan *p, struct error *err)
{
	_cleanup_table_ struct table t = {.n_columns = 4, .indent = 2};
	json_t *plan = plan_to_json(p), *m;
	size_t i;

	if (!plan)
		return error_memory(err);
	printf("what it sees\n");
	json_array_foreach (json_object_get(plan, "mounts"), i, m) {
		_cleanup_free_ char *target = cli_escape(p->mounts[i].target);
		_cleanup_free_ char *source = cli_escape(p->mounts[i].source ? p->mounts[i].source : "");

		table_add(&t, target, p->mounts[i].writable ? "writable" : "read-only",
			  json_string_value(json_object_get(m, "kind")), source);
	}
	json_decref(plan);
	return table_print(&t, stdout, err);
}

static void print_stages(const struct plan *p)
{
	for (size_t i = 0; i < p->n_stages; i++) {
		_cleanup_free_ char *as = cli_escape(p->stages[i].as);
		_cleanup_free_ char *source = cli_escape(p->stages[i].source);

		printf("%-12s%s (from %s)\n", i ? "" : "staged", as, source);
	}
}

static void print_environment(const struct plan *p)
{
	printf("environment\n");
	for (size_t i = 0; p->env && p->env[i]; i++) {
		_cleanup_free_ char *text = cli_escape(p->env[i]);

		printf("  %s\n", text);
	}
}

/* What the ledger takes of one file, where that is bounded. */
static int print_objects(const struct plan *p, struct error *err)
{
	_cleanup_free_ char *place = NULL;
	char text[LIMIT_TEXT_SIZE], line[96];
	uint64_t most = UINT64_MAX;
	int r = p->ledger ? ledger_url_objects(p->ledger, &place, &most, err) : 0;

	if (r < 0 || most == UINT64_MAX)
		return r;
	limit_format(LIMIT_FILE_SIZE, most, text);
	snprintf(line, sizeof line, "in the ledger itself, files up to %s", text);
	print_field("objects", line);
	return 0;
}

static int dry_run_print(const struct cli *cli, const struct plan *p, struct error *err)
{
	printf("%s%-12s%s%s (attempt %d)\n", terminal_style(&cli->out, STYLE_BOLD), "id", p->id,
	       terminal_style(&cli->out, STYLE_RESET), p->attempt);
	print_command(p->command);
	print_field("program", p->program);
	print_field("workspace", p->workspace);
	print_field("ledger", p->ledger);
	if (print_objects(p, err) < 0)
		return -1;
	print_field("data", p->data);
	print_field("docs", p->docs);
	print_list("prefixes", p->prefixes);
	print_stages(p);
	print_outputs(p);
	print_field("copied to", p->into);
	print_field("stdin", p->stdin_open ? "yours" : "/dev/null");
	print_field("strength", strength_name(p->strength));
	print_field("keep", keep_name(p->keep));
	if (print_limits(p, err) < 0 || print_mounts(p, err) < 0)
		return -1;
	print_environment(p);
	return 0;
}

int dry_run(struct cli *cli, const struct request *request, struct error *err)
{
	_cleanup_plan_ struct plan plan;
	int r;

	plan_init(&plan);
	r = hood_plan(cli->hood, request, &plan, err);
	if (r < 0)
		return r;
	if (cli->json)
		return cli_print_json(cli, plan_to_json(&plan), err);
	return dry_run_print(cli, &plan, err);
}
