#include "config_shape.h"

#include <errno.h>
#include <string.h>

#include "limit.h"
#include "text.h"

enum { COUNT_MAX = 1000000 };

int shape_amount(const struct node *n, const char *file, const char *name,
		 int (*parse)(const char *text, uint64_t *ret), const char *example, uint64_t *ret,
		 struct error *err)
{
	const char *word = node_read_word(n, file, name, err);
	uint64_t value = LIMIT_NONE;
	char shown[64];

	if (!word)
		return -EINVAL;
	if (strcmp(word, "none") != 0 && parse(word, &value) < 0)
		return node_error(n, file, err, "%s '%s' makes no sense: write it like %s, or 'none'", name,
				  text_escape_into(shown, sizeof shown, word, strlen(word)), example);
	if (ret)
		*ret = value;
	return 0;
}

int shape_count(const struct node *n, const char *file, const char *name, int *ret, struct error *err)
{
	const char *word = node_read_word(n, file, name, err);
	char *end, shown[64];
	long value;

	if (!word)
		return -EINVAL;
	if (strcmp(word, "none") == 0) {
		*ret = 0;
		return 0;
	}
	errno = 0;
	value = strtol(word, &end, 10);
	if (errno || end == word || *end || value < 1 || value > COUNT_MAX)
		return node_error(n, file, err,
				  "%s '%s' makes no sense: write a number from 1 to %d, or 'none'", name,
				  text_escape_into(shown, sizeof shown, word, strlen(word)), COUNT_MAX);
	*ret = (int)value;
	return 0;
}

static int shape_text(const struct node *n, const char *file, const char *name, struct error *err)
{
	_cleanup_free_ char *text = NULL;
	int r;

	if (n->kind != NODE_SCALAR)
		return node_error(n, file, err, "%s must be text", name);
	r = node_read_text(n, file, name, &text, err);
	return r == 0 && !*text ? node_error(n, file, err, "%s is empty", name) : r;
}

static int shape_names(const struct node *n, const char *file, const char *name, struct error *err)
{
	int r = n->kind == NODE_LIST ? 0 : node_error(n, file, err, "%s must be a list of names", name);

	for (size_t i = 0; r == 0 && i < n->count; i++)
		r = shape_text(&n->items[i], file, name, err);
	return r;
}

/* fill: columns that we fill in ourselves, each with a text in which {id} and the like stand. */
static int shape_fill(const struct node *map, const char *file, struct error *err)
{
	int r = node_expect_map(map, file, "fill", err);

	for (size_t i = 0; r == 0 && i < map->count; i++)
		if (map->items[i].kind != NODE_SCALAR)
			r = node_error(&map->items[i], file, err, "fill must give a text for each column");
	return r;
}

static int shape_on_conflict(const struct node *n, const char *file, struct error *err)
{
	static const char *const known[] = {"update", "ignore", "fail"};

	for (size_t i = 0; n->kind == NODE_SCALAR && i < ARRAY_SIZE(known); i++)
		if (strcmp(n->text, known[i]) == 0)
			return 0;
	return node_error(n, file, err, "on_conflict must be update, ignore or fail");
}

static int shape_table(const struct node *n, const char *file, struct error *err)
{
	int r = 0;

	if (n->kind == NODE_LIST)
		return shape_names(n, file, "columns", err);
	if (n->kind != NODE_MAP || !node_find(n, "columns"))
		return node_error(n, file, err, "a table must be a list of columns, or a map with 'columns'");
	for (size_t i = 0; r == 0 && i < n->count; i++) {
		const char *key = n->keys[i].text;

		if (strcmp(key, "columns") == 0 || strcmp(key, "key") == 0)
			r = shape_names(&n->items[i], file, key, err);
		else if (strcmp(key, "fill") == 0)
			r = shape_fill(&n->items[i], file, err);
		else if (strcmp(key, "on_conflict") == 0)
			r = shape_on_conflict(&n->items[i], file, err);
		else
			r = node_unknown_key(&n->keys[i], file, "a table", err);
	}
	return r;
}

static int shape_tables(const struct node *map, const char *file, struct error *err)
{
	int r = node_expect_map(map, file, "tables", err);

	for (size_t i = 0; r == 0 && i < map->count; i++)
		r = shape_table(&map->items[i], file, err);
	return r;
}

int shape_post_process(const struct node *map, const char *file, struct error *err)
{
	int r = node_expect_map(map, file, "post_process", err);

	for (size_t i = 0; r == 0 && i < map->count; i++) {
		const char *key = map->keys[i].text;

		if (strcmp(key, "command") == 0)
			r = shape_text(&map->items[i], file, key, err);
		else if (strcmp(key, "tables") == 0)
			r = shape_tables(&map->items[i], file, err);
		else if (strcmp(key, "limits") == 0)
			r = node_expect_map(&map->items[i], file, key, err);
		else
			r = node_unknown_key(&map->keys[i], file, "post_process", err);
	}
	return r;
}

int shape_query(const struct node *map, const char *file, struct error *err)
{
	int r = node_expect_map(map, file, "query", err);

	for (size_t i = 0; r == 0 && i < map->count; i++) {
		const struct node *n = &map->items[i];
		const char *key = map->keys[i].text;

		if (strcmp(key, "role") == 0 || strcmp(key, "passfile") == 0)
			r = shape_text(n, file, key, err);
		else if (strcmp(key, "timeout") == 0)
			r = shape_amount(n, file, key, duration_parse, "30s", NULL, err);
		else if (strcmp(key, "max_bytes") == 0)
			r = shape_amount(n, file, key, size_parse, "100M", NULL, err);
		else
			r = node_unknown_key(&map->keys[i], file, "query", err);
	}
	return r;
}

/* An owner is a role of the database, or a user where the ledger is a file; a user is a name, or a number where it has
 * none. */
int shape_users(const struct node *map, const char *file, struct error *err)
{
	int r = node_expect_map(map, file, "users", err);

	for (size_t i = 0; r == 0 && i < map->count; i++) {
		const struct node *n = &map->items[i];

		if (!*map->keys[i].text)
			r = node_error(&map->keys[i], file, err, "users has an owner without a name");
		else if (n->kind != NODE_SCALAR || node_scalar_type(n) == SCALAR_NULL || !*n->text)
			r = node_error(n, file, err, "users must give a local user for each owner");
	}
	return r;
}

static int shape_place(const struct node *n, const char *file, const char *name, struct error *err)
{
	_cleanup_free_ char *path = NULL;
	int r = shape_text(n, file, name, err);

	if (r == 0)
		r = node_read_text(n, file, name, &path, err);
	if (r < 0)
		return r;
	if (path[0] != '/')
		return node_error(n, file, err, "%s must list absolute paths", name);
	for (const char *part = path; *part; part += strspn(part, "/")) {
		size_t length = strcspn(part, "/");

		if (length == 2 && strncmp(part, "..", 2) == 0)
			return node_error(n, file, err, "%s must list paths without '..'", name);
		part += length;
	}
	return path[strspn(path, "/")]
		       ? 0
		       : node_error(n, file, err, "%s must not list '/': that would be everything", name);
}

static int shape_variable(const struct node *n, const char *file, const char *name, struct error *err)
{
	int r = shape_text(n, file, name, err);

	if (r == 0 && strchr(n->text, '='))
		r = node_error(n, file, err, "%s must list names of variables, without values", name);
	return r;
}

static int shape_flag(const struct node *n, const char *file, const char *name, struct error *err)
{
	bool value;

	return node_read_bool(n, file, name, &value, err);
}

static const struct {
	const char *key;
	bool is_list;
	int (*shape)(const struct node *n, const char *file, const char *name, struct error *err);
} allowed[] = {
	{"data", true, shape_place},
	{"docs", true, shape_place},
	{"ro", true, shape_place},
	{"into", true, shape_place},
	{"post_process", true, shape_text},
	{"env", true, shape_variable},
	{"query", false, shape_flag},
	{"keep", false, shape_flag},
	{"allow_unlimited", false, shape_flag},
};

static int shape_allowed(const struct node *n, const char *file, size_t which, struct error *err)
{
	const char *key = allowed[which].key;
	int r = 0;

	if (!allowed[which].is_list)
		return allowed[which].shape(n, file, key, err);
	if (n->kind != NODE_LIST)
		return node_error(n, file, err, "%s must be a list", key);
	for (size_t i = 0; r == 0 && i < n->count; i++)
		r = allowed[which].shape(&n->items[i], file, key, err);
	return r;
}

int shape_allow(const struct node *map, const char *file, struct error *err)
{
	int r = node_expect_map(map, file, "allow", err);

	for (size_t i = 0; r == 0 && i < map->count; i++) {
		size_t which = 0;

		while (which < ARRAY_SIZE(allowed) && strcmp(allowed[which].key, map->keys[i].text) != 0)
			which++;
		r = which == ARRAY_SIZE(allowed) ? node_unknown_key(&map->keys[i], file, "allow", err)
						 : shape_allowed(&map->items[i], file, which, err);
	}
	return r;
}
