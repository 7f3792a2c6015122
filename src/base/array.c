#include "array.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void *array_grow(void *list, size_t count, size_t size)
{
	size_t room = 1;
	char *grown;

	while (room <= count)
		room = room > SIZE_MAX / 2 ? count + 1 : room * 2;
	grown = reallocarray(list, room, size);
	if (grown)
		memset(grown + count * size, 0, size);
	return grown;
}
