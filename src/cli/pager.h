/*
 * A long answer on a terminal goes through the user's pager: $PAGER, else less. pager_open() before the first word on stdout,
 * pager_close() after the last, which waits until the reader has seen enough.
 */
#ifndef CLI_PAGER_H
#define CLI_PAGER_H

#include <stdbool.h>
#include <sys/types.h>

struct pager {
	pid_t pid; /* 0: none */
	int out;   /* what stdout was */
};

/* None: stdout stays as it is. So it does if the pager cannot be started. */
void pager_open(struct pager *p);
void pager_close(struct pager *p);

#endif
