/*
 * Analyses on the nodes of a cluster. One thread talks to Slurm and to the ledger (dispatch.h), and may have to wait for either; the
 * worker only leaves orders for it, and takes what it tells. What dead workers left on this host is finished by a local engine, which
 * runs nothing else.
 */
#include "engine.h"
#include "process.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>

#include "clock.h"
#include "dispatch.h"
#include "dispatcher.h"

/* Those that are claimed one after the other are one array, if they come within this; and none waits longer than that. */
static const uint64_t gather_ns = 30 * NSEC_PER_MSEC;
static const uint64_t gather_max_ns = 300 * NSEC_PER_MSEC;

struct order {
	struct order *next;
	bool is_start;
	struct job job; /* start */
	char token[TOKEN_SIZE];
	enum engine_cancel how;
};

struct told {
	struct told *next;
	struct engine_end end;
};

struct remote {
	struct engine engine;
	struct engine *local; /* for recovery */
	struct dispatcher dispatcher;
	struct dispatch dispatch;
	int event; /* something was told */
	pthread_t thread;
	bool started;

	pthread_mutex_t lock;
	pthread_cond_t turn;
	struct order *orders, **orders_end;
	struct told *told, **told_end;
	uint64_t first_at, last_at; /* clock_now() of the orders that wait */
	bool is_poked, closing;
};

static struct remote *remote_of(struct engine *e)
{
	return (struct remote *)(void *)e;
}

static void order_free(struct order *o)
{
	job_done(&o->job);
	free(o);
}

/* ---- in the thread that talks ---- */

static void tell(void *arg, struct engine_end *end)
{
	struct remote *s = arg;
	struct told *t = calloc(1, sizeof *t);
	static const uint64_t one = 1;

	/* Out of memory: the worker never hears of it, and its lease tells the rest. */
	if (!t) {
		engine_end_done(end);
		return;
	}
	t->end = *end;
	pthread_mutex_lock(&s->lock);
	*s->told_end = t;
	s->told_end = &t->next;
	(void)!write(s->event, &one, sizeof one);
	pthread_mutex_unlock(&s->lock);
}

static void tell_failed(struct remote *s, const char *id, const char *token, const struct error *why)
{
	struct engine_end end = {.outcome = OUTCOME_BUSY, .why = *why};

	attempt_init(&end.attempt);
	snprintf(end.id, sizeof end.id, "%s", id);
	snprintf(end.token, sizeof end.token, "%s", token);
	tell(s, &end);
}

static void obey(struct remote *s, struct order *o)
{
	struct error err = ERROR_INIT;

	if (!o->is_start) {
		dispatch_cancel(&s->dispatch, o->token, o->how);
		return;
	}
	if (dispatch_start(&s->dispatch, &o->job, &err) < 0)
		tell_failed(s, o->job.id, o->job.token, &err);
}

/* Threads cannot wait by the clock that goes on while a host sleeps: a minute at most, and it is looked at again. */
static void wait_until(struct remote *s, uint64_t at)
{
	uint64_t now = clock_now(), left = at > now ? at - now : 0;
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	left = (left < 60 * NSEC_PER_SEC ? left : 60 * NSEC_PER_SEC) + (uint64_t)until.tv_nsec;
	until.tv_sec += (time_t)(left / NSEC_PER_SEC);
	until.tv_nsec = (long)(left % NSEC_PER_SEC);
	pthread_cond_timedwait(&s->turn, &s->lock, &until);
}

/* Orders wait for others that come right after them. */
static uint64_t due(const struct remote *s)
{
	uint64_t at = dispatch_due(&s->dispatch);

	if (s->is_poked)
		return 0;
	if (s->orders) {
		uint64_t quiet = s->last_at + gather_ns, most = s->first_at + gather_max_ns;
		uint64_t gathered = quiet < most ? quiet : most;

		at = gathered < at ? gathered : at;
	}
	return at;
}

static void *talk(void *arg)
{
	struct remote *s = arg;

	pthread_mutex_lock(&s->lock);
	for (;;) {
		struct order *orders;
		uint64_t at;

		while (!s->closing && (at = due(s)) > clock_now())
			wait_until(s, at);
		if (s->closing)
			break;
		orders = s->orders;
		s->orders = NULL;
		s->orders_end = &s->orders;
		s->dispatch.is_poked = s->dispatch.is_poked || s->is_poked;
		s->is_poked = false;
		pthread_mutex_unlock(&s->lock);
		while (orders) {
			struct order *next = orders->next;

			obey(s, orders);
			order_free(orders);
			orders = next;
		}
		dispatch_turn(&s->dispatch);
		pthread_mutex_lock(&s->lock);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* ---- in the worker's thread ---- */

static void give(struct remote *s, struct order *o)
{
	pthread_mutex_lock(&s->lock);
	s->last_at = clock_now();
	if (!s->orders)
		s->first_at = s->last_at;
	*s->orders_end = o;
	s->orders_end = &o->next;
	pthread_cond_signal(&s->turn);
	pthread_mutex_unlock(&s->lock);
}

static int slurm_start(struct engine *e, struct job *job, struct error *err)
{
	struct order *o = calloc(1, sizeof *o);

	if (!o)
		return error_memory(err);
	o->is_start = true;
	o->job = *job;
	*job = (struct job){0};
	give(remote_of(e), o);
	return 0;
}

static void slurm_cancel_one(struct engine *e, const char *token, enum engine_cancel how)
{
	struct order *o = calloc(1, sizeof *o);

	if (!o)
		return;
	o->how = how;
	snprintf(o->token, sizeof o->token, "%s", token);
	give(remote_of(e), o);
}

static void slurm_poke(struct engine *e)
{
	struct remote *s = remote_of(e);

	pthread_mutex_lock(&s->lock);
	s->is_poked = true;
	pthread_cond_signal(&s->turn);
	pthread_mutex_unlock(&s->lock);
}

static int talk_start(struct remote *s, struct error *err)
{
	int r = thread_start(&s->thread, 0, talk, s);

	if (r < 0)
		return error_system(err, -r, "cannot start a thread");
	s->started = true;
	return 0;
}

/* The thread begins when nobody else has its list any more. */
static int slurm_adopted(struct engine *e, void (*fn)(void *arg, const char *id, const char *token),
			 void *arg, struct error *err)
{
	struct remote *s = remote_of(e);

	for (size_t i = 0; i < s->dispatch.n; i++)
		fn(arg, s->dispatch.entries[i]->id, s->dispatch.entries[i]->token);
	return talk_start(s, err);
}

static int slurm_recover(struct engine *e, bool keeps_house, struct error *err)
{
	return engine_recover(remote_of(e)->local, keeps_house, err);
}

static int slurm_reap(struct engine *e, struct engine_end *ret)
{
	struct remote *s = remote_of(e);
	struct told *t;
	uint64_t n;

	pthread_mutex_lock(&s->lock);
	t = s->told;
	if (t) {
		s->told = t->next;
		if (!s->told)
			s->told_end = &s->told;
	} else {
		(void)!read(s->event, &n, sizeof n);
	}
	pthread_mutex_unlock(&s->lock);
	if (!t)
		return engine_reap(s->local, ret);
	*ret = t->end;
	free(t);
	return 1;
}

static void slurm_close_engine(struct engine *e)
{
	struct remote *s = remote_of(e);

	pthread_mutex_lock(&s->lock);
	s->closing = true;
	pthread_cond_broadcast(&s->turn);
	pthread_mutex_unlock(&s->lock);
	if (s->started)
		pthread_join(s->thread, NULL);
	engine_close(s->local);
	while (s->orders) {
		struct order *next = s->orders->next;

		order_free(s->orders);
		s->orders = next;
	}
	while (s->told) {
		struct told *next = s->told->next;

		engine_end_done(&s->told->end);
		free(s->told);
		s->told = next;
	}
	dispatch_done(&s->dispatch);
	slurm_close(s->dispatch.slurm);
	hood_close(s->dispatch.hood);
	dispatcher_close(&s->dispatcher);
	fd_close(s->event);
	fd_close(s->engine.fd);
	pthread_cond_destroy(&s->turn);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static const struct engine_ops slurm_ops = {
	.start = slurm_start,
	.cancel = slurm_cancel_one,
	.recover = slurm_recover,
	.reap = slurm_reap,
	.close = slurm_close_engine,
	.look = slurm_poke,
	.adopted = slurm_adopted,
};

/* ---- beginning ---- */

/* Readable when either has something to tell. */
static int watch(struct remote *s, int fd, struct error *err)
{
	struct epoll_event event = {.events = EPOLLIN};

	return epoll_ctl(s->engine.fd, EPOLL_CTL_ADD, fd, &event) < 0
		       ? error_system(err, errno, "cannot watch an engine")
		       : 0;
}

static int remote_open(struct remote *s, const struct hood_options *options, int slots, uint64_t lease_ns,
		       struct error *err)
{
	struct hood_options own = *options;
	struct dispatch *d = &s->dispatch;

	own.lending = NULL;
	if (s->engine.fd < 0 || s->event < 0)
		return error_system(err, errno, "cannot make an eventfd");
	if (hood_open(&own, &d->hood, err) < 0 ||
	    slurm_open(d->hood, options->config_file, lease_ns, &d->slurm, err) < 0 ||
	    dispatcher_open(hood_state_dir(d->hood), "slurm", d->slurm->cluster, &s->dispatcher, err) < 0 ||
	    engine_local_open(&own, 1, &s->local, err) < 0 || watch(s, s->event, err) < 0 ||
	    watch(s, s->local->fd, err) < 0)
		return -1;
	s->engine.slots = slots ? slots : d->slurm->jobs;
	s->engine.worker = d->worker = s->dispatcher.name;
	d->tell = tell;
	d->arg = s;
	return dispatch_adopt(d, err);
}

int engine_slurm_open(const struct hood_options *options, int slots, uint64_t lease_ns, struct engine **ret,
		      struct error *err)
{
	struct remote *s = calloc(1, sizeof *s);
	pthread_condattr_t monotonic;

	if (!s)
		return error_memory(err);
	s->engine = (struct engine){.ops = &slurm_ops, .name = "slurm", .hands_over = true, .place = "Slurm"};
	s->engine.fd = epoll_create1(EPOLL_CLOEXEC);
	s->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	s->dispatcher.fd = -1;
	s->orders_end = &s->orders;
	s->told_end = &s->told;
	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&s->turn, &monotonic);
	pthread_condattr_destroy(&monotonic);
	if (remote_open(s, options, slots, lease_ns, err) < 0) {
		slurm_close_engine(&s->engine);
		return -1;
	}
	*ret = &s->engine;
	return 0;
}
