/*
 * What the caller's stdin says, poured into a pipe for the analysis. It never gets the descriptor itself: a terminal
 * could be written to through it, and a file's mode, times and locks changed.
 */
#ifndef SUPERVISE_PUMP_H
#define SUPERVISE_PUMP_H

#include "loop.h"

struct pump;

/* from stays the caller's and is read as it comes; to becomes ours, and is closed when from ends. end: what says so on a
 * terminal, before that; 0: nothing does.
 *
 * on_out: somebody types there, and this is called when he wants out (see keys.h); also while nobody reads what he types, for
 * which it goes on being read, and lost if it is more than a command will ever read. NULL: it is only bytes. */
int pump_open(struct loop *loop, int from, int to, char end, void (*on_out)(void *arg), void *arg,
	      struct pump **ret, struct error *err);
void pump_close(struct pump *p); /* before the loop is closed; NULL is fine */

#endif
