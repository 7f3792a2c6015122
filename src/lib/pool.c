/*
 * The hood that many threads use at once. A ledger's handle is for one thread, so there is a hood of run's for each
 * call that goes on; those that are free wait here for the next.
 */
#include "lib.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <time.h>

/* So many connections stay open while nothing happens. */
enum { IDLE_MAX = 16 };

static void pool_empty(fh_hood *hood)
{
	while (hood->idle) {
		struct idle *first = hood->idle;

		hood->idle = first->next;
		hood_close(first->hood);
		free(first);
	}
}

fh_hood *hood_ref(fh_hood *hood)
{
	atomic_fetch_add(&hood->refs, 1);
	return hood;
}

void hood_unref(fh_hood *hood)
{
	if (atomic_fetch_sub(&hood->refs, 1) > 1)
		return;
	pool_empty(hood);
	hood_stock_close(hood->stock);
	pthread_mutex_destroy(&hood->lock);
	free(hood->config_file);
	free(hood->ledger);
	free(hood);
}

int check_process(pid_t owner, fh_error *err)
{
	if (owner == getpid())
		return 0;
	return fail_with(
		err, FH_REFUSED,
		"this hood belongs to process %d and was inherited by its child %d: open another here",
		(int)owner, (int)getpid());
}

int pool_take(fh_hood *hood, struct hood **ret, struct error *err)
{
	struct hood_options options = {
		.config_file = hood->config_file, .ledger = hood->ledger, .remover = REMOVER_THREAD};
	struct idle *first;
	int r;

	pthread_mutex_lock(&hood->lock);
	first = hood->idle;
	if (first) {
		hood->idle = first->next;
		hood->n_idle--;
	}
	pthread_mutex_unlock(&hood->lock);
	if (!first) {
		r = hood_open(&options, ret, err);
		if (r == 0)
			hood_use_stock(*ret, hood->stock);
		return r;
	}
	*ret = first->hood;
	free(first);
	return 0;
}

void pool_give(fh_hood *hood, struct hood *h)
{
	struct idle *entry = h ? malloc(sizeof *entry) : NULL;

	if (entry) {
		pthread_mutex_lock(&hood->lock);
		if (hood->n_idle < IDLE_MAX) {
			*entry = (struct idle){TAKE_PTR(h), hood->idle};
			hood->idle = TAKE_PTR(entry);
			hood->n_idle++;
		}
		pthread_mutex_unlock(&hood->lock);
	}
	free(entry);
	hood_close(h);
}

/* The first hood shows whether everything can be opened, and says where the ledger is. */
FH_PUBLIC int fh_open(const char *config_file, const char *ledger, fh_hood **ret, fh_error *err)
{
	struct hood_options options = {
		.config_file = config_file, .ledger = ledger, .remover = REMOVER_THREAD};
	struct error why = {.stage = "configuration"};
	struct hood *first = NULL;
	fh_hood *hood = calloc(1, sizeof *hood);

	if (!hood)
		return fail_memory(err);
	if (SQLITE_IS_OURS)
		ledger_bound_memory();
	atomic_init(&hood->refs, 1);
	pthread_mutex_init(&hood->lock, NULL);
	hood->pid = getpid();
	if (hood_stock_open(&hood->stock, &why) < 0 || hood_open(&options, &first, &why) < 0) {
		hood_unref(hood);
		return fail(err, &why);
	}
	hood_use_stock(first, hood->stock);
	hood->config_file = config_file ? realpath(config_file, NULL) : NULL;
	hood->ledger = strdup(hood_ledger_url(first));
	pool_give(hood, first);
	if ((config_file && !hood->config_file) || !hood->ledger) {
		hood_unref(hood);
		return fail_memory(err);
	}
	*ret = hood;
	return 0;
}

FH_PUBLIC void fh_close(fh_hood *hood)
{
	if (hood && hood->pid == getpid())
		hood_unref(hood);
}

void quiet_begin(struct quiet *q)
{
	sigset_t pipe, pending;

	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	sigpending(&pending);
	q->was_pending = sigismember(&pending, SIGPIPE) == 1;
	pthread_sigmask(SIG_BLOCK, &pipe, &q->before);
}

void quiet_end(const struct quiet *q)
{
	static const struct timespec now = {0};
	sigset_t pipe, pending;

	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	sigpending(&pending);
	if (!q->was_pending && sigismember(&pending, SIGPIPE) == 1)
		while (sigtimedwait(&pipe, NULL, &now) < 0 && errno == EINTR)
			;
	pthread_sigmask(SIG_SETMASK, &q->before, NULL);
}

int call_begin(struct call *c, fh_hood *hood, const char *stage, fh_error *err)
{
	int r = check_process(hood->pid, err);

	if (r < 0)
		return r;
	*c = (struct call){.owner = hood_ref(hood), .stage = stage};
	quiet_begin(&c->quiet);
	r = pool_take(hood, &c->hood, &c->err);
	return r < 0 ? call_end(c, r, err) : 0;
}

int call_end(struct call *c, int r, fh_error *err)
{
	pool_give(c->owner, c->hood);
	quiet_end(&c->quiet);
	hood_unref(c->owner);
	if (r >= 0)
		return r;
	if (!c->err.stage)
		c->err.stage = c->stage;
	return fail(err, &c->err);
}

int call_end_json(struct call *c, int r, json_t *json, char **ret, fh_error *err)
{
	char *text = r >= 0 && json ? json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;

	json_decref(json);
	if (r >= 0 && !text)
		r = error_memory(&c->err);
	r = call_end(c, r, err);
	if (r < 0)
		free(text);
	else
		*ret = text;
	return r;
}

int call_end_result(struct call *c, int r, fh_result *result, fh_result **ret, fh_error *err)
{
	r = call_end(c, r, err);
	if (r < 0)
		fh_result_free(result);
	else
		*ret = result;
	return r;
}

int call_list(fh_hood *hood, const char *stage,
	      int (*fn)(struct hood *h, const struct view_filter *f, json_t **ret, struct error *err),
	      const struct view_filter *filter, char **ret_json, fh_error *err)
{
	json_t *json = NULL;
	struct call c;
	int r = call_begin(&c, hood, stage, err);

	if (r < 0)
		return r;
	r = fn(c.hood, filter, &json, &c.err);
	return call_end_json(&c, r, json, ret_json, err);
}
