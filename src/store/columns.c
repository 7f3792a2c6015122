#include "columns.h"

#include <assert.h>
#include <errno.h>

#include "text.h"

#define ENTRY(type, member, column, kind) \
	{COLUMN_##kind, offsetof(struct type, member), sizeof(((struct type *)0)->member)},

static const struct column attempt_columns[] = {ATTEMPT_LISTED_COLUMNS(ENTRY) ATTEMPT_OTHER_COLUMNS(ENTRY)};
static const struct column output_columns[] = {OUTPUT_COLUMNS(ENTRY)};
static const struct column rejected_columns[] = {REJECTED_COLUMNS(ENTRY)};
static const struct column input_columns[] = {INPUT_COLUMNS(ENTRY)};
static const struct column query_columns[] = {QUERY_COLUMNS(ENTRY)};
static const struct column event_columns[] = {EVENT_COLUMNS(ENTRY)};
static const struct column step_columns[] = {STEP_COLUMNS(ENTRY)};
static const struct column denial_columns[] = {DENIAL_COLUMNS(ENTRY)};
static const struct column sample_columns[] = {SAMPLE_COLUMNS(ENTRY)};

#define COLUMNS(list, type)                                 \
	{                                                   \
		list, ARRAY_SIZE(list), sizeof(struct type) \
	}

const struct columns columns_of[TABLE_COUNT] = {
	[TABLE_ATTEMPT] = COLUMNS(attempt_columns, attempt),
	[TABLE_OUTPUT] = COLUMNS(output_columns, output),
	[TABLE_REJECTED] = COLUMNS(rejected_columns, rejected_output),
	[TABLE_INPUT] = COLUMNS(input_columns, input),
	[TABLE_QUERY] = COLUMNS(query_columns, query),
	[TABLE_EVENT] = COLUMNS(event_columns, event),
	[TABLE_SAMPLE] = COLUMNS(sample_columns, sample),
	[TABLE_STEP] = COLUMNS(step_columns, step),
	[TABLE_DENIAL] = COLUMNS(denial_columns, denial),
};

/* ---- into the database ---- */

static json_t *paths_to_json(char *const *paths)
{
	json_auto_t *array = json_array();

	for (; *paths; paths++) {
		json_auto_t *object = json_object();

		if (json_set_path(object, *paths) < 0 || json_array_append(array, object) < 0)
			return NULL;
	}
	return json_incref(array);
}

/* Takes the reference; NULL: memory is out. */
static struct value dump(json_t *json, struct column_texts *texts)
{
	char *text = json ? json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;

	json_decref(json);
	texts->failed = texts->failed || !text;
	texts->list[texts->count++] = text;
	return value_json(text);
}

void column_texts_done(struct column_texts *texts)
{
	for (size_t i = 0; i < texts->count; i++)
		free(texts->list[i]);
}

static struct value integer_or_null(int64_t n, int64_t null)
{
	struct value none = {.kind = VALUE_NULL};

	return n == null ? none : value_integer(n);
}

static struct value column_value(enum column_kind kind, const void *at, struct column_texts *texts)
{
	switch (kind) {
	case COLUMN_TEXT:
	case COLUMN_WORDS:
	case COLUMN_MEDIA_TYPE:
	case COLUMN_REASON:
		return value_text(*(char *const *)at);
	case COLUMN_CHARS:
		return value_text(at);
	case COLUMN_BYTES:
	case COLUMN_PATH:
	case COLUMN_BELOW:
		return value_path(*(char *const *)at);
	case COLUMN_DIGEST:
		return value_bytes(at, DIGEST_SIZE);
	case COLUMN_INT:
		return value_integer(*(const int *)at);
	case COLUMN_CODE:
		return integer_or_null(*(const int *)at, -1);
	case COLUMN_SIGNAL:
		return integer_or_null(*(const int *)at, 0);
	case COLUMN_SIZE:
		return value_integer(*(const int64_t *)at);
	case COLUMN_COUNT:
		return integer_or_null(*(const int64_t *)at, -1);
	case COLUMN_TIME:
		return value_time(*(const int64_t *)at);
	case COLUMN_INSTANT:
		return (struct value){VALUE_TIME, *(const int64_t *)at};
	case COLUMN_BOOL:
		return value_bool(*(const bool *)at);
	case COLUMN_VERDICT:
		return value_text(*(const enum verdict *)at == VERDICT_NONE
					  ? NULL
					  : verdict_name(*(const enum verdict *)at));
	case COLUMN_JSON:
		return *(json_t *const *)at ? dump(json_incref(*(json_t *const *)at), texts)
					    : value_text(NULL);
	case COLUMN_USAGE:
		return dump(usage_to_json(at), texts);
	case COLUMN_RECEIPT:
		return dump(receipt_to_json(at), texts);
	case COLUMN_PATHS:
		return *(char **const *)at ? dump(paths_to_json(*(char **const *)at), texts)
					   : value_text(NULL);
	case COLUMN_INTERVAL: {
		const struct timeline *t = *(struct timeline *const *)at;

		return integer_or_null(t ? t->interval_ms : -1, -1);
	}
	}
	return value_text(NULL);
}

int columns_write(enum sql_table table, const void *record, struct value *row, struct column_texts *texts)
{
	const struct columns *c = &columns_of[table];

	assert(c->count > 0);
	for (size_t i = 0; i < c->count; i++)
		row[i] = column_value(c->list[i].kind, (const char *)record + c->list[i].offset, texts);
	return texts && texts->failed ? -ENOMEM : 0;
}

/* ---- and back ---- */

static int read_paths(const struct value *v, char ***ret, struct error *err)
{
	json_auto_t *array = NULL;
	json_t *object;
	size_t i;

	if (value_to_json(v, &array, err) < 0)
		return -1;
	json_array_foreach (array, i, object) {
		_cleanup_free_ char *path = json_get_path(object, err);

		if (!path || strv_append(ret, path, err) < 0)
			return -1;
	}
	return 0;
}

static int read_interval(const struct value *v, struct timeline **ret, struct error *err)
{
	if (value_to_integer(v, -1) < 0)
		return 0;
	*ret = calloc(1, sizeof **ret);
	if (!*ret)
		return error_memory(err);
	(*ret)->interval_ms = value_to_integer(v, 0);
	return 0;
}

static int read_parts(enum column_kind kind, const struct value *v, void *at, struct error *err)
{
	json_auto_t *json = NULL;

	if (value_to_json(v, &json, err) < 0)
		return -1;
	if (!json)
		return 0;
	return kind == COLUMN_USAGE ? usage_from_json(at, json, err) : receipt_from_json(at, json, err);
}

static int read_column(const struct column *c, const struct value *v, void *at, struct error *err)
{
	switch (c->kind) {
	case COLUMN_TEXT:
	case COLUMN_BYTES:
		return value_to_text(v, at, err);
	case COLUMN_WORDS:
	case COLUMN_PATH:
		return value_to_bytes(v, at, NULL, err);
	case COLUMN_BELOW:
		return value_to_below(v, at, err);
	case COLUMN_CHARS:
		value_to_fixed(v, at, c->room);
		return 0;
	case COLUMN_DIGEST:
		return value_to_digest(v, at, err);
	case COLUMN_INT:
	case COLUMN_SIGNAL:
		*(int *)at = (int)value_to_integer(v, 0);
		return 0;
	case COLUMN_CODE:
		*(int *)at = (int)value_to_integer(v, -1);
		return 0;
	case COLUMN_SIZE:
	case COLUMN_TIME:
	case COLUMN_INSTANT:
		*(int64_t *)at = value_to_integer(v, 0);
		return 0;
	case COLUMN_COUNT:
		*(int64_t *)at = value_to_integer(v, -1);
		return 0;
	case COLUMN_BOOL:
		*(bool *)at = value_to_integer(v, 0) != 0;
		return 0;
	case COLUMN_VERDICT:
		if (verdict_parse(value_words(v), at) < 0)
			*(enum verdict *)at = VERDICT_NONE;
		return 0;
	case COLUMN_MEDIA_TYPE:
		*(const char **)at = media_type_known(value_words(v));
		return 0;
	case COLUMN_REASON:
		*(const char **)at = reject_reason_known(value_words(v));
		return 0;
	case COLUMN_JSON:
		return value_to_json(v, at, err);
	case COLUMN_USAGE:
	case COLUMN_RECEIPT:
		return read_parts(c->kind, v, at, err);
	case COLUMN_PATHS:
		return read_paths(v, at, err);
	case COLUMN_INTERVAL:
		return read_interval(v, at, err);
	}
	return -1;
}

int columns_read(enum sql_table table, size_t n, const struct value *row, void *record, struct error *err)
{
	const struct column *list = columns_of[table].list;

	assert(n <= columns_of[table].count);
	for (size_t i = 0; i < n; i++)
		if (read_column(&list[i], &row[i], (char *)record + list[i].offset, err) < 0)
			return -1;
	return 0;
}

void columns_done(enum sql_table table, void *record)
{
	const struct columns *c = &columns_of[table];

	for (size_t i = 0; i < c->count; i++)
		if (c->list[i].kind == COLUMN_WORDS || c->list[i].kind == COLUMN_PATH ||
		    c->list[i].kind == COLUMN_BELOW || c->list[i].kind == COLUMN_BYTES ||
		    c->list[i].kind == COLUMN_TEXT)
			free(*(char **)((char *)record + c->list[i].offset));
}
