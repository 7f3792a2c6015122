/*
 * A growing run of bytes, always followed by a NUL so that it can be read as a string. Zero-initialise, append,
 * then buffer_free() or buffer_take(). A failed append leaves the buffer as it was and returns -ENOMEM.
 */
#ifndef BASE_BUFFER_H
#define BASE_BUFFER_H

#include <string.h>

#include "macros.h"

struct buffer {
	char *data;
	size_t size;
	size_t room;
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
/* The string, owned by the caller; the buffer is empty afterwards. NULL only if memory is out. */
char *buffer_take(struct buffer *b);

#define _cleanup_buffer_ _cleanup_(buffer_free)

#endif
