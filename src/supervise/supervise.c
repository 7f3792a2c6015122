#include "supervise.h"
#include "clock.h"
#include "ear.h"
#include "loop.h"
#include "process.h"
#include "pump.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	SAMPLE_FIRST_MS = 20, /* the second sample comes this long after the start … */
	SAMPLE_MAX_MS = 1000, /* … and the distance grows with the elapsed time up to this */
	DISK_FIRST_MS = 200,
	DISK_MAX_MS = 5000,
	DISK_HELD_MIN_MS = 1,  /* between two looks at a disk that is nearly full … */
	DISK_IDLE_MS = 20,     /* … and on which nothing happens */
	DISK_BYTES_PER_NS = 8, /* twice as fast as any analysis fills one */
	DISK_NS_PER_FILE = 1000,
	DISK_BLIND_MAX = 3, /* looks in a row that did not see all: somebody moves things under them */
	BACKSTOP_MS = 2000, /* how long after the deadline init gets before we kill it ourselves */
	READ_SIZE = 65536,
};

struct watch {
	const struct supervise_job *job;
	struct supervise_result *result;
	struct loop *loop;
	struct source *out[STREAM_COUNT], *report, *sampler, *disk, *backstop, *cancel[CANCEL_FDS];
	struct capture capture[STREAM_COUNT];
	struct command_report last; /* what the command itself used, where there is no cgroup */
	uint64_t progress_at;
	uint64_t disk_bytes, disk_files, disk_wait; /* at the last look */
	uint64_t disk_cost;			    /* of the look that is under way */
	int disk_blind;				    /* looks that did not see all, in a row */
	bool cancelled;
	struct pty *pty; /* NULL: it has no terminal */
};

void supervise_result_done(struct supervise_result *r)
{
	for (int i = 0; i < STREAM_COUNT; i++) {
		free(r->logs[i].head);
		free(r->logs[i].tail);
		r->logs[i] = (struct captured){0};
	}
	free(r->timeline);
	r->timeline = NULL;
}

enum drained { DRAINED_SOME, DRAINED_NOTHING /* now */, DRAINED_END };

/* Reads what is there. What cannot be read is at its end, and so is a terminal that nobody has open any more. */
static enum drained drain_once(struct watch *w, int stream)
{
	char data[READ_SIZE];
	ssize_t n = read(w->job->out_fd[stream], data, sizeof data);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return errno == EINTR ? DRAINED_SOME : DRAINED_NOTHING;
	if (n < 0 && !(errno == EIO && w->job->pty))
		w->result->read_errno[stream] = errno;
	if (n <= 0)
		return DRAINED_END;
	capture_add(&w->capture[stream], data, (size_t)n);
	if (w->job->output)
		w->job->output(w->job->arg, stream, data, (size_t)n);
	return DRAINED_SOME;
}

static int watch_stdout(struct watch *w, struct error *err);

static int on_output(struct watch *w, int stream)
{
	if (drain_once(w, stream) == DRAINED_END) {
		loop_remove(w->out[stream]);
		w->out[stream] = NULL;
	}
	return 0;
}

/* Who looks at the terminal has caught up. */
static int on_room(void *arg, UNUSED struct error *err)
{
	struct watch *w = arg;

	return w->out[STREAM_STDOUT] ? 0 : watch_stdout(w, err);
}

static int on_stdout(void *arg, UNUSED int fd, UNUSED uint32_t events, struct error *err)
{
	struct watch *w = arg;

	if (!w->pty || pty_has_room(w->pty))
		return on_output(w, STREAM_STDOUT);
	loop_remove(w->out[STREAM_STDOUT]);
	w->out[STREAM_STDOUT] = NULL;
	return pty_await_room(w->pty, on_room, w, err);
}

static int watch_stdout(struct watch *w, struct error *err)
{
	return loop_add_fd(w->loop, w->job->out_fd[STREAM_STDOUT], EPOLLIN, on_stdout, w,
			   &w->out[STREAM_STDOUT], err);
}

static int on_stderr(void *arg, UNUSED int fd, UNUSED uint32_t events, UNUSED struct error *err)
{
	return on_output(arg, STREAM_STDERR);
}

/* Only what came first counts as what it was ended for. */
static bool has_cause(const struct evidence *e)
{
	return e->cancel_signal || e->wall_reached || e->cpu_reached || e->disk_killed;
}

static int read_reports(struct watch *w)
{
	struct evidence *e = &w->result->evidence;
	struct command_report r;
	int n;

	while ((n = w->job->read_report(w->job->arg, &r)) == 1) {
		if (r.deadline && !has_cause(e))
			e->wall_reached = true;
		if (!r.ended)
			continue;
		w->last = r;
		if (WIFEXITED(r.status))
			e->exit_code = WEXITSTATUS(r.status);
		else if (WIFSIGNALED(r.status))
			e->signal = WTERMSIG(r.status);
	}
	return n;
}

static int on_report(void *arg, UNUSED int fd, UNUSED uint32_t events, UNUSED struct error *err)
{
	struct watch *w = arg;

	if (read_reports(w) == 0) {
		loop_remove(w->report);
		w->report = NULL;
	}
	return 0;
}

/* PID 1 is dead, and with it, says the kernel, every process of the namespace. */
static int on_dead(void *arg, UNUSED int fd, UNUSED uint32_t events, UNUSED struct error *err)
{
	struct watch *w = arg;

	loop_quit(w->loop);
	return 0;
}

static int on_cancel(void *arg, int fd, UNUSED uint32_t events, UNUSED struct error *err)
{
	struct watch *w = arg;
	struct evidence *e = &w->result->evidence;
	unsigned char number;
	ssize_t n = read(fd, &number, 1);

	if (n < 0)
		return 0;
	if (n == 0) { /* whoever could cancel is gone; that is no reason to stop */
		for (int i = 0; i < CANCEL_FDS; i++)
			if (w->job->cancel_fd[i] == fd)
				loop_remove(w->cancel[i]);
		return 0;
	}
	if (w->cancelled) {
		w->job->kill(w->job->arg);
		return 0;
	}
	w->cancelled = true;
	if (!has_cause(e))
		e->cancel_signal = number;
	w->job->terminate(w->job->arg);
	return 0;
}

/* Whoever sits at the terminal wants out: at once, and as if it had been hung up. */
static void on_out_typed(void *arg)
{
	struct watch *w = arg;

	w->cancelled = true;
	if (!has_cause(&w->result->evidence))
		w->result->evidence.cancel_signal = SIGHUP;
	w->job->kill(w->job->arg);
}

static int64_t elapsed_ms(const struct watch *w)
{
	return (int64_t)((clock_now() - w->job->started) / NSEC_PER_MSEC);
}

static int64_t to_ms(int64_t ns)
{
	return ns < 0 ? -1 : (ns + (int64_t)NSEC_PER_MSEC / 2) / (int64_t)NSEC_PER_MSEC;
}

/* Reads the cheap counters into a sample and adds it to the timeline. */
static void sample(struct watch *w, struct sample *s, struct cgroup_counters *c)
{
	*s = (struct sample){.at_ms = elapsed_ms(w), .cpu_ms = -1, .memory_bytes = -1, .pids = -1};
	if (!w->job->cgroup)
		return;
	cgroup_sample(w->job->cgroup, c);
	s->cpu_ms = to_ms(c->cpu_ns);
	s->memory_bytes = c->memory_bytes;
	s->pids = c->pids;
	if (w->result->timeline)
		timeline_add(w->result->timeline, s);
}

/* When the next look is due: soon at first, rarer as the analysis grows old, and in time for the cpu limit. */
static uint64_t next_sample(const struct watch *w, const struct sample *s)
{
	uint64_t cpu_limit = w->job->limits->value[LIMIT_CPU_TIME], now = clock_now();
	int64_t wait_ms = s->at_ms / 16;

	if (wait_ms < SAMPLE_FIRST_MS)
		wait_ms = SAMPLE_FIRST_MS;
	if (wait_ms > SAMPLE_MAX_MS)
		wait_ms = SAMPLE_MAX_MS;
	if (w->job->progress && w->job->progress_interval_ms && wait_ms > w->job->progress_interval_ms)
		wait_ms = w->job->progress_interval_ms;
	if (cpu_limit != LIMIT_NONE && s->cpu_ms >= 0) {
		long cpus = sysconf(_SC_NPROCESSORS_ONLN);
		int64_t left_ms = ((int64_t)(cpu_limit / NSEC_PER_MSEC) - s->cpu_ms) / (cpus > 0 ? cpus : 1);

		if (left_ms < wait_ms)
			wait_ms = left_ms < 1 ? 1 : left_ms;
	}
	return now + (uint64_t)wait_ms * NSEC_PER_MSEC;
}

static int on_sample(void *arg, UNUSED struct error *err)
{
	struct watch *w = arg;
	struct evidence *e = &w->result->evidence;
	struct usage *u = &w->result->usage;
	uint64_t cpu_limit = w->job->limits->value[LIMIT_CPU_TIME];
	struct cgroup_counters c = {.memory_anon_bytes = -1};
	struct sample s;

	sample(w, &s, &c);
	/* The kernel brings memory.stat up to date now and then: 0 is "not seen yet", a process has some. */
	if (w->job->cgroup && c.memory_anon_bytes > 0 && c.memory_anon_bytes > u->memory_anon_peak_bytes)
		u->memory_anon_peak_bytes = c.memory_anon_bytes;
	if (cpu_limit != LIMIT_NONE && s.cpu_ms >= 0 && (uint64_t)s.cpu_ms * NSEC_PER_MSEC >= cpu_limit &&
	    !has_cause(e)) {
		e->cpu_reached = true;
		w->job->terminate(w->job->arg);
	}
	if (w->job->progress && clock_now() >= w->progress_at) {
		w->progress_at = clock_now() + (uint64_t)w->job->progress_interval_ms * NSEC_PER_MSEC;
		w->job->progress(w->job->arg, &s,
				 w->result->disk_files_seen ? (int64_t)w->result->disk_files_seen : -1);
	}
	loop_timer_set(w->sampler, next_sample(w, &s));
	return 0;
}

static uint64_t clamp(uint64_t value, uint64_t least, uint64_t most)
{
	return value < least ? least : value > most ? most : value;
}

static uint64_t left_of(uint64_t limit, uint64_t used)
{
	return limit > used ? limit - used : 0;
}

/* A look at a plain directory costs as much as there are files: the rhythm follows its own cost. */
static uint64_t watched_disk_wait(uint64_t cost)
{
	return clamp(cost * 20, DISK_FIRST_MS * NSEC_PER_MSEC, DISK_MAX_MS * NSEC_PER_MSEC);
}

/* A file system that holds its limit is looked at to see it full, and files that nobody has named may be gone a moment
 * later: the less is left, the sooner, unless nothing happens. */
static uint64_t held_disk_wait(struct watch *w, uint64_t bytes, uint64_t files)
{
	const struct limits *l = w->job->limits;
	uint64_t most = DISK_FIRST_MS * NSEC_PER_MSEC, idle = DISK_IDLE_MS * NSEC_PER_MSEC,
		 wait = left_of(l->value[LIMIT_DISK], bytes) / DISK_BYTES_PER_NS,
		 by_files = clamp(left_of(l->value[LIMIT_FILES], files), 0, most) * DISK_NS_PER_FILE;

	if (by_files < wait)
		wait = by_files;
	if (bytes == w->disk_bytes && files == w->disk_files && wait < idle)
		wait = clamp(w->disk_wait * 2, wait, idle);
	w->disk_bytes = bytes;
	w->disk_files = files;
	w->disk_wait = clamp(wait, DISK_HELD_MIN_MS * NSEC_PER_MSEC, most);
	return w->disk_wait;
}

/* A look that found a closed door, or one of several in a row under which things were moved. */
static bool is_hidden(struct watch *w, enum look look)
{
	if (w->job->disk_is_held || look == LOOK_STARVED)
		return false;
	w->disk_blind = look == LOOK_MISSED ? w->disk_blind + 1 : 0;
	return look == LOOK_HIDDEN || w->disk_blind >= DISK_BLIND_MAX;
}

static int on_disk(void *arg, UNUSED struct error *err)
{
	struct watch *w = arg;
	struct supervise_result *result = w->result;
	const struct limits *l = w->job->limits;
	uint64_t start = clock_now(), bytes = 0, files = 0;
	enum look look = w->job->measure(w->job->arg, &bytes, &files);

	w->disk_cost += clock_now() - start;
	if (look == LOOK_GOES_ON) {
		loop_timer_set(w->disk, clock_now());
		return 0;
	}
	if (is_hidden(w, look))
		result->disk_was_hidden = true;
	if (look == LOOK_MISSED || look == LOOK_STARVED)
		bytes = files = 0;
	if (bytes > result->disk_bytes_seen)
		result->disk_bytes_seen = bytes;
	if (files > result->disk_files_seen)
		result->disk_files_seen = files;
	if (!w->job->disk_is_held &&
	    (result->disk_was_hidden || bytes > l->value[LIMIT_DISK] || files > l->value[LIMIT_FILES])) {
		if (!has_cause(&result->evidence))
			result->evidence.disk_killed = true;
		w->job->kill(w->job->arg);
	}
	loop_timer_set(w->disk, clock_now() + (w->job->disk_is_held ? held_disk_wait(w, bytes, files)
								    : watched_disk_wait(w->disk_cost)));
	w->disk_cost = 0;
	return 0;
}

static int on_backstop(void *arg, UNUSED struct error *err)
{
	struct watch *w = arg;

	if (!has_cause(&w->result->evidence))
		w->result->evidence.wall_reached = true;
	w->job->kill(w->job->arg);
	return 0;
}

static uint64_t backstop_time(const struct supervise_job *job)
{
	uint64_t wall = job->limits->value[LIMIT_WALL], when;

	if (wall == LIMIT_NONE || __builtin_add_overflow(job->started, wall, &when) ||
	    __builtin_add_overflow(when, job->limits->value[LIMIT_GRACE], &when) ||
	    __builtin_add_overflow(when, BACKSTOP_MS * NSEC_PER_MSEC, &when))
		return 0;
	return when;
}

static int watch_everything(struct watch *w, struct error *err)
{
	const struct supervise_job *job = w->job;
	static const loop_fd_fn on_stream[] = {[STREAM_STDOUT] = on_stdout, [STREAM_STDERR] = on_stderr};
	uint64_t now = clock_now();
	uint64_t first_sample = now + SAMPLE_FIRST_MS * NSEC_PER_MSEC;
	uint64_t first_look = now + (job->disk_is_held ? DISK_HELD_MIN_MS : DISK_FIRST_MS) * NSEC_PER_MSEC;
	struct loop *l = w->loop;
	int r;

	for (int i = 0; i < STREAM_COUNT; i++)
		if (job->out_fd[i] >= 0 &&
		    (r = loop_add_fd(l, job->out_fd[i], EPOLLIN, on_stream[i], w, &w->out[i], err)) < 0)
			return r;
	for (int i = 0; i < CANCEL_FDS; i++)
		if (job->cancel_fd[i] >= 0 &&
		    (r = loop_add_fd(l, job->cancel_fd[i], EPOLLIN, on_cancel, w, &w->cancel[i], err)) < 0)
			return r;
	if ((r = loop_add_fd(l, job->report_fd, EPOLLIN, on_report, w, &w->report, err)) < 0 ||
	    (r = loop_add_fd(l, job->pidfd, EPOLLIN, on_dead, w, NULL, err)) < 0 ||
	    (r = loop_add_timer(l, first_sample, on_sample, w, &w->sampler, err)) < 0 ||
	    (job->measure && (r = loop_add_timer(l, first_look, on_disk, w, &w->disk, err)) < 0))
		return r;
	return loop_add_timer(l, backstop_time(job), on_backstop, w, &w->backstop, err);
}

/* What lies in the pipe now, and no more: it may have been passed on to somebody who still lives, and writes. Of a terminal the
 * kernel does not tell how much: there are some kilobytes at most. */
static void drain_rest(struct watch *w, int stream)
{
	uint64_t until = w->capture[stream].total;
	int left = PTY_BUFFER_MAX;

	if (!w->pty && ioctl(w->job->out_fd[stream], FIONREAD, &left) < 0)
		return;
	until += (uint64_t)left;
	while (w->capture[stream].total < until && drain_once(w, stream) == DRAINED_SOME)
		;
}

/* Everything is dead: the last bytes, the last report, the counters as they stand for good. */
static void finish_usage(struct watch *w)
{
	struct supervise_result *result = w->result;
	struct usage *u = &result->usage;
	struct evidence *e = &result->evidence;
	struct cgroup_counters c;
	struct sample s;

	u->wall_ms = elapsed_ms(w);
	e->oom_kills = e->pids_hits = e->disk_hits = -1;
	/* Where no cgroup counts, the kernel still tells what the command and all that it waited for has used. */
	if (w->last.ended) {
		u->cpu_user_ms = to_ms(w->last.cpu_user_ns);
		u->cpu_system_ms = to_ms(w->last.cpu_system_ns);
		u->cpu_ms = to_ms(w->last.cpu_user_ns + w->last.cpu_system_ns);
	}
	if (!w->job->cgroup)
		return;
	sample(w, &s, &c);
	cgroup_read(w->job->cgroup, &c);
	if (c.cpu_ns >= 0) {
		u->cpu_ms = to_ms(c.cpu_ns);
		u->cpu_user_ms = to_ms(c.cpu_user_ns);
		u->cpu_system_ms = to_ms(c.cpu_system_ns);
	}
	u->memory_peak_bytes = c.memory_peak_bytes;
	u->swap_peak_bytes = c.swap_peak_bytes;
	u->pids_peak = c.pids_peak;
	u->read_bytes = c.read_bytes;
	u->written_bytes = c.written_bytes;
	u->throttled_ms = to_ms(c.throttled_ns);
	u->oom_kills = c.oom_kills;
	e->oom_kills = c.oom_kills;
	e->pids_hits = c.pids_hits;
}

/* It has ended: a log that cannot be kept or read again is missing, and that is all. */
static void finish_log(struct watch *w, int stream)
{
	struct supervise_result *result = w->result;
	struct error why = ERROR_INIT;

	result->log_errno[stream] =
		result->read_errno[stream] ? result->read_errno[stream] : w->capture[stream].write_errno;
	if (capture_finish(&w->capture[stream], &result->logs[stream], &why) < 0) {
		result->logs[stream] = (struct captured){.omitted = w->capture[stream].total};
		result->log_errno[stream] = why.errnum;
	}
}

static void finish(struct watch *w)
{
	struct supervise_result *result = w->result;
	struct evidence *e = &result->evidence;

	for (int i = 0; i < STREAM_COUNT; i++)
		if (w->job->out_fd[i] >= 0 && (w->out[i] || w->pty))
			drain_rest(w, i);
	if (w->report)
		read_reports(w);
	if (e->exit_code < 0 && !e->signal)
		e->signal = SIGKILL; /* it went down with its namespace */
	finish_usage(w);
	for (int i = 0; i < STREAM_COUNT; i++)
		finish_log(w, i);
}

int supervise(const struct supervise_job *job, struct supervise_result *ret, struct error *err)
{
	_cleanup_loop_ struct loop *loop = NULL;
	struct watch w = {.job = job, .result = ret};
	struct pump *pump = NULL;
	struct ear ear = {.fd = job->listener_fd, .hear = job->hear, .arg = job->arg};
	char end = job->pty ? PTY_END : 0;
	bool is_typed = job->pty && job->pty->like_fd >= 0;
	int r;

	*ret = (struct supervise_result){
		.evidence =
			{.started = true, .exit_code = -1, .oom_kills = -1, .pids_hits = -1, .disk_hits = -1},
		.usage = USAGE_UNKNOWN,
		.timeline = calloc(1, sizeof *ret->timeline),
	};
	for (int i = 0; i < STREAM_COUNT; i++)
		capture_init(&w.capture[i], job->log_fd[i], job->limits->value[LIMIT_LOG_MAX]);
	r = loop_open(&loop, err);
	w.loop = loop;
	if (r == 0 && (r = watch_everything(&w, err)) == 0 && (r = ear_open(&ear, loop, err)) == 0 &&
	    (!job->pty || (r = pty_open(loop, job->pty, &w.pty, err)) == 0) &&
	    (job->stdin_to < 0 || (r = pump_open(loop, job->stdin_from, job->stdin_to, end,
						 is_typed ? on_out_typed : NULL, &w, &pump, err)) == 0))
		r = loop_run(loop, err);
	pump_close(pump);
	if (r < 0) {
		job->kill(job->arg);
		pidfd_wait(job->pidfd, -1);
	}
	finish(&w);
	pty_close(w.pty);
	ret->evidence.unwatched = r < 0 && !w.last.ended;
	return r;
}
