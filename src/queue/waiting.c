#include "waiting.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "clock.h"
#include "text.h"

/* A look costs the ledger something for each that has not ended: the more there are, the rarer. */
enum { LOOK_MIN_MS = 50, LOOK_MAX_MS = 2000, POLL_MS = 1000, MANY = 5000 };

struct waiting {
	const struct wait_hooks *hooks;
	struct wait_counts counts;
	json_t *left; /* {id: index} of those that have not ended */
	json_t *seen; /* {id: true} of those that the last look found */
};

static void waiting_done(struct waiting *w)
{
	json_decref(w->left);
	json_decref(w->seen);
}

static void note_end(struct waiting *w, const struct queued *q)
{
	json_t *index = json_object_get(w->left, q->id);

	if (!index)
		return;
	if (q->verdict == VERDICT_SUCCEEDED)
		w->counts.succeeded++;
	else
		w->counts.failed++;
	if (w->hooks->ended)
		w->hooks->ended(w->hooks->arg, (size_t)json_integer_value(index), q);
	json_object_del(w->left, q->id);
}

static int on_queued(void *arg, const struct queued *q, struct error *err)
{
	struct waiting *w = arg;

	if (json_object_set_new(w->seen, q->id, json_true()) < 0)
		return error_memory(err);
	switch (q->state) {
	case JOB_WAITING:
		w->counts.waiting++;
		break;
	case JOB_QUEUED:
		w->counts.queued++;
		break;
	case JOB_RUNNING:
		w->counts.running++;
		break;
	default:
		note_end(w, q);
	}
	return 0;
}

/* Never queued: `run` made it, so it has ended already, or nobody knows it. */
static int look_in_ledger(struct waiting *w, struct ledger *l, const char *id, struct error *err)
{
	_cleanup_attempt_ struct attempt a;
	struct queued q = {.state = JOB_FINISHED};
	int r;

	attempt_init(&a);
	r = ledger_load(l, id, 0, &a, err);
	if (r < 0)
		return r;
	memcpy(q.id, a.id, sizeof q.id);
	q.verdict = a.verdict;
	q.status = a.status;
	q.attempt = a.number;
	q.reason = a.reason;
	note_end(w, &q);
	return 0;
}

static int look(struct waiting *w, struct ledger *l, bool is_first, struct error *err)
{
	_cleanup_strv_ char **ids = NULL;
	size_t n = json_object_size(w->left), i = 0;
	const char *id;
	json_t *index;
	void *next;
	int r;

	w->counts.waiting = w->counts.queued = w->counts.running = 0;
	json_object_clear(w->seen);
	ids = calloc(n + 1, sizeof *ids);
	if (!ids)
		return error_memory(err);
	json_object_foreach (w->left, id, index) {
		ids[i] = strdup(id);
		if (!ids[i++])
			return error_memory(err);
	}
	r = ledger_queue_look(l, ids, on_queued, w, err);
	if (r < 0 || !is_first)
		return r;
	json_object_foreach_safe(w->left, next, id, index)
	{
		if (r == 0 && !json_object_get(w->seen, id))
			r = look_in_ledger(w, l, id, err);
	}
	return r;
}

/* Until the bell rings, or it is time; bells in a crowd are one. 1: to be stopped. */
static int wait_for_bell(struct waiting *w, struct ledger *l, uint64_t looked)
{
	struct error ignored = ERROR_INIT;
	uint64_t least = json_object_size(w->left) > MANY ? LOOK_MAX_MS : LOOK_MIN_MS;
	struct pollfd fds[2] = {{.fd = w->hooks->stop_fd, .events = POLLIN},
				{.fd = ledger_bell(l, &ignored), .events = POLLIN}};
	uint64_t begun = clock_now(), until = begun + POLL_MS * NSEC_PER_MSEC;

	for (;;) {
		uint64_t now = clock_now();
		uint64_t ms = now < until ? (until - now) / NSEC_PER_MSEC + 1 : 0;

		if (w->hooks->progress_ms > 0 && ms > (uint64_t)w->hooks->progress_ms)
			ms = (uint64_t)w->hooks->progress_ms;
		poll(fds, 2, (int)ms);
		if (fds[0].revents)
			return 1;
		if (fds[1].revents) {
			ledger_bell_read(l, &ignored);
			fds[1].fd = -1; /* heard */
			if (looked + least * NSEC_PER_MSEC < until)
				until = looked + least * NSEC_PER_MSEC;
		}
		if (clock_now() >= until)
			return 0;
		if (w->hooks->progress && w->hooks->progress_ms > 0)
			w->hooks->progress(w->hooks->arg, &w->counts);
	}
}

/* A server that is restarted is waited for as well. */
static bool is_passing(const struct error *err)
{
	return err->kind == ERROR_LEDGER || err->kind == ERROR_BUSY;
}

static int wait_listening(struct ledger *l, char *const *ids, const struct wait_hooks *hooks,
			  struct error *err)
{
	_cleanup_(waiting_done) struct waiting w = {
		.hooks = hooks, .left = json_object(), .seen = json_object()};
	struct error ignored = ERROR_INIT;
	bool is_first = true;
	int r = w.left && w.seen ? 0 : error_memory(err);

	for (size_t i = 0; r == 0 && ids[i]; i++) {
		if (!json_object_get(w.left, ids[i]) &&
		    json_object_set_new(w.left, ids[i], json_integer((json_int_t)i)) < 0)
			r = error_memory(err);
	}
	w.counts.total = json_object_size(w.left);
	ledger_bell(l, &ignored); /* before the first look: what happens after it is heard */
	while (r == 0) {
		uint64_t looked;

		r = look(&w, l, is_first, err);
		if (r < 0 && (is_first || !is_passing(err)))
			return r;
		is_first = is_first && r < 0;
		looked = clock_now();
		if (hooks->progress)
			hooks->progress(hooks->arg, &w.counts);
		if (json_object_size(w.left) == 0)
			return 0;
		r = wait_for_bell(&w, l, looked);
	}
	return r;
}

int wait_for(struct ledger *l, char *const *ids, const struct wait_hooks *hooks, struct error *err)
{
	int r = wait_listening(l, ids, hooks, err);

	ledger_bell_end(l);
	return r;
}
