#include "picture_decode.h"

#include <string.h>

static const struct {
	const char *mark;
	size_t size;
	enum picture_fault (*decode)(const struct picture_order *o, struct pixels *ret);
} kinds[] = {
	{"\x89PNG\r\n\x1a\n", 8, picture_decode_png},
	{"\xff\xd8\xff", 3, picture_decode_jpeg},
};

enum picture_fault picture_decode(const uint8_t *data, size_t size, uint32_t side, uint64_t pixels_max,
				  struct pixels *ret)
{
	const struct picture_order o = {data, size, side, pixels_max};
	struct pixels made = {0};
	enum picture_fault fault = PICTURE_UNKNOWN;

	if (size > PICTURE_BYTES_MAX)
		return PICTURE_LARGE;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (size >= kinds[i].size && memcmp(data, kinds[i].mark, kinds[i].size) == 0)
			fault = kinds[i].decode(&o, &made);
	if (fault == PICTURE_FINE)
		*ret = made;
	else
		pixels_done(&made);
	return fault;
}
