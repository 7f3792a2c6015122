/*
 * One destination of output as its reader sees it: where lines begin and end, which colours are on, and, on a
 * terminal, a status line below the output. Every call may wait for the reader: the tee's thread is made for that.
 */
#ifndef CLI_SCREEN_H
#define CLI_SCREEN_H

#include "passage.h"
#include "terminal.h"

enum { SCREEN_STREAMS = 3 }; /* stdout, stderr, and the post-process's */

struct screen {
	int fd;
	bool is_terminal;
	bool shows_terminal; /* what comes is what another terminal shows: it goes through the passage */
	struct passage passage;
	volatile bool
		*is_changed; /* told before the first that passage_end() would take back; NULL: nobody asks */
	struct filter filters[SCREEN_STREAMS];
	bool in_line;	   /* the last line is not ended */
	bool status_shown; /* the cursor stands behind the status line */
};

/* All return 0 or -errno. Size is not 0. */
int screen_output(struct screen *s, int stream, const char *data, size_t size);
/* Our own words: not filtered, on a line of their own. */
int screen_say(struct screen *s, const char *text, size_t size);
/* "" takes the line away. Does nothing in the middle of a line: a prompt or a progress bar of the analysis keeps its
 * line to itself. */
int screen_status(struct screen *s, const char *text);
/* Lets go of what the filters hold, resets colours. */
int screen_end(struct screen *s);

#endif
