/*
 * Spares for those who run one analysis after the other: a worker, a library. A thread of its own makes them while nobody waits:
 * one for each analysis that has begun, if another began a moment before; a lone one costs nothing. Who finds none starts as if
 * there were no stock.
 *
 * A spare that nobody wants for a second is thrown away, and the thread ends with the last of them, so that who is idle has neither
 * (and no child that its host could wait for); all of them are, at once, when something was mounted or unmounted where the thread lives: they hold no device busy, and no
 * analysis sees less or more than one that starts cold.
 *
 * Calls may come from any thread. In a forked child it is nobody's.
 */
#ifndef SANDBOX_STOCK_H
#define SANDBOX_STOCK_H

struct error;
struct likeness;
struct sandbox;
struct stock;

int stock_open(struct stock **ret, struct error *err);
struct stock *stock_close(struct stock *k); /* NULL is fine */

/* One like that, the caller's; NULL: there is none now. */
struct sandbox *stock_take(struct stock *k, const struct likeness *like);
/* An analysis like that has begun: another may follow. Takes the spec. */
void stock_order(struct stock *k, struct likeness *like);

#endif
