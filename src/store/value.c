#include "backend.h"
#include "relative.h"

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

const char *value_words_or_null(const struct value *v)
{
	return v->kind == VALUE_TEXT && v->size <= VALUE_TEXT_MAX ? value_words(v) : NULL;
}

int value_to_bytes(const struct value *v, char **ret, size_t *ret_size, struct error *err)
{
	size_t most = ret_size ? SIZE_MAX : VALUE_TEXT_MAX, there = value_has_bytes(v) ? v->size : 0;
	size_t size = there < most ? there : most;
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

int value_to_below(const struct value *v, char **ret, struct error *err)
{
	struct error why = ERROR_INIT;
	struct relative path;
	size_t size;

	if (value_to_bytes(v, ret, &size, err) < 0)
		return -1;
	return relative_check(*ret, size, &path, &why) == 0
		       ? 0
		       : error_set(err, ERROR_LEDGER, "the ledger is damaged: %s", why.message);
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

/* An empty list is two bytes here and two hundred in memory. What stands within strings counts as well, which nobody feels. */
size_t value_amount(const struct value *v)
{
	const char *text = value_words(v);
	size_t amount = value_has_bytes(v) ? v->size : 0;

	for (size_t i = 0; i < (v->kind == VALUE_TEXT ? v->size : 0); i++)
		amount += text[i] == '[' || text[i] == '{' ? 200 : text[i] == ',' ? 100 : 0;
	return amount;
}

int value_to_json(const struct value *v, json_t **ret, struct error *err)
{
	json_error_t where;

	*ret = NULL;
	if (v->kind != VALUE_TEXT)
		return 0;
	if (value_amount(v) > VALUE_AMOUNT_MAX)
		return error_set(err, ERROR_LEDGER, "it has more lists or items than anybody needs");
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
	const char *text = value_words(v);
	size_t n = v->kind == VALUE_TEXT && v->size < room ? v->size : 0;

	for (size_t i = 0; i < n; i++)
		out[i] = text[i] > ' ' && text[i] < 0x7f ? text[i] : '?';
	out[n] = 0;
}
