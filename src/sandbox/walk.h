/* Is there a socket or a FIFO below fd? Where no overlay can be laid over an input, it is bound, and then these would
 * be doors: 0 if there is none, ERROR_REFUSED naming the first one otherwise. Private to the sandbox. */
#ifndef SANDBOX_WALK_H
#define SANDBOX_WALK_H

#include "error.h"

int walk_for_doors(const char *path, struct error *err);

#endif
