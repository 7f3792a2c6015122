/*
 * The worker's loop. Everything that it does regularly happens in one tick, in one order; a bell, a signal, the end of an
 * analysis and the clock only make the next tick come sooner.
 */
#include "worker_private.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/utsname.h>

#include "clock.h"
#include "host.h"
#include "lending.h"
#include "notify.h"
#include "slurm.h"

/* Polling makes it sure: nothing waits longer than this for a bell that did not ring. */
static const uint64_t poll_ns = 5 * NSEC_PER_SEC;
static const uint64_t house_ns = 3600 * NSEC_PER_SEC;
/* Where there is no bell, looking is all there is. */
static const uint64_t poll_deaf_ns = NSEC_PER_SEC;
/* A crowd of bells is one bell. */
static const uint64_t tick_min_ns = 20 * NSEC_PER_MSEC;
static const uint64_t look_min_ns = 500 * NSEC_PER_MSEC;
static const uint64_t metrics_ns = 15 * NSEC_PER_SEC;
static const uint64_t away_max_ns = 30 * NSEC_PER_SEC;
static const uint64_t busy_ns = 2 * NSEC_PER_SEC;
/* With the worker's own, and recovery's while it goes on, eight. */
enum { CONNECTIONS_LENT = 6 };

void worker_say(const struct worker *w, const char *format, ...)
{
	char line[1400];
	va_list args;

	if (!w->options->hooks.say)
		return;
	va_start(args, format);
	vsnprintf(line, sizeof line, format, args);
	va_end(args);
	w->options->hooks.say(w->options->hooks.arg, line);
}

/* states: bits of enum held_state */
static int held_count(const struct worker *w, unsigned states)
{
	int n = 0;

	for (const struct held *h = w->held; h; h = h->next)
		n += states >> h->state & 1;
	return n;
}

int worker_running(const struct worker *w)
{
	return held_count(w, 1U << HELD_RUNNING);
}

int worker_seats_taken(const struct worker *w)
{
	return held_count(w, 1U << HELD_RUNNING | 1U << HELD_UNSETTLED);
}

uint64_t worker_memory_used(const struct worker *w)
{
	uint64_t n = 0;

	for (const struct held *h = w->held; h; h = h->next)
		n += h->state == HELD_RUNNING ? h->memory_bytes : 0;
	return n;
}

uint64_t worker_cpus_used(const struct worker *w)
{
	uint64_t n = 0;

	for (const struct held *h = w->held; h; h = h->next)
		n += h->state == HELD_RUNNING ? h->cpus_milli : 0;
	return n;
}

static bool holds(const struct worker *w, enum held_state state)
{
	return held_count(w, 1U << state) > 0;
}

static void tell_systemd(const struct worker *w)
{
	notify_send("STATUS=%d of %d running%s%s", worker_running(w), w->engine->slots,
		    w->stopping ? ", stopping" : "", w->is_away ? ", the ledger is out of reach" : "");
}

/* ---- the ledger comes and goes ---- */

static void go_away(struct worker *w, const struct error *why)
{
	uint64_t wait = job_back_off(w->tries++);

	if (!w->is_away) {
		worker_say(w, "the ledger is out of reach, trying again: %s", why->message);
		w->counters.away++;
	}
	w->is_away = true;
	/* Whoever is back first watches the leases of the others for the time of one: all must be back by then. */
	wait = wait < away_max_ns ? wait : away_max_ns;
	w->try_at = clock_now() + (wait < w->lease_ns / 3 ? wait : w->lease_ns / 3);
	tell_systemd(w);
}

static void hand_back_all(struct worker *w);

/* Not our ledger any more: whoever upgraded it has newer workers, or will have. Nothing is claimed that could only be handed
 * back; what we hold is others' when the leases are over. */
static void give_up(struct worker *w, const struct error *why)
{
	if (!w->why.message[0])
		w->why = *why;
	if (!w->stopping)
		hand_back_all(w);
	w->stopping = w->is_away = true;
	w->try_at = clock_now() + busy_ns;
	tell_systemd(w);
}

static void come_back(struct worker *w)
{
	if (w->is_away)
		worker_say(w, "the ledger is back");
	w->is_away = false;
	w->tries = 0;
	w->wants_claim = true;
	tell_systemd(w);
}

static int on_bell(void *arg, int fd, uint32_t events, struct error *err);

/* The bell may be another descriptor after every reconnection. Without one there is still the clock. True: it is a new
 * one, and what happened before it hung there was not heard. */
static bool watch_bell(struct worker *w)
{
	struct error err = ERROR_INIT;
	int fd = ledger_bell(w->ledger, &err);

	if (fd == w->bell_fd && (fd >= 0 || w->is_deaf))
		return false;
	loop_remove(w->bell);
	w->bell = NULL;
	w->bell_fd = -1;
	if (fd < 0 && !w->is_deaf && err.kind == ERROR_REFUSED) {
		worker_say(w, "%s: it is looked at every second", err.message);
		w->is_deaf = true;
	}
	if (fd >= 0 && loop_add_fd(w->loop, fd, EPOLLIN, on_bell, w, &w->bell, &err) == 0)
		w->bell_fd = fd;
	return w->bell_fd >= 0;
}

/* ---- the tick ---- */

static void recover(struct worker *w)
{
	struct error err = ERROR_INIT;

	if (!w->recovering && engine_recover(w->engine, false, &err) == 0)
		w->recovering = true;
}

/* Once an hour, in a thread of its own, so that nobody waits for it: claims go on. */
static void keep_house(struct worker *w, uint64_t now)
{
	struct error err = ERROR_INIT;

	if (w->keeps_house && w->is_recovered && !w->recovering && !w->stopping && !w->options->drain &&
	    now >= w->house_at && engine_recover(w->engine, true, &err) == 0) {
		w->recovering = true;
		w->house_at = now + house_ns;
	}
}

static bool can_claim(const struct worker *w)
{
	return w->is_recovered && !w->stopping && w->wants_claim && worker_seats_taken(w) < w->engine->slots;
}

/* A bell may mean that one of ours is to be cancelled: that is looked for, and prolongs nothing. */
static uint64_t look_due(const struct worker *w)
{
	return w->has_rung ? w->looked_at + look_min_ns : UINT64_MAX;
}

/* Leases of others that are over, times that have come. Who only takes leaves that to those who claim. */
static int look_around(struct worker *w, uint64_t now, struct error *err)
{
	unsigned expired = 0;
	int r = w->options->take ? 0 : lease_expire(w, &expired, err);

	if (r < 0)
		return r;
	keep_house(w, now);
	if (expired > 0)
		recover(w); /* a worker of this host may have died */
	w->wants_claim = true;
	w->has_rung = w->has_rung || w->is_deaf;
	w->expire_at = now + (w->is_deaf ? poll_deaf_ns : poll_ns);
	if (w->next_due) {
		int64_t wait = w->next_due - clock_utc();
		uint64_t at = now + (wait > (int64_t)tick_min_ns ? (uint64_t)wait : tick_min_ns);

		w->expire_at = at < w->expire_at ? at : w->expire_at;
	}
	return 0;
}

/* In this order: first what is ours stays ours, then what others lost, then more. */
static int talk(struct worker *w, uint64_t now, unsigned *ret_claimed, struct error *err)
{
	if (w->is_away || now >= w->heartbeat_at) {
		w->has_rung = false;
		if (lease_heartbeat(w, err) < 0)
			return -1;
	} else if (w->held && now >= look_due(w)) {
		w->has_rung = false;
		if (lease_look(w, err) < 0)
			return -1;
	}
	if (lease_release(w, err) < 0 ||
	    (w->is_recovered && (now >= w->expire_at || (w->options->drain && !w->held)) &&
	     look_around(w, now, err) < 0))
		return -1;
	if (!can_claim(w))
		return 0;
	return (w->options->take ? lease_take : lease_claim)(w, ret_claimed, err);
}

static uint64_t next_tick(const struct worker *w, uint64_t now)
{
	uint64_t at = w->expire_at;

	if (w->is_away)
		return w->try_at;
	if (w->heartbeat_at < at)
		at = w->heartbeat_at;
	if (w->held && look_due(w) < at)
		at = look_due(w);
	return at > now + tick_min_ns ? at : now + tick_min_ns;
}

static bool is_over(const struct worker *w, unsigned claimed)
{
	if (w->recovering)
		return false;
	if (w->options->take && !w->held && w->has_taken)
		return true;
	if (w->stopping)
		return !holds(w, HELD_RUNNING) && (!holds(w, HELD_RELEASE) || w->is_away);
	return w->options->drain && w->is_recovered && !w->is_away && !w->held && claimed == 0 &&
	       w->next_due == 0;
}

static void write_metrics(struct worker *w, uint64_t now)
{
	struct error err = ERROR_INIT;

	if (!w->options->metrics || now < w->metrics_at)
		return;
	if (metrics_write(w, &err) < 0 && w->metrics_at == 0)
		worker_say(w, "%s", err.message);
	w->metrics_at = now + metrics_ns;
}

/* Very soon, so that what happens at once is seen at once. */
static void tick_soon(struct worker *w)
{
	loop_timer_set(w->tick, clock_now() + 1);
}

static int on_tick(void *arg, struct error *ignored UNUSED)
{
	struct worker *w = arg;
	struct error err = ERROR_INIT;
	uint64_t now = clock_now();
	bool was_away = w->is_away, had_unsettled = holds(w, HELD_UNSETTLED);
	unsigned claimed = 0;
	int r;

	if (w->is_away && now < w->try_at && !w->stopping) {
		loop_timer_set(w->tick, w->try_at);
		return 0;
	}
	r = talk(w, now, &claimed, &err);
	if (r < 0 && err.kind == ERROR_SCHEMA)
		give_up(w, &err);
	else if (r < 0)
		go_away(w, &err);
	else if (was_away)
		come_back(w);
	/* Even one that is not ours any more: its workspace has to go. */
	if (!w->is_away && had_unsettled && now >= w->recover_at) {
		recover(w);
		w->recover_at = now + poll_ns;
	}
	write_metrics(w, now);
	if (claimed > 0)
		tell_systemd(w);
	if (is_over(w, claimed))
		loop_quit(w->loop);
	if (!w->is_away && watch_bell(w)) {
		w->has_rung = w->wants_claim = true;
		tick_soon(w);
		return 0;
	}
	loop_timer_set(w->tick, next_tick(w, clock_now()));
	return 0;
}

/* ---- what makes it tick ---- */

static int on_bell(void *arg, int fd UNUSED, uint32_t events UNUSED, struct error *ignored UNUSED)
{
	struct worker *w = arg;
	struct error err = ERROR_INIT;

	if (ledger_bell_read(w->ledger, &err) < 0) {
		loop_remove(w->bell);
		w->bell = NULL;
		w->bell_fd = -1;
	}
	w->has_rung = w->wants_claim = true;
	engine_look(w->engine);
	if (!w->is_away)
		loop_timer_set(w->tick, clock_now() + tick_min_ns);
	return 0;
}

static void hand_back_all(struct worker *w)
{
	w->hands_back = true;
	for (struct held *h = w->held; h; h = h->next)
		if (h->state == HELD_RUNNING) {
			engine_cancel(w->engine, h->token, ENGINE_HAND_BACK);
			h->cancelled = true;
		}
}

static void say_stopping(const struct worker *w)
{
	const char *place = w->engine->place;

	if (place && !w->options->drain)
		worker_say(w, "stopping: %d go on in %s", worker_running(w), place);
	else
		worker_say(w, "stopping: %d %s", worker_running(w),
			   w->options->drain ? "still run to their end"
			   : w->node.job[0]  ? "is ended, and Slurm is asked why"
					     : "are handed back");
}

static int on_signal(void *arg, int fd, uint32_t events UNUSED, struct error *err UNUSED)
{
	struct worker *w = arg;
	unsigned char byte;

	if (read(fd, &byte, 1) == 1) { /* one at a time: a host's descriptor may block */
		atomic_store(&w->node.is_told, true);
		if (w->stopping || !w->options->drain)
			hand_back_all(w);
		if (!w->stopping) {
			notify_send("STOPPING=1");
			say_stopping(w);
		}
		w->stopping = true;
		w->heartbeat_at = 0; /* others are told */
	}
	tick_soon(w);
	return 0;
}

/* Once for each reason, however often it is tried. */
static void say_pending(struct worker *w, const char *why)
{
	if (strcmp(w->pending_said, why) == 0)
		return;
	snprintf(w->pending_said, sizeof w->pending_said, "%s", why);
	worker_say(w, "what has ended here cannot be finished now, and is tried again: %s", why);
}

static void on_recovered(struct worker *w, const struct engine_end *end)
{
	const struct gc_report *g = &end->recovered;

	if (g->committed || g->lost || g->removed)
		worker_say(w, "recovered: %u committed, %u lost, %u workspaces removed", g->committed,
			   g->lost, g->removed);
	if (g->pruned)
		worker_say(w, "%llu attempts that are no longer retained were removed from the ledger",
			   (unsigned long long)g->pruned);
	if (g->given_up)
		worker_say(w, "%u that were pending were cancelled, and are given up", g->given_up);
	if (g->failed)
		say_pending(w, end->why.message);
	else
		w->pending_said[0] = 0;
	if (!w->is_recovered)
		notify_send("READY=1");
	w->is_recovered = true;
	w->recovering = false;
	w->wants_claim = true;
	if (!w->options->take)
		w->heartbeat_at = 0; /* which of ours are settled by that */
}

static void on_end(struct worker *w, struct engine_end *end)
{
	struct held *h = lease_find(w, end->token);

	if (h && h->is_lost && end->outcome == OUTCOME_HANDED_BACK)
		end->outcome = OUTCOME_LOST;
	if (w->options->hooks.ended)
		w->options->hooks.ended(w->options->hooks.arg, end);
	w->wants_claim = true;
	if (end->outcome != OUTCOME_BUSY)
		obstacle_forget(w, end->id);
	if (end->outcome != OUTCOME_SETTLED && end->outcome != OUTCOME_UNSETTLED)
		w->is_unsettled = true;
	if (!h)
		return;
	switch (end->outcome) {
	case OUTCOME_SETTLED:
		w->counters.ended[end->attempt.verdict]++;
		if (end->attempt.verdict != VERDICT_SUCCEEDED)
			w->expire_at = 0; /* it may have to be tried again, at a time that we want to know */
		lease_forget(w, h);
		return;
	case OUTCOME_LOST:
		w->counters.lost++;
		lease_forget(w, h);
		return;
	case OUTCOME_LEFT:
		lease_forget(w, h);
		return;
	case OUTCOME_UNSETTLED:
		w->counters.ended[end->attempt.verdict]++;
		h->state = HELD_UNSETTLED;
		say_pending(w, end->why.message);
		w->heartbeat_at = w->recover_at = 0; /* is the ledger back already? */
		return;
	case OUTCOME_BUSY:
	case OUTCOME_HANDED_BACK:
	case OUTCOME_RECOVERED:
	case OUTCOME_SAID:
		break;
	}
	h->state = HELD_RELEASE;
	if (end->outcome != OUTCOME_BUSY)
		return;
	h->delay_ns = obstacle_wait(w, end->id);
	if (asprintf(&h->reason, "it waits for this on %s: %s", w->host, end->why.message) < 0)
		h->reason = NULL;
}

static int on_engine(void *arg, int fd UNUSED, uint32_t events UNUSED, struct error *err UNUSED)
{
	struct worker *w = arg;
	struct engine_end end;

	while (engine_reap(w->engine, &end) > 0) {
		if (end.outcome == OUTCOME_RECOVERED)
			on_recovered(w, &end);
		else if (end.outcome == OUTCOME_SAID)
			worker_say(w, "%s", end.why.message);
		else
			on_end(w, &end);
		engine_end_done(&end);
	}
	tick_soon(w);
	return 0;
}

static int on_watchdog(void *arg, struct error *err UNUSED)
{
	struct worker *w = arg;

	notify_send("WATCHDOG=1");
	return loop_timer_set(w->watchdog, clock_now() + notify_watchdog());
}

/* ---- beginning and end ---- */

static int name_make(struct worker *w, struct error *err)
{
	char boot[BOOT_ID_SIZE], token[TOKEN_SIZE];
	struct utsname host;
	int r = token_make(token, err);

	if (r < 0)
		return r;
	uname(&host);
	boot_id(boot);
	snprintf(w->host, sizeof w->host, "%s", host.nodename);
	snprintf(w->name, sizeof w->name, "%s %s %s", w->host, boot, token);
	return 0;
}

/* What an earlier life had handed over: its leases, and those who have taken them. */
static void on_adopted(void *arg, const char *id, const char *token)
{
	lease_adopt(arg, id, token);
}

static int engine_open_slurm(struct worker *w, struct error *err)
{
	const struct worker_options *o = w->options;

	if (engine_slurm_open(&o->hood, o->jobs, o->lease_ns, &w->engine, err) < 0)
		return -1;
	snprintf(w->name, sizeof w->name, "%s", w->engine->worker);
	return engine_adopted(w->engine, on_adopted, w, err);
}

static int engine_open(struct worker *w, const struct hood_options *o, int jobs, struct error *err)
{
	struct hood_options lent = *o;

	if (w->options->engine == ENGINE_SLURM)
		return engine_open_slurm(w, err);
	if (jobs > WORKER_JOBS_MAX)
		jobs = WORKER_JOBS_MAX;
	if (lending_open(hood_ledger_url(w->hood), jobs < CONNECTIONS_LENT ? jobs : CONNECTIONS_LENT,
			 &w->lending, err) < 0)
		return -1;
	ledger_take_turns(w->ledger, w->lending);
	lent.lending = w->lending;
	if (engine_local_open(&lent, jobs, &w->engine, err) < 0)
		return -1;
	if (w->node.job[0])
		engine_local_managed(w->engine, &w->node.manager);
	return 0;
}

static int worker_open(struct worker *w, const struct worker_options *o, struct error *err)
{
	const struct config *c;
	int jobs;

	if (hood_open(&o->hood, &w->hood, err) < 0 ||
	    (o->engine == ENGINE_SLURM && slurm_check_ledger(hood_ledger_url(w->hood), err) < 0) ||
	    hood_ledger(w->hood, LEDGER_CREATE, &w->ledger, err) < 0 ||
	    ledger_store_ready(w->ledger, err) < 0 || name_make(w, err) < 0)
		return -1;
	/* It would be told so by every claim, and take that for a ledger that is away. */
	if (ledger_may_commit(w->ledger, "what is queued", err) < 0)
		return -1;
	/* It would take what others can run, and hand it back, for ever. */
	if (o->engine == ENGINE_LOCAL && hood_check_walls(w->hood, err) < 0)
		return error_prefix(err, -1, "this worker could run nothing here");
	c = hood_config(w->hood);
	w->keeps_house = c->n_retain > 0 && !o->take;
	w->cap = c->queue_cap;
	w->lease_ns = o->lease_ns ? o->lease_ns : c->queue_lease_ns;
	ledger_hurry(w->ledger, w->lease_ns);
	if (o->engine == ENGINE_LOCAL) {
		w->memory_total = host_memory() ? host_memory() : INT64_MAX;
		w->cpus_total = (uint64_t)host_cpus() * 1000;
	}
	jobs = o->take ? 1 : o->jobs ? o->jobs : c->queue_jobs ? c->queue_jobs : host_cpus();
	if (o->take) {
		slurm_node_init(&w->node);
		/* What it takes it has a lease on. Most are done before that must be prolonged, and nobody needs to hear of such a worker. */
		w->heartbeat_at = clock_now() + w->lease_ns / 3;
	}
	if ((o->metrics && tally_open(&o->hood, &w->tally, err) < 0) ||
	    engine_open(w, &o->hood, jobs, err) < 0 || loop_open(&w->loop, err) < 0 ||
	    loop_add_timer(w->loop, 0, on_tick, w, &w->tick, err) < 0 ||
	    loop_add_fd(w->loop, w->engine->fd, EPOLLIN, on_engine, w, NULL, err) < 0 ||
	    (o->signal_fd >= 0 && loop_add_fd(w->loop, o->signal_fd, EPOLLIN, on_signal, w, NULL, err) < 0))
		return -1;
	return notify_watchdog() > 0
		       ? loop_add_timer(w->loop, clock_now() + 1, on_watchdog, w, &w->watchdog, err)
		       : 0;
}

static void worker_close(struct worker *w)
{
	tally_close(w->tally);
	engine_close(w->engine);
	loop_close(w->loop);
	while (w->held)
		lease_forget(w, w->held);
	lease_watch_done(&w->watch);
	obstacle_forget(w, NULL);
	hood_close(w->hood);
	lending_close(w->lending);
}

static int work(struct worker *w, struct error *err)
{
	if (worker_open(w, w->options, err) < 0 || engine_recover(w->engine, false, err) < 0)
		return -1;
	w->recovering = true;
	tick_soon(w);
	if (loop_run(w->loop, err) < 0)
		return -1;
	w->is_unsettled = w->is_unsettled || w->held; /* pending: it waits here for who comes next */
	if (!w->is_away && w->has_signed)
		lease_sign_off(w);
	if (w->options->metrics) {
		tally_finish(w->tally);
		metrics_write(w, err);
	}
	return 0;
}

int worker_run(const struct worker_options *o, struct error *err)
{
	struct worker w = {.options = o, .bell_fd = -1, .wants_claim = true};
	int r = work(&w, err);

	worker_close(&w);
	if (r == 0 && w.why.message[0]) {
		*err = w.why;
		return -1;
	}
	return r == 0 && o->take && (w.is_unsettled || !w.has_taken) ? 1 : r;
}
