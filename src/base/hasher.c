#include "hasher.h"
#include "process.h"
#include "crew.h"

#include <stdbool.h>

enum { ROOMS = 4, SHORT = 4 * 1024 * 1024 };

struct hasher {
	struct digest digest;
	bool has_thread;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t turn;
	bool closing;
	size_t fed, hashed; /* pieces so far */
	size_t sizes[ROOMS];
	char rooms[ROOMS][HASHER_ROOM];
};

static void *hasher_main(void *arg)
{
	struct hasher *h = arg;

	pthread_mutex_lock(&h->lock);
	for (;;) {
		size_t i = h->hashed % ROOMS;

		while (h->hashed == h->fed && !h->closing)
			pthread_cond_wait(&h->turn, &h->lock);
		if (h->hashed == h->fed)
			break;
		pthread_mutex_unlock(&h->lock);
		digest_update(&h->digest, h->rooms[i], h->sizes[i]);
		pthread_mutex_lock(&h->lock);
		h->hashed++;
		pthread_cond_signal(&h->turn);
	}
	pthread_mutex_unlock(&h->lock);
	return NULL;
}

static void start(struct hasher *h)
{
	pthread_mutex_init(&h->lock, NULL);
	pthread_cond_init(&h->turn, NULL);
	h->has_thread = thread_start(&h->thread, 0, hasher_main, h) == 0;
}

/* Nothing is waited for any more: what was fed is hashed. */
static void stop(struct hasher *h)
{
	if (!h->has_thread)
		return;
	pthread_mutex_lock(&h->lock);
	h->closing = true;
	pthread_cond_signal(&h->turn);
	pthread_mutex_unlock(&h->lock);
	pthread_join(h->thread, NULL);
	pthread_cond_destroy(&h->turn);
	pthread_mutex_destroy(&h->lock);
	h->has_thread = false;
}

struct hasher *hasher_new(uint64_t size)
{
	struct hasher *h = malloc(sizeof *h);

	if (!h)
		return NULL;
	h->has_thread = h->closing = false;
	h->fed = h->hashed = 0;
	digest_init(&h->digest);
	if (size > SHORT && crew_cpus() > 1)
		start(h);
	return h;
}

void hasher_free(struct hasher *h)
{
	if (!h)
		return;
	stop(h);
	free(h);
}

char *hasher_room(struct hasher *h)
{
	if (h->has_thread) {
		pthread_mutex_lock(&h->lock);
		while (h->fed - h->hashed == ROOMS)
			pthread_cond_wait(&h->turn, &h->lock);
		pthread_mutex_unlock(&h->lock);
	}
	return h->rooms[h->fed % ROOMS];
}

void hasher_feed(struct hasher *h, size_t size)
{
	size_t i = h->fed % ROOMS;

	if (!h->has_thread) {
		digest_update(&h->digest, h->rooms[i], size);
		h->hashed = ++h->fed;
		return;
	}
	pthread_mutex_lock(&h->lock);
	h->sizes[i] = size;
	h->fed++;
	pthread_cond_signal(&h->turn);
	pthread_mutex_unlock(&h->lock);
}

void hasher_final(struct hasher *h, uint8_t out[DIGEST_SIZE])
{
	stop(h);
	digest_final(&h->digest, out);
}
