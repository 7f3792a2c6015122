/*
 * The child that decodes a picture, seen from inside: our own executable, `fumehood picture SIDE`, which is in no list of commands. It reads the
 * bytes from its stdin and writes pixels to its stdout, and can do nothing else: before it looks at the first byte it has closed everything else,
 * given away memory, time, files and descriptors (rlimits), and every system call but read(0), write(1), memory and exit (seccomp; the
 * kernel kills it for any other).
 *
 * What it writes is the width and the height, four bytes each in this machine's order, and then the pixels: a decoder that a stranger has taken
 * over can show another picture, but the PNG that a browser gets is encoded by its parent.
 */
#ifndef WEB_PICTURE_BOX_H
#define WEB_PICTURE_BOX_H

#include <stdint.h>

enum { PICTURE_HEAD = 2 * sizeof(uint32_t), PICTURE_SHOWN_MAX = 1280 };

/* For good. -errno: they cannot be had, and nothing may be decoded. */
int picture_walls(void);
/* Does not return: its exit status is an enum picture_fault. */
_Noreturn void picture_box(uint32_t side);

#endif
