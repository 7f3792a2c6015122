/*
 * Reading the ledger.
 */
#include "lib.h"
#include "view.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/inotify.h>

#include "file.h"

/* Between the end of the output and the end of the run nothing is written: then we look this often. */
enum { LOOK_AGAIN_MS = 500, BEGIN_AGAIN_MS = 2, READ_SIZE = 16 * 1024 };

FH_PUBLIC int fh_list(fh_hood *hood, const char *state, const char *prefix, int limit, char **ret_json,
		      fh_error *err)
{
	const struct view_filter filter = {state, prefix, limit};
	json_t *json = NULL;
	struct call c;
	int r = call_begin(&c, hood, "ls", err);

	if (r < 0)
		return r;
	r = view_list(c.hood, &filter, &json, &c.err);
	return call_end_json(&c, r, json, ret_json, err);
}

/* Those that take an id and an attempt. */
static int view(fh_hood *hood, const char *stage,
		int (*fn)(struct hood *h, const char *id, int attempt, json_t **ret, struct error *err),
		const char *id, int attempt, char **ret_json, fh_error *err)
{
	json_t *json = NULL;
	struct call c;
	int r = call_begin(&c, hood, stage, err);

	if (r < 0)
		return r;
	r = fn(c.hood, id, attempt, &json, &c.err);
	return call_end_json(&c, r, json, ret_json, err);
}

FH_PUBLIC int fh_show(fh_hood *hood, const char *id, int attempt, char **ret_json, fh_error *err)
{
	return view(hood, "show", view_show, id, attempt, ret_json, err);
}

FH_PUBLIC int fh_outputs(fh_hood *hood, const char *id, int attempt, char **ret_json, fh_error *err)
{
	return view(hood, "outputs", view_outputs, id, attempt, ret_json, err);
}

FH_PUBLIC int fh_logs(fh_hood *hood, const char *id, int attempt, char **ret_json, fh_error *err)
{
	return view(hood, "logs", view_logs, id, attempt, ret_json, err);
}

FH_PUBLIC int fh_load(fh_hood *hood, const char *id, int attempt, fh_result **ret, fh_error *err)
{
	fh_result *result;
	struct ledger *ledger;
	struct call c;
	int r = call_begin(&c, hood, "show", err);

	if (r < 0)
		return r;
	result = result_new();
	r = result ? view_load(c.hood, id, attempt, &ledger, &result->attempt, &c.err) : error_memory(&c.err);
	for (int i = 0; i <= STREAM_POST && r == 0; i++)
		r = ledger_load_log(ledger, &result->attempt, i,
				    i == STREAM_POST ? &result->attempt.post_log : &result->attempt.logs[i],
				    &c.err);
	r = call_end(&c, r, err);
	if (r < 0)
		fh_result_free(result);
	else
		*ret = result;
	return r;
}

static const struct output *find_output(const struct attempt *a, const char *path, struct error *err)
{
	char shown[256];

	for (size_t i = 0; i < a->manifest.n_outputs; i++)
		if (strcmp(a->manifest.outputs[i].path, path) == 0)
			return &a->manifest.outputs[i];
	error_set(err, ERROR_NOT_FOUND, "%s attempt %d has no output '%s'", a->id, a->number,
		  text_escape_into(shown, sizeof shown, path, strlen(path)));
	return NULL;
}

FH_PUBLIC int fh_get(fh_hood *hood, const char *id, int attempt, const char *path, int fd, fh_error *err)
{
	const struct output *o;
	struct ledger *ledger;
	struct attempt a;
	struct call c;
	int r = call_begin(&c, hood, "get", err);

	if (r < 0)
		return r;
	attempt_init(&a);
	r = view_load(c.hood, id, attempt, &ledger, &a, &c.err);
	if (r == 0) {
		o = find_output(&a, path, &c.err);
		r = o ? ledger_copy_output(ledger, o, fd, &c.err) : -ENOENT;
	}
	attempt_done(&a);
	return call_end(&c, r, err);
}

/* ---- logs as they come ---- */

struct copy {
	struct hood *hood;
	const char *id;
	int stream;
	int fd;
	int stop_fd;
	off_t done; /* bytes of the stream that were copied */
};

static int write_out(struct copy *x, const char *data, size_t size, struct error *err)
{
	int r = size ? file_write_all(x->fd, data, size) : 0;

	return r < 0 ? error_system(err, -r, "cannot write the log of '%s'", x->id) : 0;
}

/* What the ledger kept, from the byte on that a follower has not seen. */
static int copy_kept(struct copy *x, struct ledger *ledger, const struct attempt *a, struct error *err)
{
	_cleanup_(captured_done) struct captured c = {0};
	size_t from = (size_t)x->done, in_head, in_tail;
	int r = ledger_load_log(ledger, a, x->stream, &c, err);

	in_head = from < c.head_size ? from : c.head_size;
	in_tail = c.omitted == 0 ? from - in_head : 0;
	if (in_tail > c.tail_size)
		in_tail = c.tail_size;
	if (r == 0)
		r = write_out(x, c.head + in_head, c.head_size - in_head, err);
	if (r == 0)
		r = write_out(x, c.tail + in_tail, c.tail_size - in_tail, err);
	return r;
}

/* What the supervisor has written since we looked last. */
static int copy_growth(struct copy *x, const struct live *l, struct error *err)
{
	char data[READ_SIZE];
	ssize_t n = 0;

	while ((n = pread(l->log_fd[x->stream], data, sizeof data, x->done)) > 0) {
		int r = write_out(x, data, (size_t)n, err);

		if (r < 0)
			return r;
		x->done += n;
	}
	return n < 0 ? error_system(err, errno, "cannot read the log of '%s'", x->id) : 0;
}

static bool is_running(const struct copy *x, int attempt)
{
	struct error ignored = ERROR_INIT;
	struct live l;
	bool running;

	if (hood_live(x->hood, x->id, &l, &ignored) < 0)
		return false;
	running = l.alive && !l.held && l.attempt == attempt;
	live_done(&l);
	return running;
}

/* A run whose record is complete: before that it has neither a number nor a log. 1, or 0: none is running. */
static int find_running(const struct copy *x, struct live *ret)
{
	struct error ignored = ERROR_INIT;

	while (hood_live(x->hood, x->id, ret, &ignored) == 0) {
		bool running = ret->alive && !ret->held;

		if (running && ret->attempt > 0 && ret->log_fd[x->stream] >= 0)
			return 1;
		live_done(ret);
		if (!running)
			break;
		poll(NULL, 0, BEGIN_AGAIN_MS);
	}
	return 0;
}

/* 1: stop_fd says so. 0: something may have happened. */
static int await_growth(const struct copy *x, int watch)
{
	struct pollfd p[] = {{.fd = watch, .events = POLLIN}, {.fd = x->stop_fd, .events = POLLIN}};
	char events[4096] __attribute__((aligned(__alignof__(struct inotify_event))));

	poll(p, ARRAY_SIZE(p), LOOK_AGAIN_MS);
	while (read(watch, events, sizeof events) > 0)
		;
	return p[1].revents != 0;
}

/* 1: stopped. The look at the run comes before the look at its file: what it wrote before its end is seen after. */
static int follow(struct copy *x, const struct live *l, struct error *err)
{
	_cleanup_close_ int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	char path[64];
	bool running = true;
	int r = 0;

	if (watch < 0)
		return error_system(err, errno, "cannot watch files");
	snprintf(path, sizeof path, "/proc/self/fd/%d", l->log_fd[x->stream]);
	if (inotify_add_watch(watch, path, IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB) < 0)
		return error_system(err, errno, "cannot watch the log of '%s'", x->id);
	while (r == 0) {
		r = copy_growth(x, l, err);
		if (r < 0 || !running)
			break;
		r = await_growth(x, watch);
		running = is_running(x, l->attempt);
	}
	return r;
}

static int copy_log(struct copy *x, int number, bool follows, struct error *err)
{
	_cleanup_attempt_ struct attempt a;
	struct ledger *ledger;
	struct live live;
	bool followed = false;
	int r = id_check(x->id, err);

	attempt_init(&a);
	if (r == 0 && number == 0 && x->stream < STREAM_COUNT && find_running(x, &live)) {
		number = live.attempt;
		r = follows ? follow(x, &live, err) : copy_growth(x, &live, err);
		live_done(&live);
		if (!follows || r != 0)
			return r < 0 ? r : 0;
		followed = true;
	}
	if (r == 0)
		r = view_load(x->hood, x->id, number, &ledger, &a, err);
	if (r < 0) /* a followed one that was not committed has been shown as far as it can be */
		return followed && err->kind == ERROR_NOT_FOUND ? 0 : r;
	return copy_kept(x, ledger, &a, err);
}

FH_PUBLIC int fh_log_copy(fh_hood *hood, const char *id, int attempt, int stream, int fd, int follow_it,
			  int stop_fd, fh_error *err)
{
	struct copy x = {.id = id, .stream = stream, .fd = fd, .stop_fd = stop_fd};
	struct call c;
	int r;

	if (stream < 0 || stream > FH_POST_PROCESS)
		return fail_with(err, FH_USAGE, "there is no stream %d", stream);
	r = call_begin(&c, hood, "logs", err);
	if (r < 0)
		return r;
	x.hood = c.hood;
	return call_end(&c, copy_log(&x, attempt, follow_it != 0, &c.err), err);
}
