#include "lookup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "process.h"

static uint64_t rotated(uint64_t x, int by)
{
	return x << by | x >> (64 - by);
}

static void round_of(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = rotated(v[1], 13) ^ v[0];
	v[0] = rotated(v[0], 32);
	v[2] += v[3];
	v[3] = rotated(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = rotated(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = rotated(v[1], 17) ^ v[2];
	v[2] = rotated(v[2], 32);
}

/* SipHash-1-3. */
static uint32_t hash_of(const struct lookup *n, const char *name)
{
	uint64_t v[4] = {n->key[0] ^ 0x736f6d6570736575, n->key[1] ^ 0x646f72616e646f6d,
			 n->key[0] ^ 0x6c7967656e657261, n->key[1] ^ 0x7465646279746573};
	size_t size = strlen(name), left = size;

	for (;; name += 8, left -= 8) {
		uint64_t word = 0;

		memcpy(&word, name, left < 8 ? left : 8);
		if (left < 8)
			word |= (uint64_t)size << 56;
		v[3] ^= word;
		round_of(v);
		v[0] ^= word;
		if (left < 8)
			break;
	}
	v[2] ^= 0xff;
	for (int i = 0; i < 3; i++)
		round_of(v);
	v[0] ^= v[1] ^ v[2] ^ v[3];
	return (uint32_t)(v[0] ^ v[0] >> 32);
}

void lookup_done(struct lookup *n)
{
	free(n->slots);
	*n = (struct lookup){0};
}

static void put(struct lookup *n, struct lookup_slot slot)
{
	size_t i = slot.hash & (n->room - 1);

	while (n->slots[i].position)
		i = (i + 1) & (n->room - 1);
	n->slots[i] = slot;
}

static int grow(struct lookup *n)
{
	struct lookup more = *n;

	more.room = n->room ? 2 * n->room : 64;
	more.slots = calloc(more.room, sizeof *more.slots);
	if (!more.slots)
		return -ENOMEM;
	if (!n->room)
		(void)random_bytes(more.key, sizeof more.key);
	for (size_t i = 0; i < n->room; i++)
		if (n->slots[i].position)
			put(&more, n->slots[i]);
	free(n->slots);
	*n = more;
	return 0;
}

int lookup_add(struct lookup *n, const char *name, size_t position)
{
	if (position >= UINT32_MAX || (n->used >= n->room / 2 && grow(n) < 0))
		return -ENOMEM;
	put(n, (struct lookup_slot){hash_of(n, name), (uint32_t)position + 1});
	n->used++;
	return 0;
}

size_t lookup_find(const struct lookup *n, const char *name, lookup_same_fn same, const void *arg)
{
	uint32_t hash;

	if (!n->room)
		return SIZE_MAX;
	hash = hash_of(n, name);
	for (size_t i = hash & (n->room - 1); n->slots[i].position; i = (i + 1) & (n->room - 1))
		if (n->slots[i].hash == hash && same(arg, n->slots[i].position - 1, name))
			return n->slots[i].position - 1;
	return SIZE_MAX;
}
