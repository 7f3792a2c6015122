/*
 * The low-level functions of libcrypto, not EVP: EVP loads providers and configuration, which costs a
 * millisecond at the start of every run and gains nothing for one fixed algorithm.
 */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "digest.h"

void digest_init(struct digest *d)
{
	SHA256_Init(&d->ctx);
}

void digest_update(struct digest *d, const void *data, size_t size)
{
	SHA256_Update(&d->ctx, data, size);
}

void digest_final(struct digest *d, uint8_t out[DIGEST_SIZE])
{
	SHA256_Final(out, &d->ctx);
}

void digest_bytes(const void *data, size_t size, uint8_t out[DIGEST_SIZE])
{
	struct digest d;

	digest_init(&d);
	digest_update(&d, data, size);
	digest_final(&d, out);
}
