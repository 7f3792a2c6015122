/*
 * Starting a supervisor (the hood, or a platform without one) the way a careless one is started: from a terminal,
 * with secrets in its environment and keyring, and with descriptors that nobody closed. The process in between, the
 * launcher, is what a shell would be: it shares the process group and owns the terminal, and reports what the
 * analysis did to either.
 */
#ifndef ATTACK_LAUNCH_H
#define ATTACK_LAUNCH_H

#include "stage.h"

/* Runs argv to its end, or to patience_ms, calling the attack's during() hook; fills output, errors, status, hung. */
int launch(struct stage *s, char *const argv[], int patience_ms);

/* Starts argv and leaves it running; its stdout goes to *ret_output. Returns the pid or -errno. */
pid_t launch_beside(struct platform *p, char *const argv[], int *ret_output);

#endif
