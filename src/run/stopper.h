/*
 * How whoever may see the state directory ends a run that is going on here: `cancel` of what `run` or the library started. A FIFO
 * beside the record, in a directory that is nobody else's and that no analysis is shown, and whose reader is the supervisor: what is
 * written there is as if it came on the caller's cancel_fd. No signal is sent, so that no pid can be the wrong one, and a process
 * that hosts many analyses loses only this one.
 *
 * The supervisor: stopper_make() when the workspace is its own, closed when all is cleaned up; a dead one has closed it.
 * The other side: run_stop_tell(), run_stop_wait(), run_stop_done() (hood.h). A crash of either leaves at most a FIFO that nobody
 * reads, which goes with its folder.
 */
#ifndef RUN_STOPPER_H
#define RUN_STOPPER_H

#include "private.h"

/* A descriptor to be watched like cancel_fd, never at its end; negative. */
int stopper_make(int run_fd, struct error *err);

#endif
