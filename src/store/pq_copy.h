/*
 * Values in PostgreSQL's binary form: rows for COPY, parameters, results.
 */
#ifndef STORE_PQ_COPY_H
#define STORE_PQ_COPY_H

#include "backend.h"
#include "buffer.h"
#include "pq.h"

/* The head and the end of a COPY stream, and a row of it; types as in struct sql_table_info. What cannot be added fails the
 * buffer (buffer.h): who sends it asks. */
void copy_head(struct buffer *b);
void copy_row(struct buffer *b, const char *types, const struct value *row);
void copy_end(struct buffer *b);

/* A row piece by piece: how many columns, then each of them. size 2, 4 or 8; before: bytes that come first. */
void copy_count(struct buffer *b, int16_t columns);
void copy_null(struct buffer *b);
void copy_integer(struct buffer *b, int size, int64_t n);
void copy_bytes(struct buffer *b, const char *before, const void *data, size_t size);

/* Digests as a bytea[]. */
int copy_digests(struct buffer *b, const uint8_t (*sha256)[DIGEST_SIZE], size_t n, struct error *err);

/* A column of a result in binary form. */
struct value result_value(struct pq *q, const PGresult *result, int row, int column);

#endif
