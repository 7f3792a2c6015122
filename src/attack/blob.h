/* The attacker's program, as bytes (the build makes blob.S). */
#ifndef ATTACK_BLOB_H
#define ATTACK_BLOB_H

#include <stddef.h>

extern const char attacker_blob[];
extern const size_t attacker_blob_size;

#endif
