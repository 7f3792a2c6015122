#include "array.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static size_t room_for(size_t count)
{
	size_t room = 1;

	while (room < count)
		room = room > SIZE_MAX / 2 ? count : room * 2;
	return room;
}

void *array_grow(void *list, size_t count, size_t size)
{
	size_t room = room_for(count + 1), bytes;
	char *grown = list;

	if (__builtin_mul_overflow(room, size, &bytes))
		return NULL;
	/* Mostly there is room. What somebody else has allocated need not have it. */
	if (!list || room != room_for(count) || malloc_usable_size(list) < bytes)
		grown = realloc(list, bytes);
	if (grown)
		memset(grown + count * size, 0, size);
	return grown;
}

size_t array_sort_distinct(void *list, size_t count, size_t size, int (*compare)(const void *, const void *))
{
	char *to = list, *from = list;

	if (count == 0)
		return 0;
	qsort(list, count, size, compare);
	for (size_t i = 1; i < count; i++) {
		from += size;
		if (compare(from, to) != 0) {
			to += size;
			memmove(to, from, size);
		}
	}
	return (size_t)(to - (char *)list) / size + 1;
}
