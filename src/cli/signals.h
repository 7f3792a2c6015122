/*
 * SIGINT, SIGTERM and SIGHUP as bytes in a pipe: how a run is told to stop. A signal that was ignored when we were
 * started (nohup, a job in the background of a script) stays ignored.
 */
#ifndef CLI_SIGNALS_H
#define CLI_SIGNALS_H

#include "error.h"

/* Once per process. *ret_fd becomes readable with one byte per signal, its number; it stays open until the end. */
int signals_open(int *ret_fd, struct error *err);

#endif
