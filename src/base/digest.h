/*
 * SHA-256, as scientists check it with sha256sum. digest_init, digest_update …, digest_final.
 */
#ifndef BASE_DIGEST_H
#define BASE_DIGEST_H

#include <openssl/sha.h>
#include <stddef.h>
#include <stdint.h>

enum { DIGEST_SIZE = 32, DIGEST_TEXT_SIZE = 65 };

struct digest {
	SHA256_CTX ctx;
};

void digest_init(struct digest *d);
void digest_update(struct digest *d, const void *data, size_t size);
void digest_final(struct digest *d, uint8_t out[DIGEST_SIZE]);
void digest_bytes(const void *data, size_t size, uint8_t out[DIGEST_SIZE]);

#endif
