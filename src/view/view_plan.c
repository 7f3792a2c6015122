/*
 * A plan as a readable page, for `run --dry-run`. Nothing has been touched to make it.
 */
#include <stdio.h>
#include <string.h>

#include "print.h"
#include "view.h"

enum { STAGES_SHOWN = 20 };

static void put_field(FILE *to, const char *name, const char *value)
{
	_cleanup_free_ char *text = value ? print_escape(value) : NULL;

	if (text)
		fprintf(to, "%-12s%s\n", name, text);
}

/* Words as they would be typed, so that it can be seen where one ends. */
static void put_command(FILE *to, char *const *command)
{
	fprintf(to, "%-12s", "command");
	for (size_t i = 0; command && command[i]; i++) {
		_cleanup_free_ char *word = print_escape(command[i]);
		bool bare = word && *word && !strpbrk(word, " '\"$&|;<>()*?[]~#`\\");

		fprintf(to, bare ? "%s%s" : "%s'%s'", i ? " " : "", word ? word : "?");
	}
	fprintf(to, "\n");
}

static void put_list(FILE *to, const char *name, char *const *list)
{
	for (size_t i = 0; list && list[i]; i++)
		put_field(to, i ? "" : name, list[i]);
}

static void put_outputs(FILE *to, const struct plan *p)
{
	if (strv_length(p->outputs) + strv_length(p->optional_outputs) == 0)
		put_field(to, "outputs", "every file that it makes");
	put_list(to, "outputs", p->outputs);
	put_list(to, "optional", p->optional_outputs);
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

static int put_limits(FILE *to, const struct plan *p, struct error *err)
{
	_cleanup_table_ struct table t = {.n_columns = 4, .indent = 2};
	char text[LIMIT_TEXT_SIZE];

	fprintf(to, "limits\n");
	for (int i = 0; i < LIMIT_COUNT; i++)
		table_add(&t, limit_table[i].name, limit_format((enum limit)i, p->limits.value[i], text),
			  origin_text(p->limits.origin[i]), limit_table[i].help);
	return table_print(&t, to, err);
}

/* From the plan's JSON, which has the one table of what kinds of mount are called. */
static int put_mounts(FILE *to, const struct plan *p, struct error *err)
{
	_cleanup_table_ struct table t = {.n_columns = 4, .indent = 2};
	json_t *plan = plan_to_json(p), *m;
	size_t i;

	if (!plan)
		return error_memory(err);
	fprintf(to, "what it sees\n");
	json_array_foreach (json_object_get(plan, "mounts"), i, m) {
		_cleanup_free_ char *target = print_escape(p->mounts[i].target);
		_cleanup_free_ char *source = print_escape(p->mounts[i].source ? p->mounts[i].source : "");

		table_add(&t, target, p->mounts[i].writable ? "writable" : "read-only",
			  json_string_value(json_object_get(m, "kind")), source);
	}
	json_decref(plan);
	return table_print(&t, to, err);
}

/* How many, how much, and the first of them. */
static void put_stages(FILE *to, const struct plan *p)
{
	char count[PRINT_ROOM], size[PRINT_ROOM];
	uint64_t bytes = 0;

	if (p->n_stages == 0)
		return;
	for (size_t i = 0; i < p->n_stages; i++)
		bytes += p->stages[i].size;
	fprintf(to, "%-12s%s, %s\n", "staged", print_count(p->n_stages, "file", count),
		print_size((int64_t)bytes, size));
	for (size_t i = 0; i < p->n_stages && i < STAGES_SHOWN; i++) {
		_cleanup_free_ char *as = print_escape(p->stages[i].as);
		_cleanup_free_ char *source = print_escape(p->stages[i].source);

		fprintf(to, "%-12s%s (from %s)\n", "", as, source);
	}
	if (p->n_stages > STAGES_SHOWN)
		fprintf(to, "%-12sand %zu more\n", "", p->n_stages - STAGES_SHOWN);
}

static void put_flows(FILE *to, const struct plan *p)
{
	for (size_t i = 0; i < p->n_flows; i++) {
		const struct plan_flow *f = &p->flows[i];
		_cleanup_free_ char *as = print_escape(f->as);
		char size[PRINT_ROOM];

		fprintf(to, "%-12s%s/ (%llu file%s, %s, of %s, attempt %d)\n", i ? "" : "from", as,
			(unsigned long long)f->files, f->files == 1 ? "" : "s",
			print_size((int64_t)f->bytes, size), f->analysis, f->attempt);
	}
}

static void put_environment(FILE *to, const struct plan *p)
{
	fprintf(to, "environment\n");
	for (size_t i = 0; p->env && p->env[i]; i++) {
		_cleanup_free_ char *text = print_escape(p->env[i]);

		fprintf(to, "  %s\n", text);
	}
}

/* What the ledger takes of one file, where that is bounded. */
static int put_objects(FILE *to, const struct plan *p, struct error *err)
{
	_cleanup_free_ char *place = NULL;
	char text[LIMIT_TEXT_SIZE], line[96];
	uint64_t most = UINT64_MAX;
	int r = p->ledger ? ledger_url_objects(p->ledger, &place, &most, err) : 0;

	if (r < 0 || most == UINT64_MAX)
		return r;
	limit_format(LIMIT_FILE_SIZE, most, text);
	snprintf(line, sizeof line, "in the ledger itself, files up to %s", text);
	put_field(to, "objects", line);
	return 0;
}

int view_plan(FILE *to, const struct look *look, const struct plan *p, struct error *err)
{
	fprintf(to, "%s%-12s%s%s (attempt %d)\n", print_style(look->colour, STYLE_BOLD), "id", p->id,
		print_style(look->colour, STYLE_RESET), p->attempt);
	put_command(to, p->command);
	put_field(to, "program", p->program);
	put_field(to, "workspace", p->workspace);
	put_field(to, "ledger", p->ledger);
	if (put_objects(to, p, err) < 0)
		return -1;
	put_field(to, "data", p->data);
	put_field(to, "docs", p->docs);
	put_list(to, "prefixes", p->prefixes);
	put_stages(to, p);
	put_list(to, "left out", p->left_out);
	put_flows(to, p);
	put_outputs(to, p);
	put_field(to, "copied to", p->into);
	put_field(to, "stdin", p->terminal ? "a terminal of its own" : p->stdin_open ? "yours" : "/dev/null");
	put_field(to, "strength", strength_name(p->strength));
	put_field(to, "keep", keep_name(p->keep));
	if (put_limits(to, p, err) < 0 || put_mounts(to, p, err) < 0)
		return -1;
	put_environment(to, p);
	put_list(to, "warning", p->notes);
	return 0;
}
