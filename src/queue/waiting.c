#include "waiting.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "text.h"

/* A look costs the ledger something for each that is looked at. So mostly it is at the first of those that have not
 * ended, since that is the order in which they run, and at all of them only so often that it does not count. */
enum { LOOK_MIN_MS = 50, LOOK_MAX_MS = 2000, POLL_MS = 1000, MANY = 5000, WINDOW = 4096, ALL_PAUSE = 20 };
enum { SEEN_NEVER = JOB_STATES, SEEN_ENDED, SEEN_STATES };

/* One that is looked at. */
struct seat {
	const char *id;
	size_t index;
	bool seen;
};

struct waiting {
	const struct wait_hooks *hooks;
	struct ledger *ledger;
	char *const *ids;
	size_t n, first; /* all before first have ended */
	uint8_t *seen;	 /* of each, how the last look found it */
	size_t tally[SEEN_STATES];
	size_t succeeded, failed;
	uint64_t all_at; /* when all are looked at again */
	struct seat seats[WINDOW];
	char *asked[WINDOW + 1];
	size_t n_seats;
};

static void waiting_free(struct waiting **w)
{
	if (*w)
		free((*w)->seen);
	free(*w);
}

static void set_seen(struct waiting *w, size_t index, uint8_t seen)
{
	w->tally[w->seen[index]]--;
	w->tally[seen]++;
	w->seen[index] = seen;
}

static size_t left(const struct waiting *w)
{
	return w->n - w->tally[SEEN_ENDED];
}

static void tell_progress(const struct waiting *w)
{
	const struct wait_counts counts = {.total = w->n,
					   .waiting = w->tally[JOB_WAITING],
					   .queued = w->tally[JOB_QUEUED],
					   .running = w->tally[JOB_RUNNING],
					   .succeeded = w->succeeded,
					   .failed = w->failed};

	if (w->hooks->progress)
		w->hooks->progress(w->hooks->arg, &counts);
}

static void note_end(struct waiting *w, size_t index, const struct queued *q)
{
	if (w->seen[index] == SEEN_ENDED)
		return;
	if (q->verdict == VERDICT_SUCCEEDED)
		w->succeeded++;
	else
		w->failed++;
	set_seen(w, index, SEEN_ENDED);
	if (w->hooks->ended)
		w->hooks->ended(w->hooks->arg, index, q);
}

static int seat_compare(const void *a, const void *b)
{
	return strcmp(((const struct seat *)a)->id, ((const struct seat *)b)->id);
}

/* An id may be there twice. */
static int on_queued(void *arg, const struct queued *q, struct error *err)
{
	struct waiting *w = arg;
	struct seat key = {.id = q->id};
	struct seat *s = bsearch(&key, w->seats, w->n_seats, sizeof key, seat_compare);

	if (q->state == JOB_RESTORED)
		return error_set(
			err, ERROR_REFUSED,
			"'%s' was restored from a backup, and nobody runs it: `fumehood retry %s` lets it go",
			q->id, q->id);
	while (s && s > w->seats && strcmp(s[-1].id, q->id) == 0)
		s--;
	for (; s && s < w->seats + w->n_seats && strcmp(s->id, q->id) == 0; s++) {
		s->seen = true;
		if (q->state == JOB_FINISHED || q->state == JOB_CANCELLED)
			note_end(w, s->index, q);
		else
			set_seen(w, s->index, (uint8_t)q->state);
	}
	return 0;
}

static void ask_for_unseen(struct waiting *w)
{
	size_t n = 0;

	for (size_t i = 0; i < w->n_seats; i++)
		if (!w->seats[i].seen)
			w->asked[n++] = (char *)w->seats[i].id;
	w->asked[n] = NULL;
}

/* It was in the queue, and is neither there nor in the ledger: it was cancelled, and its row removed. */
static void note_gone(struct waiting *w, size_t index)
{
	struct queued q = {.state = JOB_CANCELLED,
			   .verdict = VERDICT_CANCELLED,
			   .reason = "it is in the queue no more, and has not run"};

	memcpy(q.id, w->ids[index], strlen(w->ids[index]) + 1);
	note_end(w, index, &q);
}

/* In the words of the ledger, which says what there is instead. */
static int say_unknown(struct ledger *l, const char *id, struct error *err)
{
	_cleanup_attempt_ struct attempt a;

	attempt_init(&a);
	return ledger_load(l, id, 0, &a, err);
}

/* What the queue does not know: `run` made it, or its row was removed when it had ended; or nobody knows it. */
static int look_in_ledger(struct waiting *w, struct error *err)
{
	int r;

	ask_for_unseen(w);
	if (!w->asked[0])
		return 0;
	r = ledger_ended_look(w->ledger, w->asked, on_queued, w, err);
	for (size_t i = 0; r == 0 && i < w->n_seats; i++) {
		const struct seat *s = &w->seats[i];

		if (s->seen)
			continue;
		if (w->seen[s->index] == SEEN_NEVER)
			return say_unknown(w->ledger, s->id, err);
		note_gone(w, s->index);
	}
	return r;
}

/* The next of those that have not ended, from *at on. */
static void take_seats(struct waiting *w, size_t *at)
{
	for (w->n_seats = 0; *at < w->n && w->n_seats < WINDOW; ++*at)
		if (w->seen[*at] != SEEN_ENDED) {
			w->asked[w->n_seats] = w->ids[*at];
			w->seats[w->n_seats++] = (struct seat){.id = w->ids[*at], .index = *at};
		}
	w->asked[w->n_seats] = NULL;
	qsort(w->seats, w->n_seats, sizeof w->seats[0], seat_compare);
}

/* As long as most of what is looked at has ended, it goes on. */
static int look(struct waiting *w, bool at_all, struct error *err)
{
	uint64_t begun = clock_now();
	size_t at = w->first, before;
	int r;

	do {
		before = left(w);
		take_seats(w, &at);
		r = ledger_queue_look(w->ledger, w->asked, on_queued, w, err);
		if (r == 0)
			r = look_in_ledger(w, err);
	} while (r == 0 && at < w->n && (at_all || before - left(w) > WINDOW / 2));
	while (w->first < w->n && w->seen[w->first] == SEEN_ENDED)
		w->first++;
	if (r == 0 && at == w->n) {
		uint64_t now = clock_now(), pause = (now - begun) * ALL_PAUSE;

		w->all_at = now + (pause > LOOK_MAX_MS * NSEC_PER_MSEC ? pause : LOOK_MAX_MS * NSEC_PER_MSEC);
	}
	return r;
}

/* Until the bell rings, or it is time; bells in a crowd are one. 1: to be stopped. */
static int wait_for_bell(struct waiting *w, uint64_t looked)
{
	struct error ignored = ERROR_INIT;
	uint64_t least = left(w) > MANY ? LOOK_MAX_MS : LOOK_MIN_MS;
	struct pollfd fds[2] = {{.fd = w->hooks->stop_fd, .events = POLLIN},
				{.fd = ledger_bell(w->ledger, &ignored), .events = POLLIN}};
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
			ledger_bell_read(w->ledger, &ignored);
			fds[1].fd = -1; /* heard */
			if (looked + least * NSEC_PER_MSEC < until)
				until = looked + least * NSEC_PER_MSEC;
		}
		if (clock_now() >= until)
			return 0;
		if (w->hooks->progress_ms > 0)
			tell_progress(w);
	}
}

bool wait_is_passing(const struct error *err)
{
	return error_kind_shown(err->kind) == ERROR_LEDGER || err->kind == ERROR_BUSY;
}

static int waiting_new(struct ledger *l, char *const *ids, const struct wait_hooks *hooks,
		       struct waiting **ret, struct error *err)
{
	struct waiting *w = calloc(1, sizeof *w);

	if (!w)
		return error_memory(err);
	w->hooks = hooks;
	w->ledger = l;
	w->ids = ids;
	w->n = strv_length(ids);
	w->seen = malloc(w->n + 1);
	if (!w->seen) {
		free(w);
		return error_memory(err);
	}
	memset(w->seen, SEEN_NEVER, w->n);
	w->tally[SEEN_NEVER] = w->n;
	*ret = w;
	return 0;
}

static int wait_listening(struct ledger *l, char *const *ids, const struct wait_hooks *hooks,
			  struct error *err)
{
	_cleanup_(waiting_free) struct waiting *w = NULL;
	struct error ignored = ERROR_INIT;
	bool is_first = true;
	int r = waiting_new(l, ids, hooks, &w, err);

	if (r < 0)
		return r;
	ledger_bell(l, &ignored); /* before the first look: what happens after it is heard */
	while (r == 0) {
		uint64_t looked;

		r = look(w, clock_now() >= w->all_at, err);
		if (r < 0 && (is_first || !wait_is_passing(err)))
			return r;
		is_first = is_first && r < 0;
		looked = clock_now();
		tell_progress(w);
		if (left(w) == 0)
			return 0;
		r = wait_for_bell(w, looked);
	}
	return r;
}

int wait_for(struct ledger *l, char *const *ids, const struct wait_hooks *hooks, struct error *err)
{
	int r = wait_listening(l, ids, hooks, err);

	ledger_bell_end(l);
	return r;
}
