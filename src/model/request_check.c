#include "request.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "file.h"
#include "flow.h"

static bool is_name(const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		char c = text[i];

		if (!(c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		      (i && c >= '0' && c <= '9')))
			return false;
	}
	return size > 0;
}

static int check_not_empty(const char *what, const char *text, struct error *err)
{
	if (!text || *text)
		return 0;
	return error_set(err, ERROR_USAGE, "%s is empty: give a value or leave it out", what);
}

static int check_command(char *const *command, struct error *err)
{
	if (!command || !command[0])
		return error_set(
			err, ERROR_USAGE,
			"there is no command: give one after '--', or as 'command' in a request file");
	return check_not_empty("the command's name", command[0], err);
}

static int check_env(char *const *env, struct error *err)
{
	for (size_t i = 0; env && env[i]; i++)
		if (!is_name(env[i], strcspn(env[i], "=")))
			return error_set(
				err, ERROR_USAGE,
				"env '%s' makes no sense: write NAME=VALUE or NAME, with a NAME of letters, digits and '_'",
				SHOWN(256, env[i]));
	return 0;
}

/* A pattern stays beneath the workspace. */
static int check_outputs(const char *what, char *const *globs, struct error *err)
{
	for (size_t i = 0; globs && globs[i]; i++)
		if (!globs[i][0] || globs[i][0] == '/' || path_has_dot_dot(globs[i]))
			return error_set(
				err, ERROR_USAGE,
				"%s '%s' makes no sense: write a path below the workspace, without '..'",
				what, SHOWN(256, globs[i]));
	return 0;
}

static int check_ro(const struct pair *p, struct error *err)
{
	if (!p->to || (p->to[0] == '/' && p->to[1] && !path_has_dot_dot(p->to) && !strchr(p->to, ':')))
		return 0;
	return error_set(err, ERROR_USAGE,
			 "ro cannot appear at '%s': give an absolute path without '..' and ':'",
			 SHOWN(256, p->to));
}

static int check_input(const struct pair *p, struct error *err)
{
	if (!p->to || (p->to[0] != '/' && !path_has_dot_dot(p->to) && !strchr(p->to, ':')))
		return 0;
	return error_set(
		err, ERROR_USAGE,
		"input cannot be staged as '%s': give a path below the workspace, without '..' and ':'",
		SHOWN(256, p->to));
}

static int check_query(const struct pair *p, struct error *err)
{
	/* A file of the workspace: an id's letters are a file name's. */
	if (id_check(p->from, NULL) < 0)
		return error_set(
			err, ERROR_USAGE,
			"query name '%s' makes no sense: it is a file's name of letters, digits, '.', '_' and '-'",
			SHOWN(256, p->from));
	if (!p->to)
		return error_set(err, ERROR_USAGE, "query '%s' has no SQL: write NAME=SQL", p->from);
	return 0;
}

static int check_pairs(const char *what, const struct pair *pairs, size_t count,
		       int (*check)(const struct pair *p, struct error *err), struct error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++) {
		r = check_not_empty(what, pairs[i].from, err);
		if (r == 0)
			r = check(&pairs[i], err);
	}
	return r;
}

static int check_texts(const struct request *r, struct error *err)
{
	const struct {
		const char *what, *text;
	} texts[] = {
		{"data", r->data},
		{"docs", r->docs},
		{"into", r->into},
		{"post_process", r->post_process},
	};
	int k = 0;

	for (size_t i = 0; k == 0 && i < ARRAY_SIZE(texts); i++)
		k = check_not_empty(texts[i].what, texts[i].text, err);
	return k;
}

static int check_after(const struct request *r, struct error *err)
{
	int k = 0;

	for (size_t i = 0; k == 0 && r->after && r->after[i]; i++) {
		k = id_check(r->after[i], err);
		if (k < 0)
			error_prefix(err, k, "after");
		else if (r->id && strcmp(r->id, r->after[i]) == 0)
			k = error_set(err, ERROR_USAGE, "'%s' cannot come after itself", r->id);
	}
	return k;
}

static int check_from(const struct request *r, struct error *err)
{
	int k = 0;

	for (size_t i = 0; k == 0 && r->from && r->from[i]; i++) {
		_cleanup_flow_ struct flow f = {0};

		k = flow_parse(r->from[i], &f, err);
	}
	return k;
}

/* Those of sbatch's options that only say where and when. The rest could write files, or run things, as whoever submits to Slurm. */
static const char *const slurm_keys[] = {"partition",	"account", "qos",      "constraint",
					 "reservation", "gres",	   "licenses", "nodelist",
					 "exclude",	"nice",	   "exclusive"};

enum { SLURM_VALUE_MAX = 4096 };

static bool is_slurm_key(const char *text, size_t size)
{
	for (size_t i = 0; i < ARRAY_SIZE(slurm_keys); i++)
		if (strlen(slurm_keys[i]) == size && memcmp(slurm_keys[i], text, size) == 0)
			return true;
	return false;
}

static int refuse_slurm_key(const char *word, struct error *err)
{
	_cleanup_buffer_ struct buffer known = {0};

	for (size_t i = 0; i < ARRAY_SIZE(slurm_keys); i++)
		buffer_printf(&known, "%s%s", i ? ", " : "", slurm_keys[i]);
	if (buffer_check(&known, err) < 0)
		return -ENOMEM;
	return error_set(err, ERROR_USAGE,
			 "slurm '%s' is none of the options of sbatch that may be asked for: %s",
			 SHOWN(128, word), known.data);
}

static bool is_one_of(const char *key, size_t size, const char *a, const char *b)
{
	return (strlen(a) == size && memcmp(a, key, size) == 0) ||
	       (b && strlen(b) == size && memcmp(b, key, size) == 0);
}

/* What sbatch takes for something else than a value: it would be done as who submits to Slurm, or nothing would be submitted. */
static const char *slurm_value_fault(const char *key, size_t size, const char *value)
{
	for (const char *c = value; *c; c++)
		if ((unsigned char)*c <= ' ' || *c == 127)
			return "a value has no blanks";
	if (strlen(value) > SLURM_VALUE_MAX)
		return "a value has at most 4096 bytes";
	if (is_one_of(key, size, "nodelist", "exclude") && strchr(value, '/'))
		return "write the nodes, not a file that sbatch would read";
	if (is_one_of(key, size, "gres", NULL) &&
	    (strcasecmp(value, "help") == 0 || strcasecmp(value, "list") == 0))
		return "sbatch would print a list, and submit nothing";
	/* A dispatcher that is root, or an operator of Slurm's, would be given it. */
	if (is_one_of(key, size, "nice", NULL) && strspn(value, "0123456789") != strlen(value))
		return "write a number that is not negative";
	return NULL;
}

static int check_slurm(char *const *words, struct error *err)
{
	for (size_t i = 0; words && words[i]; i++) {
		const char *word = words[i], *value = strchr(word, '='), *fault;
		size_t size = strcspn(word, "=");

		if (!is_slurm_key(word, size))
			return refuse_slurm_key(word, err);
		if (value ? !value[1] : strcmp(word, "exclusive") != 0)
			return error_set(err, ERROR_USAGE, "slurm '%s' has no value: write KEY=VALUE", word);
		fault = value ? slurm_value_fault(word, size, value + 1) : NULL;
		if (fault)
			return error_set(err, ERROR_USAGE, "slurm '%s' makes no sense: %s", SHOWN(128, word),
					 fault);
	}
	return 0;
}

int request_check(const struct request *r, struct error *err)
{
	if ((r->id && id_check(r->id, err) < 0) || check_command(r->command, err) < 0 ||
	    check_texts(r, err) < 0 || check_env(r->env, err) < 0 ||
	    check_outputs("output", r->outputs, err) < 0 ||
	    check_outputs("optional_output", r->optional_outputs, err) < 0 ||
	    check_pairs("ro", r->ro, r->n_ro, check_ro, err) < 0 ||
	    check_pairs("input", r->inputs, r->n_inputs, check_input, err) < 0 ||
	    check_pairs("query", r->queries, r->n_queries, check_query, err) < 0 || check_from(r, err) < 0 ||
	    check_slurm(r->slurm, err) < 0)
		return -EINVAL;
	return check_after(r, err);
}
