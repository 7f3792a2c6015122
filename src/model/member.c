#include "member.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "clock.h"
#include "digest.h"
#include "text.h"

const json_t json_absent;

int json_set_entries(json_t *object, const struct json_entry *entries, size_t count)
{
	int r = 0;

	for (size_t i = 0; i < count; i++)
		if (entries[i].value != JSON_ABSENT &&
		    json_object_set_new(object, entries[i].key, entries[i].value) < 0)
			r = -1;
	return r;
}

json_t *json_from_entries(const struct json_entry *entries, size_t count)
{
	json_auto_t *object = json_object();

	return json_set_entries(object, entries, count) < 0 ? NULL : json_incref(object);
}

static void drop_if(json_t **json, bool failed)
{
	if (!failed)
		return;
	json_decref(*json);
	*json = NULL;
}

void json_put(json_t **object, const char *key, json_t *value)
{
	drop_if(object, json_object_set_new(*object, key, value) < 0);
}

void json_push(json_t **array, json_t *value)
{
	drop_if(array, json_array_append_new(*array, value) < 0);
}

json_t *json_text(const char *text)
{
	_cleanup_free_ char *b64 = NULL;

	if (!text)
		return json_null();
	if (utf8_valid(text, strlen(text)))
		return json_string(text);
	b64 = base64_encode(text, strlen(text));
	return b64 ? json_pack("{s:s}", "b64", b64) : NULL;
}

static json_t *text_at(char *const *text)
{
	return json_text(*text);
}

json_t *json_text_list(char *const *list)
{
	return JSON_LIST(list, strv_length(list), text_at);
}

json_t *json_shown(const char *text)
{
	_cleanup_free_ char *escaped = NULL;

	if (!text || utf8_valid(text, strlen(text)))
		return json_text(text);
	escaped = text_escape(text, strlen(text));
	return escaped ? json_string(escaped) : NULL;
}

json_t *json_instant(int64_t utc_ns)
{
	char text[CLOCK_TEXT_SIZE];

	if (utc_ns == 0)
		return json_null();
	clock_format(utc_ns, text);
	return json_string(text);
}

static char *json_text_read(const json_t *json)
{
	const char *b64 = json_string_value(json_object_get(json, "b64"));
	_cleanup_free_ char *bytes = NULL;
	size_t size;

	if (json_is_string(json))
		return strdup(json_string_value(json));
	bytes = b64 ? base64_decode(b64, &size) : NULL;
	return bytes && strlen(bytes) == size ? TAKE_PTR(bytes) : NULL;
}

static json_t *digest_to_json(const uint8_t sha256[DIGEST_SIZE])
{
	char hex[DIGEST_TEXT_SIZE];

	hex_encode(sha256, DIGEST_SIZE, hex);
	return json_string(hex);
}

static json_t *member_write(const struct member *m, const void *at)
{
	switch (m->kind) {
	case MEMBER_INT:
		return json_integer(*(const int *)at);
	case MEMBER_COUNT:
		return *(const int64_t *)at < 0 ? json_null() : json_integer(*(const int64_t *)at);
	case MEMBER_TIME:
		return *(const int64_t *)at == 0 ? json_null() : json_integer(*(const int64_t *)at);
	case MEMBER_SIZE:
		return json_integer((json_int_t)(*(const uint64_t *)at));
	case MEMBER_BOOL:
		return json_boolean(*(const bool *)at);
	case MEMBER_TEXT:
		return json_text(*(char *const *)at);
	case MEMBER_CHARS:
		return json_text(at);
	case MEMBER_LIST:
		return json_text_list(*(char **const *)at);
	case MEMBER_JSON:
		return *(json_t *const *)at ? json_incref(*(json_t *const *)at) : json_null();
	case MEMBER_DIGEST:
		return digest_to_json(at);
	}
	return NULL;
}

int members_write(json_t *object, const struct member *members, size_t count, const void *record)
{
	for (size_t i = 0; i < count; i++) {
		const struct member *m = &members[i];

		if (json_object_set_new(object, m->key, member_write(m, (const char *)record + m->offset)) <
		    0)
			return -1;
	}
	return 0;
}

json_t *members_to_json(const struct member *members, size_t count, const void *record)
{
	json_auto_t *object = json_object();

	return members_write(object, members, count, record) < 0 ? NULL : json_incref(object);
}

static int list_read(const json_t *json, char ***list)
{
	_cleanup_strv_ char **read = NULL;
	size_t n = 0;

	if (!json_is_array(json))
		return -EINVAL;
	for (size_t i = 0; i < json_array_size(json); i++) {
		_cleanup_free_ char *text = json_text_read(json_array_get(json, i));

		if (!text)
			return -EINVAL;
		if (strv_push(&read, &n, text, NULL) < 0)
			return -ENOMEM;
	}
	strv_free(*list);
	*list = TAKE_PTR(read);
	return 0;
}

static int integer_read(const json_t *json, json_int_t least, json_int_t most, json_int_t *ret)
{
	json_int_t value = json_integer_value(json);

	if (!json_is_integer(json) || value < least || value > most)
		return -EINVAL;
	*ret = value;
	return 0;
}

static int text_read(const json_t *json, char **at)
{
	char *text = json_text_read(json);

	if (!text)
		return -EINVAL;
	free(*at);
	*at = text;
	return 0;
}

static int chars_read(const json_t *json, char *at, size_t room)
{
	const char *text = json_string_value(json);

	if (!text || strlen(text) >= room)
		return -EINVAL;
	memset(at, 0, room);
	memcpy(at, text, strlen(text));
	return 0;
}

static int member_read(const struct member *m, const json_t *json, void *at)
{
	json_int_t n = 0;
	int r;

	switch (m->kind) {
	case MEMBER_INT:
		r = integer_read(json, INT_MIN, INT_MAX, &n);
		if (r == 0)
			*(int *)at = (int)n;
		return r;
	case MEMBER_COUNT:
	case MEMBER_SIZE:
		r = integer_read(json, 0, INT64_MAX, &n);
		if (r == 0)
			*(int64_t *)at = n;
		return r;
	case MEMBER_TIME:
		r = integer_read(json, INT64_MIN, INT64_MAX, &n);
		if (r == 0)
			*(int64_t *)at = n;
		return r;
	case MEMBER_BOOL:
		if (!json_is_boolean(json))
			return -EINVAL;
		*(bool *)at = json_is_true(json);
		return 0;
	case MEMBER_TEXT:
		return text_read(json, at);
	case MEMBER_CHARS:
		return chars_read(json, at, m->room);
	case MEMBER_LIST:
		return list_read(json, at);
	case MEMBER_JSON:
		json_decref(*(json_t **)at);
		*(json_t **)at = json_incref((json_t *)json);
		return 0;
	case MEMBER_DIGEST:
		return json_is_string(json) ? hex_decode(json_string_value(json), at, DIGEST_SIZE) : -EINVAL;
	}
	return -EINVAL;
}

int members_read(void *record, const struct member *members, size_t count, const json_t *object,
		 const char *what, struct error *err)
{
	if (!json_is_object(object))
		return error_set(err, ERROR_SYSTEM, "cannot read a stored %s: it is not a JSON object", what);
	for (size_t i = 0; i < count; i++) {
		const struct member *m = &members[i];
		const json_t *value = json_object_get(object, m->key);
		int r;

		if (!value || json_is_null(value))
			continue;
		r = member_read(m, value, (char *)record + m->offset);
		if (r == -ENOMEM)
			return error_memory(err);
		if (r < 0)
			return error_set(err, ERROR_SYSTEM,
					 "cannot read a stored %s: its '%s' makes no sense", what, m->key);
	}
	return 0;
}

int json_set_bytes(json_t *object, const char *name, const char *data, size_t size)
{
	_cleanup_free_ char *text = NULL, *b64 = NULL, *b64_name = NULL;

	if (utf8_valid(data ? data : "", size))
		return json_object_set_new(object, name, json_stringn(data ? data : "", size));
	text = text_escape(data, size);
	b64 = base64_encode(data, size);
	if (!text || !b64 || asprintf(&b64_name, "%s_b64", name) < 0)
		return -1;
	return json_object_set_new(object, name, json_string(text)) ||
	       json_object_set_new(object, b64_name, json_string(b64));
}
