#include "request.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "document.h"
#include "field.h"
#include "job.h"

void request_init(struct request *r)
{
	*r = (struct request){0};
}

void request_done(struct request *r)
{
	for (size_t i = 0; i < field_count; i++)
		field_done(&field_table[i], r);
	*r = (struct request){0};
}

static int limit_by_option(const char *option)
{
	for (int i = 0; i < LIMIT_COUNT; i++)
		if (strcmp(limit_table[i].option, option) == 0)
			return i;
	return -1;
}

int request_option_takes_value(const char *option)
{
	const struct field *f = field_by_option(option);

	if (!f)
		return limit_by_option(option) < 0 ? -1 : 1;
	return f->kind != FIELD_FLAG;
}

bool request_option_at(size_t i, struct option_info *ret)
{
	if (i < LIMIT_COUNT) {
		const struct limit_info *l = &limit_table[i];

		*ret = (struct option_info){l->option, limit_unit_word(l->unit), .group = GROUP_LIMITS,
					    .help = l->help};
		return true;
	}
	for (size_t k = 0, n = LIMIT_COUNT; k < field_count; k++) {
		const struct field *f = &field_table[k];

		if (!f->option || n++ != i)
			continue;
		*ret = (struct option_info){f->option, f->kind == FIELD_NUMBER ? "N" : f->value,
					    f->remark, f->choices,
					    f->group,  f->help};
		return true;
	}
	return false;
}

int request_option(struct request *r, const char *option, const char *value, struct error *err)
{
	const struct field *f = field_by_option(option);
	int limit = limit_by_option(option), wants = request_option_takes_value(option), k;

	if (wants < 0)
		return 0;
	if (wants && !value)
		return error_set(err, ERROR_USAGE, "option %s needs a value", option);
	if (!wants && value)
		return error_set(err, ERROR_USAGE, "option %s takes no value", option);
	if (f) {
		k = field_from_option(f, r, value, err);
	} else {
		k = limit_parse((enum limit)limit, value, &r->limits.value[limit], err);
		if (k == 0)
			r->limits.origin[limit] = LIMIT_ASKED;
	}
	return k < 0 ? k : 1;
}

int request_inherit(struct request *r, const struct request *from, struct error *err)
{
	for (size_t i = 0; i < field_count; i++) {
		const struct field *f = &field_table[i];
		int k;

		if (!field_is_set(f, from) || (field_is_set(f, r) && f->kind != FIELD_LIMITS))
			continue;
		k = field_copy(f, r, from, err);
		if (k < 0)
			return k;
	}
	return 0;
}

/* What is in the map, where r has nothing. */
static int take_map(struct request *r, const struct node *map, const char *file, unsigned where,
		    struct error *err)
{
	_cleanup_request_ struct request read = {0};
	int k = request_read(&read, map, file, "a request", where, LIMIT_ASKED, err);

	return k < 0 ? k : request_inherit(r, &read, err);
}

static int take_json(struct request *r, const json_t *json, const char *file, unsigned where,
		     struct error *err)
{
	_cleanup_node_ struct node root = {0};
	int k = document_from_json(json, file, &root, err);

	return k < 0 ? k : take_map(r, &root, file, where, err);
}

int request_parse(struct request *r, const char *text, size_t size, const char *file, struct error *err)
{
	_cleanup_node_ struct node root = {0};
	int k = document_parse(text, size, file, &root, err);

	return k < 0 ? k : take_map(r, &root, file, FIELD_IN_REQUEST, err);
}

int request_parse_line(struct request *r, const char *text, size_t size, const char *file, unsigned line,
		       struct error *err)
{
	json_error_t problem;
	json_auto_t *json = json_loadb(text, size, JSON_REJECT_DUPLICATES, &problem);
	char place[512];

	if (!json)
		return error_set(err, ERROR_USAGE, "%s:%u:%d: not one JSON object: %s", file, line,
				 problem.column, problem.text);
	snprintf(place, sizeof place, "%s:%u", file, line);
	return take_json(r, json, place, FIELD_IN_REQUEST, err);
}

int request_retries(const struct request *r)
{
	static const char key[] = "retries";

	return field_is_set(field_by_key(key, FIELD_IN_REQUEST), r) ? r->retries : JOB_RETRIES_DEFAULT;
}

json_t *request_to_json(const struct request *r)
{
	json_auto_t *object = json_object();

	for (size_t i = 0; i < field_count; i++) {
		const struct field *f = &field_table[i];

		if (field_is_set(f, r) && json_object_set_new(object, f->key, field_to_json(f, r)) < 0)
			return NULL;
	}
	return json_incref(object);
}

int request_from_json(struct request *r, const json_t *json, struct error *err)
{
	return take_json(r, json, "request", FIELD_IN_STORE, err);
}

/* Reads one word, without its quotes; returns where it ends, NULL: a quote is not closed. */
static const char *word_scan(const char *p, struct buffer *word)
{
	char quote = 0;

	for (; *p; p++) {
		char c = *p;

		if (!quote && strchr(" \t\n\r", c))
			break;
		if (!quote && (c == '\'' || c == '"')) {
			quote = c;
			continue;
		}
		if (quote && c == quote) {
			quote = 0;
			continue;
		}
		/* As in a shell: within "…" a backslash quotes only what would be special there. */
		if (c == '\\' && quote != '\'' && p[1] && (!quote || p[1] == '"' || p[1] == '\\'))
			c = *++p;
		buffer_append(word, &c, 1);
	}
	return quote ? NULL : p;
}

int words_split(const char *text, char ***ret, struct error *err)
{
	_cleanup_strv_ char **words = calloc(1, sizeof *words);

	if (!words)
		return error_memory(err);
	for (text += strspn(text, " \t\n\r"); *text; text += strspn(text, " \t\n\r")) {
		_cleanup_buffer_ struct buffer word = {0};
		_cleanup_free_ char *made = NULL;

		text = word_scan(text, &word);
		if (!text)
			return -EINVAL;
		made = buffer_take(&word);
		if (!made || strv_append(&words, made, NULL) < 0)
			return error_memory(err);
	}
	*ret = TAKE_PTR(words);
	return 0;
}
