/*
 * Analyses on this host, each in a thread with a hood of its own: the story waits for disks and databases, and the worker's
 * loop must not wait with it. One thread more than there are slots, so that recovery always finds one. They share a few
 * connections to the ledger: while an analysis runs it has none.
 */
#include "engine.h"
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

struct task {
	struct task *next;
	bool is_recovery;
	bool keeps_house; /* what is no longer retained goes, too */
	struct job job;
	int cancel[2]; /* a pipe: hood_run reads the signal's number from it */
	struct engine_end end;
};

struct local;
struct seat {
	struct local *local;
	struct hood *hood;
	pthread_t thread;
	bool started;
};

struct local {
	struct engine engine;
	pthread_mutex_t lock;
	pthread_cond_t turn;
	struct task *todo, *running, *ended; /* todo and ended in order, the first comes first */
	bool closing;
	struct seat *seats;
	int n_seats;
	const struct run_manager *manager; /* or NULL */
	struct hood *keeper;		   /* recovery's, one at a time: it sweeps, which takes a session */
	struct stock *stock;
};

void engine_end_done(struct engine_end *e)
{
	attempt_done(&e->attempt);
}

int engine_kind_parse(const char *name, enum engine_kind *ret)
{
	static const char *const names[] = {[ENGINE_LOCAL] = "local", [ENGINE_SLURM] = "slurm"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strcmp(names[i], name) == 0) {
			*ret = (enum engine_kind)i;
			return 0;
		}
	return -EINVAL;
}

static struct task *task_free(struct task *t)
{
	if (!t)
		return NULL;
	job_done(&t->job);
	fd_close(t->cancel[0]);
	fd_close(t->cancel[1]);
	engine_end_done(&t->end);
	free(t);
	return NULL;
}

static struct task *task_new(struct error *err)
{
	struct task *t = calloc(1, sizeof *t);

	if (!t) {
		error_memory(err);
		return NULL;
	}
	t->cancel[0] = t->cancel[1] = -1;
	attempt_init(&t->end.attempt);
	return t;
}

static void append(struct task **list, struct task *t)
{
	while (*list)
		list = &(*list)->next;
	t->next = NULL;
	*list = t;
}

static void take_out(struct task **list, const struct task *t)
{
	while (*list && *list != t)
		list = &(*list)->next;
	if (*list)
		*list = t->next;
}

/* ---- in a seat's thread ---- */

static int describe_refusal(const struct job *j, const struct error *why, struct attempt *a)
{
	int64_t created = a->created;

	attempt_done(a);
	attempt_init(a);
	attempt_identify(a, j->id, j->token, j->attempt, j->request);
	a->queued = true;
	a->engine = json_incref(j->engine);
	a->ended = clock_utc();
	a->created = created ? created : a->ended;
	a->host = host_name();
	attempt_conclude(a, VERDICT_REFUSED, "%s", why->message);
	return a->host ? attempt_set_error(a, why) : -ENOMEM;
}

/* Refused before it ran: nobody is there to be told, so it is recorded. */
static enum outcome commit_refusal(struct seat *seat, struct task *t, const struct error *refused)
{
	struct engine_end *end = &t->end;
	struct ledger *ledger;

	if (describe_refusal(&t->job, refused, &end->attempt) < 0) {
		error_memory(&end->why);
		return OUTCOME_BUSY;
	}
	end->why = (struct error)ERROR_INIT;
	if (hood_ledger(seat->hood, LEDGER_CREATE, &ledger, &end->why) < 0 ||
	    ledger_commit(ledger, &end->attempt, NULL, NULL, &end->attempt.number, &end->why) < 0)
		return end->why.kind == ERROR_LEASE ? OUTCOME_LOST : OUTCOME_BUSY;
	end->attempt.committed = true;
	return OUTCOME_SETTLED;
}

/* Its command has ended. Whatever kept us from committing that, it is kept here until it is done. */
static enum outcome outcome_of_story(struct task *t)
{
	struct attempt *a = &t->end.attempt;
	struct error *why = &t->end.why;

	if (a->committed)
		return OUTCOME_SETTLED;
	error_set(why, ERROR_SYSTEM, "%s", a->error_message ? a->error_message : "it was not committed");
	why->stage = "commit";
	if (a->pending)
		return OUTCOME_UNSETTLED;
	return error_kind_parse(a->error_code) == ERROR_LEASE ? OUTCOME_LOST : OUTCOME_BUSY;
}

static enum outcome run(struct seat *seat, struct task *t)
{
	_cleanup_request_ struct request request;
	struct run_hooks hooks = {
		.cancel_fd = t->cancel[0], .stdin_fd = -1, .job = &t->job, .manager = seat->local->manager};
	struct error err = ERROR_INIT;

	request_init(&request);
	if (t->job.unreadable)
		error_set(&err, ERROR_REFUSED, "what was submitted cannot be read: %s", t->job.unreadable);
	else if (request_from_json(&request, t->job.request, &err) == 0 &&
		 hood_run(seat->hood, &request, &hooks, &t->end.attempt, &err) == 0)
		return outcome_of_story(t);
	t->end.why = err;
	if (err.kind == ERROR_LEASE)
		return OUTCOME_HANDED_BACK;
	/* What one host has in its way is not the end of an analysis. */
	return error_is_passing(&err) ? OUTCOME_BUSY : commit_refusal(seat, t, &err);
}

static void recover(struct hood *h, struct task *t)
{
	struct engine_end *end = &t->end;

	end->outcome = OUTCOME_RECOVERED;
	if (hood_recover(h, &end->recovered, &end->why) < 0 && end->recovered.failed == 0)
		end->recovered.failed = 1;
	if (t->keeps_house && hood_retain(h, false, &end->recovered, &end->why) < 0)
		end->recovered.failed++;
	hood_ledger_close(h);
}

static void work(struct seat *seat, struct task *t)
{
	struct engine_end *end = &t->end;

	if (t->is_recovery) {
		recover(seat->local->keeper, t);
		return;
	}
	memcpy(end->id, t->job.id, sizeof end->id);
	memcpy(end->token, t->job.token, sizeof end->token);
	end->outcome = run(seat, t);
}

static void *seat_main(void *arg)
{
	struct seat *seat = arg;
	struct local *l = seat->local;
	static const uint64_t one = 1;

	pthread_mutex_lock(&l->lock);
	for (;;) {
		struct task *t;

		while (!l->todo && !l->closing)
			pthread_cond_wait(&l->turn, &l->lock);
		if (!l->todo)
			break;
		t = l->todo;
		l->todo = t->next;
		append(&l->running, t);
		pthread_mutex_unlock(&l->lock);
		work(seat, t);
		pthread_mutex_lock(&l->lock);
		take_out(&l->running, t);
		append(&l->ended, t);
		(void)!write(l->engine.fd, &one, sizeof one);
	}
	pthread_mutex_unlock(&l->lock);
	return NULL;
}

/* ---- in the worker's thread ---- */

static struct local *local_of(struct engine *e)
{
	return (struct local *)(void *)e;
}

static void give(struct local *l, struct task *t)
{
	pthread_mutex_lock(&l->lock);
	append(&l->todo, t);
	pthread_cond_signal(&l->turn);
	pthread_mutex_unlock(&l->lock);
}

static int local_start(struct engine *e, struct job *job, struct error *err)
{
	struct task *t = task_new(err);

	if (!t)
		return -ENOMEM;
	if (pipe2(t->cancel, O_CLOEXEC | O_NONBLOCK) < 0) {
		int errnum = errno;

		task_free(t);
		return error_system(err, errnum, "cannot make a pipe for '%s'", job->id);
	}
	t->job = *job;
	*job = (struct job){0};
	give(local_of(e), t);
	return 0;
}

static int local_recover(struct engine *e, bool keeps_house, struct error *err)
{
	struct task *t = task_new(err);

	if (!t)
		return -ENOMEM;
	t->is_recovery = true;
	t->keeps_house = keeps_house;
	give(local_of(e), t);
	return 0;
}

static void cancel_in(struct task *list, const char *token, unsigned char byte)
{
	for (struct task *t = list; t; t = t->next)
		if (!t->is_recovery && strcmp(t->job.token, token) == 0)
			(void)!write(t->cancel[1], &byte, 1);
}

static void local_cancel(struct engine *e, const char *token, enum engine_cancel how)
{
	struct local *l = local_of(e);
	unsigned char byte = how == ENGINE_HAND_BACK ? CANCEL_HAND_BACK : SIGTERM;

	pthread_mutex_lock(&l->lock);
	cancel_in(l->todo, token, byte);
	cancel_in(l->running, token, byte);
	pthread_mutex_unlock(&l->lock);
}

static int local_reap(struct engine *e, struct engine_end *ret)
{
	struct local *l = local_of(e);
	struct task *t;
	uint64_t n;

	pthread_mutex_lock(&l->lock);
	t = l->ended;
	if (t)
		l->ended = t->next;
	else
		(void)!read(l->engine.fd, &n, sizeof n);
	pthread_mutex_unlock(&l->lock);
	if (!t)
		return 0;
	*ret = t->end;
	attempt_init(&t->end.attempt);
	task_free(t);
	return 1;
}

static void free_list(struct task *t)
{
	while (t) {
		struct task *next = t->next;

		task_free(t);
		t = next;
	}
}

static void local_close(struct engine *e)
{
	struct local *l = local_of(e);

	pthread_mutex_lock(&l->lock);
	l->closing = true;
	pthread_cond_broadcast(&l->turn);
	pthread_mutex_unlock(&l->lock);
	for (int i = 0; i < l->n_seats; i++) {
		if (l->seats[i].started)
			pthread_join(l->seats[i].thread, NULL);
		hood_close(l->seats[i].hood);
	}
	hood_close(l->keeper);
	hood_stock_close(l->stock);
	free_list(l->todo);
	free_list(l->ended);
	fd_close(l->engine.fd);
	pthread_cond_destroy(&l->turn);
	pthread_mutex_destroy(&l->lock);
	free(l->seats);
	free(l);
}

static const struct engine_ops local_ops = {
	.start = local_start,
	.cancel = local_cancel,
	.recover = local_recover,
	.reap = local_reap,
	.close = local_close,
};

static int seat_start(struct seat *seat, const struct hood_options *options, struct error *err)
{
	int r = hood_open(options, &seat->hood, err);

	if (r < 0)
		return r;
	hood_use_stock(seat->hood, seat->local->stock);
	r = thread_start(&seat->thread, 0, seat_main, seat);
	if (r < 0)
		return error_system(err, -r, "cannot start a thread");
	seat->started = true;
	return 0;
}

/* n_seats counts one that could not start, too: it may have a hood. */
static int seats_start(struct local *l, const struct hood_options *options, struct error *err)
{
	struct hood_options own = *options;

	own.lending = NULL;
	if (!l->seats)
		return error_memory(err);
	if (l->engine.fd < 0)
		return error_system(err, errno, "cannot make an eventfd");
	if (hood_open(&own, &l->keeper, err) < 0)
		return -1;
	while (l->n_seats <= l->engine.slots) {
		struct seat *seat = &l->seats[l->n_seats++];

		seat->local = l;
		if (seat_start(seat, options, err) < 0)
			return -1;
	}
	return 0;
}

void engine_local_managed(struct engine *e, const struct run_manager *m)
{
	local_of(e)->manager = m;
}

int engine_local_open(const struct hood_options *options, int slots, struct engine **ret, struct error *err)
{
	struct local *l = calloc(1, sizeof *l);

	if (!l)
		return error_memory(err);
	l->engine = (struct engine){.ops = &local_ops, .name = "local", .slots = slots};
	l->engine.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->turn, NULL);
	l->seats = calloc((size_t)slots + 1, sizeof *l->seats);
	if (hood_stock_open(&l->stock, err) < 0 || seats_start(l, options, err) < 0) {
		local_close(&l->engine);
		return -1;
	}
	*ret = &l->engine;
	return 0;
}
