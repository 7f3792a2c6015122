/*
 * As much of PostgreSQL's protocol as one statement takes, so that neither the attacker nor the judge needs libpq.
 */
#ifndef ATTACK_PGWIRE_H
#define ATTACK_PGWIRE_H

#include <stddef.h>

#include "dial.h"

/* Connects as `owner` to the database `postgres`, without a password, and executes one statement. The first column of
 * the first row goes to `first` where that is given. 0, -errno, or -EPROTO if the server said no. */
int pgwire_execute(const union address *to, socklen_t size, const char *sql, char *first, size_t room);

#endif
