/*
 * The words of a command line, sorted by a table: options with their values, plain words, and what follows "--".
 * `--name value` and `--name=value` mean the same; a letter has its value as the next word or glued on.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include "error.h"

enum option_kind {
	OPTION_FLAG,   /* bool * */
	OPTION_TEXT,   /* const char **: the last one counts */
	OPTION_LIST,   /* char ***: a list that owns its strings */
	OPTION_NUMBER, /* int *: 1 or more */
	OPTION_FORM,   /* const char **: a flag that may have "=WORD" behind it; "" without */
};

struct option_row {
	const char *name; /* "--attempt", "-f"; NULL ends a table */
	enum option_kind kind;
	void *value;
	/* For completions and the manual (survey.h). What it takes: "N", "DIR", "never|always"; NULL: a flag, or nobody can say.
	 * And what it means, in a line without a full stop. */
	const char *takes, *help;
};

struct options {
	const struct option_row *shared; /* what all commands have, or NULL */
	const struct option_row *table;	 /* a command's own, or NULL */
	/* Options that somebody else knows (a request's), as request_option_takes_value and request_option do; name tells
	 * the i-th, or NULL, for "did you mean". All may be NULL. */
	int (*others_take_value)(const char *name);
	int (*others_apply)(void *arg, const char *name, const char *value, struct error *err);
	void *others_arg;
	const char *(*others_name)(size_t i);
	/* Results, pointing into argv. */
	char **words;
	int n_words;
	char **rest; /* what follows "--"; NULL if there was none */
};

/* argv[0] is the command's own name. ERROR_USAGE in one sentence. options_done frees `words`. */
int options_parse(struct options *o, int argc, char **argv, struct error *err);
void options_done(struct options *o);
#define _cleanup_options_ _cleanup_(options_done)

/* The one of names (NULL-terminated) that was probably meant, or NULL. */
const char *options_suggest(const char *typed, const char *const *names);

#endif
