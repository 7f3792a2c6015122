/*
 * What the commands of `fumehood` share. A command is a row: its name, its help, its main. A command's main returns
 * an exit status, or a negative number with the error filled: then main.c says the one sentence, as JSON where JSON
 * was asked for, and exits with 125. Commands print their answers themselves, on stdout, through stdio.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdbool.h>

#include "hood.h"
#include "options.h"
#include "terminal.h"
#include "view.h"

struct command;

struct cli {
	const struct command *command;
	char id[ID_ROOM]; /* the analysis that it is about, once known to be an id: for errors as JSON */
	const char *db, *config;
	char *whole_db; /* what db points to, once its password has been taken out of our command line */
	bool json, quiet, help;
	struct terminal out, err;
	int argc; /* the command's own name comes first */
	char **argv;
	/* survey.h: cli_begin() shows the tables to it, parses nothing, and returns as if help had been asked for. */
	void (*survey)(void *arg, const struct option_row *shared, const struct option_row *own,
		       const struct options *o);
	void *survey_arg;
	/* What cli_begin() and cli_open() made; main.c takes it down. */
	struct options o;
	struct hood *hood;
	struct ledger *ledger; /* the hood's */
};

/* What a command needs before it can begin. */
enum {
	CLI_ID = 1,	    /* the first word is an id: it is checked, and errors are about it */
	CLI_HOOD = 2,	    /* the configuration is read */
	CLI_LEDGER = 4 | 2, /* made on first use, so that a fresh machine has an empty one, not an error */
};

/* A paragraph of a page of help: options of a request, then others of the command's own, two blanks between them. */
struct help_group {
	const char *title; /* NULL ends a list */
	enum option_group group;
	const char *own;
};

struct command {
	const char *name;
	const char *usage;		 /* "show ID [--attempt N]": what follows "fumehood" */
	const char *summary;		 /* one line for the list */
	const char *help;		 /* the rest of its page: examples first, then options */
	const struct help_group *groups; /* of options that a request's table knows, then */
	const char *notes;		 /* what stands below these */
	int (*main)(struct cli *cli, struct error *err);
	int words_min, words_max;
	unsigned opens;	 /* what cli_begin() opens: CLI_… */
	bool is_attempt; /* with --json a refusal has the shape of an attempt */
	bool takes_rest; /* "--" and what follows it are its own */
};

extern const struct command command_run, command_ls, command_show, command_logs, command_outputs, command_get,
	command_workspace, command_commit, command_gc, command_doctor, command_db, command_post_process,
	command_version, command_help, command_submit, command_wait, command_cancel, command_retry,
	command_worker, command_workers, command_top, command_shell, command_rm, command_prune, command_web,
	command_report;
/* For shells and for `web`, not for people: they are in no list. */
extern const struct command command_complete, command_picture;
/* The table of main.c. Ends with NULL. */
extern const struct command *const commands[];

/* Notes the id that errors are about. What is not an id is not noted. */
void cli_set_id(struct cli *cli, const char *id);
/* Checks it as well. */
int cli_take_id(struct cli *cli, const char *id, struct error *err);

/* How every command begins: the command line is sorted into cli->o and by the command's own rows (NULL: it has none), then
 * what its row says is opened. Negative also when help was asked for and is printed: return it, main.c knows. */
int cli_begin(struct cli *cli, const struct option_row *own, struct error *err);
/* The same for a command that looks at its words first. What is open stays. */
int cli_open(struct cli *cli, unsigned what, struct error *err);
void cli_end(struct cli *cli);
/* Takes the password of --db out of our command line. */
int cli_hide_password(struct cli *cli, struct error *err);
/* "fumehood show is used as: …" */
int cli_usage_error(const struct cli *cli, struct error *err);
void cli_print_help(const struct cli *cli, const struct command *command);

/* Prints json (a new reference, taken; NULL: memory is out) as the one answer on stdout. */
int cli_print_json(const struct cli *cli, json_t *json, struct error *err);
/* The same for what a view gave when it returned r; if r is negative, nothing. Returns r. */
int cli_answer(const struct cli *cli, int r, json_t **json, struct error *err);
/* The same for an attempt, of which only one output at a time is held as JSON; over: keys that replace its own, or NULL. */
int cli_print_attempt(const struct cli *cli, const struct attempt *a, bool full, const json_t *over,
		      struct error *err);
/* Says what err says, in the way that was asked for; returns the exit status. */
int cli_fail(struct cli *cli, struct error *err);

/* cmd_run.c: the attempt with what it wrote, as the one object. */
int cli_print_attempt_with_streams(const struct cli *cli, const struct attempt *a, struct error *err);
/* cmd_run.c: what would be done, as a page or as JSON. */
int dry_run(struct cli *cli, const struct request *request, struct error *err);

/* cmd_rm.c: what `rm` and `prune` do, and tell. words NULL: by age. */
int remove_and_tell(struct cli *cli, char *const *words, const struct remove_order *o, struct error *err);

/* doctor_attack.c: becomes the attack suite, at that strength (NULL: the site's), so that it returns only when it cannot: negative. */
int doctor_attack(const struct cli *cli, const char *strength, struct error *err);

#endif
