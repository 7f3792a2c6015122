/*
 * The digest of a long stream, made by a thread of its own while the caller reads on and writes: hasher_new, then hasher_room and
 * hasher_feed for each piece, hasher_final, hasher_free. A room that was fed may be read, but not written, until hasher_room gives it
 * out again.
 */
#ifndef BASE_HASHER_H
#define BASE_HASHER_H

#include "digest.h"
#include "macros.h"

enum { HASHER_ROOM = 256 * 1024 };

struct hasher;
/* A stream of about so many bytes: a short one is hashed as it is fed, and so is one for which no thread can be had. NULL: memory is
 * out. */
struct hasher *hasher_new(uint64_t size);
void hasher_free(struct hasher *h);
DEFINE_CLEANUP(struct hasher *, hasher_free);
#define _cleanup_hasher_ _cleanup_(hasher_freep)

/* HASHER_ROOM bytes for the next piece. */
char *hasher_room(struct hasher *h);
/* What lies in the first size bytes of that room. */
void hasher_feed(struct hasher *h, size_t size);
void hasher_final(struct hasher *h, uint8_t out[DIGEST_SIZE]);

#endif
