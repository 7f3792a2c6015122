/*
 * A growing run of bytes, always followed by a NUL so that it can be read as a string. Zero-initialise, append,
 * then buffer_free() or buffer_take().
 *
 * Out of memory is sticky: an append that fails empties the buffer and marks it, every later one fails too, and
 * who builds need not look. Who consumes the bytes asks once, with buffer_check(), or gets NULL from buffer_take().
 * Until buffer_free() nothing cures it, so that half a statement or half a file never leaves.
 */
#ifndef BASE_BUFFER_H
#define BASE_BUFFER_H

#include <stdbool.h>
#include <string.h>

#include "macros.h"

struct error;

struct buffer {
	char *data;
	size_t size;
	size_t room; /* 0 once it has failed, so that the short way below needs no look at `failed` */
	bool failed;
};

void buffer_free(struct buffer *b);
int buffer_reserve(struct buffer *b, size_t more);
int buffer_append_slowly(struct buffer *b, const void *data, size_t size);
/* Here, because rows go through it by the million. */
static inline int buffer_append(struct buffer *b, const void *data, size_t size)
{
	if (b->room <= b->size || b->room - b->size <= size)
		return buffer_append_slowly(b, data, size);
	if (size)
		memcpy(b->data + b->size, data, size);
	b->size += size;
	b->data[b->size] = 0;
	return 0;
}
int buffer_puts(struct buffer *b, const char *text);
int buffer_printf(struct buffer *b, const char *format, ...) PRINTF_LIKE(2, 3);
/* What was to be appended could not be made: as if an append had failed. Returns -ENOMEM. */
int buffer_fail(struct buffer *b);
/* 0, or -ENOMEM with the error set if an append has failed since the buffer was empty. err may be NULL. */
int buffer_check(const struct buffer *b, struct error *err);
/* The string, owned by the caller; the buffer is empty afterwards. NULL only if memory is or was out. */
char *buffer_take(struct buffer *b);

#define _cleanup_buffer_ _cleanup_(buffer_free)

#endif
