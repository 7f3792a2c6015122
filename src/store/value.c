#include "backend.h"

#include <string.h>

struct value value_integer(int64_t n)
{
	return (struct value){.kind = VALUE_INTEGER, .integer = n};
}

struct value value_bool(bool b)
{
	return (struct value){.kind = VALUE_BOOL, .integer = b};
}

struct value value_time(int64_t utc_ns)
{
	return (struct value){.kind = utc_ns ? VALUE_TIME : VALUE_NULL, .integer = utc_ns};
}

struct value value_text(const char *text)
{
	return (struct value){
		.kind = text ? VALUE_TEXT : VALUE_NULL, .data = text, .size = text ? strlen(text) : 0};
}

struct value value_json(const char *text)
{
	return (struct value){
		.kind = text ? VALUE_JSON : VALUE_NULL, .data = text, .size = text ? strlen(text) : 0};
}

struct value value_bytes(const void *data, size_t size)
{
	return (struct value){.kind = VALUE_BYTES, .data = size ? data : "", .size = size};
}

struct value value_path(const char *path)
{
	return path ? value_bytes(path, strlen(path)) : (struct value){.kind = VALUE_NULL};
}

int64_t value_to_integer(const struct value *v, int64_t fallback)
{
	return v->kind == VALUE_INTEGER ? v->integer : fallback;
}

int take_integer(void *arg, const struct value *row, struct error *err UNUSED)
{
	*(int64_t *)arg = value_to_integer(row, 0);
	return 0;
}

const char *value_words(const struct value *v)
{
	return v->kind == VALUE_TEXT ? v->data : "";
}

static bool value_has_bytes(const struct value *v)
{
	return v->kind == VALUE_TEXT || v->kind == VALUE_BYTES;
}

int value_to_bytes(const struct value *v, char **ret, size_t *ret_size, struct error *err)
{
	size_t size = value_has_bytes(v) ? v->size : 0;
	char *copy = malloc(size + 1);

	if (!copy)
		return error_memory(err);
	if (size)
		memcpy(copy, v->data, size);
	copy[size] = 0;
	*ret = copy;
	if (ret_size)
		*ret_size = size;
	return 0;
}

int value_to_text(const struct value *v, char **ret, struct error *err)
{
	*ret = NULL;
	return value_has_bytes(v) ? value_to_bytes(v, ret, NULL, err) : 0;
}

int value_to_digest(const struct value *v, uint8_t ret[DIGEST_SIZE], struct error *err)
{
	if (v->kind != VALUE_BYTES || v->size != DIGEST_SIZE)
		return error_set(err, ERROR_LEDGER,
				 "the ledger holds a digest of %zu bytes where 32 are due: it is damaged",
				 v->size);
	memcpy(ret, v->data, DIGEST_SIZE);
	return 0;
}

int value_to_json(const struct value *v, json_t **ret, struct error *err)
{
	json_error_t where;

	*ret = NULL;
	if (v->kind != VALUE_TEXT)
		return 0;
	*ret = json_loadb(v->data, v->size, JSON_DECODE_ANY, &where);
	/* PostgreSQL writes 1e300 out in full, which is too long for an integer. */
	if (!*ret)
		*ret = json_loadb(v->data, v->size, JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, &where);
	if (!*ret)
		return error_set(err, ERROR_LEDGER,
				 "the ledger holds JSON that cannot be read (%s): it is damaged", where.text);
	return 0;
}

void value_to_fixed(const struct value *v, char *out, size_t room)
{
	size_t n = v->kind == VALUE_TEXT && v->size < room ? v->size : 0;

	memcpy(out, n ? v->data : "", n);
	out[n] = 0;
}
