/*
 * A second hand: a thread that does one thing while its owner does another. hand_do() gives it a task, and awaits the one before;
 * after hand_await() the last is done, and all that it wrote is seen. The thread is started by the first task, takes no signals, and
 * acts with the rights that its owner had then.
 *
 * NULL is no hand: its tasks are done at once, by the caller.
 */
#ifndef BASE_HAND_H
#define BASE_HAND_H

#include "macros.h"

struct hand;
struct hand *hand_new(void);		/* NULL, for want of memory or of a second CPU */
struct hand *hand_free(struct hand *h); /* awaits it; returns NULL */

void hand_do(struct hand *h, void (*task)(void *arg), void *arg);
void hand_await(struct hand *h);

#endif
