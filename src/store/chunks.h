/*
 * The object store inside a PostgreSQL ledger, for hosts that share no file system: a content too large for a row, in chunks
 * of 256 KiB.
 *
 * chunks_put before the transaction that will refer to the contents, chunks_hold within it, chunks_copy at any time after.
 * A content is put by one transaction, whole or not at all: a crash leaves at most contents that nobody refers to, which
 * chunks_sweep removes once they are CHUNKS_GRACE_S old. It takes one from under a commit that is slower than that, too:
 * chunks_hold tells, and it is put again. Of two who put the same at once, the second waits, and finds it done.
 *
 * Neither side ever holds more than a few MiB, and no statement waits for a file or a pipe of ours for longer than it
 * takes to read 256 KiB.
 */
#ifndef STORE_CHUNKS_H
#define STORE_CHUNKS_H

#include "store.h"

enum { CHUNKS_GRACE_S = 600 };

struct chunks_content {
	const uint8_t *sha256;
	uint64_t size;
	void *content; /* the caller's */
	bool is_new;   /* private */
};
struct chunks_source {
	void *arg;
	/* The bytes, to be read from 0; the store closes the descriptor. */
	int (*open)(void *arg, void *content, struct error *err);
	/* They are not what their digest says: an error. */
	int (*changed)(void *arg, void *content, struct error *err);
};

/* Puts those that are not there. In the order of their digests, distinct. */
int chunks_put(struct ledger *l, struct chunks_content *list, size_t n, const struct chunks_source *source,
	       struct error *err);
/* Keeps them until the end of the transaction. ERROR_SWEPT: one is gone, put it again. */
int chunks_hold(struct ledger *l, const struct chunks_content *list, size_t n, struct error *err);
/* Writes one to fd (-1: nowhere), verifying it: 1, 0 if it is not there. */
int chunks_copy(struct ledger *l, const uint8_t sha256[DIGEST_SIZE], uint64_t size, int fd,
		struct error *err);
int chunks_sweep(struct ledger *l, uint64_t *ret_removed, struct error *err);
/* A row for each that the next sweep would remove: its digest. */
int chunks_orphans(struct ledger *l, row_fn fn, void *arg, struct error *err);

#endif
