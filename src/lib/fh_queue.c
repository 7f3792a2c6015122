/*
 * The queue: submitting, looking, waiting, cancelling; and a worker in the host's own process.
 */
#include "lib.h"
#include "view.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include "submission.h"
#include "text.h"
#include "waiting.h"
#include "worker.h"

/* ---- submit ---- */

/* All of one call have the same: who submits is one. */
static int find_submitter(fh_request *const *requests, size_t n, char *out, size_t room, struct error *err)
{
	const char *name = n > 0 ? requests[0]->submitter : NULL;

	for (size_t i = 1; i < n; i++) {
		const char *other = requests[i]->submitter;

		if ((name == NULL) != (other == NULL) || (name && strcmp(name, other) != 0))
			return error_set(err, ERROR_USAGE,
					 "two submitters do not submit together: make a call for each");
	}
	if (!name)
		return submitter_default(out, room, err);
	snprintf(out, room, "%s", name);
	return 0;
}

static int add(struct submission *s, const fh_request *request, struct error *err)
{
	_cleanup_request_ struct request complete;
	int r = request_complete(request, &complete, err);

	if (r == 0 && complete.stdin_open)
		r = error_set(
			err, ERROR_REFUSED,
			"a queued analysis has no standard input, its submitter may be gone: put it into a file");
	return r < 0 ? r : submission_add(s, &complete, err);
}

static json_t *submission_json(struct submission *s)
{
	json_auto_t *list = json_array();

	for (size_t i = 0; i < submission_count(s); i++)
		if (json_array_append_new(list, json_pack("{s:s, s:b}", "id", submission_id(s, i), "new",
							  submission_is_new(s, i))) < 0)
			return NULL;
	return json_incref(list);
}

static int submit(struct hood *h, fh_request *const *requests, size_t n, unsigned flags, json_t **ret,
		  struct error *err)
{
	_cleanup_submission_ struct submission *s = NULL;
	char submitter[SUBMITTER_ROOM];
	int r = find_submitter(requests, n, submitter, sizeof submitter, err);

	if (r == 0)
		r = submission_open(h, submitter, &s, err);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = add(s, requests[i], err);
	if (r < 0)
		return r;
	r = submission_commit(s, flags & FH_IF_ABSENT ? SUBMIT_IF_ABSENT : 0, err);
	if (r < 0)
		return r;
	*ret = submission_json(s);
	return 0;
}

FH_PUBLIC int fh_submit(fh_hood *hood, fh_request *const *requests, size_t n, unsigned flags, char **ret_json,
			fh_error *err)
{
	json_t *json = NULL;
	struct call c;
	int r;

	r = flags_check("fh_submit", flags, FH_IF_ABSENT, err);
	if (r < 0)
		return r;
	r = call_begin(&c, hood, "submit", err);
	if (r < 0)
		return r;
	r = submit(c.hood, requests, n, flags, &json, &c.err);
	return call_end_json(&c, r, json, ret_json, err);
}

/* ---- look and wait ---- */

FH_PUBLIC int fh_queue(fh_hood *hood, const char *state, const char *prefix, int limit, char **ret_json,
		       fh_error *err)
{
	return call_list(hood, "queue", view_queue, &(struct view_filter){state, prefix, limit}, ret_json,
			 err);
}

FH_PUBLIC int fh_workers(fh_hood *hood, char **ret_json, fh_error *err)
{
	json_t *json = NULL;
	struct call c;
	int r = call_begin(&c, hood, "workers", err);

	if (r < 0)
		return r;
	r = view_workers(c.hood, &json, &c.err);
	return call_end_json(&c, r, json, ret_json, err);
}

FH_PUBLIC int fh_top(fh_hood *hood, char **ret_json, fh_error *err)
{
	json_t *json = NULL;
	struct call c;
	int r = call_begin(&c, hood, "top", err);

	if (r < 0)
		return r;
	r = view_top(c.hood, &json, &c.err);
	return call_end_json(&c, r, json, ret_json, err);
}

struct wait_place {
	const char *id;
	size_t index;
};

struct wait {
	char *const *ids;
	json_t *rows; /* in the order of ids; null: not known yet */
	struct wait_place *places;
};

static void on_ended(void *arg, size_t index, const struct queued *q)
{
	struct wait *w = arg;

	json_array_set_new(w->rows, index, view_queued_json(q));
}

static int place_compare(const void *a, const void *b)
{
	return strcmp(((const struct wait_place *)a)->id, ((const struct wait_place *)b)->id);
}

static int on_look(void *arg, const struct queued *q, struct error *err UNUSED)
{
	struct wait *w = arg;
	size_t n = json_array_size(w->rows);
	struct wait_place key = {.id = q->id};
	const struct wait_place *p = bsearch(&key, w->places, n, sizeof key, place_compare);

	while (p && p > w->places && strcmp(p[-1].id, q->id) == 0)
		p--;
	for (; p && p < w->places + n && strcmp(p->id, q->id) == 0; p++)
		if (json_is_null(json_array_get(w->rows, p->index)))
			json_array_set_new(w->rows, p->index, view_queued_json(q));
	return 0;
}

/* Those that have not ended, when nobody waits any longer. */
static int look_at_rest(struct wait *w, struct ledger *l, struct error *err)
{
	size_t n = json_array_size(w->rows);
	int r;

	w->places = calloc(n + 1, sizeof *w->places);
	if (!w->places)
		return error_memory(err);
	for (size_t i = 0; i < n; i++)
		w->places[i] = (struct wait_place){w->ids[i], i};
	qsort(w->places, n, sizeof *w->places, place_compare);
	r = ledger_queue_look(l, w->ids, on_look, w, err);
	free(w->places);
	return r;
}

/* A descriptor that becomes readable when the time is over or the host's does. */
static int stopper_open(int timeout_ms, int stop_fd, int *ret_timer, struct error *err)
{
	struct itimerspec when = {.it_value = {timeout_ms / 1000, timeout_ms % 1000 * 1000000L + 1}};
	struct epoll_event event = {.events = EPOLLIN};
	_cleanup_close_ int fd = epoll_create1(EPOLL_CLOEXEC),
			    timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

	if (fd < 0 || timer < 0 || (timeout_ms >= 0 && timerfd_settime(timer, 0, &when, NULL) < 0) ||
	    epoll_ctl(fd, EPOLL_CTL_ADD, timer, &event) < 0 ||
	    (stop_fd >= 0 && epoll_ctl(fd, EPOLL_CTL_ADD, stop_fd, &event) < 0))
		return error_system(err, errno, "cannot make descriptors to wait with");
	*ret_timer = TAKE_FD(timer);
	return TAKE_FD(fd);
}

static int wait_for_all(struct wait *w, struct ledger *l, int timeout_ms, int stop_fd, struct error *err)
{
	_cleanup_close_ int timer = -1;
	_cleanup_close_ int stopper = stopper_open(timeout_ms, stop_fd, &timer, err);
	struct wait_hooks hooks = {.arg = w, .ended = on_ended, .stop_fd = stopper};
	int r = stopper < 0 ? stopper : 0;

	for (size_t i = 0; r == 0 && w->ids[i]; i++) {
		r = id_check(w->ids[i], err);
		if (r == 0 && json_array_append_new(w->rows, json_null()) < 0)
			r = error_memory(err);
	}
	if (r == 0)
		r = wait_for(l, w->ids, &hooks, err);
	if (r <= 0)
		return r < 0 ? r : 1;
	r = look_at_rest(w, l, err);
	/* It was there when the waiting began: that it is away now is no failure. */
	return r < 0 && wait_is_passing(err) ? 0 : r;
}

FH_PUBLIC int fh_wait(fh_hood *hood, const char *const *ids, int timeout_ms, int stop_fd, char **ret_json,
		      fh_error *err)
{
	struct wait w = {.ids = (char *const *)ids, .rows = json_array()};
	struct ledger *ledger;
	struct call c;
	int r = call_begin(&c, hood, "wait", err);

	if (r < 0) {
		json_decref(w.rows);
		return r;
	}
	r = w.rows ? hood_ledger(c.hood, LEDGER_CREATE, &ledger, &c.err) : error_memory(&c.err);
	if (r == 0)
		r = wait_for_all(&w, ledger, timeout_ms, stop_fd, &c.err);
	return call_end_json(&c, r, w.rows, ret_json, err);
}

/* ---- cancel, retry ---- */

FH_PUBLIC int fh_cancel(fh_hood *hood, const char *id, const char **ret_state, fh_error *err)
{
	const char *was = NULL;
	struct call c;
	int r = call_begin(&c, hood, "cancel", err);

	if (r < 0)
		return r;
	r = id_check(id, &c.err);
	if (r == 0)
		r = hood_cancel(c.hood, id, &was, NULL, &c.err);
	r = call_end(&c, r, err);
	if (r == 0 && ret_state)
		*ret_state = was;
	return r;
}

FH_PUBLIC int fh_retry(fh_hood *hood, const char *id, fh_error *err)
{
	char submitter[SUBMITTER_ROOM];
	struct call c;
	int r = call_begin(&c, hood, "retry", err);

	if (r < 0)
		return r;
	r = id_check(id, &c.err);
	if (r == 0)
		r = submitter_default(submitter, sizeof submitter, &c.err);
	if (r == 0)
		r = submission_retry(c.hood, submitter, id, &c.err);
	return call_end(&c, r, err);
}

/* ---- worker ---- */

static int read_lease(const char *text, uint64_t *ret, struct error *err)
{
	if (!text ||
	    (duration_parse(text, ret) == 0 && *ret >= QUEUE_LEASE_MIN_NS && *ret <= QUEUE_LEASE_MAX_NS))
		return 0;
	return error_set(err, ERROR_USAGE, "a lease is a time from 1s to 1h, not '%s'", SHOWN(64, text));
}

/* The worker opens hoods of its own: this call's is not lent from the pool for long. */
FH_PUBLIC int fh_worker_run_engine(fh_hood *hood, const char *engine, int jobs, const char *lease, int drain,
				   int stop_fd, fh_error *err)
{
	struct worker_options o = {.hood = {.config_file = hood->config_file, .ledger = hood->ledger},
				   .jobs = jobs,
				   .drain = drain != 0,
				   .signal_fd = stop_fd};
	struct error why = ERROR_INIT;
	struct quiet quiet;
	int r = check_process(hood->pid, err);

	if (r < 0)
		return r;
	if (jobs < 0 || jobs > WORKER_JOBS_MAX)
		return fail_with(err, FH_USAGE, "a worker has from 1 to %d jobs at once, not %d",
				 WORKER_JOBS_MAX, jobs);
	hood_ref(hood);
	quiet_begin(&quiet);
	r = engine_kind_parse(engine, &o.engine);
	if (r < 0)
		error_set(&why, ERROR_USAGE, "an engine is local or slurm, not '%s'", SHOWN(64, engine));
	if (r == 0)
		r = read_lease(lease, &o.lease_ns, &why);
	if (r == 0)
		r = worker_run(&o, &why);
	quiet_end(&quiet);
	hood_unref(hood);
	if (r >= 0)
		return 0;
	if (!why.stage)
		why.stage = "worker";
	return fail(err, &why);
}

FH_PUBLIC int fh_worker_run(fh_hood *hood, int jobs, const char *lease, int drain, int stop_fd, fh_error *err)
{
	return fh_worker_run_engine(hood, "local", jobs, lease, drain, stop_fd, err);
}
