#include "steps.h"
#include "collect.h"
#include "file.h"
#include "holder.h"
#include "resume.h"
#include "spool.h"
#include "story.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

static const char made_name[] = "made.json", begun_name[] = "begun.json";

/* ---- names ---- */

const char *step_prefix(size_t step, char out[STEP_PREFIX_SIZE])
{
	if (step)
		snprintf(out, STEP_PREFIX_SIZE, "step-%zu.", step);
	else
		out[0] = 0;
	return out;
}

size_t record_step(const struct record *r)
{
	json_int_t step = json_integer_value(json_object_get(r->extra, "step"));

	return step > 0 ? (size_t)step : 0;
}

const char *run_log_name(size_t step, int stream, char out[LOG_NAME_SIZE])
{
	char prefix[STEP_PREFIX_SIZE];

	snprintf(out, LOG_NAME_SIZE, "%s%s", step_prefix(step, prefix), stream_name(stream));
	return out;
}

static const char *step_name(size_t step, char out[LOG_NAME_SIZE])
{
	char prefix[STEP_PREFIX_SIZE];

	snprintf(out, LOG_NAME_SIZE, "%sjson", step_prefix(step, prefix));
	return out;
}

int steps_count(int run_fd, size_t *ret, struct error *err)
{
	char name[LOG_NAME_SIZE];
	size_t n = 0;

	while (faccessat(run_fd, step_name(n + 1, name), F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		n++;
	if (errno != ENOENT)
		return error_system(err, errno, "cannot look for the steps that have run");
	*ret = n;
	return 0;
}

/* ---- written ---- */

/* The list first: what is there without its step is of the step before, and that has made no less. */
int step_save(struct workspace *w, size_t step, const struct attempt *a, const struct manifest *made,
	      struct error *err)
{
	_cleanup_attempt_ struct attempt list;
	char name[LOG_NAME_SIZE];
	int r;

	attempt_init(&list);
	memcpy(list.id, a->id, sizeof list.id);
	list.manifest = *made; /* lent */
	r = attempt_save(w, made_name, &list, true, err);
	list.manifest = (struct manifest){0};
	return r < 0 ? r : attempt_save(w, step_name(step, name), a, true, err);
}

static int forget(struct workspace *w, const char *name, struct error *err)
{
	if (unlinkat(w->run_fd, name, 0) < 0 && errno != ENOENT)
		return error_system(err, errno, "cannot remove '%s' of analysis '%s'", name, w->record.id);
	return 0;
}

/* From the last to the first: a crash on the way leaves some of them, and with the first the token. */
int steps_forget(struct workspace *w, struct error *err)
{
	const char *const leftovers[] = {made_name, begun_name, FINISHED_NAME, ENDED_NAME, SPOOL_NAME};
	char name[LOG_NAME_SIZE];
	size_t count;

	if (steps_count(w->run_fd, &count, err) < 0)
		return -1;
	for (size_t n = count; n > 0; n--) {
		int r = forget(w, step_name(n, name), err);

		for (int i = 0; r == 0 && i < STREAM_COUNT; i++)
			r = forget(w, run_log_name(n, i, name), err);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < ARRAY_SIZE(leftovers); i++) {
		int r = forget(w, leftovers[i], err);

		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- read ---- */

int steps_made(struct workspace *w, struct manifest *ret, struct error *err)
{
	_cleanup_attempt_ struct attempt list;
	int r;

	attempt_init(&list);
	r = attempt_read(w, made_name, &list, err);
	if (r <= 0)
		return r;
	*ret = list.manifest;
	list.manifest = (struct manifest){0};
	return 0;
}

static int read_step(struct workspace *w, size_t step, struct attempt *ret, struct error *err)
{
	char name[LOG_NAME_SIZE];

	attempt_init(ret);
	return attempt_read(w, step_name(step, name), ret, err);
}

static int take_staged(const struct attempt *step, struct inputs *ret, struct error *err)
{
	for (size_t i = 0; i < step->inputs.count; i++) {
		const struct input *in = &step->inputs.list[i];
		bool was_there = in->source && strcmp(in->source, in->path) == 0;
		int r = was_there || inputs_find(ret, in->path) ? 0 : inputs_add(ret, in, err);

		if (r < 0)
			return r;
	}
	return 0;
}

int steps_staged(struct workspace *w, struct inputs *ret, struct error *err)
{
	size_t count;

	if (steps_count(w->run_fd, &count, err) < 0)
		return -1;
	for (size_t n = 1; n <= count; n++) {
		_cleanup_attempt_ struct attempt one;
		int r;

		if ((r = read_step(w, n, &one, err)) < 0 || (r = take_staged(&one, ret, err)) < 0)
			return r;
	}
	return 0;
}

int steps_load(struct workspace *w, struct attempt *ret, struct attempt *last, struct error *err)
{
	size_t count;

	if (steps_count(w->run_fd, &count, err) < 0)
		return -1;
	for (size_t n = 1; n <= count; n++) {
		_cleanup_attempt_ struct attempt one;
		int r;

		if ((r = read_step(w, n, &one, err)) < 0 || (r = attempt_load_logs(w, n, &one, err)) < 0 ||
		    (r = attempt_add_step(ret, &one, err)) < 0)
			return r;
		if (n < count || !last)
			continue;
		attempt_done(last);
		*last = one;
		attempt_init(&one);
	}
	return count > 0;
}

/* 1: the ledger has them already. */
int steps_are_committed(struct ledger *l, struct workspace *w, int *ret_number, struct error *err)
{
	_cleanup_attempt_ struct attempt first;
	int r = read_step(w, 1, &first, err);

	return r <= 0 ? r : ledger_has_token(l, first.token, ret_number, err);
}

int steps_begin(struct ledger *l, struct workspace *w, size_t *ret, struct error *err)
{
	int number, r = steps_are_committed(l, w, &number, err);
	size_t count;

	if (r < 0 || (r == 1 && (r = steps_forget(w, err)) < 0) || (r = forget(w, ENDED_NAME, err)) < 0 ||
	    (r = forget(w, FINISHED_NAME, err)) < 0 || (r = steps_count(w->run_fd, &count, err)) < 0)
		return r;
	*ret = count + 1;
	return 0;
}

int step_collect_made(struct workspace *w, const struct attempt *a, struct manifest *ret, struct error *err)
{
	static const char *const none[] = {NULL};
	const struct collect_rules everything = {
		.inputs = &a->inputs,
		.ignore = none,
		.max_bytes = UINT64_MAX,
		.max_files = UINT64_MAX,
		.object_min = UINT64_MAX,
		.content_max = UINT64_MAX,
		.owner = (uid_t)-1,
	};

	return collect(w->fd, &everything, NULL, NULL, ret, err);
}

/* ---- a dead supervisor's ---- */

int step_note_begin(struct workspace *w, const struct attempt *a, struct error *err)
{
	return attempt_save(w, begun_name, a, false, err);
}

/* What a lost one was given, or found there, it has not made. */
static int recall_inputs(struct workspace *w, struct attempt *a, struct error *err)
{
	_cleanup_attempt_ struct attempt begun;
	int r;

	attempt_init(&begun);
	r = attempt_read(w, begun_name, &begun, err);
	if (r <= 0)
		return r;
	a->inputs = begun.inputs;
	begun.inputs = (struct inputs){0};
	return 0;
}

/* 1: a is what it came to; 0: it had not begun. */
static int recall_step(struct recovery *rec, struct workspace *w, size_t step, const struct remains *remains,
		       struct attempt *a, struct error *err)
{
	_cleanup_spool_ struct spool *none = NULL;
	struct ledger *ledger;
	int r = attempt_read(w, FINISHED_NAME, a, err);

	if (r != 0)
		return r < 0 ? r : attempt_load_logs(w, step, a, err) < 0 ? -1 : 1;
	if ((r = hood_ledger(rec->hood, LEDGER_CREATE, &ledger, err)) < 0 ||
	    (r = story_resume(rec->hood, ledger, w, remains, a, &none, err)) != 0)
		return r;
	if (w->record.init.pid == 0)
		return 0;
	if ((r = lost_describe(w, a, err)) < 0 || (r = recall_inputs(w, a, err)) < 0)
		return r;
	return 1;
}

static int step_recover(struct recovery *rec, struct workspace *w, const struct remains *remains,
			struct error *err)
{
	const char *const leftovers[] = {begun_name, FINISHED_NAME, ENDED_NAME, ENDED_ROOM};
	_cleanup_manifest_ struct manifest made = {0};
	_cleanup_attempt_ struct attempt a;
	size_t step = record_step(&w->record), count;
	int r = 0;

	attempt_init(&a);
	if (steps_count(w->run_fd, &count, err) < 0)
		return -1;
	if (count < step) {
		bool is_away = remains->pending.holder.pid > 0 && !remains->gone;
		struct workspace there = *w;

		there.fd = is_away ? remains->fd : w->fd;
		r = recall_step(rec, w, step, remains, &a, err);
		if (r < 0 || (r == 1 && ((r = step_collect_made(&there, &a, &made, err)) < 0 ||
					 (is_away && (r = step_copy_home(w, there.fd, err)) < 0) ||
					 (r = step_save(w, step, &a, &made, err)) < 0)))
			return r;
	}
	/* A copy without its step is not complete, or not wanted: it goes with the scratch. */
	if ((r = steps_count(w->run_fd, &count, err)) < 0 ||
	    (count >= step && (r = step_bring_home(w, w->fd, err)) < 0))
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(leftovers); i++)
		if ((r = forget(w, leftovers[i], err)) < 0)
			return r;
	return 0;
}

int step_settle(struct recovery *rec, struct workspace *w, struct error *err)
{
	_cleanup_remains_ struct remains remains = REMAINS_INIT;
	int r = remains_find(w, &remains, err);

	r = r < 0 ? r : step_recover(rec, w, &remains, err);
	if (r < 0) {
		pending_say_why(w, &remains, err);
		return r;
	}
	r = workspace_give_back(w, err);
	if (r == 0 && !remains.gone)
		holder_end(&remains.pending.holder);
	return r;
}

int hood_steps(struct hood *h, const char *id, struct attempt *ret, struct error *err)
{
	struct workspace w = {.lock_fd = -1, .fd = -1};
	struct site *site = NULL;
	int r;

	attempt_init(ret);
	if ((r = id_check(id, err)) < 0 || (r = hood_site(h, &site, err)) < 0)
		return r;
	w.site = site;
	w.run_fd = file_open_beneath(site->runs, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (w.run_fd < 0)
		return 0;
	r = steps_load(&w, ret, NULL, err);
	fd_close(w.run_fd);
	if (r < 0)
		attempt_done(ret);
	return r;
}
