#include "fuzz.h"

#include <string.h>

char *fuzz_text(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	PROMISE(text);
	if (size)
		memcpy(text, data, size);
	text[size] = 0;
	return text;
}
