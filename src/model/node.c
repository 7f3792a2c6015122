#include "node.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "array.h"
#include "text.h"

void node_done(struct node *n)
{
	for (size_t i = 0; i < n->count; i++) {
		node_done(&n->items[i]);
		if (n->keys)
			node_done(&n->keys[i]);
	}
	free(n->keys);
	free(n->items);
	free(n->text);
	*n = (struct node){0};
}

int node_error(const struct node *n, const char *file, struct error *err, const char *format, ...)
{
	char text[512], name[256];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof text, format, ap);
	va_end(ap);
	text_escape_into(name, sizeof name, file, strlen(file));
	if (n->line == 0)
		return error_set(err, ERROR_USAGE, "%s: %s", name, text);
	return error_set(err, ERROR_USAGE, "%s:%u:%u: %s", name, n->line, n->column, text);
}

int node_append(struct node *parent, struct node *key, struct node *item, struct error *err)
{
	size_t n_keys = parent->count;
	struct node *at = key ? ARRAY_ADD(parent->keys, n_keys) : NULL;
	struct node *added = at || !key ? ARRAY_ADD(parent->items, parent->count) : NULL;

	if (!added)
		return error_memory(err);
	if (key) {
		*at = *key;
		*key = (struct node){0};
	}
	*added = *item;
	*item = (struct node){0};
	return 0;
}

const struct node *node_find(const struct node *map, const char *key)
{
	for (size_t i = 0; map->kind == NODE_MAP && i < map->count; i++)
		if (strcmp(map->keys[i].text, key) == 0)
			return &map->items[i];
	return NULL;
}

static bool is_one_of(const char *text, const char *const *words)
{
	for (; *words; words++)
		if (strcmp(text, *words) == 0)
			return true;
	return false;
}

/* -?digits, with a fraction or an exponent: what both JSON and YAML call a number. */
static enum scalar_type number_type(const char *p)
{
	static const char digits[] = "0123456789";
	enum scalar_type type = SCALAR_INTEGER;
	size_t n;

	p += *p == '-' || *p == '+';
	n = strspn(p, digits);
	p += n;
	if (*p == '.') {
		size_t part = strspn(++p, digits);

		p += part;
		n += part;
		type = SCALAR_REAL;
	}
	if (n == 0)
		return SCALAR_TEXT;
	if (*p == 'e' || *p == 'E') {
		p++;
		p += *p == '-' || *p == '+';
		n = strspn(p, digits);
		p += n;
		type = n ? SCALAR_REAL : SCALAR_TEXT;
	}
	return *p ? SCALAR_TEXT : type;
}

enum scalar_type node_scalar_type(const struct node *n)
{
	static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
	static const char *const bools[] = {"true", "True", "TRUE", "false", "False", "FALSE", NULL};

	if (n->kind != NODE_SCALAR || !n->plain)
		return SCALAR_TEXT;
	if (is_one_of(n->text, nulls))
		return SCALAR_NULL;
	if (is_one_of(n->text, bools))
		return SCALAR_BOOL;
	return number_type(n->text);
}

int node_unknown_key(const struct node *key, const char *file, const char *where, struct error *err)
{
	return node_error(key, file, err, "unknown key '%s' in %s", SHOWN(128, key->text), where);
}

int node_read_keys(const struct node *map, const char *file, const char *name, const struct node_key *keys,
		   void *to, struct error *err)
{
	int r = node_expect_map(map, file, name, err);

	for (size_t i = 0; r == 0 && i < map->count; i++) {
		const struct node_key *k = keys;

		while (k->key && strcmp(k->key, map->keys[i].text) != 0)
			k++;
		r = k->key ? k->read(&map->items[i], file, k->key, (char *)to + k->offset, err)
			   : node_unknown_key(&map->keys[i], file, name, err);
	}
	return r;
}

int node_expect_map(const struct node *n, const char *file, const char *name, struct error *err)
{
	return n->kind == NODE_MAP ? 0 : node_error(n, file, err, "%s must be a map of keys", name);
}

static int read_b64(const struct node *n, const char *file, const char *name, char **ret, struct error *err)
{
	_cleanup_free_ char *bytes = NULL;
	size_t size = 0;

	if (n->kind == NODE_SCALAR)
		bytes = base64_decode(n->text, &size);
	if (!bytes && n->kind == NODE_SCALAR && errno == ENOMEM)
		return error_memory(err);
	if (!bytes || strlen(bytes) != size)
		return node_error(n, file, err, "%s: b64 must be base64 of bytes without NUL", name);
	*ret = TAKE_PTR(bytes);
	return 0;
}

int node_read_text(const struct node *n, const char *file, const char *name, char **ret, struct error *err)
{
	if (n->kind == NODE_MAP && n->count == 1 && strcmp(n->keys[0].text, "b64") == 0)
		return read_b64(&n->items[0], file, name, ret, err);
	if (n->kind != NODE_SCALAR)
		return node_error(n, file, err, "%s must be text, not a %s", name,
				  n->kind == NODE_LIST ? "list" : "map");
	if (node_scalar_type(n) == SCALAR_NULL)
		return node_error(n, file, err, "%s has no value", name);
	if (node_scalar_type(n) != SCALAR_TEXT)
		return node_error(n, file, err, "%s must be text: write \"%s\" in quotes", name,
				  SHOWN(64, n->text));
	return text_set(ret, n->text, err);
}

const char *node_read_word(const struct node *n, const char *file, const char *name, struct error *err)
{
	enum scalar_type type = node_scalar_type(n);

	if (n->kind == NODE_SCALAR && type != SCALAR_NULL && type != SCALAR_BOOL)
		return n->text;
	node_error(n, file, err, "%s must be a number or text", name);
	return NULL;
}

int node_read_list(const struct node *n, const char *file, const char *name, bool words, char ***list,
		   struct error *err)
{
	size_t count = n->kind == NODE_LIST ? n->count : 1, there = strv_length(*list);

	for (size_t i = 0; i < count; i++) {
		const struct node *item = n->kind == NODE_LIST ? &n->items[i] : n;
		_cleanup_free_ char *text = NULL;
		int r;

		if (words && item != n && item->kind == NODE_SCALAR && node_scalar_type(item) != SCALAR_NULL)
			r = strv_push(list, &there, item->text, err);
		else if ((r = node_read_text(item, file, name, &text, err)) == 0)
			r = strv_push(list, &there, text, err);
		if (r < 0)
			return r;
	}
	return 0;
}

int node_read_bool(const struct node *n, const char *file, const char *name, bool *ret, struct error *err)
{
	if (n->kind != NODE_SCALAR || node_scalar_type(n) != SCALAR_BOOL)
		return node_error(n, file, err, "%s must be true or false", name);
	*ret = n->text[0] == 't' || n->text[0] == 'T';
	return 0;
}

static json_t *scalar_to_json(const struct node *n)
{
	json_t *number;

	switch (node_scalar_type(n)) {
	case SCALAR_NULL:
		return json_null();
	case SCALAR_BOOL:
		return json_boolean(n->text[0] == 't' || n->text[0] == 'T');
	case SCALAR_INTEGER:
	case SCALAR_REAL:
		/* What JSON does not take as a number (012, +1, too large) stays text. */
		number = json_loads(n->text, JSON_DECODE_ANY, NULL);
		return number ? number : json_string(n->text);
	case SCALAR_TEXT:
		break;
	}
	return json_string(n->text);
}

json_t *node_to_json(const struct node *n)
{
	json_auto_t *json = n->kind == NODE_MAP ? json_object() : json_array();

	if (n->kind == NODE_SCALAR)
		return scalar_to_json(n);
	for (size_t i = 0; i < n->count; i++) {
		json_t *item = node_to_json(&n->items[i]);
		int r = n->kind == NODE_MAP ? json_object_set_new(json, n->keys[i].text, item)
					    : json_array_append_new(json, item);

		if (r < 0)
			return NULL;
	}
	return json_incref(json);
}
