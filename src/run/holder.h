/*
 * A disk of its own goes with the last descriptor that is open on it. Where what lies on it can be brought nowhere, since
 * everything else is full, a process that does nothing holds one until somebody has finished the story. It is no child of
 * ours; it ends with holder_end(), or with the machine.
 */
#ifndef RUN_HOLDER_H
#define RUN_HOLDER_H

#include "error.h"
#include "process.h"

/* fd: a directory; it stays the caller's. */
int holder_start(int fd, struct process_id *ret, struct error *err);
/* 1: the directory; 0: the holder is gone, and all with it. */
int holder_open(const struct process_id *holder, int *ret_fd, struct error *err);
void holder_end(const struct process_id *holder); /* pid 0 is fine */

#endif
