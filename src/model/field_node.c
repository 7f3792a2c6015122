#include "field.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "member.h"
#include "verdict.h"

static int command_from_node(struct request *r, const struct node *n, const char *file, struct error *err)
{
	_cleanup_free_ char *line = NULL;
	int k;

	if (n->kind == NODE_LIST)
		return node_read_list(n, file, "command", true, &r->command, err);
	k = node_read_text(n, file, "command", &line, err);
	if (k < 0)
		return k;
	k = words_split(line, &r->command, err);
	return k == -EINVAL ? node_error(n, file, err, "command has a quote that is not closed") : k;
}

/* The grammar of options is that of files: a value is read as the option's, its error gets the place. */
static int words_from_node(const struct field *f, struct request *r, const struct node *n, const char *file,
			   struct error *err)
{
	_cleanup_strv_ char **words = NULL;
	int k = node_read_list(n, file, f->key, false, &words, err);

	for (size_t i = 0; k == 0 && words && words[i]; i++) {
		struct error problem = ERROR_INIT;

		k = field_from_option(f, r, words[i], &problem);
		if (k == -ENOMEM)
			return error_memory(err);
		if (k < 0)
			return node_error(n->kind == NODE_LIST ? &n->items[i] : n, file, err, "%s",
					  problem.message);
	}
	return k;
}

static int flag_from_node(const struct field *f, struct request *r, const struct node *n, const char *file,
			  struct error *err)
{
	bool value;
	int k = node_read_bool(n, file, f->key, &value, err);

	if (k < 0)
		return k;
	*(bool *)(void *)((char *)r + f->offset) = value;
	return 0;
}

static int number_from_node(const struct field *f, struct request *r, const struct node *n, const char *file,
			    struct error *err)
{
	const char *word = node_read_word(n, file, f->key, err);
	struct error problem = ERROR_INIT;

	if (!word)
		return -EINVAL;
	if (field_from_option(f, r, word, &problem) < 0)
		return node_error(n, file, err, "%s", problem.message);
	return 0;
}

static int field_from_node(const struct field *f, struct request *r, const struct node *n, const char *file,
			   enum limit_origin origin, struct error *err)
{
	field_mark(f, r); /* an empty list is a value too */
	switch (f->kind) {
	case FIELD_COMMAND:
		return command_from_node(r, n, file, err);
	case FIELD_LIMITS:
		return limits_read(&r->limits, n, file, origin, err);
	case FIELD_FLAG:
		return flag_from_node(f, r, n, file, err);
	case FIELD_NUMBER:
		return number_from_node(f, r, n, file, err);
	case FIELD_TEXT:
	case FIELD_CHOICE:
		if (n->kind == NODE_LIST)
			return node_error(n, file, err, "%s must be text, not a list", f->key);
		return words_from_node(f, r, n, file, err);
	case FIELD_LIST:
	case FIELD_PATHS:
	case FIELD_QUERIES:
	case FIELD_VERDICTS:
		return words_from_node(f, r, n, file, err);
	}
	return 0;
}

int request_read(struct request *r, const struct node *map, const char *file, const char *name,
		 unsigned where, enum limit_origin origin, struct error *err)
{
	int k = node_expect_map(map, file, name, err);

	for (size_t i = 0; k == 0 && i < map->count; i++) {
		const struct field *f = field_by_key(map->keys[i].text, where);

		k = f ? field_from_node(f, r, &map->items[i], file, origin, err)
		      : node_unknown_key(&map->keys[i], file, name, err);
	}
	return k;
}

int limits_read(struct limits *l, const struct node *map, const char *file, enum limit_origin origin,
		struct error *err)
{
	int k = node_expect_map(map, file, "limits", err);

	for (size_t i = 0; k == 0 && i < map->count; i++) {
		const struct node *n = &map->items[i];
		int which = limit_by_name(map->keys[i].text);
		struct error problem = ERROR_INIT;
		const char *word;

		if (which < 0)
			return node_unknown_key(&map->keys[i], file, "limits", err);
		word = node_read_word(n, file, limit_table[which].name, err);
		if (!word)
			return -EINVAL;
		if (limit_parse((enum limit)which, word, &l->value[which], &problem) < 0)
			return node_error(n, file, err, "%s", problem.message);
		l->origin[which] = origin;
	}
	return k;
}

/* The set ones, as exact text: {"memory": "2G"}. */
static json_t *limits_to_json(const struct limits *l)
{
	json_auto_t *object = json_object();
	char text[LIMIT_TEXT_SIZE];

	for (int i = 0; i < LIMIT_COUNT; i++)
		if (l->origin[i] != LIMIT_UNSET &&
		    json_object_set_new(object, limit_table[i].name,
					json_string(limit_format_exact((enum limit)i, l->value[i], text))) <
			    0)
			return NULL;
	return json_incref(object);
}

/* The text that pair_parse reads back as the same pair. */
static json_t *pair_to_json(const struct field *f, const struct pair *p)
{
	const char *separator = f->kind == FIELD_QUERIES ? "=" : p->to || strchr(p->from, ':') ? ":" : "";
	_cleanup_buffer_ struct buffer b = {0};

	return buffer_printf(&b, "%s%s%s", p->from, separator, p->to ? p->to : "") < 0 ? NULL
										       : json_text(b.data);
}

static json_t *pairs_to_json(const struct field *f, const struct pair *pairs, size_t count)
{
	json_auto_t *array = json_array();

	for (size_t i = 0; i < count; i++)
		if (json_array_append_new(array, pair_to_json(f, &pairs[i])) < 0)
			return NULL;
	return json_incref(array);
}

static json_t *verdicts_to_json(unsigned set)
{
	json_auto_t *array = json_array();

	for (int v = 0; v < VERDICT_COUNT; v++)
		if (set & (1U << v) &&
		    json_array_append_new(array, json_string(verdict_name((enum verdict)v))) < 0)
			return NULL;
	return json_incref(array);
}

json_t *field_to_json(const struct field *f, const struct request *r)
{
	const void *at = (const char *)r + f->offset;

	switch (f->kind) {
	case FIELD_TEXT:
		return json_text(*(char *const *)at);
	case FIELD_COMMAND:
	case FIELD_LIST:
		return json_text_list(*(char **const *)at);
	case FIELD_PATHS:
	case FIELD_QUERIES:
		return pairs_to_json(f, *(struct pair *const *)at,
				     *(const size_t *)(const void *)((const char *)r + f->count_offset));
	case FIELD_FLAG:
		return json_boolean(*(const bool *)at);
	case FIELD_CHOICE:
		return json_string(f->choices[*(const unsigned *)at]);
	case FIELD_LIMITS:
		return limits_to_json(&r->limits);
	case FIELD_NUMBER:
		return json_integer(*(const int *)at);
	case FIELD_VERDICTS:
		return verdicts_to_json(*(const unsigned *)at);
	}
	return NULL;
}
