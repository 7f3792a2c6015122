/*
 * What a run has used so far, for whoever looks on: a small file beside the record that the supervisor writes in place, with each stage
 * and each sample. Nobody waits for it and nothing depends on it: what cannot be written is not shown. A reader may meet a write, and
 * then finds what makes no sense: he looks again.
 *
 * pulse_open when the workspace is ours, pulse_beat any number of times, pulse_close. The reader's side is in hood.h.
 */
#ifndef RUN_PULSE_H
#define RUN_PULSE_H

#include "private.h"

struct pulse_writer {
	int fd; /* -1: none */
	struct pulse last;
	int64_t rate_at_ms, rate_cpu_ms; /* where the CPU's use is counted from */
};

void pulse_init(struct pulse_writer *w);
void pulse_open(struct pulse_writer *w, int run_fd, const struct limits *l);
/* stage NULL: the same as before; sample NULL: no new numbers. */
void pulse_beat(struct pulse_writer *w, const char *stage, const struct sample *sample);
void pulse_close(struct pulse_writer *w);

/* 0, or negative: there is none, or it makes no sense. */
int pulse_read(int run_fd, struct pulse *ret);

#endif
