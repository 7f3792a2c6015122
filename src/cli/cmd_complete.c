/*
 * fumehood complete: what could stand where the cursor is, for the scripts in packaging/completions.
 *
 * It answers with one candidate per line, a tab and a few words about it behind those that have them; a line that begins with
 * a colon asks the shell for what it knows better: ":files", ":dirs", ":users", or ":rest N", the words from the N-th on are
 * another command's. It is quick, makes nothing, and where it cannot tell it says nothing: nobody has asked it a question.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "survey.h"

enum { IDS_MAX = 200, ABOUT_MAX = 72, PATIENCE_S = 2, WORD_ROOM = 256 };

static const char help[] = "  fumehood complete -- show a4        what \"fumehood show a4\" could become\n"
			   "  fumehood complete ids a4            ids that begin so\n"
			   "  fumehood complete table             every command and option, as JSON\n";

/* One question: everything that is said begins with `before`, what is completed with `prefix`. */
struct question {
	struct cli *cli;
	const char *before; /* "--keep=", "failed,", or "" */
	size_t before_size;
	const char *prefix;
	bool wants_kept; /* of ids only those whose workspace is kept */
};

/* The first clause of a help, cut where it is too long for a menu. */
static void print_about(const char *about)
{
	size_t n = strcspn(about, ";:(");

	if (about[n] && about[n] != ';' && about[n + 1] != ' ' && about[n] != '(')
		n = strcspn(about, ";");
	while (n > 0 && about[n - 1] == ' ')
		n--;
	if (n > ABOUT_MAX)
		for (n = ABOUT_MAX; n > 0 && about[n] != ' ';)
			n--;
	printf("\t%.*s", (int)n, about);
}

static void offer(const struct question *q, const char *word, const char *about)
{
	if (strncmp(word, q->prefix, strlen(q->prefix)) != 0)
		return;
	printf("%.*s%s", (int)q->before_size, q->before, word);
	if (about && *about)
		print_about(about);
	printf("\n");
}

/* ---- ids ---- */

static int offer_id(void *arg, const char *id, struct error *err UNUSED)
{
	offer(arg, id, NULL);
	return 0;
}

static int offer_live(void *arg, const struct live *live)
{
	const struct question *q = arg;

	if (!q->wants_kept)
		offer(q, live->id, live_state(live));
	else if (live->kept)
		offer(q, live->id, live->path);
	return 0;
}

/* Neither a ledger nor a state directory is made. A server that does not answer is not waited for. */
static void offer_ids(struct question *q)
{
	struct error ignored = ERROR_INIT;
	struct ledger *ledger;

	alarm(PATIENCE_S);
	if (q->cli->db && cli_hide_password(q->cli, &ignored) < 0)
		return;
	if (cli_open(q->cli, CLI_HOOD, &ignored) < 0)
		return;
	if (!q->wants_kept && hood_ledger(q->cli->hood, LEDGER_READ_ONLY, &ledger, &ignored) == 0)
		(void)ledger_ids(ledger, q->prefix, IDS_MAX, offer_id, q, &ignored);
	if (access(hood_state_dir(q->cli->hood), R_OK | W_OK) == 0)
		(void)hood_live_each(q->cli->hood, offer_live, q, &ignored);
}

/* ---- values ---- */

static void offer_verdicts(const struct question *whole)
{
	const char *comma = strrchr(whole->prefix, ',');
	struct question q = *whole;
	char before[WORD_ROOM];

	if (comma) {
		if (whole->before_size + (size_t)(comma - whole->prefix) + 2 > sizeof before)
			return;
		snprintf(before, sizeof before, "%.*s%.*s,", (int)whole->before_size, whole->before,
			 (int)(comma - whole->prefix), whole->prefix);
		q.before = before;
		q.before_size = strlen(before);
		q.prefix = comma + 1;
	}
	for (int v = VERDICT_NONE + 1; v < VERDICT_COUNT; v++)
		offer(&q, verdict_name((enum verdict)v), NULL);
}

static void offer_commands(const struct question *q)
{
	for (size_t i = 0; commands[i]; i++)
		offer(q, commands[i]->name, commands[i]->summary);
}

static bool is_kind(const char *word, const char *kind)
{
	size_t n = strlen(kind);

	return strncmp(word, kind, n) == 0 && (!word[n] || strchr("[_.…", word[n]));
}

/* "ID…", "FILE_OR_DIR", "VERDICT[,VERDICT]": names of kinds are in capitals, everything else is to be typed as it is. */
static void offer_kind(struct question *q, const char *word)
{
	if (word[0] >= 'a' && word[0] <= 'z')
		offer(q, word, NULL);
	else if (is_kind(word, "ID"))
		offer_ids(q);
	else if (is_kind(word, "VERDICT"))
		offer_verdicts(q);
	else if (is_kind(word, "COMMAND"))
		offer_commands(q);
	else if (is_kind(word, "DIR"))
		printf(":dirs\n");
	else if (is_kind(word, "FILE") || (is_kind(word, "PATH") && word[4] != '_'))
		printf(":files\n");
	else if (is_kind(word, "USER"))
		printf(":users\n");
}

static void offer_value(struct question *q, const char *takes)
{
	for (const char *at = takes; *at;) {
		size_t n = strcspn(at, "|");
		char word[WORD_ROOM];

		snprintf(word, sizeof word, "%.*s", (int)n, at);
		offer_kind(q, word);
		at += n + (at[n] == '|');
	}
}

static void offer_option_value(struct question *q, const struct survey_option *o)
{
	for (size_t i = 0; o->choices && o->choices[i]; i++)
		if (*o->choices[i])
			offer(q, o->choices[i], NULL);
	if (o->takes)
		offer_value(q, o->takes);
}

/* ---- a line ---- */

/* What the words before the cursor come to. */
struct line {
	const struct survey_option *open; /* whose value is the word at the cursor */
	size_t n_words;			  /* plain ones */
	int rest;			  /* where another command begins; 0: nowhere */
	bool ended;			  /* "--" was there: nothing is an option any more */
};

static void note_value(struct cli *cli, const char *name, const char *value)
{
	if (strcmp(name, "--db") == 0)
		cli->db = value;
	else if (strcmp(name, "--config") == 0)
		cli->config = value;
}

/* words[0] is the command's name, the last one stands at the cursor. */
static void read_line(struct cli *cli, const struct command *c, const struct survey *s, char **words, int n,
		      struct line *ret)
{
	*ret = (struct line){0};
	for (int i = 1; i < n - 1; i++) {
		const char *word = words[i], *equals = strchr(word, '=');
		char name[WORD_ROOM];
		const struct survey_option *o;

		if (!ret->ended && strcmp(word, "--") == 0) {
			ret->ended = true;
			if (c->takes_rest) {
				ret->rest = i + 1;
				return;
			}
			continue;
		}
		if (ret->ended || word[0] != '-' || !word[1]) {
			ret->n_words++;
			continue;
		}
		snprintf(name, sizeof name, "%.*s", equals ? (int)(equals - word) : WORD_ROOM - 1, word);
		o = survey_find(s, name);
		if (equals && o)
			note_value(cli, name, equals + 1);
		else if (o && o->has_value && i + 1 < n - 1)
			note_value(cli, name, words[++i]);
		else if (o && o->has_value)
			ret->open = o;
	}
}

static void complete_option(struct question *q, const struct survey *s, const char *word)
{
	const char *equals = strchr(word, '=');
	const struct survey_option *o;
	char name[WORD_ROOM];

	if (!equals) {
		for (size_t i = 0; i < s->n; i++)
			offer(q, s->options[i].name, s->options[i].help);
		return;
	}
	snprintf(name, sizeof name, "%.*s", (int)(equals - word), word);
	o = survey_find(s, name);
	if (!o || !o->has_value)
		return;
	q->before = word;
	q->before_size = (size_t)(equals + 1 - word);
	q->prefix = equals + 1;
	offer_option_value(q, o);
}

static void complete_line(struct cli *cli, char **words, int n)
{
	struct question q = {.cli = cli, .before = "", .prefix = words[n - 1]};
	const struct command *c = NULL;
	char takes[WORD_ROOM];
	struct survey s;
	struct line line;

	if (n == 1) {
		offer_commands(&q);
		return;
	}
	for (size_t i = 0; commands[i] && !c; i++)
		if (strcmp(commands[i]->name, words[0]) == 0)
			c = commands[i];
	if (!c)
		return;
	q.wants_kept = c == &command_shell;
	survey_command(c, &s);
	read_line(cli, c, &s, words, n, &line);
	if (line.rest)
		printf(":rest %d\n", line.rest + 1);
	else if (line.open)
		offer_option_value(&q, line.open);
	else if (!line.ended && *q.prefix == '-')
		complete_option(&q, &s, q.prefix);
	else
		offer_value(&q, survey_word(c, line.n_words, takes, sizeof takes));
}

static int complete_main(struct cli *cli, struct error *err)
{
	struct question ids = {.cli = cli, .before = "", .prefix = ""};

	/* The words are somebody's who is still typing: none of them is ours to parse, or to complain about. */
	if (cli->argc > 2 && strcmp(cli->argv[1], "--") == 0) {
		complete_line(cli, cli->argv + 2, cli->argc - 2);
		return 0;
	}
	if (cli->argc == 2 && strcmp(cli->argv[1], "table") == 0)
		return cli_print_json(cli, survey_json(), err);
	if (cli->argc > 1 && cli->argc < 4 && strcmp(cli->argv[1], "ids") == 0) {
		ids.prefix = cli->argc == 3 ? cli->argv[2] : "";
		offer_ids(&ids);
		return 0;
	}
	return cli_usage_error(cli, err);
}

const struct command command_complete = {
	.name = "complete",
	.usage = "complete -- WORD… | ids [PREFIX] | table",
	.summary = "what a shell's tab key offers",
	.help = help,
	.main = complete_main,
};
