/*
 * A picture as nothing but its pixels. Rows come from a decoder one after the other and are scaled as they come, so that only what is shown
 * takes memory; what is shown is written as a PNG that has pixels in it and nothing else.
 *
 *     pixels_fit ─► scaler_open ─► scaler_row, for each ─► scaler_done;  then pixels_encode
 */
#ifndef WEB_PIXELS_H
#define WEB_PIXELS_H

#include <stddef.h>
#include <stdint.h>

#include "buffer.h"
#include "error.h"

enum { PIXEL_SIZE = 4 }; /* red, green, blue, opacity */

struct pixels {
	uint32_t width, height;
	uint8_t *data; /* row after row, from the top */
};

void pixels_done(struct pixels *p);
#define _cleanup_pixels_ _cleanup_(pixels_done)

/* How large it is within a square of that side: of the same shape, never enlarged, and never nothing. */
void pixels_fit(uint32_t width, uint32_t height, uint32_t side, struct pixels *ret);

/* Each pixel is the mean of all that lies under it, by area and opacity. */
struct scaler {
	uint32_t width, height; /* of what comes in; each at most 65535 */
	struct pixels *to;
	uint64_t *across; /* one row that came in, as wide as what goes out */
	uint64_t *sum;	  /* the row that is being made */
	uint32_t made, missing;
};

/* to is already as large as pixels_fit() says; its data are made here. -ENOMEM. */
int scaler_open(struct scaler *s, uint32_t width, uint32_t height, struct pixels *to);
void scaler_row(struct scaler *s, const uint8_t *row);
void scaler_done(struct scaler *s);

/* Appended; 1: it would be more than max bytes, and nothing is. */
int pixels_encode(const struct pixels *p, size_t max, struct buffer *ret, struct error *err);

#endif
