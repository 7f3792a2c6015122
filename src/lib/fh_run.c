/*
 * One analysis while the host does something else: a thread that tells its story, and what it shares with the host's
 * threads under one lock.
 *
 *     RUNNING ──► ENDED                                  fh_start() without FH_DEFER, or refused
 *     RUNNING ──► DECIDED ──► (an order: commit, drop) ──► ENDED
 *
 * The story's data (story, result's attempt) belong to the thread while it is RUNNING or has an order, else to whoever
 * has the lock.
 */
#include "lib.h"
#include "process.h"
#include "feed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>

#include "clock.h"
#include "file.h"

enum order { ORDER_NONE, ORDER_COMMIT, ORDER_DROP };

/* A story touches 76 KiB of its stack, with either ledger; name services, which libpq asks, may want more. */
enum { STACK_SIZE = 512 * 1024, PROGRESS_INTERVAL_MS = 200 };

struct fh_run {
	fh_hood *owner;
	unsigned flags;
	struct request request;
	struct run_hooks hooks;
	int cancel[2]; /* a pipe */
	int stdin_fd;
	int event;
	pthread_t thread;
	uint64_t started;
	char id[ID_ROOM];

	pthread_mutex_t lock;
	pthread_cond_t changed;
	enum fh_state state;
	bool executed; /* or tried in vain */
	int exec_errno;
	enum order order;
	struct story *story;
	fh_result *result;
	struct feed feed[STREAM_COUNT];
	fh_progress progress;
};

/* ---- what the host sees: under the lock ---- */

/* Readable exactly as long as there is something to see. */
static void event_update(fh_run *run)
{
	bool wanted = run->state != FH_RUNNING || run->feed[FH_STDOUT].size || run->feed[FH_STDERR].size;
	uint64_t count = 1;

	if (wanted)
		(void)!write(run->event, &count, sizeof count); /* full: it is readable already */
	else
		(void)!read(run->event, &count, sizeof count);
}

/* Nobody reads its stdin any more, and whoever still writes to it is told. */
static void run_set_state(fh_run *run, enum fh_state state)
{
	pthread_mutex_lock(&run->lock);
	run->stdin_fd = fd_close(run->stdin_fd);
	run->state = state;
	event_update(run);
	pthread_cond_broadcast(&run->changed);
	pthread_mutex_unlock(&run->lock);
}

static void on_output(void *arg, int stream, const char *data, size_t size)
{
	fh_run *run = arg;

	pthread_mutex_lock(&run->lock);
	feed_put(&run->feed[stream], data, size);
	event_update(run);
	pthread_mutex_unlock(&run->lock);
}

static void on_started(void *arg, int exec_errno)
{
	fh_run *run = arg;

	pthread_mutex_lock(&run->lock);
	run->executed = true;
	run->exec_errno = exec_errno;
	pthread_cond_broadcast(&run->changed);
	pthread_mutex_unlock(&run->lock);
}

static void on_progress(void *arg, const struct progress *p)
{
	fh_run *run = arg;

	pthread_mutex_lock(&run->lock);
	run->progress = (fh_progress){.elapsed_ms = p->elapsed_ms,
				      .cpu_ms = p->cpu_ms,
				      .memory_bytes = p->memory_bytes,
				      .pids = p->pids,
				      .disk_files = p->disk_files};
	snprintf(run->progress.stage, sizeof run->progress.stage, "%s", p->stage);
	pthread_mutex_unlock(&run->lock);
}

/* ---- the thread ---- */

static enum order await_order(fh_run *run)
{
	enum order order;

	pthread_mutex_lock(&run->lock);
	while (run->order == ORDER_NONE)
		pthread_cond_wait(&run->changed, &run->lock);
	order = run->order;
	pthread_mutex_unlock(&run->lock);
	return order;
}

/* The commit is the host's to order. What is dropped keeps what is known of it, uncommitted. */
static void obey(fh_run *run, struct story *story)
{
	fh_result *known;

	pthread_mutex_lock(&run->lock);
	run->story = story;
	pthread_mutex_unlock(&run->lock);
	run_set_state(run, FH_DECIDED);
	if (await_order(run) == ORDER_COMMIT) {
		hood_story_end(story);
		return;
	}
	known = result_copy(&run->result->attempt);
	hood_story_drop(story);
	if (known) {
		fh_result_free(run->result);
		run->result = known;
	}
}

static void *run_main(void *arg)
{
	fh_run *run = arg;
	struct attempt *a = &run->result->attempt;
	struct error why = ERROR_INIT;
	struct story *story = NULL;
	struct hood *hood = NULL;
	int r = pool_take(run->owner, &hood, &why);

	if (r == 0)
		r = run->flags & FH_DEFER ? hood_story(hood, &run->request, &run->hooks, a, &story, &why)
					  : hood_run(hood, &run->request, &run->hooks, a, &why);
	if (r < 0) {
		memcpy(a->id, run->id, sizeof a->id);
		(void)attempt_refuse(a, &why);
	}
	if (story)
		obey(run, story);
	pool_give(run->owner, hood);
	run_set_state(run, FH_ENDED);
	return NULL;
}

static int start_thread(fh_run *run, struct error *err)
{
	int r = thread_start(&run->thread, STACK_SIZE, run_main, run);

	return r < 0 ? error_system(err, -r, "cannot start a thread for the analysis") : 0;
}

/* ---- making and ending it ---- */

static void run_destroy(fh_run *run)
{
	fh_result_free(run->result);
	request_done(&run->request);
	for (int i = 0; i < STREAM_COUNT; i++)
		feed_done(&run->feed[i]);
	fd_close(run->cancel[0]);
	fd_close(run->cancel[1]);
	fd_close(run->stdin_fd);
	fd_close(run->event);
	pthread_mutex_destroy(&run->lock);
	pthread_cond_destroy(&run->changed);
	hood_unref(run->owner);
	free(run);
}

static fh_run *run_new(fh_hood *hood, unsigned flags)
{
	fh_run *run = calloc(1, sizeof *run);
	pthread_condattr_t attr;

	if (!run)
		return NULL;
	run->owner = hood_ref(hood);
	run->flags = flags;
	run->cancel[0] = run->cancel[1] = run->stdin_fd = run->event = -1;
	run->started = clock_now();
	run->progress = (fh_progress){.cpu_ms = -1, .memory_bytes = -1, .pids = -1, .disk_files = -1};
	for (int i = 0; i < STREAM_COUNT; i++)
		run->feed[i].whole = flags & FH_WHOLE;
	request_init(&run->request);
	pthread_mutex_init(&run->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&run->changed, &attr);
	pthread_condattr_destroy(&attr);
	return run;
}

static int open_descriptors(fh_run *run, const fh_request *request, struct error *err)
{
	run->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (run->event < 0 || pipe2(run->cancel, O_CLOEXEC | O_NONBLOCK) < 0)
		return error_system(err, errno, "cannot make descriptors for the run");
	if (request->stdin_fd < 0)
		return 0;
	run->stdin_fd = fcntl(request->stdin_fd, F_DUPFD_CLOEXEC, 3);
	return run->stdin_fd < 0 ? error_system(err, errno, "cannot duplicate the analysis's stdin") : 0;
}

/* The id is known from the start, so that others can be told of it. */
static int take_id(fh_run *run, struct error *err)
{
	int r = run->request.id ? 0 : id_make(run->id, err);

	if (r < 0)
		return r;
	if (!run->request.id)
		return text_set(&run->request.id, run->id, err);
	snprintf(run->id, sizeof run->id, "%s", run->request.id);
	return 0;
}

static int prepare(fh_run *run, const fh_request *request, struct error *err)
{
	int r = request_complete(request, &run->request, err);

	if (r == 0)
		r = take_id(run, err);
	if (r == 0)
		r = open_descriptors(run, request, err);
	if (r < 0)
		return r;
	run->result = result_new();
	if (!run->result)
		return error_memory(err);
	memcpy(run->result->attempt.id, run->id, sizeof run->id);
	run->hooks = (struct run_hooks){
		.arg = run,
		.output = run->flags & FH_FOLLOW ? on_output : NULL,
		.progress = on_progress,
		.started = on_started,
		.progress_interval_ms = run->flags & FH_PROGRESS ? PROGRESS_INTERVAL_MS : 0,
		.cancel_fd = run->cancel[0],
		.stdin_fd = run->stdin_fd,
		.merge = run->flags & FH_MERGE,
	};
	return start_thread(run, err);
}

FH_PUBLIC int fh_start(fh_hood *hood, const fh_request *request, unsigned flags, fh_run **ret, fh_error *err)
{
	struct error why = {.stage = "request"};
	int r = check_process(hood->pid, err);
	fh_run *run;

	if (r == 0)
		r = flags_check("fh_start", flags, FH_DEFER | FH_FOLLOW | FH_PROGRESS | FH_WHOLE | FH_MERGE,
				err);
	if (r < 0)
		return r;
	run = run_new(hood, flags);
	if (!run)
		return fail_memory(err);
	if (prepare(run, request, &why) < 0) {
		run_destroy(run);
		return fail(err, &why);
	}
	*ret = run;
	return 0;
}

static void give_order(fh_run *run, enum order order)
{
	run->order = order;
	pthread_cond_broadcast(&run->changed);
}

FH_PUBLIC void fh_run_free(fh_run *run)
{
	if (!run || run->owner->pid != getpid())
		return;
	pthread_mutex_lock(&run->lock);
	if (run->order == ORDER_NONE)
		give_order(run, ORDER_DROP); /* a run that is not deferred never looks */
	pthread_mutex_unlock(&run->lock);
	fh_run_cancel(run, SIGTERM, NULL);
	pthread_join(run->thread, NULL);
	run_destroy(run);
}

FH_PUBLIC int fh_perform(fh_hood *hood, const fh_request *request, fh_result **ret, fh_error *err)
{
	fh_run *run = NULL;
	int r = fh_start(hood, request, 0, &run, err);

	if (r < 0)
		return r;
	pthread_join(run->thread, NULL);
	*ret = TAKE_PTR(run->result);
	run_destroy(run);
	return 0;
}

/* ---- while it runs ---- */

FH_PUBLIC const char *fh_run_id(const fh_run *run)
{
	return run->id;
}

FH_PUBLIC int fh_run_fd(const fh_run *run)
{
	return run->event;
}

FH_PUBLIC int fh_run_state(const fh_run *run)
{
	fh_run *shared = (fh_run *)run;
	enum fh_state state;

	if (run->owner->pid != getpid())
		return FH_ENDED;
	pthread_mutex_lock(&shared->lock);
	state = run->state;
	pthread_mutex_unlock(&shared->lock);
	return (int)state;
}

static struct timespec deadline(int timeout_ms)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_sec += timeout_ms / 1000;
	t.tv_nsec += timeout_ms % 1000 * 1000000L;
	if (t.tv_nsec >= 1000000000L) {
		t.tv_sec++;
		t.tv_nsec -= 1000000000L;
	}
	return t;
}

static bool has_ended(const fh_run *run)
{
	return run->state != FH_RUNNING;
}

static bool has_started(const fh_run *run)
{
	return run->executed || has_ended(run);
}

/* Under the lock. 1: it is so. */
static int await(fh_run *run, bool (*is_so)(const fh_run *run), int timeout_ms)
{
	struct timespec until = deadline(timeout_ms < 0 ? 0 : timeout_ms);
	int timed_out = 0;

	while (!is_so(run) && !timed_out && timeout_ms != 0)
		timed_out = timeout_ms < 0 ? pthread_cond_wait(&run->changed, &run->lock)
					   : pthread_cond_timedwait(&run->changed, &run->lock, &until);
	return is_so(run);
}

FH_PUBLIC int fh_run_wait(fh_run *run, int timeout_ms, fh_error *err)
{
	int r = check_process(run->owner->pid, err);

	if (r < 0)
		return r;
	pthread_mutex_lock(&run->lock);
	r = await(run, has_ended, timeout_ms);
	pthread_mutex_unlock(&run->lock);
	return r;
}

FH_PUBLIC int fh_run_started(fh_run *run, int timeout_ms, int *ret_errno, fh_error *err)
{
	int r = check_process(run->owner->pid, err);

	if (r < 0)
		return r;
	pthread_mutex_lock(&run->lock);
	r = await(run, has_started, timeout_ms);
	if (r && ret_errno)
		*ret_errno = run->exec_errno;
	pthread_mutex_unlock(&run->lock);
	return r;
}

FH_PUBLIC int fh_run_cancel(fh_run *run, int signal, fh_error *err)
{
	/* The second byte does not wait for the grace to be over. */
	unsigned char bytes[2] = {(unsigned char)(signal == SIGKILL ? SIGTERM : signal), SIGKILL};
	int r = check_process(run->owner->pid, err);

	if (r < 0)
		return r;
	if (signal != SIGTERM && signal != SIGINT && signal != SIGHUP && signal != SIGKILL)
		return fail_with(err, FH_USAGE,
				 "a run is cancelled with SIGTERM, SIGINT, SIGHUP or SIGKILL, not with %d",
				 signal);
	(void)!write(run->cancel[1], bytes,
		     signal == SIGKILL ? 2 : 1); /* full: it has been told often enough */
	return 0;
}

FH_PUBLIC ssize_t fh_run_read(fh_run *run, int stream, void *buffer, size_t size, uint64_t *ret_dropped)
{
	ssize_t n;

	if (run->owner->pid != getpid() || stream < 0 || stream >= STREAM_COUNT)
		return -1;
	pthread_mutex_lock(&run->lock);
	n = (ssize_t)feed_take(&run->feed[stream], buffer, size, ret_dropped);
	if (n == 0 && run->state != FH_RUNNING && run->feed[stream].size == 0)
		n = -1;
	event_update(run);
	pthread_mutex_unlock(&run->lock);
	return n;
}

FH_PUBLIC int fh_run_progress(fh_run *run, fh_progress *ret, fh_error *err)
{
	int r = check_process(run->owner->pid, err);

	if (r < 0)
		return r;
	pthread_mutex_lock(&run->lock);
	*ret = run->progress;
	if (run->state == FH_RUNNING)
		ret->elapsed_ms = (int64_t)((clock_now() - run->started) / NSEC_PER_MSEC);
	pthread_mutex_unlock(&run->lock);
	return 0;
}

/* ---- the verdict ---- */

FH_PUBLIC int fh_run_result(fh_run *run, fh_result **ret, fh_error *err)
{
	int r = check_process(run->owner->pid, err);
	fh_result *result = NULL;
	bool running;

	if (r < 0)
		return r;
	pthread_mutex_lock(&run->lock);
	running = run->state == FH_RUNNING || (run->state == FH_DECIDED && run->order != ORDER_NONE);
	if (!running)
		result =
			run->state == FH_ENDED ? result_ref(run->result) : result_copy(&run->result->attempt);
	pthread_mutex_unlock(&run->lock);
	if (running)
		return fail_with(err, FH_BUSY, "'%s' has not ended: wait for it first", run->id);
	if (!result)
		return fail_memory(err);
	*ret = result;
	return 0;
}

/* Takes the lock of a run that waits for its order; or says why there is none to be given. */
static int lock_decided(fh_run *run, fh_error *err)
{
	int r = check_process(run->owner->pid, err);

	if (r < 0)
		return r;
	pthread_mutex_lock(&run->lock);
	if (run->state == FH_DECIDED && run->order == ORDER_NONE)
		return 0;
	r = run->state == FH_RUNNING
		    ? fail_with(err, FH_BUSY, "'%s' has no verdict yet: wait for it first", run->id)
		    : fail_with(
			      err, FH_USAGE,
			      "'%s' has ended: only a run that was started with FH_DEFER waits for its commit, once",
			      run->id);
	pthread_mutex_unlock(&run->lock);
	return r;
}

static void order_and_await(fh_run *run, enum order order)
{
	give_order(run, order);
	while (run->state != FH_ENDED)
		pthread_cond_wait(&run->changed, &run->lock);
}

FH_PUBLIC int fh_run_open_output(fh_run *run, const char *path, fh_error *err)
{
	struct error why = {.stage = "collect"};
	const struct output *o;
	int r = lock_decided(run, err), fd;

	if (r < 0)
		return r;
	o = manifest_find(&run->result->attempt.manifest, path);
	fd = o ? hood_story_open(run->story, o, &why)
	       : error_set(&why, ERROR_NOT_FOUND, "%s has no output '%s'", run->id, SHOWN(256, path));
	pthread_mutex_unlock(&run->lock);
	return fd < 0 ? fail(err, &why) : fd;
}

/* What the host gives to the commit beside what the run left. */
static int add_to_commit(struct story *s, const char *rows, size_t rows_size, const char *result_json,
			 struct error *err)
{
	json_auto_t *result = result_json ? json_read(result_json, err) : NULL;

	if (result_json && !result)
		return -EINVAL;
	if (result && hood_story_result(s, result, err) < 0)
		return -EINVAL;
	return rows ? hood_story_rows(s, rows, rows_size, err) : 0;
}

FH_PUBLIC int fh_run_commit(fh_run *run, const char *rows, size_t rows_size, const char *result_json,
			    fh_error *err)
{
	struct error why = {.stage = "commit"};
	struct quiet quiet;
	int r = lock_decided(run, err);

	if (r < 0)
		return r;
	quiet_begin(&quiet);
	r = add_to_commit(run->story, rows, rows_size, result_json, &why);
	if (r == 0)
		order_and_await(run, ORDER_COMMIT);
	pthread_mutex_unlock(&run->lock);
	quiet_end(&quiet);
	why.stage = "commit";
	return r < 0 ? fail(err, &why) : 0;
}

FH_PUBLIC int fh_run_drop(fh_run *run, fh_error *err)
{
	int r = lock_decided(run, err);

	if (r < 0)
		return r;
	order_and_await(run, ORDER_DROP);
	pthread_mutex_unlock(&run->lock);
	return 0;
}
