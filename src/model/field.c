#include "field.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "array.h"
#include "job.h"
#include "member.h"
#include "verdict.h"

static const char *const strength_choices[] = {
	[STRENGTH_FULL] = "full",
	[STRENGTH_LANDLOCK] = "landlock",
	NULL,
};
static const char *const keep_choices[] = {
	[KEEP_UNSET] = "",
	[KEEP_NEVER] = "never",
	[KEEP_ON_FAILURE] = "on-failure",
	[KEEP_ALWAYS] = "always",
	NULL,
};

#define AT(field) offsetof(struct request, field)
#define IN_ALL	  (FIELD_IN_REQUEST | FIELD_IN_DEFAULTS | FIELD_IN_STORE)
#define IN_ONE	  (FIELD_IN_REQUEST | FIELD_IN_STORE) /* of one request, never a default */

const struct field field_table[] = {
	{"id", NULL, FIELD_TEXT, IN_ONE, AT(id), .help = "made up when left out"},
	{"command", NULL, FIELD_COMMAND, IN_ONE, AT(command),
	 .help = "words are taken as they stand, bare numbers and true too; a text is split at blanks, with '…', \"…\" "
		 "and \\ as quotes, and nothing is expanded"},
	{"directory", NULL, FIELD_TEXT, FIELD_IN_STORE, AT(directory), .help = "where relative paths start"},
	{"shown", NULL, FIELD_LIST, FIELD_IN_STORE, AT(shown),
	 .help = "environments and packages of who submitted it, shown where he may read them"},
	{"shown_env", NULL, FIELD_LIST, FIELD_IN_STORE, AT(shown_env),
	 .help = "the variables that name them"},
	{"data", "--data", FIELD_TEXT, IN_ALL, AT(data), .group = GROUP_INPUTS, .value = "DIR",
	 .help = "a directory, shown read-only at its own path and as data/; else the configuration's, else ./data where "
		 "it exists and is no link out of the directory"},
	{"docs", "--docs", FIELD_TEXT, IN_ALL, AT(docs), .group = GROUP_INPUTS, .value = "DIR",
	 .help = "the same as docs/"},
	{"ro", "--ro", FIELD_PATHS, IN_ALL, AT(ro), AT(n_ro), .group = GROUP_INPUTS, .value = "PATH[:AT]",
	 .help = "shown read-only at AT, which is absolute, or at its own path"},
	{"input", "--input", FIELD_PATHS, IN_ALL, AT(inputs), AT(n_inputs), .group = GROUP_INPUTS,
	 .value = "PATH[:AS]",
	 .help = "a file, or a directory with what is below it, copied into the workspace before the start as AS, which is relative to "
		 "it, or under its own name; `.` is the workspace itself"},
	{"from", "--from", FIELD_LIST, IN_ONE, AT(from), .group = GROUP_INPUTS, .value = "ID[:GLOB[:AS]]",
	 .remark = "outputs of its latest success; 'NAME.*': an array's",
	 .help = "outputs of another analysis's latest success when the attempt starts, all or those that match GLOB, read-only "
		 "below AS, else below from/ID/; 'NAME.*' is every task of an array; in the queue it is an after too"},
	{"no_stage", "--no-stage", FIELD_FLAG, IN_ALL, AT(no_stage), .group = GROUP_INPUTS,
	 .help = "copy nothing that is only named in the command"},
	{"output", "--output", FIELD_LIST, IN_ALL, AT(outputs), .group = GROUP_OUTPUTS, .value = "GLOB",
	 .help = "relative, without '..'; each must match something at the end"},
	{"optional_output", "--optional-output", FIELD_LIST, IN_ALL, AT(optional_outputs),
	 .group = GROUP_OUTPUTS, .value = "GLOB", .help = "the same, but may match nothing"},
	{"env", "--env", FIELD_LIST, IN_ALL, AT(env), .group = GROUP_INPUTS, .value = "NAME[=VALUE]",
	 .help = "added to the environment with this value, or the caller's; NAME has letters, digits and _"},
	{"stdin", "-i", FIELD_FLAG, IN_ALL, AT(stdin_open), .group = GROUP_INPUTS, .remark = "stdin",
	 .help = "the caller's standard input instead of /dev/null"},
	{"terminal", "-t", FIELD_FLAG, IN_ONE, AT(terminal), .group = GROUP_INPUTS, .remark = "a terminal",
	 .help = "a terminal of its own as stdin, stdout and stderr, which is not the caller's: what is typed there and shown here "
		 "passes between the two"},
	{"limits", NULL, FIELD_LIMITS, IN_ALL, AT(limits), .help = "what it may use: the table above"},
	{"allow_unlimited", "--allow-unlimited", FIELD_FLAG, IN_ALL, AT(allow_unlimited),
	 .group = GROUP_LIMITS, .help = "run even where a limit that was asked for cannot be held"},
	{"strength", "--strength", FIELD_CHOICE, IN_ALL, AT(strength), .choices = strength_choices,
	 .group = GROUP_REST,
	 .help = "which walls there must be; landlock: no namespaces, and less is held, see fumehood-run(1)"},
	{"keep", "--keep", FIELD_CHOICE, IN_ALL, AT(keep), .choices = keep_choices, .group = GROUP_REST,
	 .help = "when the workspace is left at the end"},
	{"into", "--into", FIELD_TEXT, IN_ALL, AT(into), .group = GROUP_OUTPUTS, .value = "DIR",
	 .remark = "copies them there",
	 .help = "a directory that the outputs are copied into after the commit, made with its parents: never over what is there without force, "
		 "and a dot-file only if output or optional_output has its exact name"},
	{"force", "--force", FIELD_FLAG, IN_ONE, AT(force), .group = GROUP_OUTPUTS,
	 .remark = "over what is there",
	 .help = "what is copied into a directory may overwrite what is there"},
	{"again", "--again", FIELD_FLAG, IN_ONE, AT(again), .group = GROUP_REST, .remark = "after a success",
	 .help = "another attempt although one has succeeded"},
	{"post_process", "--post-process", FIELD_TEXT, IN_ALL, AT(post_process), .group = GROUP_OUTPUTS,
	 .value = "CMD", .remark = "turns them into rows",
	 .help = "a command that turns the outputs into rows, split as command is"},
	{"query", "--query", FIELD_QUERIES, IN_ALL, AT(queries), AT(n_queries), .group = GROUP_INPUTS,
	 .value = "NAME=SQL", .remark = "asks the database, NAME is a CSV file then",
	 .help = "asked of the ledger's database before the start; the answer is the file NAME"},
	{"explain", "--explain", FIELD_FLAG, IN_ALL, AT(explain), .group = GROUP_REST,
	 .help = "tell also of files that are not there under the hood, or not writable, and of connections"},
	{"priority", "--priority", FIELD_NUMBER, IN_ONE, AT(priority), .min = -JOB_PRIORITY_MAX,
	 .max = JOB_PRIORITY_MAX, .group = GROUP_QUEUE, .remark = "-1000 to 1000, among your own",
	 .help = "among the submitter's own, higher is sooner; of the queue"},
	{"after", "--after", FIELD_LIST, IN_ONE, AT(after), .group = GROUP_QUEUE, .value = "ID",
	 .remark = "must have succeeded", .help = "must have succeeded first; of the queue"},
	{"retries", "--retries", FIELD_NUMBER, IN_ONE, AT(retries), .max = JOB_RETRIES_MAX,
	 .built_in = JOB_RETRIES_DEFAULT, .group = GROUP_QUEUE, .remark = "at most so many more attempts, 5",
	 .help = "at most so many more attempts, for what trying again can mend; of the queue"},
	{"retry_on", "--retry-on", FIELD_VERDICTS, IN_ONE, AT(retry_on), .group = GROUP_QUEUE,
	 .value = "VERDICT[,VERDICT]",
	 .help = "tried again too, besides lost and failures of ours; of the queue"},
	{"slurm", "--slurm", FIELD_LIST, IN_ONE, AT(slurm), .group = GROUP_QUEUE, .value = "KEY=VALUE",
	 .remark = "an option of sbatch, where Slurm runs it",
	 .help = "an option of sbatch for who is run by Slurm: partition, account, qos, constraint, reservation, gres, licenses, "
		 "nodelist, exclude, nice, exclusive; of the queue"},
};
const size_t field_count = ARRAY_SIZE(field_table);

const char *keep_name(enum keep keep)
{
	return keep == KEEP_UNSET ? "unset" : keep_choices[keep];
}

const char *strength_name(enum strength strength)
{
	return strength_choices[strength];
}

const struct field *field_by_key(const char *key, unsigned where)
{
	for (size_t i = 0; i < field_count; i++)
		if ((field_table[i].where & where) && strcmp(field_table[i].key, key) == 0)
			return &field_table[i];
	return NULL;
}

const struct field *field_by_option(const char *option)
{
	for (size_t i = 0; i < field_count; i++)
		if (field_table[i].option && strcmp(field_table[i].option, option) == 0)
			return &field_table[i];
	return NULL;
}

/* The member of r that f is about, by the type that its kind has. */
#define FIELD_AT(type, f, r) ((type *)(void *)((char *)(r) + (f)->offset))
#define FIELD_IN(type, f, r) ((type const *)(const void *)((const char *)(r) + (f)->offset))
#define COUNT_AT(f, r)	     ((size_t *)(void *)((char *)(r) + (f)->count_offset))
#define COUNT_IN(f, r)	     (*(const size_t *)(const void *)((const char *)(r) + (f)->count_offset))

static uint64_t field_bit(const struct field *f)
{
	_Static_assert(ARRAY_SIZE(field_table) <= 64, "a request's set of given fields has a bit for each");
	return UINT64_C(1) << (f - field_table);
}

bool field_is_set(const struct field *f, const struct request *r)
{
	if (f->kind != FIELD_TEXT && (r->set & field_bit(f)))
		return true;
	switch (f->kind) {
	case FIELD_TEXT:
		return *FIELD_IN(char *, f, r) != NULL;
	case FIELD_COMMAND:
	case FIELD_LIST:
		return *FIELD_IN(char **, f, r) != NULL;
	case FIELD_PATHS:
	case FIELD_QUERIES:
		return COUNT_IN(f, r) > 0;
	case FIELD_FLAG:
		return *FIELD_IN(bool, f, r);
	case FIELD_CHOICE:
	case FIELD_VERDICTS:
		return *FIELD_IN(unsigned, f, r) != 0;
	case FIELD_NUMBER:
		return *FIELD_IN(int, f, r) != 0;
	case FIELD_LIMITS:
		break;
	}
	for (int i = 0; i < LIMIT_COUNT; i++)
		if (r->limits.origin[i] != LIMIT_UNSET)
			return true;
	return false;
}

void field_mark(const struct field *f, struct request *r)
{
	r->set |= field_bit(f);
}

void field_done(const struct field *f, struct request *r)
{
	struct pair *pairs;

	switch (f->kind) {
	case FIELD_TEXT:
		free(*FIELD_AT(char *, f, r));
		break;
	case FIELD_COMMAND:
	case FIELD_LIST:
		strv_free(*FIELD_AT(char **, f, r));
		break;
	case FIELD_PATHS:
	case FIELD_QUERIES:
		pairs = *FIELD_AT(struct pair *, f, r);
		for (size_t i = 0; i < COUNT_IN(f, r); i++) {
			free(pairs[i].from);
			free(pairs[i].to);
		}
		free(pairs);
		break;
	case FIELD_FLAG:
	case FIELD_CHOICE:
	case FIELD_LIMITS:
	case FIELD_NUMBER:
	case FIELD_VERDICTS:
		break;
	}
}

static int pair_append(const struct field *f, struct request *r, const char *from, size_t from_size,
		       const char *to, struct error *err)
{
	_cleanup_free_ char *first = strndup(from, from_size), *second = to ? strdup(to) : NULL;
	struct pair **pairs = FIELD_AT(struct pair *, f, r);
	struct pair *p = first && (second || !to) ? ARRAY_ADD(*pairs, *COUNT_AT(f, r)) : NULL;

	if (!p)
		return error_memory(err);
	*p = (struct pair){TAKE_PTR(first), TAKE_PTR(second)};
	return 0;
}

/* "FROM[:TO]" at the last colon, so that FROM may have one ("a:b:" is just "a:b"); "NAME=SQL" at the first '='. */
static int pair_parse(const struct field *f, struct request *r, const char *text, struct error *err)
{
	const char *at = f->kind == FIELD_QUERIES ? strchr(text, '=') : strrchr(text, ':');

	if (!at && f->kind == FIELD_QUERIES)
		return error_set(err, ERROR_USAGE, "query '%s' makes no sense: write NAME=SQL",
				 SHOWN(128, text));
	return pair_append(f, r, text, at ? (size_t)(at - text) : strlen(text), at && at[1] ? at + 1 : NULL,
			   err);
}

static int choice_parse(const struct field *f, struct request *r, const char *text, struct error *err)
{
	_cleanup_buffer_ struct buffer known = {0};

	for (unsigned i = 0; f->choices[i]; i++) {
		if (!*f->choices[i])
			continue;
		if (strcmp(f->choices[i], text) == 0) {
			*FIELD_AT(unsigned, f, r) = i;
			return 0;
		}
		buffer_printf(&known, "%s%s", known.size ? ", " : "", f->choices[i]);
	}
	if (buffer_check(&known, err) < 0)
		return -ENOMEM;
	return error_set(err, ERROR_USAGE, "%s '%s' is not one of %s", f->key, SHOWN(64, text), known.data);
}

static int number_parse(const struct field *f, struct request *r, const char *text, struct error *err)
{
	if (*text != ' ' && int_parse(text, f->min, f->max, FIELD_AT(int, f, r)) == 0)
		return 0;
	return error_set(err, ERROR_USAGE, "%s '%s' makes no sense: write a whole number from %d to %d",
			 f->key, SHOWN(64, text), f->min, f->max);
}

bool field_takes_verdict(enum verdict v)
{
	return v != VERDICT_NONE && v != VERDICT_SUCCEEDED && v != VERDICT_CANCELLED;
}

static int verdicts_parse(const struct field *f, struct request *r, const char *text, struct error *err)
{
	char name[32], shown[64];

	for (;;) {
		size_t n = strcspn(text, ",");
		enum verdict v;

		snprintf(name, sizeof name, "%.*s", n < sizeof name ? (int)n : 0, text);
		if (verdict_parse(name, &v) < 0 || !field_takes_verdict(v))
			return error_set(
				err, ERROR_USAGE,
				"%s '%s' is not a verdict that can be tried again: failed, timed_out, out_of_memory …",
				f->key, text_escape_into(shown, sizeof shown, text, n));
		*FIELD_AT(unsigned, f, r) |= 1U << v;
		if (!text[n])
			return 0;
		text += n + 1;
	}
}

int field_copy(const struct field *f, struct request *to, const struct request *from, struct error *err)
{
	const struct pair *pairs;
	int k = 0;

	field_mark(f, to);
	switch (f->kind) {
	case FIELD_TEXT:
		return text_set(FIELD_AT(char *, f, to), *FIELD_IN(char *, f, from), err);
	case FIELD_COMMAND:
	case FIELD_LIST:
		*FIELD_AT(char **, f, to) = strv_copy(*FIELD_IN(char **, f, from));
		return *FIELD_AT(char **, f, to) ? 0 : error_memory(err);
	case FIELD_PATHS:
	case FIELD_QUERIES:
		pairs = *FIELD_IN(struct pair *, f, from);
		for (size_t i = 0; k == 0 && i < COUNT_IN(f, from); i++)
			k = pair_append(f, to, pairs[i].from, strlen(pairs[i].from), pairs[i].to, err);
		return k;
	case FIELD_FLAG:
		*FIELD_AT(bool, f, to) = *FIELD_IN(bool, f, from);
		return 0;
	case FIELD_CHOICE:
	case FIELD_VERDICTS:
		*FIELD_AT(unsigned, f, to) = *FIELD_IN(unsigned, f, from);
		return 0;
	case FIELD_NUMBER:
		*FIELD_AT(int, f, to) = *FIELD_IN(int, f, from);
		return 0;
	case FIELD_LIMITS:
		limits_inherit(&to->limits, &from->limits);
		return 0;
	}
	return 0;
}

int field_from_option(const struct field *f, struct request *r, const char *value, struct error *err)
{
	field_mark(f, r);
	switch (f->kind) {
	case FIELD_TEXT:
		return text_set(FIELD_AT(char *, f, r), value, err);
	case FIELD_LIST:
		return strv_append(FIELD_AT(char **, f, r), value, err);
	case FIELD_PATHS:
	case FIELD_QUERIES:
		return pair_parse(f, r, value, err);
	case FIELD_FLAG:
		*FIELD_AT(bool, f, r) = true;
		return 0;
	case FIELD_CHOICE:
		return choice_parse(f, r, value, err);
	case FIELD_NUMBER:
		return number_parse(f, r, value, err);
	case FIELD_VERDICTS:
		return verdicts_parse(f, r, value, err);
	case FIELD_COMMAND:
	case FIELD_LIMITS:
		break;
	}
	return error_set(err, ERROR_USAGE, "%s is not an option", f->key);
}
