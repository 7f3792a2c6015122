#include "picture_turn.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A TIFF in a marker: every number may lie beyond its end, and is 0 then. */
struct tiff {
	const uint8_t *data;
	size_t size;
	bool is_little;
};

static uint32_t number(const struct tiff *t, size_t at, size_t bytes)
{
	uint32_t n = 0;

	if (at > t->size || bytes > t->size - at)
		return 0;
	for (size_t i = 0; i < bytes; i++)
		n = n << 8 | t->data[at + (t->is_little ? bytes - 1 - i : i)];
	return n;
}

unsigned picture_orientation(const uint8_t *data, size_t size)
{
	enum { HEAD = 6, ENTRY = 12, ORIENTATION = 0x112, SHORT = 3 };
	struct tiff t;
	size_t at;

	if (size < HEAD + 8 || memcmp(data, "Exif\0", HEAD) != 0)
		return 1;
	t = (struct tiff){data + HEAD, size - HEAD, data[HEAD] == 'I'};
	at = number(&t, 4, 4);
	for (uint32_t left = number(&t, at, 2); left && at < t.size; left--, at += ENTRY)
		if (number(&t, at + 2, 2) == ORIENTATION && number(&t, at + 4, 2) == SHORT) {
			uint32_t found = number(&t, at + 10, 2);

			return found >= 1 && found <= 8 ? found : 1;
		}
	return 1;
}

int pixels_turn(struct pixels *p, unsigned orientation)
{
	bool swaps = orientation >= 5;
	bool mirrors_x = orientation == 2 || orientation == 3 || orientation >= 7;
	bool mirrors_y = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
	struct pixels turned = {swaps ? p->height : p->width, swaps ? p->width : p->height, NULL};
	uint8_t *to;

	if (orientation <= 1)
		return 0;
	to = turned.data = malloc((size_t)p->width * p->height * PIXEL_SIZE);
	if (!to)
		return -ENOMEM;
	for (uint32_t y = 0; y < turned.height; y++)
		for (uint32_t x = 0; x < turned.width; x++, to += PIXEL_SIZE) {
			uint32_t from_x = swaps ? y : x, from_y = swaps ? x : y;

			from_x = mirrors_x ? p->width - 1 - from_x : from_x;
			from_y = mirrors_y ? p->height - 1 - from_y : from_y;
			memcpy(to, p->data + ((size_t)from_y * p->width + from_x) * PIXEL_SIZE, PIXEL_SIZE);
		}
	free(p->data);
	*p = turned;
	return 0;
}
