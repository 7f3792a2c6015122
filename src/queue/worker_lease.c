#include "worker_private.h"

#include <stdio.h>
#include <string.h>

#include "clock.h"

enum { CLAIM_MAX = 16 };

struct held *lease_find(struct worker *w, const char *token)
{
	for (struct held *h = w->held; h; h = h->next)
		if (strcmp(h->token, token) == 0)
			return h;
	return NULL;
}

void lease_forget(struct worker *w, struct held *h)
{
	struct held **at = &w->held;

	while (*at != h)
		at = &(*at)->next;
	*at = h->next;
	free(h->reason);
	free(h);
}

uint64_t obstacle_wait(struct worker *w, const char *id)
{
	struct obstacle *o = w->obstacles;
	uint64_t wait;

	while (o && strcmp(o->id, id) != 0)
		o = o->next;
	if (!o) {
		o = calloc(1, sizeof *o);
		if (!o)
			return job_back_off(1);
		snprintf(o->id, sizeof o->id, "%s", id);
		o->next = w->obstacles;
		w->obstacles = o;
	}
	wait = job_back_off(++o->count);
	return wait < JOB_OBSTACLE_MAX_NS ? wait : JOB_OBSTACLE_MAX_NS;
}

void obstacle_forget(struct worker *w, const char *id)
{
	struct obstacle **at = &w->obstacles;

	while (*at) {
		struct obstacle *o = *at;

		if (id && strcmp(o->id, id) != 0) {
			at = &o->next;
			continue;
		}
		*at = o->next;
		free(o);
	}
}

static struct held *lease_note(struct worker *w, const char *id, const char *token)
{
	struct held *h = calloc(1, sizeof *h);

	if (!h)
		return NULL;
	snprintf(h->id, sizeof h->id, "%s", id);
	snprintf(h->token, sizeof h->token, "%s", token);
	h->claimed_at = clock_now();
	h->next = w->held;
	w->held = h;
	return h;
}

void lease_adopt(struct worker *w, const char *id, const char *token)
{
	(void)lease_note(w, id, token);
}

/* ---- heartbeat ---- */

static void on_lease(void *arg, const char *id, const char *token, bool cancelling)
{
	struct worker *w = arg;
	struct held *h = lease_find(w, token);

	/* The answer to its claim never came, or the server had it done only after we had given up: nobody runs it. */
	if (!h) {
		h = lease_note(w, id, token);
		if (!h)
			return;
		h->state = HELD_RELEASE;
		worker_say(w, "%s is handed back: its claim was not answered in time", id);
	}
	h->is_confirmed = true;
	if (cancelling && h->state == HELD_UNSETTLED)
		w->recover_at = 0; /* somebody gives it up: recovery sees that */
	if (cancelling && h->state == HELD_RUNNING && !h->cancelled) {
		h->cancelled = true;
		engine_cancel(w->engine, token, ENGINE_CANCEL);
	}
}

/* Somebody else has it now, or it was committed. What still runs ends, and commits nothing: the fence sees to that. */
static void lease_lose(struct worker *w, struct held *h)
{
	/* Somebody has taken it, who was meant to: what becomes of it the engine learns. */
	if (h->state == HELD_RUNNING && w->engine->hands_over) {
		engine_look(w->engine);
		return;
	}
	if (h->state == HELD_RUNNING) {
		/* It may just be ending: its commit takes the lease away, and we hear of it in a moment. */
		engine_cancel(w->engine, h->token, ENGINE_HAND_BACK);
		h->cancelled = h->is_lost = true;
		return;
	}
	if (h->state == HELD_UNSETTLED) {
		struct error ignored = ERROR_INIT;
		int number;

		worker_say(w, "%s, which had finished, %s", h->id,
			   ledger_has_token(w->ledger, h->token, &number, &ignored) > 0
				   ? "is committed now"
				   : "became another worker's: nothing of it was committed here");
	}
	lease_forget(w, h);
}

static enum worker_state state_of(const struct worker *w)
{
	return !w->stopping ? WORKER_WORKING : w->hands_back ? WORKER_STOPPING : WORKER_DRAINING;
}

/* What each of them has used so far, by its supervisor's last look: for who asks the ledger, from anywhere. */
static char *describe_running(struct worker *w)
{
	json_auto_t *all = json_object();
	char *text;

	/* Of what was handed over the node tells. */
	for (const struct held *h = w->engine->hands_over ? NULL : w->held; h; h = h->next) {
		struct pulse p;

		if (h->state == HELD_RUNNING && hood_pulse(w->hood, h->id, &p) == 0)
			json_object_set_new(all, h->id, pulse_to_json(&p));
	}
	text = json_object_size(all) ? json_dumps(all, JSON_COMPACT) : NULL;
	return text;
}

int lease_heartbeat(struct worker *w, struct error *err)
{
	_cleanup_free_ char *live = describe_running(w);
	const struct worker_sign sign = {
		.name = w->name,
		.host = w->host,
		.engine = w->engine->name,
		.version = FUMEHOOD_VERSION,
		.state = state_of(w),
		.pid = (int)getpid(),
		.seats = w->engine->slots,
		.running = worker_running(w),
		.lease_ns = w->lease_ns,
		.live = live,
	};
	struct held *next;
	int r;

	for (struct held *h = w->held; h; h = h->next)
		h->is_confirmed = false;
	w->has_signed = true;
	r = ledger_sign(w->ledger, &sign, on_lease, w, err);
	if (r < 0)
		return r;
	for (struct held *h = w->held; h; h = next) {
		next = h->next;
		if (!h->is_confirmed)
			lease_lose(w, h);
	}
	w->looked_at = clock_now();
	w->heartbeat_at = w->looked_at + w->lease_ns / 3;
	return 0;
}

/* One that stays behind is forgotten by gc. */
void lease_sign_off(struct worker *w)
{
	struct error ignored = ERROR_INIT;

	(void)ledger_sign_off(w->ledger, w->name, &ignored);
}

int lease_look(struct worker *w, struct error *err)
{
	int r = ledger_leases(w->ledger, w->name, on_lease, w, err);

	w->looked_at = clock_now();
	return r;
}

/* ---- expire, claim, release ---- */

int lease_expire(struct worker *w, unsigned *ret_expired, struct error *err)
{
	int r;

	w->watch.worker = w->name;
	w->watch.lease_ns = w->lease_ns;
	r = ledger_expire(w->ledger, &w->watch, ret_expired, &w->next_due, err);

	w->counters.expired += r < 0 ? 0 : *ret_expired;
	return r;
}

int lease_start(struct worker *w, struct job *j, struct error *err)
{
	struct held *h = lease_note(w, j->id, j->token);

	if (!h)
		return error_memory(err);
	h->memory_bytes = j->memory_bytes;
	h->cpus_milli = j->cpus_milli;
	w->counters.claimed++;
	if (engine_start(w->engine, j, err) < 0) {
		worker_say(w, "%s is handed back: %s", h->id, err->message);
		h->state = HELD_RELEASE;
		h->delay_ns = job_back_off(1);
	}
	return 0;
}

int lease_claim(struct worker *w, unsigned *ret_claimed, struct error *err)
{
	int room = w->engine->slots - worker_seats_taken(w), r = 0;
	struct job jobs[CLAIM_MAX];

	*ret_claimed = 0;
	while (r == 0 && room > 0) {
		uint64_t memory = worker_memory_used(w), cpus = worker_cpus_used(w);
		struct claim_order order = {
			.worker = w->name,
			.lease_ns = w->lease_ns,
			.hands_over = w->engine->hands_over,
			.cap = w->cap,
			.memory_total = w->memory_total,
			.cpus_total = w->cpus_total,
			.memory_free = memory < w->memory_total ? w->memory_total - memory : 0,
			.cpus_free = cpus < w->cpus_total ? w->cpus_total - cpus : 0,
		};
		size_t max = room < CLAIM_MAX ? (size_t)room : CLAIM_MAX, n = 0;
		uint64_t begun = clock_now();

		r = ledger_claim(w->ledger, &order, jobs, max, &n, &w->is_full, err);
		w->counters.claims++;
		w->counters.claims_ns += clock_now() - begun;
		/* It may still be done by the server, when it comes to it: a heartbeat finds what we do not know of. */
		if (r < 0)
			return r;
		for (size_t i = 0; i < n; i++) {
			if (r == 0)
				r = lease_start(w, &jobs[i], err);
			job_done(&jobs[i]);
		}
		*ret_claimed += (unsigned)n;
		room -= (int)n;
		if (n < max)
			break;
	}
	w->wants_claim = room == 0; /* once there is room again */
	return r;
}

int lease_release(struct worker *w, struct error *err)
{
	struct held *next;

	for (struct held *h = w->held; h; h = next) {
		int r;

		next = h->next;
		if (h->state != HELD_RELEASE)
			continue;
		/* Its owner can lock it for as long as he likes; only who stops waits for that, as for an answer. */
		r = w->stopping
			    ? ledger_release_for(w->ledger, h->id, h->token, h->delay_ns, h->reason, err)
			    : ledger_release_if_free(w->ledger, h->id, h->token, h->delay_ns, h->reason, err);
		if (r < 0)
			return r;
		if (r == 1)
			continue;
		w->counters.handed_back++;
		lease_forget(w, h);
		w->wants_claim = true;
	}
	return 0;
}
