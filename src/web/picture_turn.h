/*
 * A camera that was held upright says so beside the picture (EXIF) and leaves the turning to who shows it. That is all that is read of what it says.
 */
#ifndef WEB_PICTURE_TURN_H
#define WEB_PICTURE_TURN_H

#include "pixels.h"

/* 1 to 8 as EXIF has them, out of a JPEG's APP1; 1, as it is, where nothing sensible is said. */
unsigned picture_orientation(const uint8_t *data, size_t size);
/* Turned and mirrored until it is as it was seen. -ENOMEM. */
int pixels_turn(struct pixels *p, unsigned orientation);

#endif
