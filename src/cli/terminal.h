/*
 * What is known of a descriptor that may be a terminal, and how bytes of a stranger are made fit for one.
 *
 * terminal_probe once per descriptor. A filter per stream: filter_bytes for each piece as it comes, filter_end after
 * the last. What leaves the filter is text, '\n', '\t', '\r', '\b' and complete colour sequences; every other control
 * sequence (window titles, clipboards, cursor and device reports, whatever a terminal obeys) is shown as \xNN.
 */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

#include "print.h"
#include "text.h"

struct terminal {
	int fd;
	bool is_tty;
	bool colour; /* a terminal, and nobody said NO_COLOR */
	bool utf8;   /* by the locale's name */
};

#define TERMINAL_ERASE_LINE "\r\x1b[K"

void terminal_probe(struct terminal *t, int fd);
/* Columns now; 80 where nobody tells. */
int terminal_width(const struct terminal *t);
struct look terminal_look(const struct terminal *t);
const char *terminal_style(const struct terminal *t, enum style style);

/* Our terminal's letters are bytes (the locale is not of UTF-8): it obeys 0x80 to 0x9f in the midst of a letter, too. Told once. */
extern bool terminal_is_8bit;
/* Has the letter what such a terminal obeys, or is it one of C1 (U+0080 to U+009F), which begin a sequence on others? */
bool terminal_obeys(const char *letter, size_t size);

struct filter {
	char held[32]; /* the beginning of a sequence whose end has not come yet */
	size_t n_held;
	bool in_line; /* what went out last did not end a line */
	bool styled;  /* a colour went out and was not reset */
};

/* Appends what may be shown of data to out. */
void filter_bytes(struct filter *f, const char *data, size_t size, struct buffer *out);
/* What is still held, shown as it is; colours reset. */
void filter_end(struct filter *f, struct buffer *out);

#endif
