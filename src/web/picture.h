/*
 * Pictures of strangers, made harmless before a browser sees them: a child that can do nothing else (picture_box.h) makes pixels of the PNG or JPEG,
 * and we make a PNG of the pixels. What was made is kept for a while, by digest and size, and so is that nothing could be made.
 */
#ifndef WEB_PICTURE_H
#define WEB_PICTURE_H

#include "buffer.h"
#include "ledger.h"

enum {
	PICTURE_SMALL = 320,
	PICTURE_WIDE = 1280,
	PICTURE_PNG_MAX = 2 * 1024 * 1024,
};

/* For one thread at a time. */
struct pictures;
int pictures_open(struct pictures **ret, struct error *err);
struct pictures *pictures_close(struct pictures *p); /* NULL is fine; returns NULL */

/* By its name, is there a picture in it? */
bool picture_is_likely(const struct output *o);
/* The output as a PNG of at most PICTURE_PNG_MAX bytes that fits into a square of that side (at most PICTURE_WIDE), appended. ERROR_REFUSED: it
 * cannot be shown, and why; it can be saved. Blocks, for seconds at worst. */
int picture_of_output(struct pictures *p, struct ledger *l, const struct output *o, uint32_t side,
		      struct buffer *png, struct error *err);
/* The same out of a file, from its beginning; name is for the error. Nothing is kept. */
int picture_of_file(int fd, const char *name, uint32_t side, struct buffer *png, struct error *err);

#endif
