/*
 * What the terminal of an analysis (run -t, shell) shows, on its way to the user's own. It may draw: move the cursor, colour,
 * scroll, erase, use the other screen. It may not make the user's terminal answer, or do anything beside drawing:
 *
 *   passes    text, the usual controls, drawing sequences by an allow-list, a list of modes (keys, mouse, paste, other screen)
 *   vanishes  every string (titles, clipboard, links, pictures, key definitions), reports and questions of any kind, window
 *             commands, printing, 8-bit controls, whatever is not known
 *
 * An answer would come as if typed: to the analysis while it runs, to the user's own shell once it has ended. Modes that were
 * switched on are switched off at the end.
 */
#ifndef CLI_PASSAGE_H
#define CLI_PASSAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "buffer.h"

struct passage {
	enum {
		PASSAGE_TEXT,
		PASSAGE_ESCAPE,
		PASSAGE_SEQUENCE,
		PASSAGE_STRING,
		PASSAGE_STRING_ESCAPE,
		PASSAGE_LETTER
	} state;
	char held[64]; /* the beginning of a sequence, or of a letter of several bytes */
	size_t n_held;
	bool in_line; /* the cursor is not known to stand at the beginning of a line */
	bool is_set;  /* something went out that passage_end() takes back */
};

void passage_bytes(struct passage *p, const char *data, size_t size, struct buffer *out);
/* What passage_end() writes if something went out that it takes back. */
extern const char passage_reset[];
/* The terminal as it should be found: its modes, colours, screen. */
void passage_end(struct passage *p, struct buffer *out);

#endif
