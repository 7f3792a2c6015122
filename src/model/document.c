#include "document.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "text.h"

struct yaml_reader {
	yaml_parser_t parser;
	const char *file;
	struct error *err;
};

static void node_place(struct node *n, yaml_mark_t mark)
{
	n->line = (unsigned)mark.line + 1;
	n->column = (unsigned)mark.column + 1;
}

/* Fails with the place and the words of libyaml. */
static int syntax_error(struct yaml_reader *r)
{
	const yaml_parser_t *p = &r->parser;
	struct node here = {0};

	if (p->error == YAML_MEMORY_ERROR)
		return error_memory(r->err);
	node_place(&here, p->problem_mark);
	if (p->error == YAML_READER_ERROR) {
		here.line = 0; /* libyaml knows only the offset */
		return node_error(&here, r->file, r->err, "not readable as text: %s at byte %zu",
				  p->problem ? p->problem : "an error", p->problem_offset);
	}
	return node_error(&here, r->file, r->err, "%s%s%s", p->problem ? p->problem : "not YAML",
			  p->context ? " " : "", p->context ? p->context : "");
}

static int next_event(struct yaml_reader *r, yaml_event_t *ret)
{
	return yaml_parser_parse(&r->parser, ret) ? 0 : syntax_error(r);
}

static int check_key(const struct yaml_reader *r, const struct node *map, const struct node *key)
{
	if (key->kind != NODE_SCALAR)
		return node_error(key, r->file, r->err, "a key must be a word");
	if (map->count >= DOCUMENT_KEYS_MAX)
		return node_error(key, r->file, r->err, "more than %d keys", DOCUMENT_KEYS_MAX);
	for (size_t i = 0; i < map->count; i++)
		if (strcmp(map->keys[i].text, key->text) == 0)
			return node_error(key, r->file, r->err, "key '%s' is given twice, first in line %u",
					  SHOWN(128, key->text), map->keys[i].line);
	return 0;
}

static int read_scalar(struct yaml_reader *r, const yaml_event_t *e, struct node *n)
{
	size_t size = e->data.scalar.length;

	n->kind = NODE_SCALAR;
	n->plain = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	if (memchr(e->data.scalar.value, 0, size))
		return node_error(n, r->file, r->err, "a text with a NUL byte cannot be used");
	n->text = strndup((const char *)e->data.scalar.value, size);
	return n->text ? 0 : error_memory(r->err);
}

static int read_node(struct yaml_reader *r, const yaml_event_t *e, unsigned depth, struct node *ret);

/* The items up to the end event; of a map, keys and values take turns. */
static int read_items(struct yaml_reader *r, yaml_event_type_t end, unsigned depth, struct node *n)
{
	_cleanup_node_ struct node key = {0};
	bool have_key = false;

	for (;;) {
		_cleanup_node_ struct node item = {0};
		yaml_event_t e;
		int k = next_event(r, &e);

		if (k < 0)
			return k;
		if (e.type == end) {
			yaml_event_delete(&e);
			return 0;
		}
		k = read_node(r, &e, depth, &item);
		yaml_event_delete(&e);
		if (k < 0)
			return k;
		if (n->kind == NODE_MAP && !have_key) {
			k = check_key(r, n, &item);
			if (k < 0)
				return k;
			key = item;
			item = (struct node){0};
			have_key = true;
			continue;
		}
		k = node_append(n, have_key ? &key : NULL, &item, r->err);
		if (k < 0)
			return k;
		have_key = false;
	}
}

/* An anchor is refused with its alias: together they can blow a short text up to gigabytes. */
static int check_plainness(struct yaml_reader *r, const struct node *n, const yaml_char_t *anchor,
			   const yaml_char_t *tag)
{
	if (anchor)
		return node_error(n, r->file, r->err, "anchors and aliases are not supported");
	if (tag)
		return node_error(n, r->file, r->err, "tags are not supported");
	return 0;
}

static int read_node(struct yaml_reader *r, const yaml_event_t *e, unsigned depth, struct node *ret)
{
	_cleanup_node_ struct node n = {0};
	int k;

	node_place(&n, e->start_mark);
	if (depth > DOCUMENT_DEPTH_MAX)
		return node_error(&n, r->file, r->err, "nested more than %d deep", DOCUMENT_DEPTH_MAX);
	switch (e->type) {
	case YAML_SCALAR_EVENT:
		k = check_plainness(r, &n, e->data.scalar.anchor, e->data.scalar.tag);
		if (k == 0)
			k = read_scalar(r, e, &n);
		break;
	case YAML_SEQUENCE_START_EVENT:
		n.kind = NODE_LIST;
		k = check_plainness(r, &n, e->data.sequence_start.anchor, e->data.sequence_start.tag);
		if (k == 0)
			k = read_items(r, YAML_SEQUENCE_END_EVENT, depth + 1, &n);
		break;
	case YAML_MAPPING_START_EVENT:
		n.kind = NODE_MAP;
		k = check_plainness(r, &n, e->data.mapping_start.anchor, e->data.mapping_start.tag);
		if (k == 0)
			k = read_items(r, YAML_MAPPING_END_EVENT, depth + 1, &n);
		break;
	default:
		k = node_error(&n, r->file, r->err, "anchors and aliases are not supported");
	}
	if (k < 0)
		return k;
	*ret = n;
	n = (struct node){0};
	return 0;
}

static int expect_end(struct yaml_reader *r)
{
	struct node here = {0};
	yaml_event_t e;

	for (;;) {
		yaml_event_type_t type;
		int k = next_event(r, &e);

		if (k < 0)
			return k;
		type = e.type;
		node_place(&here, e.start_mark);
		yaml_event_delete(&e);
		if (type == YAML_STREAM_END_EVENT)
			return 0;
		if (type != YAML_DOCUMENT_END_EVENT)
			return node_error(&here, r->file, r->err, "a second document: one is enough");
	}
}

static int read_document(struct yaml_reader *r, struct node *ret)
{
	_cleanup_node_ struct node n = {.kind = NODE_MAP, .line = 1, .column = 1};
	yaml_event_t e;
	int k;

	for (;;) {
		yaml_event_type_t type;

		k = next_event(r, &e);
		if (k < 0)
			return k;
		type = e.type;
		if (type != YAML_STREAM_START_EVENT && type != YAML_DOCUMENT_START_EVENT) {
			k = type == YAML_STREAM_END_EVENT ? 1 : read_node(r, &e, 0, &n);
			yaml_event_delete(&e);
			break;
		}
		yaml_event_delete(&e);
	}
	if (k == 0)
		k = expect_end(r);
	if (k < 0)
		return k;
	if (n.kind == NODE_SCALAR && node_scalar_type(&n) == SCALAR_NULL) { /* "---" and nothing more */
		n.kind = NODE_MAP;
		free(TAKE_PTR(n.text));
	}
	*ret = n;
	n = (struct node){0};
	return 0;
}

/* JSON that libyaml does not take: surrogate pairs as \ud83d\ude00, tabs before the first brace, raw DEL. */
static bool json_fallback(const char *text, size_t size, const char *file, struct node *ret)
{
	json_auto_t *json = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);

	return json && document_from_json(json, file, ret, NULL) == 0;
}

int document_parse(const char *text, size_t size, const char *file, struct node *ret, struct error *err)
{
	struct error problem = ERROR_INIT;
	struct yaml_reader r = {.file = file, .err = &problem};
	struct node start = {.line = 1, .column = 1};
	int k;

	if (size > DOCUMENT_SIZE_MAX)
		return node_error(&start, file, err, "larger than %d bytes", DOCUMENT_SIZE_MAX);
	if (!yaml_parser_initialize(&r.parser))
		return error_memory(err);
	yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, size);
	k = read_document(&r, ret);
	if (k < 0 && r.parser.error != YAML_NO_ERROR && json_fallback(text, size, file, ret))
		k = 0;
	yaml_parser_delete(&r.parser);
	if (k < 0 && err)
		*err = problem;
	return k;
}

static int scalar_from_json(const json_t *json, struct node *n, struct error *err)
{
	n->plain = !json_is_string(json);
	switch (json_typeof(json)) {
	case JSON_STRING:
		n->text = strdup(json_string_value(json));
		break;
	case JSON_TRUE:
		n->text = strdup("true");
		break;
	case JSON_FALSE:
		n->text = strdup("false");
		break;
	case JSON_NULL:
		n->text = strdup("null");
		break;
	default:
		n->text = json_dumps(json, JSON_ENCODE_ANY);
	}
	return n->text ? 0 : error_memory(err);
}

static int node_from_json(const json_t *json, const char *file, unsigned depth, struct node *n,
			  struct error *err)
{
	size_t count = json_is_array(json) ? json_array_size(json) : 0;
	json_t *value;
	const char *name;

	if (depth > DOCUMENT_DEPTH_MAX)
		return node_error(n, file, err, "nested more than %d deep", DOCUMENT_DEPTH_MAX);
	n->kind = json_is_object(json) ? NODE_MAP : json_is_array(json) ? NODE_LIST : NODE_SCALAR;
	if (n->kind == NODE_SCALAR)
		return scalar_from_json(json, n, err);
	for (size_t i = 0; i < count; i++) {
		_cleanup_node_ struct node item = {0};
		int r = node_from_json(json_array_get(json, i), file, depth + 1, &item, err);

		if (r < 0 || (r = node_append(n, NULL, &item, err)) < 0)
			return r;
	}
	json_object_foreach ((json_t *)json, name, value) {
		_cleanup_node_ struct node key = {0}, item = {0};
		int r = text_set(&key.text, name, err);

		if (r < 0 || (r = node_from_json(value, file, depth + 1, &item, err)) < 0 ||
		    (r = node_append(n, &key, &item, err)) < 0)
			return r;
	}
	return 0;
}

int document_from_json(const json_t *json, const char *file, struct node *ret, struct error *err)
{
	_cleanup_node_ struct node n = {0};
	int r = node_from_json(json, file, 0, &n, err);

	if (r < 0)
		return r;
	*ret = n;
	n = (struct node){0};
	return 0;
}
