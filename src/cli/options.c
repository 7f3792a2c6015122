#include "options.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

enum { NAME_ROOM = 64, SHOWN_ROOM = 128 };

/* One option as it was typed. */
struct typed {
	char name[NAME_ROOM]; /* without "=value" or a glued value */
	const char *value;    /* glued to it, or NULL */
};

void options_done(struct options *o)
{
	free(o->words);
	o->words = NULL;
}

/* The name that was probably meant, so far. */
struct guess {
	const char *best;
	unsigned least;
};

static struct guess guess_begin(const char *typed)
{
	size_t length = strlen(typed + strspn(typed, "-"));

	return (struct guess){.least = length < 3 ? 1 : (unsigned)length / 3};
}

static void guess_add(struct guess *g, const char *typed, const char *name)
{
	unsigned d = text_distance(typed, name);

	/* The beginning of a name is as good as a name with one letter wrong. */
	if (strlen(typed + strspn(typed, "-")) > 2 && strncmp(name, typed, strlen(typed)) == 0)
		d = 1;
	if (d < g->least || (d == g->least && !g->best))
		*g = (struct guess){name, d};
}

const char *options_suggest(const char *typed, const char *const *names)
{
	struct guess g = guess_begin(typed);

	for (size_t i = 0; names[i]; i++)
		guess_add(&g, typed, names[i]);
	return g.best;
}

static const char *meant_by(const struct options *o, const char *typed)
{
	struct guess g = guess_begin(typed);
	const char *name;

	for (const struct option_row *row = o->shared; row && row->name; row++)
		guess_add(&g, typed, row->name);
	for (const struct option_row *row = o->table; row && row->name; row++)
		guess_add(&g, typed, row->name);
	for (size_t i = 0; o->others_name && (name = o->others_name(i)); i++)
		guess_add(&g, typed, name);
	return g.best;
}

static const struct option_row *row_named(const struct option_row *row, const char *name)
{
	while (row && row->name && strcmp(row->name, name) != 0)
		row++;
	return row && row->name ? row : NULL;
}

static const struct option_row *find_row(const struct options *o, const char *name)
{
	const struct option_row *row = row_named(o->shared, name);

	return row ? row : row_named(o->table, name);
}

static int refuse_unknown(const struct options *o, const char *name, const char *command, struct error *err)
{
	const char *meant = name[1] == '-' ? meant_by(o, name) : NULL;
	char shown[SHOWN_ROOM];

	text_escape_into(shown, sizeof shown, name, strlen(name));
	if (meant)
		return error_set(err, ERROR_USAGE, "unknown option '%s': did you mean %s?", shown, meant);
	return error_set(err, ERROR_USAGE, "unknown option '%s': fumehood help %s lists what there is", shown,
			 command);
}

static void split(const char *word, struct typed *ret)
{
	size_t n = word[1] == '-' ? strcspn(word, "=") : 2;

	snprintf(ret->name, sizeof ret->name, "%.*s", (int)(n < NAME_ROOM ? n : NAME_ROOM - 1), word);
	ret->value = NULL;
	if (word[n])
		ret->value = word[1] == '-' ? word + n + 1 : word + n;
}

/* 1 with a value, 0 without, 2 as it likes, -1 unknown. */
static int takes_value(const struct options *o, const char *name)
{
	const struct option_row *row = find_row(o, name);

	if (row)
		return row->kind == OPTION_FORM ? 2 : row->kind != OPTION_FLAG;
	return o->others_take_value ? o->others_take_value(name) : -1;
}

static int set_number(const struct option_row *row, const char *value, struct error *err)
{
	if (int_parse(value, 1, INT_MAX, row->value) == 0)
		return 0;
	return error_set(err, ERROR_USAGE, "%s wants a number from 1 on, not '%s'", row->name,
			 SHOWN(SHOWN_ROOM, value));
}

static int apply(const struct options *o, const char *name, const char *value, struct error *err)
{
	const struct option_row *row = find_row(o, name);
	int r;

	if (!row) {
		r = o->others_apply(o->others_arg, name, value, err);
		return r == 0 ? error_set(err, ERROR_USAGE, "unknown option '%s'", name) : r < 0 ? r : 0;
	}
	switch (row->kind) {
	case OPTION_FLAG:
		*(bool *)row->value = true;
		return 0;
	case OPTION_TEXT:
		*(const char **)row->value = value;
		return 0;
	case OPTION_FORM:
		*(const char **)row->value = value ? value : "";
		return 0;
	case OPTION_LIST:
		return strv_append(row->value, value, err);
	case OPTION_NUMBER:
		return set_number(row, value, err);
	}
	return 0;
}

/* The option at argv[*i]; *i is moved on if the next word is its value. */
static int parse_option(struct options *o, int argc, char **argv, int *i, struct error *err)
{
	struct typed typed;
	int wants;

	split(argv[*i], &typed);
	wants = takes_value(o, typed.name);
	if (wants < 0)
		return refuse_unknown(o, argv[*i][1] == '-' ? typed.name : argv[*i], argv[0], err);
	if (wants == 0 && typed.value)
		return error_set(err, ERROR_USAGE, "%s takes no value", typed.name);
	if (wants == 1 && !typed.value) {
		if (*i + 1 >= argc || strcmp(argv[*i + 1], "--") == 0)
			return error_set(err, ERROR_USAGE, "%s wants a value", typed.name);
		typed.value = argv[++*i];
	}
	return apply(o, typed.name, typed.value, err);
}

int options_parse(struct options *o, int argc, char **argv, struct error *err)
{
	o->words = calloc((size_t)argc + 1, sizeof *o->words);
	if (!o->words)
		return error_memory(err);
	for (int i = 1; i < argc; i++) {
		int r = 0;

		if (strcmp(argv[i], "--") == 0) {
			o->rest = argv + i + 1;
			return 0;
		}
		if (argv[i][0] == '-' && argv[i][1])
			r = parse_option(o, argc, argv, &i, err);
		else
			o->words[o->n_words++] = argv[i];
		if (r < 0)
			return r;
	}
	return 0;
}
