#include "buffer.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "error.h"

void buffer_free(struct buffer *b)
{
	free(b->data);
	*b = (struct buffer){0};
}

int buffer_fail(struct buffer *b)
{
	buffer_free(b);
	b->failed = true;
	return -ENOMEM;
}

int buffer_reserve(struct buffer *b, size_t more)
{
	size_t need, room = b->room ? b->room : 64;
	char *data;

	if (b->failed)
		return buffer_fail(b);
	if (__builtin_add_overflow(b->size, more, &need) || __builtin_add_overflow(need, 1, &need))
		return buffer_fail(b);
	if (need <= b->room)
		return 0;
	while (room < need)
		room = room > SIZE_MAX / 2 ? need : room * 2;
	data = realloc(b->data, room);
	if (!data)
		return buffer_fail(b);
	b->data = data;
	b->room = room;
	b->data[b->size] = 0;
	return 0;
}

int buffer_append_slowly(struct buffer *b, const void *data, size_t size)
{
	int r = buffer_reserve(b, size);

	if (r < 0)
		return r;
	if (size)
		memcpy(b->data + b->size, data, size);
	b->size += size;
	b->data[b->size] = 0;
	return 0;
}

int buffer_puts(struct buffer *b, const char *text)
{
	return buffer_append(b, text, strlen(text));
}

int buffer_printf(struct buffer *b, const char *format, ...)
{
	va_list ap, again;
	int n, r;

	va_start(ap, format);
	va_copy(again, ap);
	n = vsnprintf(NULL, 0, format, ap);
	va_end(ap);
	r = n < 0 ? buffer_fail(b) : buffer_reserve(b, (size_t)n);
	if (r == 0) {
		vsnprintf(b->data + b->size, (size_t)n + 1, format, again);
		b->size += (size_t)n;
	}
	va_end(again);
	return r;
}

int buffer_check(const struct buffer *b, struct error *err)
{
	return b->failed ? error_memory(err) : 0;
}

char *buffer_take(struct buffer *b)
{
	char *data;

	if (buffer_reserve(b, 0) < 0)
		return NULL;
	data = b->data;
	*b = (struct buffer){0};
	return data;
}
