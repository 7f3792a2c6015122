/*
 * Reading the ledger.
 */
#include "lib.h"
#include "view.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "file.h"
#include "text.h"

enum { BEGIN_AGAIN_MS = 2 };

FH_PUBLIC int fh_list(fh_hood *hood, const char *state, const char *prefix, int limit, char **ret_json,
		      fh_error *err)
{
	return call_list(hood, "ls", view_list, &(struct view_filter){state, prefix, limit}, ret_json, err);
}

static int list_where(struct hood *h, const char *const *words, json_t **ret, struct error *err)
{
	_cleanup_strv_ char **copies = strv_copy((char *const *)words);
	struct view_filter f = {0};
	int r = copies ? 0 : error_memory(err);

	for (size_t i = 0; r == 0 && copies[i]; i++) {
		char *sign = strchr(copies[i], '=');

		if (!sign)
			return error_set(err, ERROR_USAGE, "'%s' is not a filter: write NAME=VALUE",
					 SHOWN(64, copies[i]));
		*sign = 0;
		r = view_filter_set(&f, copies[i], sign + 1, err);
	}
	return r < 0 ? r : view_list(h, &f, ret, err);
}

FH_PUBLIC int fh_list_where(fh_hood *hood, const char *const *words, char **ret_json, fh_error *err)
{
	static const char *const none[] = {NULL};
	json_t *json = NULL;
	struct call c;
	int r = call_begin(&c, hood, "ls", err);

	if (r < 0)
		return r;
	r = list_where(c.hood, words ? words : none, &json, &c.err);
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

FH_PUBLIC int fh_lineage(fh_hood *hood, const char *id, int attempt, char **ret_json, fh_error *err)
{
	return view(hood, "show", view_lineage, id, attempt, ret_json, err);
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
	return call_end_result(&c, r, result, ret, err);
}

static int copy_output(const struct attempt *a, const char *path, struct ledger *l, int fd, struct error *err)
{
	const struct output *o = manifest_find(&a->manifest, path);

	return o ? ledger_copy_output(l, o, fd, err)
		 : error_set(err, ERROR_NOT_FOUND, "%s attempt %d has no output '%s'", a->id, a->number,
			     SHOWN(256, path));
}

FH_PUBLIC int fh_get(fh_hood *hood, const char *id, int attempt, const char *path, int fd, fh_error *err)
{
	struct ledger *ledger;
	struct attempt a;
	struct call c;
	int r = call_begin(&c, hood, "get", err);

	if (r < 0)
		return r;
	attempt_init(&a);
	r = view_load(c.hood, id, attempt, &ledger, &a, &c.err);
	if (r == 0)
		r = copy_output(&a, path, ledger, fd, &c.err);
	attempt_done(&a);
	return call_end(&c, r, err);
}

/* ---- logs as they come ---- */

struct log_copy {
	const char *id;
	int fd;
};

static int write_out(void *arg, int stream UNUSED, const char *data, size_t size, struct error *err)
{
	const struct log_copy *x = arg;
	int r = file_write_all(x->fd, data, size);

	return r < 0 ? error_system(err, -r, "cannot write the log of '%s'", x->id) : 0;
}

/* A run whose record is complete: before that it has neither a number nor a log. */
static bool find_running(struct hood *h, const char *id, int stream, struct live *ret)
{
	struct error ignored = ERROR_INIT;

	while (hood_live(h, id, ret, &ignored) == 0) {
		bool running = ret->alive && !ret->held;

		if (running && ret->attempt > 0 && ret->log_fd[stream] >= 0)
			return true;
		live_done(ret);
		if (!running)
			break;
		poll(NULL, 0, BEGIN_AGAIN_MS);
	}
	return false;
}

static int copy_log(struct hood *h, struct log_copy *x, int stream, int number, bool follows, int stop_fd,
		    struct error *err)
{
	_cleanup_attempt_ struct attempt a;
	struct log_reader reader = {.put = write_out, .arg = x};
	struct ledger *ledger;
	struct live live;
	bool followed = false;
	int r = id_check(x->id, err);

	attempt_init(&a);
	if (r < 0)
		return r;
	reader.wanted[stream] = true;
	if (number == 0 && stream < STREAM_COUNT && find_running(h, x->id, stream, &live)) {
		number = live.attempt;
		r = follows ? log_follow(&reader, h, &live, stop_fd, err)
			    : log_read_live(&reader, &live, err);
		live_done(&live);
		if (!follows || r != 0)
			return r < 0 ? r : 0;
		followed = true;
	}
	r = view_load(h, x->id, number, &ledger, &a, err);
	if (r < 0) /* a followed one that was not committed has been shown as far as it can be */
		return followed && err->kind == ERROR_NOT_FOUND ? 0 : r;
	return log_read_kept(&reader, ledger, &a, err);
}

FH_PUBLIC int fh_log_copy(fh_hood *hood, const char *id, int attempt, int stream, int fd, int follow_it,
			  int stop_fd, fh_error *err)
{
	struct log_copy x = {id, fd};
	struct call c;
	int r;

	if (stream < 0 || stream > FH_POST_PROCESS)
		return fail_with(err, FH_USAGE, "there is no stream %d", stream);
	r = call_begin(&c, hood, "logs", err);
	if (r < 0)
		return r;
	r = copy_log(c.hood, &x, stream, attempt, follow_it != 0, stop_fd, &c.err);
	return call_end(&c, r, err);
}
