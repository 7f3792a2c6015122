/*
 * Pixels out of the bytes of a stranger, by libpng or libjpeg. Decoders were holes more than once: outside of tests this is only called within the
 * walls of picture_box.h. It makes no system call but for memory.
 */
#ifndef WEB_PICTURE_DECODE_H
#define WEB_PICTURE_DECODE_H

#include "pixels.h"

enum {
	PICTURE_BYTES_MAX = 16 * 1024 * 1024, /* of the file */
	PICTURE_PIXELS_MAX = 64 * 1024 * 1024,
	PICTURE_WHOLE_MAX = 16 * 1024 * 1024, /* pixels of one that has to be in memory as a whole */
	PICTURE_SIDE_MAX = 65500,
};

/* Also what the child exits with. */
enum picture_fault {
	PICTURE_FINE,
	PICTURE_UNKNOWN = 10, /* neither PNG nor JPEG */
	PICTURE_DAMAGED,
	PICTURE_LARGE,	/* too many pixels, or too much memory for them */
	PICTURE_UNSAFE, /* there are no walls to be had here */
};

/* Scaled into a square of that side. pixels_max: at most PICTURE_PIXELS_MAX. What is cut short or wrong in itself is no picture: half of one
 * would pass for the whole. */
enum picture_fault picture_decode(const uint8_t *data, size_t size, uint32_t side, uint64_t pixels_max,
				  struct pixels *ret);

/* ---- each kind: NULL-safe in nothing, called by the above ---- */

struct picture_order {
	const uint8_t *data;
	size_t size;
	uint32_t side;
	uint64_t pixels_max;
};
enum picture_fault picture_decode_png(const struct picture_order *o, struct pixels *ret);
enum picture_fault picture_decode_jpeg(const struct picture_order *o, struct pixels *ret);

#endif
