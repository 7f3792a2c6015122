/*
 * What dead owners left, finished or removed: gc, and the first thing a run does when it finds its own id abandoned.
 * The workspace's processes are dead already (workspace_each_dead has killed and awaited them).
 */
#include "resume.h"
#include "capture.h"
#include "clock.h"
#include "file.h"
#include "holder.h"
#include "queue.h"
#include "steps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

int cgroups_remove(struct record *r, struct error *err)
{
	size_t left = 0;
	int first = 0;

	for (size_t i = 0; r->cgroups && r->cgroups[i]; i++) {
		int e = cgroup_remove_path(r->cgroups[i], first ? NULL : err);

		if (e < 0)
			r->cgroups[left++] = r->cgroups[i];
		else
			free(r->cgroups[i]);
		first = first ? first : e;
	}
	if (r->cgroups)
		r->cgroups[left] = NULL;
	return first;
}

/* The ledger that the attempt was meant for, which need not be the one that gc was given. The record has no password:
 * for its own ledger gc has one, for another libpq finds it or not (PGPASSFILE). */
static int recovery_ledger(struct recovery *rec, const struct record *r, struct ledger **ret,
			   struct ledger **owned, struct error *err)
{
	_cleanup_free_ char *url = r->ledger ? ledger_url_redacted(r->ledger) : NULL;
	int same = r->ledger ? ledger_url_same(r->ledger, rec->hood->ledger_url) : 1;

	*owned = NULL;
	if (same < 0 || (r->ledger && !url))
		return error_memory(err);
	if (same)
		return hood_ledger(rec->hood, LEDGER_CREATE, ret, err);
	if (ledger_open(url, LEDGER_CREATE, owned, err) < 0)
		return error_prefix(err, -EINVAL,
				    "its results are for another ledger, '%s' (name that with --db, with its "
				    "password there or in PGPASSFILE)",
				    url);
	*ret = *owned;
	return 0;
}

int lost_describe(const struct workspace *w, struct attempt *a, struct error *err)
{
	const struct record *r = &w->record;
	const json_t *extra = r->extra;
	json_int_t log_max = json_integer_value(json_object_get(extra, "log_max"));
	json_int_t number = json_integer_value(json_object_get(extra, "attempt"));
	char name[LOG_NAME_SIZE];

	attempt_identify(a, r->id, r->token, number < 1 ? 1 : (int)number, json_object_get(extra, "request"));
	a->created = json_integer_value(json_object_get(extra, "created"));
	a->started = a->created;
	a->ended = clock_utc();
	a->queued = json_is_true(json_object_get(extra, "queued"));
	a->plan = json_incref(json_object_get(extra, "plan"));
	a->engine = json_incref(json_object_get(extra, "engine"));
	a->workspace = strdup(r->path);
	a->host = host_name();
	for (int i = 0; i < STREAM_COUNT; i++) {
		_cleanup_close_ int fd =
			file_open_beneath(w->run_fd, run_log_name(record_step(r), i, name), O_RDONLY, 0);

		if (fd >= 0 && log_max > 0 && capture_recover(fd, (uint64_t)log_max, &a->logs[i], err) < 0)
			a->logs[i] = (struct captured){0};
	}
	attempt_conclude(a, VERDICT_LOST, "its supervisor ended without a verdict");
	attempt_event(a, "lost", "recorded by recovery");
	return a->workspace && a->host ? 0 : error_memory(err);
}

/* Rows that the dead supervisor had set aside. If they did not survive, the outputs did all the same. */
static void rows_recover(const struct workspace *w, struct attempt *a, struct spool **ret)
{
	struct error why = ERROR_INIT;

	if (a->rows < 0 || (spool_load(w->run_fd, ret, &why) == 0 && spool_rows(*ret) == (uint64_t)a->rows))
		return;
	spool_free(*ret);
	*ret = NULL;
	a->rows = -1;
	attempt_conclude(
		a, VERDICT_POST_PROCESS_FAILED,
		"the rows of its post-process were lost in a crash: `fumehood post-process` makes them again");
}

void token_unpin(struct ledger *l, const struct workspace *w)
{
	struct attempt a;

	attempt_init(&a);
	memcpy(a.token, w->record.token, sizeof a.token);
	ledger_unpin(l, &a);
}

/* A job that had not been started is for anybody else. */
static int job_give_back(struct recovery *rec, const struct record *r, struct error *err)
{
	_cleanup_ledger_ struct ledger *owned = NULL;
	struct ledger *ledger;
	int e;

	if (!json_is_true(json_object_get(r->extra, "queued")))
		return 0;
	e = recovery_ledger(rec, r, &ledger, &owned, err);
	return e < 0 ? e : ledger_release(ledger, r->id, r->token, 0, err);
}

/* Why it was not committed the last time is of no interest once it is. */
static void attempt_forget_error(struct attempt *a)
{
	char **texts[] = {&a->error_stage, &a->error_code, &a->error_message};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		free(*texts[i]);
		*texts[i] = NULL;
	}
}

/* Its verdict was on disk, and cannot be read: not now, and not by any later try. It is recorded as lost, and what there
 * is of it stays for whoever wants to look. */
static int damaged_recover(struct recovery *rec, struct workspace *w, struct error *err)
{
	_cleanup_attempt_ struct attempt a;
	_cleanup_ledger_ struct ledger *owned = NULL;
	struct ledger *ledger;
	int r;

	attempt_init(&a);
	r = lost_describe(w, &a, err);
	if (r < 0)
		return r;
	attempt_conclude(&a, VERDICT_LOST, "%.600s; it was set aside as '" FINISHED_DAMAGED "'",
			 err->message);
	attempt_event(&a, "lost", "%s", a.reason ? a.reason : "");
	r = recovery_ledger(rec, &w->record, &ledger, &owned, err);
	if (r < 0)
		return r;
	r = attempt_commit(ledger, &a, w->fd, NULL, err);
	if (r < 0 && err->kind != ERROR_LEASE)
		return r;
	token_unpin(ledger, w);
	rec->report.lost += r == 0;
	if (renameat(w->run_fd, FINISHED_NAME, w->run_fd, FINISHED_DAMAGED) < 0)
		return error_system(err, errno, "cannot set '%s' aside", FINISHED_NAME);
	*err = (struct error){.stage = err->stage};
	return 1;
}

void pending_say_why(struct workspace *w, struct remains *remains, const struct error *err)
{
	struct pending p = remains->pending;
	struct error ignored = ERROR_INIT;

	if (!ended_exists(w->run_fd) || (p.message && strcmp(p.message, err->message) == 0))
		return;
	p.stage = (char *)err->stage;
	p.code = (char *)error_kind_name(err->kind);
	p.message = (char *)err->message;
	p.since = p.since ? p.since : clock_utc();
	(void)ended_set_pending(w, &p, &ignored);
}

/* What the dead one had come to: 1 with a verdict, 0 without, and what is known of it then. Negative, err marked as damage: its
 * verdict was on disk, cannot be read, and how it ended is not there either. */
static int attempt_find(struct recovery *rec, struct ledger *ledger, struct workspace *w,
			const struct remains *remains, struct attempt *a, struct spool **rows,
			struct error *err)
{
	int r = remains->gone ? 0 : finished_load(w, a, err);
	struct error damage = *err;
	bool damaged = r < 0 && err->is_damaged;

	if (damaged) {
		attempt_init(a);
		*err = (struct error){.stage = damage.stage};
	}
	if (r == 1) {
		rows_recover(w, a, rows);
		return 1;
	}
	if (r == 0 || damaged)
		r = story_resume(rec->hood, ledger, w, remains, a, rows, err);
	if (r != 0)
		return r;
	if (!damaged)
		return lost_describe(w, a, err);
	*err = damage;
	return -EINVAL;
}

static bool has_result(const struct workspace *w)
{
	return faccessat(w->run_fd, FINISHED_NAME, F_OK, AT_SYMLINK_NOFOLLOW) == 0 || ended_exists(w->run_fd);
}

/* --into, which the story did not come to. Committed it is; that this failed is told, and not tried again. */
static int copy_into(struct recovery *rec, struct ledger *ledger, const struct workspace *w,
		     const struct remains *remains, const struct attempt *a, struct error *err)
{
	_cleanup_rights_ struct rights rights;
	_cleanup_plan_ struct plan plan;
	int r;

	plan_init(&plan);
	rights_init(&rights);
	if (a->verdict != VERDICT_SUCCEEDED)
		return 0;
	err->stage = "into";
	r = plan_recall(&plan, a->plan, err);
	if (r == 0 && !plan.into)
		return 0;
	return r < 0 || remains_rights(rec->hood, remains, a, &rights, err) < 0 ||
	       rights_copy_into(rec->hood, &rights, ledger, a, &plan, w->site->state, err) < 0;
}

/* A run that came to its end is finished and committed; one that had only started is recorded as lost; one that had not
 * is nothing. *ret_keep: the user wants to look at it. 1: all is done but --into, and err says why. */
static int attempt_recover(struct recovery *rec, struct workspace *w, struct remains *remains, bool *ret_keep,
			   struct error *err)
{
	_cleanup_attempt_ struct attempt a;
	_cleanup_ledger_ struct ledger *owned = NULL;
	_cleanup_spool_ struct spool *rows = NULL;
	struct ledger *ledger;
	bool finished = false;
	int number, r;

	attempt_init(&a);
	/* A repeated post-process is no attempt: until it is committed nothing has happened. */
	if (!has_result(w) && (w->record.init.pid == 0 || json_object_get(w->record.extra, "repeats")))
		return job_give_back(rec, &w->record, err);
	err->stage = "commit";
	/* It may be only this that was left to do. */
	if ((r = recovery_ledger(rec, &w->record, &ledger, &owned, err)) < 0 ||
	    (r = ledger_has_token(ledger, w->record.token, &number, err)) < 0)
		return r;
	if (r == 1) {
		token_unpin(ledger, w);
		return 0;
	}
	r = pending_give_up(rec, ledger, w, remains, err);
	if (r != 0)
		return r < 0 ? r : 0;
	/* What is only recorded as lost is done for nobody. */
	if (has_result(w) && (r = remains_recall(w, remains, err)) < 0)
		return r;
	r = attempt_find(rec, ledger, w, remains, &a, &rows, err);
	finished = r == 1;
	if (r < 0 && err->is_damaged) {
		r = damaged_recover(rec, w, err);
		*ret_keep = r == 1;
		return r < 0 ? r : 0;
	}
	attempt_forget_error(&a);
	r = r < 0 ? r : attempt_commit(ledger, &a, remains->fd, rows, err);
	if (r < 0 && err->kind == ERROR_LEASE) { /* another worker has it: this one never happened */
		token_unpin(ledger, w);
		*err = (struct error){0};
		return 0;
	}
	if (r < 0)
		return r;
	*ret_keep = finished && remains->is_pending && attempt_wants_keeping(&a);
	if (finished)
		rec->report.committed++;
	else
		rec->report.lost++;
	return finished && remains->is_pending ? copy_into(rec, ledger, w, remains, &a, err) : 0;
}

/* What the story would have kept, had it come to its end. */
static int keep_remains(struct recovery *rec, struct workspace *w, const struct remains *remains,
			struct error *err)
{
	int r = remains->pending.holder.pid > 0 ? tree_copy(remains->fd, w->fd, err) : 0;

	uint64_t bytes;

	if (w->fd < 0 || !keep_can_fit(rec->hood, w->fd, &bytes))
		return workspace_remove(w, err);
	return r < 0 ? r : workspace_keep(w, keep_until(rec->hood), err);
}

/* 1 as above. */
static int settle_attempt(struct recovery *rec, struct workspace *w, bool *ret_kept, struct error *err)
{
	_cleanup_remains_ struct remains remains = REMAINS_INIT;
	bool keep = false;
	int r = remains_find(w, &remains, err), e = 0;

	r = r < 0 ? r : attempt_recover(rec, w, &remains, &keep, err);
	if (r < 0) {
		pending_say_why(w, &remains, err);
		return r;
	}
	if (keep && (e = keep_remains(rec, w, &remains, r == 1 ? NULL : err)) < 0)
		return e;
	*ret_kept = keep;
	if (!remains.gone)
		holder_end(&remains.pending.holder);
	return r;
}

/* What was held, and is not any longer: what ran in it is committed. */
static int settle_held(struct recovery *rec, struct workspace *w, bool *ret_kept, struct error *err)
{
	_cleanup_ledger_ struct ledger *owned = NULL;
	struct ledger *ledger;
	size_t count;
	int r;

	if (rec->discards)
		return 0;
	if ((r = steps_count(w->run_fd, &count, err)) < 0 || count == 0)
		return r;
	r = recovery_ledger(rec, &w->record, &ledger, &owned, err);
	r = r < 0 ? r : steps_commit(rec->hood, ledger, w, ret_kept, err);
	rec->report.committed += r == 0;
	return r;
}

static int settle(struct recovery *rec, struct workspace *w, bool *ret_kept, struct error *err)
{
	int r;

	if (w->record.owner == OWNER_SUPERVISOR && !workspace_is_adopted(w))
		return settle_attempt(rec, w, ret_kept, err);
	/* Somebody looked around in it when he died. */
	if (w->record.held.owner == OWNER_KEPT)
		r = workspace_give_back(w, err);
	else
		r = w->record.owner == OWNER_SUPERVISOR ? step_settle(rec, w, err) : 0;
	if (r < 0)
		return r;
	/* It is somebody's, and stays. */
	if (!rec->cleans_up && !workspace_is_over(w)) {
		*ret_kept = true;
		return 0;
	}
	return w->record.owner == OWNER_KEPT ? 0 : settle_held(rec, w, ret_kept, err);
}

/* Who cleans up one of his waits for nothing; who looks after what the dead left has the time. */
static int remove_it(struct recovery *rec, struct workspace *w, struct error *err)
{
	return rec->cleans_up ? remover_remove(&rec->hood->remover, w, NULL, err) : workspace_remove(w, err);
}

int recover_workspace(void *arg, struct workspace *w, struct error *err)
{
	struct recovery *rec = arg;
	bool kept = false;
	int settled = 0, r;

	if ((r = cgroups_remove(&w->record, err)) < 0 || (r = settled = settle(rec, w, &kept, err)) < 0 ||
	    (!kept && (r = remove_it(rec, w, settled == 1 ? NULL : err)) < 0))
		return r;
	rec->report.removed += !kept;
	work_begin(rec->hood->work, "looking at what was left", 0);
	return settled == 1 ? -EIO : 0;
}

int hood_recover(struct hood *h, struct gc_report *ret, struct error *err)
{
	struct recovery rec = {.hood = h};
	struct workspace_gc_counts counts = {0};
	struct site *site = NULL;
	int r;

	work_begin(h->work, "looking at what was left", 0);
	if ((r = hood_site(h, &site, err)) < 0 ||
	    (r = workspace_each_dead(site, recover_workspace, &rec, &counts, err)) < 0)
		return r;
	*ret = rec.report;
	ret->alive = counts.alive;
	ret->foreign = counts.foreign;
	ret->failed = counts.failed;
	return 0;
}

int hood_gc(struct hood *h, struct gc_report *ret, struct error *err)
{
	struct error object_error = ERROR_INIT;
	struct ledger *ledger;
	int r = hood_recover(h, ret, err);

	if (r < 0)
		return r;
	if (keep_fit(h, 0, &ret->removed, &object_error) < 0 ||
	    hood_retain(h, false, ret, &object_error) < 0) {
		if (!ret->failed)
			*err = object_error;
		ret->failed++;
	}
	if (hood_ledger(h, LEDGER_CREATE, &ledger, &object_error) < 0 ||
	    ledger_workers_sweep(ledger, &object_error) < 0 ||
	    ledger_sweep(ledger, &ret->objects, &object_error) < 0) {
		if (!ret->failed)
			*err = object_error;
		ret->failed++;
	}
	return 0;
}
