/*
 * The story of one analysis, from top to bottom:
 *
 *   plan ─► workspace ─► limits ─► sandbox ─► supervise ─► collect ─► finished ─► commit ─► clean up
 *
 * Each stage is one function below, in this order; hood_story() and hood_story_end() call them. Whatever goes wrong before the
 * command has run ends the story with an error and nothing left behind. Once it has run there is a verdict: it is
 * written to disk before the commit, so that whoever comes after a crash (recover.c) can finish the story.
 */
#include "story.h"
#include "clock.h"
#include "collect.h"
#include "file.h"
#include "queue.h"
#include "sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

void story_tell(const struct story *s, const char *stage)
{
	struct progress p = {.cpu_ms = -1, .memory_bytes = -1, .pids = -1, .disk_files = -1, .stage = stage};

	if (s->started)
		p.elapsed_ms = (int64_t)((clock_now() - s->started) / NSEC_PER_MSEC);
	if (s->hooks->progress && s->hooks->progress_interval_ms)
		s->hooks->progress(s->hooks->arg, &p);
}
/* ---- plan ---- */

/* What cannot be post-processed is refused now, not when it has run. */
static int plan_post(struct story *s, struct error *err)
{
	const struct rights *rights = &s->rights;
	const char *site = s->hood->config.queue_allow_directory;
	_cleanup_free_ char *beside = NULL;
	struct post_order order = {
		.id = s->plan.id,
		.attempt = s->plan.attempt,
		.scratch = s->plan.scratch,
		.command = s->request->post_process,
		.directory = s->plan.submitter_directory,
		.is_stored = rights->post_is_own,
		.rights = rights->post_is_own && rights->is_bound ? rights : NULL,
	};
	int r;

	if (rights->post_is_sites) {
		order.directory = beside = config_directory(s->hood, site);
		if (!beside)
			return error_memory(err);
	}
	if (!order.command) {
		order.command = s->hood->config.defaults.post_process;
		order.directory = rights->is_queued ? s->hood->directory : s->plan.submitter_directory;
	}
	r = post_plan(s->hood, &order, &s->post_plan, err);
	s->has_post = r == 1;
	return r < 0 ? r : 0;
}

static int refuse_queued(void *arg UNUSED, const struct queued *q, struct error *err)
{
	if (q->state == JOB_FINISHED || q->state == JOB_CANCELLED)
		return 0;
	return error_set(err, ERROR_BUSY,
			 "'%s' was submitted and is %s: `fumehood wait %s`, or `fumehood cancel %s` first",
			 q->id, job_state_name(q->state), q->id, q->id);
}

/* Asked twice: for the plan, and again when the id is ours alone, since another run of it may have ended in between. */
int story_next_attempt(struct story *s, struct error *err)
{
	struct analysis_state known;
	int r;

	if (s->hooks->job) /* the queue has decided that */
		s->plan.attempt = s->hooks->job->attempt;
	if (!s->request->id || s->hooks->job)
		return 0;
	r = ledger_analysis(s->ledger, s->request->id, &known, err);
	if (r == 0)
		r = ledger_queue_look(s->ledger, (char *[]){s->request->id, NULL}, refuse_queued, NULL, err);
	if (r < 0)
		return r;
	if (known.succeeded && !s->request->again)
		return error_set(
			err, ERROR_REFUSED,
			"'%s' has already succeeded: --again makes another attempt, `fumehood show %s` shows the last one",
			s->request->id, s->request->id);
	s->plan.attempt = s->post_plan.attempt = s->attempt->number = known.last_attempt + 1;
	if (plan_set_attempt(&s->plan) < 0 || (s->has_post && plan_set_attempt(&s->post_plan) < 0))
		return error_memory(err);
	return 0;
}

static int stage_plan(struct story *s, struct error *err)
{
	int r = hood_ledger(s->hood, LEDGER_CREATE, &s->ledger, err);

	if (r == 0 && s->request->id)
		r = id_check(s->request->id, err);
	if (r == 0)
		r = ledger_may_commit(s->ledger, s->request->id ? s->request->id : "it", err);
	if (r < 0)
		return r;
	s->plan.attempt = 1;
	if (s->hooks->job)
		memcpy(s->plan.token, s->hooks->job->token, sizeof s->plan.token);
	r = story_next_attempt(s, err);
	if (r < 0)
		return r;
	r = rights_find(s->hood, s->hooks->job, s->request, &s->rights, err);
	if (r == 0)
		r = plan_resolve(s->hood, s->request, &s->rights, &s->plan, err);
	if (r < 0)
		return r;
	r = plan_post(s, err);
	if (r == 0)
		r = queries_check(s->hood, s->request, err);
	if (r < 0)
		return r;
	snprintf(s->attempt->id, sizeof s->attempt->id, "%s", s->plan.id);
	memcpy(s->attempt->token, s->plan.token, sizeof s->plan.token);
	s->attempt->number = s->plan.attempt;
	s->attempt->queued = s->hooks->job != NULL;
	for (size_t i = 0; s->plan.prefixes && s->plan.prefixes[i]; i++)
		if (receipt_add(&s->attempt->receipt, "interpreter", true, "'%s' is shown read-only",
				s->plan.prefixes[i]) < 0)
			return error_memory(err);
	if (s->plan.note && receipt_warn(&s->attempt->receipt, "%s", s->plan.note) < 0)
		return error_memory(err);
	s->attempt->request = request_to_json(s->request);
	s->attempt->workspace = strdup(s->plan.workspace);
	return s->attempt->request && s->attempt->workspace ? 0 : error_memory(err);
}

/* ---- collect ---- */

static int put_object(void *arg, int fd, uint64_t size, uint8_t ret_sha256[DIGEST_SIZE], struct error *err)
{
	struct story *s = arg;

	return ledger_put_object(s->ledger, fd, size, ret_sha256, err);
}

static int stage_collect(struct story *s, struct error *err)
{
	const char *ours[3] = {0};
	int n_ours = 0;
	struct collect_rules rules = {
		.outputs = s->plan.outputs,
		.optional_outputs = s->plan.optional_outputs,
		.inputs = &s->attempt->inputs,
		.ignore = ours,
		.max_bytes = s->plan.limits.value[LIMIT_OUTPUT_MAX],
		.max_files = s->plan.limits.value[LIMIT_FILES],
		.object_min = ledger_blob_max(s->ledger),
		.owner = s->uid,
	};
	int r;

	if (s->plan.data)
		ours[n_ours++] = "data";
	if (s->plan.docs)
		ours[n_ours++] = "docs";
	story_tell(s, "collecting");
	/* Whatever mode the analysis gave it: from here on nobody else changes what lies there. */
	if (fchmod(s->workspace.fd, 0700) < 0)
		return error_system(err, errno, "cannot make '%s' private", s->plan.workspace);
	story_note_disk_use(s);
	r = collect(s->workspace.fd, &rules, put_object, s, &s->attempt->manifest, err);
	s->evidence.output_missing = s->attempt->manifest.missing && s->attempt->manifest.missing[0];
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

static int stage_post(struct story *s, struct error *err)
{
	struct attempt *a = s->attempt;
	struct post_job job = {
		.hood = s->hood,
		.plan = &s->post_plan,
		.workspace = &s->workspace,
		.slot = &s->slot,
		.uid = s->uid,
		.gid = s->gid,
		.attempt = a,
		.cancel_fd = s->hooks->cancel_fd,
		.fetch = copy_output,
		.stored = s->rights.post_is_own ? &s->hooks->job->inputs : NULL,
		.fill = story_fill_input,
		.arg = s,
	};
	int r;

	if (!s->has_post || verdict_decide(&s->evidence) != VERDICT_SUCCEEDED)
		return 0;
	story_tell(s, "post-processing");
	r = post_run(&job, &s->post, err);
	if (r < 0)
		return r;
	s->evidence.cancel_signal = s->post.cancel_signal;
	s->evidence.post_process_failed = s->post.reason != NULL;
	for (size_t i = 0; s->post.warnings && s->post.warnings[i]; i++)
		if (receipt_warn(&a->receipt, "post-process: %s", s->post.warnings[i]) < 0)
			return error_memory(err);
	a->post_log = s->post.log;
	s->post.log = (struct captured){0};
	if (s->post.rows)
		a->rows = (int64_t)spool_rows(s->post.rows);
	r = s->post.reason ? attempt_event(a, "post-process", "failed: %s", s->post.reason)
			   : attempt_event(a, "post-process", "%lld rows", (long long)a->rows);
	return r < 0 ? error_memory(err) : 0;
}

/* ---- finished ---- */

/* Objects that no transaction references yet are pinned first: a sweep must not take what the record promises. */
int story_save(struct story *s, bool sync, struct error *err)
{
	int r = ledger_pin(s->ledger, s->attempt, err);

	return r < 0 ? r : finished_save(&s->workspace, s->attempt, sync, err);
}

static int stage_finish(struct story *s, struct error *err)
{
	_cleanup_buffer_ struct buffer text = {0};
	struct attempt *a = s->attempt;
	struct utsname host;

	a->verdict = verdict_decide(&s->evidence);
	a->status = verdict_exit_status(a->verdict, &s->evidence);
	a->exit_code = s->evidence.exit_code;
	a->signal = s->evidence.signal;
	uname(&host);
	a->host = strdup(host.nodename);
	if (!a->host || story_reason(s, &text) < 0)
		return error_memory(err);
	if (a->verdict == VERDICT_SUCCEEDED && into_warn(&s->plan, a, err) < 0)
		return -ENOMEM;
	a->reason = text.size ? buffer_take(&text) : NULL;
	if (attempt_event(a, "finished", "%s%s%s", verdict_name(a->verdict), a->reason ? ": " : "",
			  a->reason ? a->reason : "") < 0)
		return error_memory(err);
	/* What lies on a disk that dies with us is not finished yet: save_outputs() makes it so if the commit fails. */
	return s->plan.own_disk || s->deferred ? 0 : story_save(s, false, err);
}

/* ---- commit ---- */

/* The ledger cannot be reached, and the outputs lie on a file system that goes with us: into the object store with
 * them, so that the verdict on disk is a finished attempt. */
static int save_outputs(struct story *s, struct error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && s->plan.own_disk && i < s->attempt->manifest.n_outputs; i++) {
		struct output *o = &s->attempt->manifest.outputs[i];
		_cleanup_close_ int fd = -1;

		if (o->is_object)
			continue;
		fd = collect_open(s->workspace.fd, o, err);
		r = fd < 0 ? fd : ledger_put_object(s->ledger, fd, o->size, o->sha256, err);
		o->is_object = r == 0;
	}
	return r;
}

static int stage_commit(struct story *s, struct error *err)
{
	int r;

	story_tell(s, "committing");
	r = attempt_commit(s->ledger, s->attempt, s->workspace.fd, s->post.rows, err);
	if (r < 0 || !s->plan.into || s->attempt->verdict != VERDICT_SUCCEEDED)
		return r;
	/* Committed it is; but who finds 0 looks for his files. */
	err->stage = "into";
	r = rights_copy_into(s->hood, &s->rights, s->ledger, s->attempt, &s->plan, s->workspace.site->state,
			     err);
	if (r < 0)
		s->attempt->status = verdict_exit_status(VERDICT_REFUSED, NULL);
	return r;
}

/* ---- clean up ---- */

static bool wants_keeping(const struct story *s)
{
	return s->plan.keep == KEEP_ALWAYS ||
	       (s->plan.keep == KEEP_ON_FAILURE && s->attempt->verdict != VERDICT_SUCCEEDED);
}

/* Nothing is alive any more. keep: the attempt has a verdict and the user wants to look at it; finished but not
 * committed: everything stays as it is, for gc. */
static int clean_up(struct story *s, bool has_verdict, struct error *err)
{
	bool keep = has_verdict && s->attempt->committed && wants_keeping(s), cgroup_left = false;
	int r = 0;

	story_tell(s, "cleaning up");
	if (has_verdict && !s->attempt->committed)
		r = save_outputs(s, err);
	if (s->host_workspace >= 0) {
		if (keep && r == 0)
			r = tree_copy(s->workspace.fd, s->host_workspace, err);
		fd_close(s->workspace.fd);
		s->workspace.fd = TAKE_FD(s->host_workspace);
	}
	s->disk = fd_close(s->disk);
	s->loop = fd_close(s->loop);
	sandbox_free(s->sandbox);
	s->sandbox = NULL;
	if (s->cgroup)
		cgroup_remove(TAKE_PTR(s->cgroup), NULL);
	/* Its own and the post-process's, made or half made: what could not be removed then is tried once more. */
	if (s->has_workspace) {
		int e = cgroups_remove(&s->workspace.record, r < 0 ? NULL : err);

		cgroup_left = e < 0;
		r = r < 0 ? r : e;
	}
	if (!has_verdict && s->ledger)
		ledger_unpin(s->ledger, s->attempt);
	for (int i = 0; i < STREAM_COUNT; i++) {
		s->out[i][0] = fd_close(s->out[i][0]);
		s->out[i][1] = fd_close(s->out[i][1]);
		s->log[i] = fd_close(s->log[i]);
	}
	s->null = fd_close(s->null);
	s->in[0] = fd_close(s->in[0]);
	s->in[1] = fd_close(s->in[1]);
	if (s->has_workspace) {
		int e = 0;

		if (has_verdict && !s->attempt->committed) {
			e = story_save(s, true, err);
		} else if (!has_verdict && s->workspace.adopted) {
			e = workspace_give_back(&s->workspace, err);
		} else if (cgroup_left) {
			/* Only the record names it: with all the rest it is left to gc, which tries again. */
		} else if (keep) {
			e = workspace_keep(&s->workspace, clock_utc() + (int64_t)s->hood->config.keep_for_ns,
					   err);
			s->attempt->kept = e == 0;
		} else {
			e = workspace_remove(&s->workspace, err);
		}
		workspace_close(&s->workspace);
		s->has_workspace = false;
		r = r < 0 ? r : e;
	}
	slot_release(&s->slot);
	affinity_release(&s->affinity);
	return r;
}

/* ---- the story ---- */

static int to_the_start(struct story *s, struct error *err)
{
	int r;

	err->stage = "plan";
	r = stage_plan(s, err);
	if (r < 0)
		return r;
	err->stage = "workspace";
	r = story_workspace(s, err);
	if (r < 0)
		return r;
	err->stage = "limits";
	r = story_limits(s, err);
	if (r < 0)
		return r;
	err->stage = "sandbox";
	return story_sandbox(s, err);
}

/* The worker takes its hands off: somebody else will run it, and nothing is written down. */
static int check_handed_back(const struct story *s, struct error *err)
{
	if (s->evidence.cancel_signal != CANCEL_HAND_BACK)
		return 0;
	return error_set(err, ERROR_LEASE, "'%s' was handed back to the queue", s->plan.id);
}

static int to_the_verdict(struct story *s, struct error *err)
{
	int r;

	err->stage = "supervise";
	r = story_supervise(s, err);
	if (r == 0)
		r = check_handed_back(s, err);
	if (r < 0)
		return r;
	err->stage = "collect";
	r = stage_collect(s, err);
	if (r < 0)
		return r;
	err->stage = "post-process";
	r = stage_post(s, err);
	if (r == 0)
		r = check_handed_back(s, err);
	if (r < 0)
		return r;
	err->stage = "finish";
	return stage_finish(s, err);
}

static void story_init(struct story *s, struct hood *h, const struct request *r,
		       const struct run_hooks *hooks, struct attempt *ret)
{
	*s = (struct story){.hood = h,
			    .request = r,
			    .hooks = hooks,
			    .attempt = ret,
			    .null = -1,
			    .disk = -1,
			    .host_workspace = -1,
			    .loop = -1};
	rights_init(&s->rights);
	plan_init(&s->plan);
	plan_init(&s->post_plan);
	s->slot.fd = s->in[0] = s->in[1] = -1;
	for (int i = 0; i < STREAM_COUNT; i++)
		s->out[i][0] = s->out[i][1] = s->log[i] = -1;
	ret->created = clock_utc();
	ret->exit_code = -1;
	ret->verdict = VERDICT_REFUSED;
	if (r->id)
		snprintf(ret->id, sizeof ret->id, "%s", r->id);
}

static void story_free(struct story *s)
{
	plan_done(&s->plan);
	plan_done(&s->post_plan);
	post_result_done(&s->post);
	rights_done(&s->rights);
	free(s);
}

static int story_begin(struct hood *h, const struct request *request, const struct run_hooks *hooks,
		       bool deferred, struct attempt *ret, struct story **ret_story, struct error *err)
{
	struct error later = ERROR_INIT;
	struct story *s = calloc(1, sizeof *s);
	int r;

	attempt_init(ret);
	if (!s)
		return error_memory(err);
	story_init(s, h, request, hooks, ret);
	s->deferred = deferred;
	r = to_the_start(s, err);
	if (r == 0)
		r = to_the_verdict(s, err);
	if (r < 0) {
		/* Nothing is recorded: the caller hears why, and all that was made is unmade. */
		clean_up(s, false, &later);
		ret->verdict = VERDICT_REFUSED;
		story_free(s);
		return r;
	}
	err->stage = NULL;
	*ret_story = s;
	return 0;
}

void hood_story_end(struct story *s)
{
	struct attempt *a = s->attempt;
	struct error why = {.stage = "commit"};
	int r = s->deferred && !s->plan.own_disk ? story_save(s, false, &why) : 0;

	if (r == 0)
		r = stage_commit(s, &why);
	if (r < 0)
		attempt_set_error(a, &why);
	/* Somebody else runs it, or has: what we have of it is worth nothing. */
	r = r < 0 && why.kind == ERROR_LEASE;
	why = (struct error){.stage = "clean up"};
	if (clean_up(s, !r, &why) < 0 && !a->error_message)
		attempt_set_error(a, &why);
	story_free(s);
}

void hood_story_drop(struct story *s)
{
	struct error why = ERROR_INIT;

	clean_up(s, false, &why);
	s->attempt->verdict = VERDICT_REFUSED;
	story_free(s);
}

int hood_story(struct hood *h, const struct request *request, const struct run_hooks *hooks,
	       struct attempt *ret, struct story **ret_story, struct error *err)
{
	return story_begin(h, request, hooks, true, ret, ret_story, err);
}

int hood_run(struct hood *h, const struct request *request, const struct run_hooks *hooks,
	     struct attempt *ret, struct error *err)
{
	struct story *s;
	int r = story_begin(h, request, hooks, false, ret, &s, err);

	if (r == 0)
		hood_story_end(s);
	return r;
}
