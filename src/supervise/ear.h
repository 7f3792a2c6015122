/*
 * Who asks, and waits for an answer: calls that the filter stops (sandbox.h's listener). Each costs us as much as it costs them, so
 * that an analysis which does nothing but ask for what is refused is answered more slowly, and not at the expense of everything else.
 */
#ifndef SUPERVISE_EAR_H
#define SUPERVISE_EAR_H

#include <stdbool.h>

#include "loop.h"

struct ear {
	int fd; /* -1: none, and nothing is done */
	/* One question. 1: it was refused, 0: not, negative: nobody is left who could ask. */
	int (*hear)(void *arg);
	void *arg;
	/* private */
	struct loop *loop;
	struct source *source, *timer;
	uint64_t since;
	int refused; /* since then */
};

/* For as long as the loop lives. */
int ear_open(struct ear *e, struct loop *loop, struct error *err);

#endif
