/*
 * A few connections to one ledger for many handles: a worker has hundreds of analyses running, and each needs the ledger when
 * it begins and when it ends.
 *
 *     lending_open ──► ledger_open_lent, for each thread ──► … ──► ledger_close of all ──► lending_close
 *
 * A handle that was opened so is like any other, but has a connection only while it is in a transaction, or in a statement that is
 * by itself. If all are lent it waits for one: nobody keeps one for longer than a transaction takes, and nobody who has one waits for
 * another. What needs a session of its own (sweeping, listening to the bell, a backup) needs a handle of its own.
 */
#ifndef STORE_LENDING_H
#define STORE_LENDING_H

#include "error.h"

struct ledger;
struct lending;

enum { LENDING_MOST = 16 };

/* Nothing is connected yet. most: connections, at most LENDING_MOST. */
int lending_open(const char *url, int most, struct lending **ret, struct error *err);
struct lending *lending_close(struct lending *l); /* NULL is fine; returns NULL */

/* As ledger_open() with the URL that it lends of. */
int ledger_open_lent(struct lending *from, unsigned flags, struct ledger **ret, struct error *err);
/* One that has a connection of its own to the same ledger, and lives no longer than `with`, waits for those who are lent one as they do
 * for each other: in SQLite there is one writer at a time, and who is not told when he is done looks again after a while. */
void ledger_take_turns(struct ledger *l, struct lending *with);

#endif
