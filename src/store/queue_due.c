/*
 * Waiting times that a wrong clock has written: what lies further ahead than it was ever put off. It is then due after the
 * longest that it can have been put off, by the clock of who looks, which nobody can set (struct lease_watch).
 */
#include "array.h"
#include "queue_private.h"

#include <string.h>

/* So many at a time: the others follow when these are queued. */
enum { DUES_MAX = 1000 };
/* A look passes by all that wait: the longer it took, the longer until the next. */
enum { REST_TIMES = 20 };
static const int64_t PAUSE_NS = NSEC_PER_SEC;

struct due {
	char id[ID_ROOM];
	int64_t at;
	uint64_t seen_ns; /* clock_now() of the first look */
	uint64_t wait_ns;
};

struct looking {
	const struct lease_watch *before;
	struct due *list;
	size_t count;
	int64_t now;
};

void dues_done(struct lease_watch *w)
{
	free(w->dues);
	w->dues = NULL;
	w->dues_count = 0;
	w->dues_look_ns = 0;
}

/* As long as it can have been put off: a retry has its worker still, what was handed back has none. */
static uint64_t longest(const struct value *tries, const struct value *worker)
{
	return worker->kind == VALUE_NULL ? JOB_OBSTACLE_MAX_NS
					  : job_back_off((int)value_to_integer(tries, 1) - 1);
}

static uint64_t seen_before(const struct lease_watch *w, const struct due *x)
{
	for (size_t i = 0; i < w->dues_count; i++)
		if (w->dues[i].at == x->at && strcmp(w->dues[i].id, x->id) == 0)
			return w->dues[i].seen_ns;
	return 0;
}

static int take_due(void *arg, const struct value *row, struct error *err)
{
	struct looking *k = arg;
	struct due *more, x = {.at = value_to_integer(&row[1], 0), .wait_ns = longest(&row[2], &row[3])};

	if (x.at <= k->now + (int64_t)x.wait_ns || k->count == DUES_MAX)
		return 0;
	more = ARRAY_ADD(k->list, k->count);
	if (!more)
		return error_memory(err);
	value_to_fixed(&row[0], x.id, sizeof x.id);
	x.seen_ns = seen_before(k->before, &x);
	if (!x.seen_ns)
		x.seen_ns = clock_now();
	*more = x;
	return 0;
}

int dues_look(struct ledger *l, struct lease_watch *w, int64_t now, struct error *err)
{
	struct value after = value_time(now + (int64_t)job_back_off(0));
	struct looking k = {.before = w, .now = now};
	uint64_t begun = clock_now();

	if (begun < w->dues_look_ns)
		return 0;
	if (ledger_run(l, SQL_DUES, &after, 1, take_due, &k, err) < 0) {
		free(k.list);
		return -1;
	}
	dues_done(w);
	w->dues = k.list;
	w->dues_count = k.count;
	w->dues_look_ns = clock_now() + REST_TIMES * (clock_now() - begun);
	return 0;
}

static bool is_ripe(const struct lease_watch *w, const struct due *x)
{
	return w->lease_ns == 0 || x->seen_ns + x->wait_ns <= clock_now();
}

static int wake_ripe(struct ledger *l, void *arg, struct error *err)
{
	const struct lease_watch *w = arg;

	claim_memory_forget(l);
	for (size_t i = 0; i < w->dues_count; i++)
		if (is_ripe(w, &w->dues[i]) && ledger_do(l, SQL_QUEUE_WAKE, err, value_text(w->dues[i].id),
							 value_time(w->dues[i].at)) < 0)
			return -1;
	return queue_ring(l, err);
}

int dues_wake(struct ledger *l, struct lease_watch *w, bool *ret_any, struct error *err)
{
	*ret_any = false;
	for (size_t i = 0; i < w->dues_count; i++)
		*ret_any = *ret_any || is_ripe(w, &w->dues[i]);
	w->dues_look_ns = *ret_any ? 0 : w->dues_look_ns;
	return *ret_any ? ledger_transaction(l, wake_ripe, w, err) : 0;
}

int64_t dues_wait(const struct lease_watch *w)
{
	uint64_t now = clock_now();
	int64_t least = -1;

	for (size_t i = 0; i < w->dues_count; i++) {
		uint64_t at = w->dues[i].seen_ns + w->dues[i].wait_ns;
		/* One that is ripe and still there was locked by its owner. */
		int64_t wait = at > now ? (int64_t)(at - now) : PAUSE_NS;

		least = least < 0 || wait < least ? wait : least;
	}
	return least;
}
