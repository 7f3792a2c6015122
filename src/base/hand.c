#include "hand.h"
#include "process.h"
#include "crew.h"

#include <stdbool.h>
#include <stdlib.h>

enum { STACK_SIZE = 512 * 1024 }; /* a task may open a database */

struct hand {
	pthread_mutex_t lock;
	pthread_cond_t turn; /* a task has come, or is done, or no more will come */
	pthread_t thread;
	bool has_thread, closing;
	void (*task)(void *arg);
	void *arg;
};

struct hand *hand_new(void)
{
	struct hand *h = crew_cpus() > 1 ? calloc(1, sizeof *h) : NULL;

	if (!h)
		return NULL;
	pthread_mutex_init(&h->lock, NULL);
	pthread_cond_init(&h->turn, NULL);
	return h;
}

static void *hand_main(void *arg)
{
	struct hand *h = arg;

	pthread_mutex_lock(&h->lock);
	for (;;) {
		while (!h->task && !h->closing)
			pthread_cond_wait(&h->turn, &h->lock);
		if (!h->task)
			break;
		pthread_mutex_unlock(&h->lock);
		h->task(h->arg);
		pthread_mutex_lock(&h->lock);
		h->task = NULL;
		pthread_cond_broadcast(&h->turn);
	}
	pthread_mutex_unlock(&h->lock);
	return NULL;
}

static bool hand_start(struct hand *h)
{
	if (!h->has_thread)
		h->has_thread = thread_start(&h->thread, STACK_SIZE, hand_main, h) == 0;
	return h->has_thread;
}

void hand_do(struct hand *h, void (*task)(void *arg), void *arg)
{
	if (!h || !hand_start(h)) {
		task(arg);
		return;
	}
	pthread_mutex_lock(&h->lock);
	while (h->task)
		pthread_cond_wait(&h->turn, &h->lock);
	h->task = task;
	h->arg = arg;
	pthread_cond_broadcast(&h->turn);
	pthread_mutex_unlock(&h->lock);
}

void hand_await(struct hand *h)
{
	if (!h || !h->has_thread)
		return;
	pthread_mutex_lock(&h->lock);
	while (h->task)
		pthread_cond_wait(&h->turn, &h->lock);
	pthread_mutex_unlock(&h->lock);
}

struct hand *hand_free(struct hand *h)
{
	if (!h)
		return NULL;
	if (h->has_thread) {
		pthread_mutex_lock(&h->lock);
		h->closing = true;
		pthread_cond_broadcast(&h->turn);
		pthread_mutex_unlock(&h->lock);
		pthread_join(h->thread, NULL);
	}
	pthread_cond_destroy(&h->turn);
	pthread_mutex_destroy(&h->lock);
	free(h);
	return NULL;
}
