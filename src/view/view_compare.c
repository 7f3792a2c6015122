/*
 * Two attempts beside each other: what was asked for, what went in, what it took, what came out. What is the same in both is not told, but
 * for files, where that is the news.
 */
#include "view.h"

#include <stdlib.h>
#include <string.h>

#include "member.h"
#include "text.h"

/* ---- options and limits ---- */

static void add_option(json_t **list, const char *name, const json_t *a, const json_t *b)
{
	bool is_same = a && b ? json_equal(a, b) : (!a || json_is_null(a)) && (!b || json_is_null(b));
	const struct json_entry entries[] = {
		{"name", json_string(name)},
		{"a", a ? json_deep_copy(a) : json_null()},
		{"b", b ? json_deep_copy(b) : json_null()},
	};
	json_t *row = json_from_entries(entries, ARRAY_SIZE(entries));

	if (is_same)
		json_decref(row);
	else
		json_push(list, row);
}

/* Its name is always another, and limits are told with their defaults. */
static bool is_told_elsewhere(const char *name)
{
	return strcmp(name, "id") == 0 || strcmp(name, "limits") == 0;
}

static json_t *compare_options(json_t *a, json_t *b)
{
	static const char *const planned[] = {"program", "strength", "network"};
	json_t *of_a = json_object_get(a, "request"), *of_b = json_object_get(b, "request");
	json_t *list = json_array(), *value;
	const char *name;

	json_object_foreach (of_a, name, value)
		if (!is_told_elsewhere(name))
			add_option(&list, name, value, json_object_get(of_b, name));
	json_object_foreach (of_b, name, value)
		if (!is_told_elsewhere(name) && !json_object_get(of_a, name))
			add_option(&list, name, NULL, value);
	for (size_t i = 0; i < ARRAY_SIZE(planned); i++)
		if (!json_object_get(of_a, planned[i]) && !json_object_get(of_b, planned[i]))
			add_option(&list, planned[i], json_object_get(json_object_get(a, "plan"), planned[i]),
				   json_object_get(json_object_get(b, "plan"), planned[i]));
	return list;
}

static json_t *compare_limits(json_t *a, json_t *b)
{
	json_t *of_a = json_object_get(json_object_get(a, "plan"), "limits");
	json_t *of_b = json_object_get(json_object_get(b, "plan"), "limits"), *list = json_array(), *row;
	const char *name;

	json_object_foreach (of_a, name, row)
		add_option(&list, name, json_object_get(row, "limit"),
			   json_object_get(json_object_get(of_b, name), "limit"));
	json_object_foreach (of_b, name, row)
		if (!json_object_get(of_a, name))
			add_option(&list, name, NULL, json_object_get(row, "limit"));
	return list;
}

/* ---- files ---- */

/* Its path as bytes, whether or not they are text: a key that no other has. */
static char *file_key(const json_t *file)
{
	const char *bytes = json_string_value(json_object_get(file, "path_b64")),
		   *path = json_string_value(json_object_get(file, "path"));
	char *key = NULL;

	return asprintf(&key, "%s%s", bytes ? "bytes " : "text ",
			bytes  ? bytes
			: path ? path
			       : "") < 0
		       ? NULL
		       : key;
}

static json_t *by_path(const json_t *files)
{
	json_t *object = json_object(), *file;
	size_t i;

	json_array_foreach (files, i, file) {
		_cleanup_free_ char *key = file_key(file);

		json_put(&object, key ? key : "", key ? json_incref(file) : NULL);
	}
	return object;
}

static json_t *file_pair(json_t *a, json_t *b)
{
	json_t *one = a ? a : b, *bytes = json_object_get(one, "path_b64");
	bool is_same = json_equal(json_object_get(a, "sha256"), json_object_get(b, "sha256"));
	const struct json_entry entries[] = {
		{"path", json_incref(json_object_get(one, "path"))},
		{"path_b64", bytes ? json_incref(bytes) : JSON_ABSENT},
		{"state", json_string(!b	? "only_a"
				      : !a	? "only_b"
				      : is_same ? "same"
						: "differs")},
		{"a", a ? json_incref(a) : json_null()},
		{"b", b ? json_incref(b) : json_null()},
	};

	return json_from_entries(entries, ARRAY_SIZE(entries));
}

/* In the order of a, and what only b has behind it. NULL: memory is out. */
static json_t *compare_files(const json_t *a, const json_t *b)
{
	json_auto_t *of_a = by_path(a), *of_b = by_path(b);
	json_t *list = of_a && of_b ? json_array() : NULL, *file;
	const char *key;

	json_object_foreach (of_a, key, file)
		json_push(&list, file_pair(file, json_object_get(of_b, key)));
	json_object_foreach (of_b, key, file)
		if (!json_object_get(of_a, key))
			json_push(&list, file_pair(NULL, file));
	return list;
}

/* ---- the two ---- */

static json_t *head_of(const json_t *one)
{
	static const char *const keys[] = {"id",   "attempt", "state",	 "verdict", "reason", "owner",
					   "host", "created", "started", "ended",   "usage",  "timeline"};
	json_t *head = json_object();

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		json_t *value = json_object_get(one, keys[i]);

		json_put(&head, keys[i], value ? json_incref(value) : json_null());
	}
	return head;
}

static json_t *compare(json_t *a, json_t *b)
{
	const struct json_entry entries[] = {
		{"a", head_of(a)},
		{"b", head_of(b)},
		{"options", compare_options(a, b)},
		{"limits", compare_limits(a, b)},
		{"inputs", compare_files(json_object_get(a, "inputs"), json_object_get(b, "inputs"))},
		{"outputs", compare_files(json_object_get(a, "outputs"), json_object_get(b, "outputs"))},
	};

	return json_from_entries(entries, ARRAY_SIZE(entries));
}

static int load_side(struct hood *h, const struct view_side *side, json_t **ret, struct error *err)
{
	int r = view_show(h, side->id, side->attempt, ret, err);

	if (r == 0 && !json_object_get(*ret, "usage"))
		r = error_set(err, ERROR_USAGE, "'%s' is an array: compare two of its tasks, like %s.1",
			      side->id, side->id);
	return r;
}

int view_compare(struct hood *h, const struct view_side *a, const struct view_side *b, json_t **ret,
		 struct error *err)
{
	json_auto_t *of_a = NULL, *of_b = NULL;

	if (load_side(h, a, &of_a, err) < 0 || load_side(h, b, &of_b, err) < 0)
		return -1;
	*ret = compare(of_a, of_b);
	return *ret ? 0 : error_memory(err);
}
