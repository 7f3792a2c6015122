/*
 * Queries that a stranger wrote, before a database sees them. Rights, a read-only transaction and limits are the wall;
 * this is the lock on its door: words that are of no use to a query that only reads.
 */
#ifndef STORE_QUERY_H
#define STORE_QUERY_H

#include <stdbool.h>
#include <stddef.h>

#include "buffer.h"
#include "error.h"

/* The text without blanks, comments and a semicolon at its end; refused if it is more than one statement. */
int query_trim(const char *sql, size_t *ret_size, struct error *err);
/* PostgreSQL: refused if it has a name in it that is not for strangers, or writes text in a way that hides one. */
int query_check_words(const char *sql, size_t size, struct error *err);

/* A field of a CSV line, quoted where it must be; NULL is an empty field, "" an empty text. */
int csv_put(struct buffer *b, const char *text, size_t size);

#endif
