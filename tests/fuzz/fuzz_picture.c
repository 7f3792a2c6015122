/* A picture of a stranger: pixels that fit, or nothing. What libpng and libjpeg do inside is behind walls; here it must not crash either. */
#include "fuzz.h"

#include <string.h>
#include <zlib.h>

#include "picture_decode.h"

enum { SIDE = 320, PIXELS_MAX = 1 << 20 };

static uint32_t number(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* Puts the check sums of a PNG's chunks right: nothing behind a wrong one would ever be reached. */
static void mend(uint8_t *png, size_t size)
{
	for (size_t at = 8; at + 12 <= size;) {
		size_t length = number(png + at);
		uint32_t sum;

		if (length > size - at - 12)
			return;
		sum = (uint32_t)crc32(0, png + at + 4, (uInt)length + 4);
		at += length + 12;
		for (int i = 1; i <= 4; i++, sum >>= 8)
			png[at - (size_t)i] = (uint8_t)sum;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t nothing;
	_cleanup_free_ char *bytes = fuzz_text(data, size);
	_cleanup_buffer_ struct buffer png = {0};
	struct pixels p = {.data = &nothing}, again = {0};
	enum picture_fault fault;

	if (size % 2 == 0)
		mend((uint8_t *)bytes, size);
	fault = picture_decode((const uint8_t *)bytes, size, SIDE, PIXELS_MAX, &p);

	if (fault != PICTURE_FINE) {
		PROMISE(fault == PICTURE_UNKNOWN || fault == PICTURE_DAMAGED || fault == PICTURE_LARGE);
		PROMISE(p.data == &nothing);
		return 0;
	}
	PROMISE(p.width >= 1 && p.width <= SIDE && p.height >= 1 && p.height <= SIDE);
	PROMISE(pixels_encode(&p, SIZE_MAX, &png, NULL) == 0);
	PROMISE(picture_decode((const uint8_t *)png.data, png.size, SIDE, PIXELS_MAX, &again) ==
		PICTURE_FINE);
	PROMISE(again.width == p.width && again.height == p.height);
	for (size_t i = 0; i < (size_t)p.width * p.height * PIXEL_SIZE; i += PIXEL_SIZE) {
		PROMISE(p.data[i + 3] == again.data[i + 3]);
		PROMISE(p.data[i + 3] == 0 || memcmp(p.data + i, again.data + i, 3) == 0);
	}
	pixels_done(&p);
	pixels_done(&again);
	return 0;
}
