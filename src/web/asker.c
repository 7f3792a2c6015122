#include "asker.h"
#include "process.h"

#include <stdlib.h>

struct asker {
	struct askers *all;
	struct hood *hood;
	pthread_t thread;
};

struct askers {
	pthread_mutex_t lock;
	pthread_cond_t turn;
	struct errand *first, **end;
	bool closing;
	struct asker *list;
	size_t n, n_running;
};

static struct errand *next_errand(struct askers *all, bool *ret_closing)
{
	struct errand *e;

	pthread_mutex_lock(&all->lock);
	while (!all->first && !all->closing)
		pthread_cond_wait(&all->turn, &all->lock);
	e = all->first;
	if (e) {
		all->first = e->next;
		if (!all->first)
			all->end = &all->first;
	}
	*ret_closing = all->closing;
	pthread_mutex_unlock(&all->lock);
	return e;
}

static void *ask(void *arg)
{
	struct asker *a = arg;
	struct errand *e;
	bool closing;

	while ((e = next_errand(a->all, &closing))) {
		hood_ledger_renew(a->hood);
		e->work(e, closing ? NULL : a->hood);
	}
	return NULL;
}

static int asker_start(struct asker *a, struct error *err)
{
	int r = thread_start(&a->thread, 0, ask, a);

	return r < 0 ? error_system(err, -r, "cannot start a thread") : 0;
}

static int open_all(struct askers *all, const struct hood_options *options, size_t n, struct error *err)
{
	all->list = calloc(n, sizeof *all->list);
	if (!all->list)
		return error_memory(err);
	for (; all->n < n; all->n++) {
		struct asker *a = &all->list[all->n];

		a->all = all;
		if (hood_open(options, &a->hood, err) < 0)
			return -1;
	}
	for (; all->n_running < n; all->n_running++)
		if (asker_start(&all->list[all->n_running], err) < 0)
			return -1;
	return 0;
}

int askers_open(const struct hood_options *options, size_t n, struct askers **ret, struct error *err)
{
	struct askers *all = calloc(1, sizeof *all);

	if (!all)
		return error_memory(err);
	pthread_mutex_init(&all->lock, NULL);
	pthread_cond_init(&all->turn, NULL);
	all->end = &all->first;
	if (open_all(all, options, n, err) < 0) {
		askers_close(all);
		return -1;
	}
	*ret = all;
	return 0;
}

void askers_give(struct askers *a, struct errand *e)
{
	e->next = NULL;
	pthread_mutex_lock(&a->lock);
	*a->end = e;
	a->end = &e->next;
	pthread_cond_signal(&a->turn);
	pthread_mutex_unlock(&a->lock);
}

struct askers *askers_close(struct askers *a)
{
	if (!a)
		return NULL;
	pthread_mutex_lock(&a->lock);
	a->closing = true;
	pthread_cond_broadcast(&a->turn);
	pthread_mutex_unlock(&a->lock);
	for (size_t i = 0; i < a->n_running; i++)
		pthread_join(a->list[i].thread, NULL);
	for (size_t i = 0; i < a->n; i++)
		hood_close(a->list[i].hood);
	pthread_cond_destroy(&a->turn);
	pthread_mutex_destroy(&a->lock);
	free(a->list);
	free(a);
	return NULL;
}
