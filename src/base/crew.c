#include "crew.h"
#include "process.h"

#include <sched.h>
#include <stdbool.h>

struct crew {
	pthread_mutex_t lock;
	pthread_cond_t turn; /* there is work, or nothing more will come */
	pthread_cond_t done; /* the last piece is */
	pthread_t threads[CREW_MAX - 1];
	int wanted, started; /* threads */
	bool closing;
	/* The work in hand. */
	crew_fn fn;
	void *arg;
	size_t count, grain, next;
	size_t busy; /* hands that have a piece */
};

int crew_cpus(void)
{
	cpu_set_t set;

	/* More than fit into a set: enough. */
	if (sched_getaffinity(0, sizeof set, &set) < 0)
		return CREW_MAX;
	return CPU_COUNT(&set) > 0 ? CPU_COUNT(&set) : 1;
}

struct crew *crew_new(void)
{
	int cpus = crew_cpus();
	struct crew *c = cpus > 1 ? calloc(1, sizeof *c) : NULL;

	if (!c)
		return NULL;
	c->wanted = (cpus < CREW_MAX ? cpus : CREW_MAX) - 1;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->turn, NULL);
	pthread_cond_init(&c->done, NULL);
	return c;
}

void crew_free(struct crew *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->closing = true;
	pthread_cond_broadcast(&c->turn);
	pthread_mutex_unlock(&c->lock);
	for (int i = 0; i < c->started; i++)
		pthread_join(c->threads[i], NULL);
	pthread_cond_destroy(&c->done);
	pthread_cond_destroy(&c->turn);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

/* Takes piece after piece until there is none. The lock is held, but for the work itself. */
static void take_pieces(struct crew *c)
{
	while (c->next < c->count) {
		size_t from = c->next, left = c->count - from;
		size_t to = from + (left < c->grain ? left : c->grain);

		c->next = to;
		c->busy++;
		pthread_mutex_unlock(&c->lock);
		c->fn(c->arg, from, to);
		pthread_mutex_lock(&c->lock);
		c->busy--;
	}
	if (c->busy == 0)
		pthread_cond_signal(&c->done);
}

static void *crew_main(void *arg)
{
	struct crew *c = arg;

	pthread_mutex_lock(&c->lock);
	while (!c->closing) {
		if (c->next < c->count)
			take_pieces(c);
		else
			pthread_cond_wait(&c->turn, &c->lock);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

/* As many as can be had: the caller does the rest. */
static void start(struct crew *c)
{
	while (c->started < c->wanted && thread_start(&c->threads[c->started], 0, crew_main, c) == 0)
		c->started++;
	c->wanted = c->started;
}

void crew_each(struct crew *c, size_t count, size_t grain, crew_fn fn, void *arg)
{
	if (!c || count <= grain) {
		if (count)
			fn(arg, 0, count);
		return;
	}
	if (c->started < c->wanted)
		start(c);
	pthread_mutex_lock(&c->lock);
	c->fn = fn;
	c->arg = arg;
	c->next = 0;
	c->count = count;
	c->grain = grain;
	pthread_cond_broadcast(&c->turn);
	take_pieces(c);
	while (c->busy > 0)
		pthread_cond_wait(&c->done, &c->lock);
	pthread_mutex_unlock(&c->lock);
}
