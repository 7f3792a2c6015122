#include "tally.h"
#include "process.h"

#include <string.h>
#include <time.h>

#include "clock.h"
#include "queue.h"

/* Not more often than this, and a twentieth of the time at most. */
static const uint64_t PERIOD_NS = 15 * NSEC_PER_SEC;
enum { REST_TIMES = 20, FINISH_MAX_S = 2 };

struct tally {
	struct hood *hood;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t turn; /* of the monotonic clock */
	bool closing;
	unsigned wanted, done; /* how often it was asked for, and answered */
	bool is_known;
	uint64_t counts[JOB_STATES];
	int64_t at;
};

static struct timespec in_future(uint64_t ns)
{
	uint64_t at = clock_now() + ns;

	return (struct timespec){.tv_sec = (time_t)(at / NSEC_PER_SEC), .tv_nsec = (long)(at % NSEC_PER_SEC)};
}

static bool is_closing(struct tally *t)
{
	bool closing;

	pthread_mutex_lock(&t->lock);
	closing = t->closing;
	pthread_mutex_unlock(&t->lock);
	return closing;
}

/* 0: whole. */
static int count(struct tally *t, uint64_t ret[JOB_STATES])
{
	struct error ignored = ERROR_INIT;
	struct ledger *l;
	char after[ID_ROOM] = "";
	int r;

	memset(ret, 0, JOB_STATES * sizeof ret[0]);
	if (hood_ledger(t->hood, 0, &l, &ignored) < 0)
		return -1;
	do
		r = ledger_queue_count_some(l, after, ret, &ignored);
	while (r > 0 && !is_closing(t));
	return r;
}

static void *tally_main(void *arg)
{
	struct tally *t = arg;

	pthread_mutex_lock(&t->lock);
	while (!t->closing) {
		unsigned wanted = t->wanted;
		uint64_t counts[JOB_STATES], begun = clock_now(), rest;
		int64_t at = clock_utc();
		struct timespec until;
		int r;

		pthread_mutex_unlock(&t->lock);
		r = count(t, counts);
		rest = REST_TIMES * (clock_now() - begun);
		until = in_future(rest > PERIOD_NS ? rest : PERIOD_NS);
		pthread_mutex_lock(&t->lock);
		t->is_known = r == 0;
		memcpy(t->counts, counts, sizeof t->counts);
		t->at = at;
		t->done = wanted;
		pthread_cond_broadcast(&t->turn);
		while (!t->closing && t->wanted == wanted &&
		       pthread_cond_timedwait(&t->turn, &t->lock, &until) == 0)
			;
	}
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

static int tally_start(struct tally *t, struct error *err)
{
	pthread_condattr_t monotonic;
	int r;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->turn, &monotonic);
	pthread_condattr_destroy(&monotonic);
	r = thread_start(&t->thread, 0, tally_main, t);
	return r == 0 ? 0 : error_system(err, -r, "cannot start the thread that counts the queue");
}

int tally_open(const struct hood_options *o, struct tally **ret, struct error *err)
{
	struct tally *t = calloc(1, sizeof *t);

	if (!t)
		return error_memory(err);
	if (hood_open(o, &t->hood, err) < 0 || tally_start(t, err) < 0) {
		hood_close(t->hood);
		free(t);
		return -1;
	}
	*ret = t;
	return 0;
}

struct tally *tally_close(struct tally *t)
{
	if (!t)
		return NULL;
	pthread_mutex_lock(&t->lock);
	t->closing = true;
	pthread_cond_broadcast(&t->turn);
	pthread_mutex_unlock(&t->lock);
	pthread_join(t->thread, NULL);
	pthread_cond_destroy(&t->turn);
	pthread_mutex_destroy(&t->lock);
	hood_close(t->hood);
	free(t);
	return NULL;
}

bool tally_read(struct tally *t, uint64_t ret[JOB_STATES], int64_t *ret_at)
{
	bool is_known;

	pthread_mutex_lock(&t->lock);
	is_known = t->is_known;
	memcpy(ret, t->counts, sizeof t->counts);
	*ret_at = t->at;
	pthread_mutex_unlock(&t->lock);
	return is_known;
}

void tally_finish(struct tally *t)
{
	struct timespec until = in_future(FINISH_MAX_S * NSEC_PER_SEC);
	unsigned wanted;

	pthread_mutex_lock(&t->lock);
	wanted = ++t->wanted;
	pthread_cond_broadcast(&t->turn);
	while (t->done != wanted && pthread_cond_timedwait(&t->turn, &t->lock, &until) == 0)
		;
	pthread_mutex_unlock(&t->lock);
}
