#include "pq_copy.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "text.h"

/* Types of PostgreSQL that our statements return; their numbers never change. */
enum {
	OID_BOOL = 16,
	OID_BYTEA = 17,
	OID_INT8 = 20,
	OID_INT2 = 21,
	OID_INT4 = 23,
	OID_TIMESTAMPTZ = 1184,
	OID_JSONB = 3802
};

/* PostgreSQL counts microseconds since 2000. */
static const int64_t epoch_us = 946684800000000;

static void put16(struct buffer *b, int16_t n)
{
	uint16_t be = htobe16((uint16_t)n);

	buffer_append(b, &be, sizeof be);
}

static void put32(struct buffer *b, int32_t n)
{
	uint32_t be = htobe32((uint32_t)n);

	buffer_append(b, &be, sizeof be);
}

static void put64(struct buffer *b, int64_t n)
{
	uint64_t be = htobe64((uint64_t)n);

	buffer_append(b, &be, sizeof be);
}

void copy_bytes(struct buffer *b, const char *before, const void *data, size_t size)
{
	size_t n = strlen(before);

	if (size > INT32_MAX - n) {
		buffer_fail(b);
		return;
	}
	put32(b, (int32_t)(n + size));
	buffer_append(b, before, n);
	buffer_append(b, data, size);
}

/* A text column takes UTF-8 only; what is not is shown as it would be on a terminal. */
static void put_text(struct buffer *b, const struct value *v)
{
	bool is_valid = utf8_valid(v->data, v->size);
	_cleanup_free_ char *escaped = is_valid ? NULL : text_escape(v->data, v->size);

	if (is_valid)
		copy_bytes(b, "", v->data, v->size);
	else if (escaped)
		copy_bytes(b, "", escaped, strlen(escaped));
	else
		buffer_fail(b);
}

static void put_value(struct buffer *b, char type, const struct value *v)
{
	uint8_t byte = v->integer != 0;

	if (v->kind == VALUE_NULL)
		type = 0;
	switch (type) {
	case 0:
		copy_null(b);
		break;
	case 'i':
		copy_integer(b, 4, v->integer);
		break;
	case 'I':
		copy_integer(b, 8, v->integer);
		break;
	case 'z':
		copy_integer(b, 8, v->integer / 1000 - epoch_us);
		break;
	case 'o':
		copy_bytes(b, "", &byte, 1);
		break;
	case 'j': /* its version comes first */
		copy_bytes(b, "\1", v->data, v->size);
		break;
	case 't':
		put_text(b, v);
		break;
	default:
		copy_bytes(b, "", v->data, v->size);
	}
}

void copy_count(struct buffer *b, int16_t columns)
{
	put16(b, columns);
}

void copy_null(struct buffer *b)
{
	put32(b, -1);
}

void copy_integer(struct buffer *b, int size, int64_t n)
{
	put32(b, size);
	if (size == 2)
		put16(b, (int16_t)n);
	else if (size == 4)
		put32(b, (int32_t)n);
	else
		put64(b, n);
}

void copy_head(struct buffer *b)
{
	static const char head[] = "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0";

	buffer_append(b, head, sizeof head);
}

void copy_row(struct buffer *b, const char *types, const struct value *row)
{
	put16(b, (int16_t)strlen(types));
	for (size_t i = 0; types[i]; i++)
		put_value(b, types[i], &row[i]);
}

void copy_end(struct buffer *b)
{
	put16(b, -1);
}

int copy_digests(struct buffer *b, const uint8_t (*sha256)[DIGEST_SIZE], size_t n, struct error *err)
{
	/* One dimension, no nulls, of bytea; so many, from 1. */
	const int32_t head[] = {1, 0, OID_BYTEA, (int32_t)n, 1};

	for (size_t i = 0; i < ARRAY_SIZE(head); i++)
		put32(b, head[i]);
	for (size_t i = 0; i < n; i++)
		copy_bytes(b, "", sha256[i], DIGEST_SIZE);
	return buffer_check(b, err);
}

static int64_t get_integer(const char *data, int size)
{
	uint64_t n = (signed char)data[0] < 0 ? UINT64_MAX : 0;

	for (int i = 0; i < size; i++)
		n = n << 8 | (uint8_t)data[i];
	return (int64_t)n;
}

struct value result_value(struct pq *q, const PGresult *result, int row, int column)
{
	const char *data = q->PQgetvalue(result, row, column);
	int size = q->PQgetlength(result, row, column);

	if (q->PQgetisnull(result, row, column))
		return (struct value){.kind = VALUE_NULL};
	switch (q->PQftype(result, column)) {
	case OID_BOOL:
	case OID_INT2:
	case OID_INT4:
	case OID_INT8:
		return value_integer(get_integer(data, size));
	case OID_TIMESTAMPTZ:
		return value_integer((get_integer(data, size) + epoch_us) * 1000);
	case OID_BYTEA:
		return value_bytes(data, (size_t)size);
	case OID_JSONB:
		return (struct value){VALUE_TEXT, 0, data + 1, (size_t)size - 1};
	}
	return (struct value){VALUE_TEXT, 0, data, (size_t)size};
}
