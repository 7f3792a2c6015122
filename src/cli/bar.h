/*
 * How far a long piece of work is (work.h), on a terminal: one line on stderr, drawn again and again once it has taken a second,
 * and gone before anything else is said.
 *
 * bar_open, what it gives to whoever does the work, bar_clear before every other line and at the end. Where there is no
 * terminal, and with --quiet or --json, there is no bar.
 */
#ifndef CLI_BAR_H
#define CLI_BAR_H

#include "cli.h"
#include "work.h"

struct bar {
	const struct cli *cli;
	struct work work;
	bool is_drawn;
};

struct work *bar_open(struct bar *b, const struct cli *cli); /* NULL: nobody is to be told */
void bar_clear(struct bar *b);

struct bar_state {
	const char *what;
	uint64_t done, total; /* total 0: nobody knows */
	bool is_parts;
	int64_t elapsed_ms;
};

enum { BAR_ROOM = 256 };

/* "collecting [####--------] 35%, 1.2 GiB of 3.4 GiB, 310 MiB/s, 7 s left", in so many columns; where these are few it is the
 * numbers. */
const char *bar_format(const struct bar_state *s, int columns, char *out, size_t room);

#endif
