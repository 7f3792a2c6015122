/*
 * Who works for this ledger, as workers say it of themselves with their heartbeats. A row is only a sign of life: who has which
 * analysis is said by leases.
 */
#include "queue_private.h"

#include "clock.h"

/* Long enough for somebody to look the next morning which worker died in the night. */
#define FORGOTTEN_NS (24 * 3600 * (int64_t)NSEC_PER_SEC)

const char *worker_state_name(enum worker_state s)
{
	static const char *const names[WORKER_STATES] = {
		[WORKER_WORKING] = "working",
		[WORKER_DRAINING] = "draining",
		[WORKER_STOPPING] = "stopping",
	};

	return names[s];
}

int worker_sign(struct ledger *l, const struct worker_sign *s, int64_t now, struct error *err)
{
	return ledger_do(l, SQL_WORKER_SIGN, err, value_text(s->name), value_text(s->host),
			 value_integer(s->pid), value_text(s->engine), value_integer(s->seats),
			 value_integer(s->running), value_text(worker_state_name(s->state)),
			 value_text(s->version), value_time(now),
			 value_integer((int64_t)(s->lease_ns / NSEC_PER_MSEC)));
}

static int sign_off(struct ledger *l, void *arg, struct error *err)
{
	return ledger_do(l, SQL_WORKER_GONE, err, value_text(arg));
}

int ledger_sign_off(struct ledger *l, const char *name, struct error *err)
{
	return ledger_transaction(l, sign_off, (void *)name, err);
}

struct roll {
	worker_fn fn;
	void *arg;
};

static int roll_row(void *arg, const struct value *row, struct error *err)
{
	const struct roll *roll = arg;
	struct worker_seen w = {
		.name = value_words(&row[0]),
		.owner = value_words(&row[1]),
		.host = value_words(&row[2]),
		.pid = (int)value_to_integer(&row[3], 0),
		.engine = value_words(&row[4]),
		.seats = (int)value_to_integer(&row[5], 0),
		.running = (int)value_to_integer(&row[6], 0),
		.state = value_words(&row[7]),
		.version = value_words(&row[8]),
		.started = value_to_integer(&row[9], 0),
		.seen = value_to_integer(&row[10], 0),
		.lease_ns = (uint64_t)value_to_integer(&row[11], 0) * NSEC_PER_MSEC,
	};
	int64_t now = value_to_integer(&row[12], 0);

	w.silent_ns = (now ? now : clock_utc()) - w.seen;
	/* Later than now: a clock was set back since. It counts as long as one that is right could have said so. */
	w.is_alive = w.silent_ns <= (int64_t)w.lease_ns && w.silent_ns >= -(int64_t)w.lease_ns;
	w.silent_ns = w.silent_ns > 0 ? w.silent_ns : 0;
	return roll->fn(roll->arg, &w, err);
}

int ledger_workers(struct ledger *l, worker_fn fn, void *arg, struct error *err)
{
	struct roll roll = {fn, arg};

	return ledger_run(l, SQL_WORKERS, NULL, 0, roll_row, &roll, err);
}

static int sweep(struct ledger *l, void *arg, struct error *err)
{
	return ledger_do(l, SQL_WORKERS_FORGET, err, value_time(*(const int64_t *)arg));
}

int ledger_workers_sweep(struct ledger *l, struct error *err)
{
	int64_t now = 0, any = 0;

	if (l->backend->only_submits)
		return 0;
	if (queue_now(l, &now, err) < 0)
		return -1;
	now -= FORGOTTEN_NS;
	if (ledger_ask(l, SQL_WORKERS_SILENT, &any, err, value_time(now)) < 0)
		return -1;
	return any ? ledger_transaction(l, sweep, &now, err) : 0;
}
