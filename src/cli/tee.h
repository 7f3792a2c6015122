/*
 * What a run shows, written by a thread of its own, so that a reader who has stopped reading (`| sleep 60`, Ctrl-S)
 * or gone away (`| head -1`) stops neither the time limit nor the record. One tee per destination: stdout and stderr
 * that are the same terminal or pipe share one, and what is shown keeps its order.
 *
 * The thread begins with the first thing to show. tee_open before the run; tee_write, tee_status, tee_say from the run's thread, none of which ever waits; tee_finish
 * after the commit. The queue is bounded: what does not fit is counted, not shown, and a note stands in its place.
 */
#ifndef CLI_TEE_H
#define CLI_TEE_H

#include <stdbool.h>
#include <stdint.h>

#include "error.h"

struct tee;

enum { TEE_QUEUE_MAX = 64 << 20 };

/* is_terminal: what is written is filtered (terminal.h), and there may be a status line. */
int tee_open(int fd, bool is_terminal, size_t queue_max, struct tee **ret, struct error *err);

/* What comes is what another terminal shows (passage.h), and nothing of it is dropped: the descriptor is readable as long as
 * there is room for more, and who writes looks at it first. Before anything is written; it is the tee's.
 * is_changed: see screen.h. */
int tee_show_terminal(struct tee *t, volatile bool *is_changed);

/* The analysis's bytes of one of its streams. */
void tee_write(struct tee *t, int stream, const char *data, size_t size);
/* Our own words: neither filtered nor dropped. A line that the analysis left open is ended first. */
void tee_say(struct tee *t, const char *text);
/* The line below the output, on a terminal only; NULL or "" takes it away. It is never part of a line of output. */
void tee_status(struct tee *t, const char *text);

uint64_t tee_dropped(struct tee *t);

/* Waits until everything is written, or cancel_fd (-1: none) is readable, or the reader is gone; then frees t. Returns
 * 0, or -errno if the destination failed otherwise than by going away: a full disk, for one. */
int tee_finish(struct tee *t, int cancel_fd);

#endif
