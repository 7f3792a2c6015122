/*
 * A struct as JSON and back, by one table of its members, so that writing and reading cannot disagree. Private to
 * the model. Members that are missing or null keep the value that they have: what was written before a member
 * existed can still be read.
 */
#ifndef MODEL_MEMBER_H
#define MODEL_MEMBER_H

#include <jansson.h>
#include <stddef.h>

#include "error.h"

enum member_kind {
	MEMBER_INT,    /* int */
	MEMBER_COUNT,  /* int64_t; -1, not known, is null */
	MEMBER_TIME,   /* int64_t, UTC ns; 0 is null */
	MEMBER_SIZE,   /* uint64_t up to INT64_MAX */
	MEMBER_BOOL,   /* bool */
	MEMBER_TEXT,   /* char *, owned; NULL is null */
	MEMBER_CHARS,  /* char[room] */
	MEMBER_LIST,   /* char **, owned */
	MEMBER_JSON,   /* json_t *, owned; NULL is null */
	MEMBER_DIGEST, /* uint8_t[DIGEST_SIZE], in hex */
};

struct member {
	const char *key;
	enum member_kind kind;
	size_t offset;
	size_t room; /* CHARS */
};

#define MEMBER(type, field, kind)                                               \
	{                                                                       \
#field, kind, offsetof(type, field), sizeof(((type *)0)->field) \
	}
#define MEMBER_AS(key, type, field, kind)                                    \
	{                                                                    \
		key, kind, offsetof(type, field), sizeof(((type *)0)->field) \
	}

/* Adds each member to object. -1 if memory is out. */
int members_write(json_t *object, const struct member *members, size_t count, const void *record);
/* An object of them: new reference, NULL if memory is out. */
json_t *members_to_json(const struct member *members, size_t count, const void *record);
/* what names the thing in errors: "usage". */
int members_read(void *record, const struct member *members, size_t count, const json_t *object,
		 const char *what, struct error *err);

/* Keys with new references, which are taken even on failure (json_pack would leak them). -1 if a value or the object
 * is NULL: memory is out, which need not be looked for before. JSON_ABSENT: the key is left out. */
#define JSON_ABSENT ((json_t *)&json_absent)
extern const json_t json_absent;
struct json_entry {
	const char *key;
	json_t *value;
};
int json_set_entries(json_t *object, const struct json_entry *entries, size_t count);
json_t *json_from_entries(const struct json_entry *entries, size_t count);

/* For what is built bit by bit: takes value, which may be NULL. If memory is out, what was built is dropped, and *object or
 * *array is NULL from then on: who builds need not look, who is done asks once. */
void json_put(json_t **object, const char *key, json_t *value);
void json_push(json_t **array, json_t *value);

/* Bytes as text; what is no UTF-8 is escaped, and NAME_b64 beside it has the bytes. data may be NULL if size is 0. 0, or not. */
int json_set_bytes(json_t *object, const char *name, const char *data, size_t size);
/* An array of what `one` (NULL: memory is out) makes of each of a list: new reference, or NULL. */
#define JSON_LIST(list, count, one)                                       \
	({                                                                \
		json_t *array_ = json_array();                            \
		for (size_t i_ = 0; array_ && i_ < (size_t)(count); i_++) \
			json_push(&array_, one(&(list)[i_]));             \
		array_;                                                   \
	})

/* A string, or {"b64": …} where it is not UTF-8; NULL gives null. New reference. */
json_t *json_text(const char *text);
json_t *json_text_list(char *const *list);
/* UTC ns as text; 0, not known, gives null. */
json_t *json_instant(int64_t utc_ns);
/* A string as people may see it: what is not UTF-8 is escaped. */
json_t *json_shown(const char *text);

#endif
