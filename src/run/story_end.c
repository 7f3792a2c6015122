/*
 * The story's end: nothing of the analysis is alive, and what is known of it is on disk (ended.h). Collected, post-processed,
 * judged, committed; or, where something of ours fails, left so that somebody can go on later: gc, the worker, the next run
 * of the same id, all of them through resume.c.
 */
#include "story.h"
#include "clock.h"
#include "collect.h"
#include "file.h"
#include "holder.h"
#include "steps.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* ---- how far it is ---- */

/* Its ledger is the hood's, and outlives it: nobody may be told of a story that is over. */
static void count_begin(struct story *s)
{
	if (story_counts(s))
		ledger_watch(s->ledger, &s->work);
}

static void count_end(struct story *s)
{
	if (ledger_work(s->ledger) == &s->work)
		ledger_watch(s->ledger, NULL);
}

/* ---- collect ---- */

static int collect_outputs(struct story *s, struct error *err)
{
	const char *ours[3] = {0};
	int n_ours = 0;
	struct collect_rules rules = {
		.outputs = s->plan->outputs,
		.optional_outputs = s->plan->optional_outputs,
		.inputs = &s->attempt->inputs,
		.flows = &s->attempt->inputs,
		.ignore = ours,
		.max_bytes = s->plan->limits.value[LIMIT_OUTPUT_MAX],
		.max_files = s->plan->limits.value[LIMIT_FILES],
		.object_min = ledger_object_min(s->ledger),
		.content_max = ledger_content_max(s->ledger),
		.work = ledger_work(s->ledger),
		.owner = s->owner,
	};
	int r;

	if (s->plan->data)
		ours[n_ours++] = "data";
	if (s->plan->docs)
		ours[n_ours++] = "docs";
	story_tell(s, "collecting");
	/* Whatever mode the analysis gave it: from here on nobody else changes what lies there. */
	if (fchmod(s->workspace.fd, 0700) < 0)
		return error_system(err, errno, "cannot make '%s' private", s->plan->workspace);
	/* A step's files may change again: they are stored when it is over. */
	if (s->step)
		rules.object_min = UINT64_MAX;
	r = collect(s->workspace.fd, &rules, s->step ? NULL : ledger_take_object, s->ledger,
		    &s->attempt->manifest, err);
	if (r < 0 && !s->step) {
		/* The object store may be full. What there is can be told without it, and the commit puts it there. */
		struct error without = {.stage = err->stage};

		rules.object_min = UINT64_MAX;
		r = collect(s->workspace.fd, &rules, NULL, NULL, &s->attempt->manifest, &without);
	}
	s->evidence.output_missing = s->attempt->manifest.missing && s->attempt->manifest.missing[0];
	return r;
}

static int stage_collect(struct story *s, struct error *err)
{
	int r;

	count_begin(s);
	r = collect_outputs(s, err);
	count_end(s);
	return r;
}

/* ---- post-process ---- */

static int copy_output(void *arg, const struct output *o, int to, struct error *err)
{
	struct story *s = arg;
	_cleanup_close_ int from = collect_open(s->workspace.fd, o, err);
	int r;

	if (from < 0)
		return from;
	r = file_send(from, to, o->size);
	return r < 0 ? error_system(err, -r, "cannot copy an output for the post-process") : 0;
}

int story_post(struct story *s, struct error *err)
{
	struct attempt *a = s->attempt;
	struct post_job job = {
		.hood = s->hood,
		.plan = s->post_plan,
		.place = &s->place,
		.attempt = a,
		.cancel_fd = s->hooks->cancel_fd,
		.stop_fd = s->stop_fd,
		.fetch = copy_output,
		.stored = s->rights.post_is_own ? &s->hooks->job->inputs : NULL,
		.fill = story_fill_input,
		.arg = s,
	};
	int r;

	if (!s->post_plan || s->step || verdict_decide(&s->evidence) != VERDICT_SUCCEEDED)
		return 0;
	story_tell(s, "post-processing");
	r = post_run(&job, &s->post, err);
	if (r < 0)
		return r;
	s->evidence.cancel_signal = s->post.cancel_signal;
	s->evidence.post_process_failed = s->post.reason != NULL;
	for (size_t i = 0; s->post.warnings && s->post.warnings[i]; i++)
		receipt_warn(&a->receipt, "post-process: %s", s->post.warnings[i]);
	a->post_log = s->post.log;
	s->post.log = (struct captured){0};
	if (s->post.rows)
		a->rows = (int64_t)spool_rows(s->post.rows);
	if (s->post.reason)
		attempt_event(a, "post-process", "failed: %s", s->post.reason);
	else
		attempt_event(a, "post-process", "%lld rows", (long long)a->rows);
	return 0;
}

/* ---- finished ---- */

/* Objects that no transaction references yet are pinned first: a sweep must not take what the record promises. What lies
 * in a workspace that stays is put there again if it has to be. */
int story_save(struct story *s, bool sync, struct error *err)
{
	struct error ignored = ERROR_INIT;
	bool stays = !box_is_away(&s->box);
	int r = ledger_pin(s->ledger, s->attempt, stays ? &ignored : err);

	return r < 0 && !stays ? r : finished_save(&s->workspace, s->attempt, sync, err);
}

/* What cannot be kept, since it is more than all that is kept may be, is said while something can be said. */
static void judge_keeping(struct story *s)
{
	uint64_t max = s->hood->config.keep_max_bytes;
	char size[LIMIT_TEXT_SIZE], most[LIMIT_TEXT_SIZE];

	if (s->step || !attempt_wants_keeping(s->attempt) || max == LIMIT_NONE)
		return;
	s->too_large = !keep_can_fit(s->hood, s->workspace.fd, &s->kept_bytes);
	if (s->too_large)
		receipt_warn(
			&s->attempt->receipt,
			"the workspace is not kept: it has %s, and keep.max_bytes of the configuration is %s",
			limit_format(LIMIT_DISK, s->kept_bytes, size), limit_format(LIMIT_DISK, max, most));
}

/* How it ended is on disk: from there all of this is found out once more if we die before the commit. But not what a
 * post-process made of it, and not what nobody would know to be in use. */
static bool is_dear(const struct story *s)
{
	const struct manifest *m = &s->attempt->manifest;

	for (size_t i = 0; i < m->n_outputs; i++)
		if (m->outputs[i].is_object)
			return true;
	return s->post_plan || !s->has_ended;
}

static int stage_finish(struct story *s, struct error *err)
{
	_cleanup_buffer_ struct buffer text = {0};
	struct attempt *a = s->attempt;
	struct error ignored = ERROR_INIT;
	int r;

	a->verdict = verdict_decide(&s->evidence);
	a->status = verdict_exit_status(a->verdict, &s->evidence);
	a->exit_code = s->evidence.exit_code;
	a->signal = s->evidence.signal;
	a->host = host_name();
	story_reason(s, &text);
	if (!a->host || text.failed)
		return error_memory(err);
	if (a->verdict == VERDICT_SUCCEEDED)
		into_warn(s->plan, a);
	judge_keeping(s);
	free(a->reason);
	a->reason = text.size ? buffer_take(&text) : NULL;
	attempt_event(a, "finished", "%s%s%s", verdict_name(a->verdict), a->reason ? ": " : "",
		      a->reason ? a->reason : "");
	r = attempt_check(a, err);
	if (r < 0)
		return r;
	s->concluded = true;
	/* What lies on a disk that dies with us is not finished yet: story_leave() makes it so if the commit fails. Nor is a
	 * full state directory a reason not to commit: how it ended is on disk. */
	if (!box_is_away(&s->box) && !s->deferred && !s->step && is_dear(s))
		(void)story_save(s, false, &ignored);
	return 0;
}

int story_conclude(struct story *s, struct error *err)
{
	int r;

	err->stage = "collect";
	r = stage_collect(s, err);
	if (r < 0)
		return r;
	err->stage = "post-process";
	if ((r = story_post(s, err)) < 0 || (r = story_check_handed_back(s, err)) < 0)
		return r;
	err->stage = "finish";
	return stage_finish(s, err);
}

/* ---- commit ---- */

/* All that lies there and is no input was collected: it need not be read once more to know what was made. */
static bool has_collected_all(const struct story *s)
{
	const struct manifest *m = &s->attempt->manifest;

	return !s->plan->outputs[0] && !s->plan->optional_outputs[0] && m->n_rejected == 0 &&
	       m->n_rejected_more == 0;
}

/* What a step has come to is told, and is committed with the others. */
static int save_step(struct story *s, struct error *err)
{
	_cleanup_manifest_ struct manifest found = {0};
	const struct manifest *made = has_collected_all(s) ? &s->attempt->manifest : &found;
	bool is_away = box_is_away(&s->box);
	int r;

	if ((made == &found && (r = step_collect_made(&s->workspace, s->attempt, &found, err)) < 0) ||
	    (is_away && (r = step_copy_home(&s->workspace, s->workspace.fd, err)) < 0) ||
	    (r = step_save(&s->workspace, s->step, s->attempt, made, err)) < 0)
		return r;
	return is_away ? step_bring_home(&s->workspace, s->box.disk.host_workspace, err) : 0;
}

int story_commit(struct story *s, struct error *err)
{
	int r;

	assert(s->concluded);
	if (s->step)
		return save_step(s, err);
	story_tell(s, "committing");
	count_begin(s);
	r = attempt_commit(s->ledger, s->attempt, s->workspace.fd, s->post.rows, err);
	count_end(s);
	if (r < 0 || !s->plan->into || s->attempt->verdict != VERDICT_SUCCEEDED)
		return r;
	/* Committed it is; but who finds 0 looks for his files. */
	err->stage = "into";
	r = rights_copy_into(s->hood, &s->rights, s->ledger, s->attempt, s->plan, s->workspace.site->state,
			     err);
	if (r < 0)
		s->attempt->status = verdict_exit_status(VERDICT_REFUSED, NULL);
	return r;
}

/* ---- left for later ---- */

/* The outputs into the object store, so that the verdict on disk is a finished attempt. */
static int save_outputs(struct story *s, struct error *err)
{
	for (size_t i = 0; i < s->attempt->manifest.n_outputs; i++) {
		struct output *o = &s->attempt->manifest.outputs[i];
		_cleanup_close_ int fd = -1;
		int r;

		if (o->is_object)
			continue;
		fd = collect_open(s->workspace.fd, o, err);
		if (fd < 0)
			return fd;
		r = ledger_put_object(s->ledger, fd, o->size, o->sha256, err);
		if (r < 0)
			return r;
		o->is_object = true;
	}
	return 0;
}

static int copy_out(struct story *s, struct error *err)
{
	struct error ignored = ERROR_INIT;
	int to = s->box.disk.host_workspace, r;

	if ((r = tree_copy(s->workspace.fd, to, err)) < 0 ||
	    (s->owner != geteuid() && (r = tree_chown(to, s->owner, (gid_t)-1, err)) < 0))
		(void)tree_empty(to, &ignored);
	return r;
}

/* The workspace lies on a disk that goes with us: to the object store with what came out, or to the host's directory with
 * all of it; and where neither has room, somebody must hold that disk. */
static int bring_home(struct story *s, struct pending *p, struct error *err)
{
	struct error ignored = ERROR_INIT;

	/* A step's files are for the next one, and before it has ended they are as they were. */
	if (!s->step && s->concluded && save_outputs(s, &ignored) == 0 && story_save(s, true, &ignored) == 0)
		return 0;
	p->copied = !s->step && copy_out(s, &ignored) == 0;
	return p->copied ? 0 : holder_start(s->workspace.fd, &p->holder, err);
}

/* Why is only good to know, unless it tells where the workspace is. */
static int write_down(struct story *s, const struct pending *p, struct error *err)
{
	struct error ignored = ERROR_INIT;
	bool is_away = box_is_away(&s->box), is_home = p->copied || p->holder.pid > 0;
	bool finished = is_away && !is_home; /* bring_home() did it */
	int r;

	if (s->concluded && !finished)
		finished = finished_save(&s->workspace, s->attempt, true, &ignored) == 0;
	r = s->has_ended ? 0 : story_note_end(s, err);
	if (r == 0)
		r = ended_set_pending(&s->workspace, p, err);
	return r < 0 && !is_home && (finished || s->has_ended) ? 0 : r;
}

void story_leave(struct story *s, const struct error *why)
{
	struct pending p = {.stage = (char *)why->stage,
			    .code = (char *)error_kind_name(why->kind),
			    .message = (char *)why->message,
			    .since = clock_utc()};
	struct error failed = {.stage = why->stage};
	struct attempt *a = s->attempt;
	int r;

	/* Who takes it up again writes what is missing. */
	attempt_forgive(a);
	r = box_is_away(&s->box) ? bring_home(s, &p, &failed) : 0;
	a->exit_code = s->evidence.exit_code;
	a->signal = s->evidence.signal;
	if (!s->concluded)
		a->verdict = VERDICT_NONE;
	if (r == 0)
		r = write_down(s, &p, &failed);
	a->pending = r == 0;
	if (r < 0) {
		holder_end(&p.holder);
		error_prefix(&failed, r, "%s; and its results are lost", why->message);
	}
	attempt_set_error(a, r < 0 ? &failed : why);
}
