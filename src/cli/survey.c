#include "survey.h"

#include <stdio.h>
#include <string.h>

static void add(struct survey *s, struct survey_option o)
{
	if (s->n < SURVEY_MAX && !survey_find(s, o.name))
		s->options[s->n++] = o;
}

/* As a word of its own. */
static bool has_value(const struct option_row *row)
{
	return row->kind != OPTION_FLAG && row->kind != OPTION_FORM;
}

static void add_rows(struct survey *s, const struct option_row *row, bool is_shared)
{
	for (; row && row->name; row++)
		add(s, (struct survey_option){
			       .name = row->name,
			       .takes = row->takes		     ? row->takes
					: row->kind == OPTION_NUMBER ? "N"
					: has_value(row)	     ? "VALUE"
								     : NULL,
			       .help = row->help,
			       .has_value = has_value(row),
			       .is_shared = is_shared,
		       });
}

/* What cli_begin() calls. */
static void take_tables(void *arg, const struct option_row *shared, const struct option_row *own,
			const struct options *o)
{
	struct survey *s = arg;
	struct option_info info;

	add_rows(s, own, false);
	for (size_t i = 0; o->others_name && request_option_at(i, &info); i++)
		add(s, (struct survey_option){
			       .name = info.name,
			       .takes = info.value,
			       .choices = info.choices,
			       .help = info.help,
			       .has_value = request_option_takes_value(info.name) == 1,
			       .is_request = true,
		       });
	add_rows(s, shared, true);
}

void survey_command(const struct command *c, struct survey *ret)
{
	char *argv[] = {(char *)c->name, NULL};
	struct cli cli = {.command = c, .argc = 1, .argv = argv, .survey = take_tables, .survey_arg = ret};
	struct error ignored = ERROR_INIT;

	ret->n = 0;
	(void)c->main(&cli, &ignored);
	cli_end(&cli);
}

const struct survey_option *survey_find(const struct survey *s, const char *name)
{
	for (size_t i = 0; i < s->n; i++)
		if (strcmp(s->options[i].name, name) == 0)
			return &s->options[i];
	return NULL;
}

/* ---- plain words ---- */

/* "ID…" and "[ID…]". */
static bool repeats(const char *word, size_t size)
{
	size -= size > 0 && word[size - 1] == ']';
	return size > 3 && (memcmp(word + size - 3, "…", 3) == 0 || memcmp(word + size - 3, "...", 3) == 0);
}

const char *survey_word(const struct command *c, size_t i, char *out, size_t room)
{
	const char *at = c->usage + strcspn(c->usage, " ");

	*out = 0;
	for (size_t k = 0;; k++) {
		const char *word = at += strspn(at, " ");
		size_t size = strcspn(word, " ");

		at += size;
		/* Options, and what follows them, are no words. */
		if (size == 0 || word[strspn(word, "[")] == '-' || strncmp(word, "[options]", 9) == 0)
			return out;
		if (k != i && !repeats(word, size))
			continue;
		word += strspn(word, "[");
		snprintf(out, room, "%.*s", (int)strcspn(word, " ]"), word);
		return out;
	}
}

/* ---- for programs ---- */

static json_t *option_json(const struct survey_option *o)
{
	json_t *choices = json_array();

	for (size_t i = 0; o->choices && o->choices[i]; i++)
		if (*o->choices[i])
			json_array_append_new(choices, json_string(o->choices[i]));
	return json_pack("{s:s, s:s?, s:o, s:s?, s:b, s:b, s:b}", "name", o->name, "takes", o->takes,
			 "choices", choices, "help", o->help, "value", o->has_value, "shared", o->is_shared,
			 "request", o->is_request);
}

json_t *survey_json(void)
{
	json_t *all = json_array();

	for (size_t i = 0; commands[i]; i++) {
		const struct command *c = commands[i];
		json_t *options = json_array();
		struct survey s;

		survey_command(c, &s);
		for (size_t k = 0; k < s.n; k++)
			json_array_append_new(options, option_json(&s.options[k]));
		json_array_append_new(all, json_pack("{s:s, s:s, s:s, s:o}", "name", c->name, "usage",
						     c->usage, "summary", c->summary, "options", options));
	}
	return all;
}
