/*
 * How much of what is in the queue, for the metrics: counted by a thread of its own over a connection of its own, part by part,
 * since counting reads all of the queue and the heartbeat must not wait for that. The longer it takes, the rarer it is done.
 *
 * tally_open, tally_read any time, tally_finish for one last count when nothing runs any more, tally_close.
 */
#ifndef QUEUE_TALLY_H
#define QUEUE_TALLY_H

#include "hood.h"

struct tally;

int tally_open(const struct hood_options *o, struct tally **ret, struct error *err);
struct tally *tally_close(struct tally *t); /* returns NULL */
/* The latest, and when it was begun (UTC ns). False: none yet, or the ledger did not answer. Waits for nothing. */
bool tally_read(struct tally *t, uint64_t ret[JOB_STATES], int64_t *ret_at);
/* Waits for a count that begins now, two seconds at most. */
void tally_finish(struct tally *t);

#endif
