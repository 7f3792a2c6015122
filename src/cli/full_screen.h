/*
 * The whole terminal for a while: the alternate screen without a cursor, keys as they are typed. full_screen_open, any number of
 * full_screen_draw, full_screen_close, which makes everything as it was: it must be called on every way out, signals (signals.h)
 * included.
 */
#ifndef CLI_FULL_SCREEN_H
#define CLI_FULL_SCREEN_H

#include <termios.h>

#include "error.h"

struct full_screen {
	int in, out; /* in -1: no keys */
	struct termios before;
	int columns, rows; /* as last drawn */
};

/* in need not be a terminal. */
int full_screen_open(struct full_screen *f, int in, int out, struct error *err);
/* As much of the text as there is room for: lines are cut, not wrapped. In one write, over what was there: nothing flickers. */
int full_screen_draw(struct full_screen *f, const char *text, struct error *err);
/* Has somebody changed its size since? */
bool full_screen_is_resized(const struct full_screen *f);
void full_screen_close(struct full_screen *f);

#endif
