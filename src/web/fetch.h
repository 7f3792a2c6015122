/*
 * The content of an output: bytes of a stranger, good only once their digest was seen to be right.
 */
#ifndef WEB_FETCH_H
#define WEB_FETCH_H

#include "buffer.h"
#include "ledger.h"

/* By its path; NULL: there is none. */
const struct output *fetch_find(const struct manifest *m, const char *path);
/* In a file without a name, at its beginning. */
int fetch_open(struct ledger *l, const struct output *o, int *ret_fd, struct error *err);
/* All of it, into an empty buffer; refused if it is more than max. */
int fetch_read(struct ledger *l, const struct output *o, size_t max, struct buffer *ret, struct error *err);

#endif
