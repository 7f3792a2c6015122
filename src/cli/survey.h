/*
 * What a command line may have, asked of the commands themselves: each one's main is called to show the tables that it would
 * be parsed by, and does nothing else. So a new command or option is completed by shells, and missed by the manual's test, from
 * the moment that it has its row.
 */
#ifndef CLI_SURVEY_H
#define CLI_SURVEY_H

#include "cli.h"

struct survey_option {
	const char *name;	    /* "--memory" */
	const char *takes;	    /* "SIZE", "never|always"; NULL: a flag, or see choices */
	const char *const *choices; /* as in option_info, or NULL */
	const char *help;	    /* or NULL */
	bool has_value;
	bool is_shared;	 /* all commands have it */
	bool is_request; /* a request's: run and submit have it */
};

enum { SURVEY_MAX = 128 };

struct survey {
	struct survey_option options[SURVEY_MAX];
	size_t n;
};

void survey_command(const struct command *c, struct survey *ret);
const struct survey_option *survey_find(const struct survey *s, const char *name); /* or NULL */

/* What the i-th plain word of a command is, by its usage: "ID", "create|cleanup", into out; "" if there is none. */
const char *survey_word(const struct command *c, size_t i, char *out, size_t room);

/* [{"name", "usage", "summary", "options": [{"name", "takes", "choices", "help", "shared", "request"}]}]: for scripts/texts and
 * tests. New reference; NULL: memory is out. */
json_t *survey_json(void);

#endif
