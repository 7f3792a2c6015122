/*
 * The story of one analysis, from top to bottom:
 *
 *   plan ─► workspace ─► limits ─► sandbox ─► supervise ─► collect ─► finished ─► commit ─► clean up
 *                                                      │
 *                        how it ended is on disk ──────┘
 *
 * Each stage is one function, in this order; hood_story() and hood_story_end() call them. Whatever goes wrong before the
 * command has ended ends the story with an error and nothing left behind. Once it has ended nothing of ours may take its
 * result away: what is known is written down at once (ended.h), and a stage that fails after that (story_end.c) leaves the
 * attempt pending, workspace and all, for whoever comes later (recover.c, resume.c).
 */
#include "story.h"
#include "clock.h"
#include "file.h"
#include "queue.h"
#include "sandbox.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

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
int story_plan_post(struct story *s, struct error *err)
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
	r = story_plan_post(s, err);
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

/* ---- clean up ---- */

/* What stays of a story whose processes are dead. */
enum ending {
	ENDING_DROPPED,	  /* nothing: it was refused, handed back, or is somebody else's */
	ENDING_COMMITTED, /* what the user wants to keep */
	ENDING_PENDING,	  /* everything, for whoever comes later */
};

/* From the analysis's own disk back to the host's directory. */
static int leave_disk(struct story *s, bool keep, struct error *err)
{
	int r = 0;

	if (s->host_workspace >= 0) {
		if (keep)
			r = tree_copy(s->workspace.fd, s->host_workspace, err);
		fd_close(s->workspace.fd);
		s->workspace.fd = TAKE_FD(s->host_workspace);
	}
	s->disk = fd_close(s->disk);
	s->loop = fd_close(s->loop);
	return r;
}

static void close_streams(struct story *s)
{
	for (int i = 0; i < STREAM_COUNT; i++) {
		s->out[i][0] = fd_close(s->out[i][0]);
		s->out[i][1] = fd_close(s->out[i][1]);
		s->log[i] = fd_close(s->log[i]);
	}
	s->null = fd_close(s->null);
	s->in[0] = fd_close(s->in[0]);
	s->in[1] = fd_close(s->in[1]);
}

static int leave_workspace(struct story *s, enum ending ending, bool keep, bool cgroup_left,
			   struct error *err)
{
	int r;

	if (ending == ENDING_DROPPED && s->workspace.adopted)
		return workspace_give_back(&s->workspace, err);
	/* Only the record names a cgroup that is left: with all the rest it is gc's, which tries again. */
	if (ending == ENDING_PENDING || cgroup_left)
		return 0;
	if (keep) {
		r = workspace_keep(&s->workspace, clock_utc() + (int64_t)s->hood->config.keep_for_ns, err);
		s->attempt->kept = r == 0;
		return r;
	}
	return workspace_remove(&s->workspace, err);
}

static int clean_up(struct story *s, enum ending ending, struct error *err)
{
	bool keep = ending == ENDING_COMMITTED && attempt_wants_keeping(s->attempt), cgroup_left = false;
	int r;

	story_tell(s, "cleaning up");
	r = leave_disk(s, keep, err);
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
	if (ending == ENDING_DROPPED && s->ledger)
		ledger_unpin(s->ledger, s->attempt);
	close_streams(s);
	if (s->has_workspace) {
		int e = leave_workspace(s, ending, keep, cgroup_left, r < 0 ? NULL : err);

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
int story_check_handed_back(const struct story *s, struct error *err)
{
	if (s->evidence.cancel_signal != CANCEL_HAND_BACK)
		return 0;
	return error_set(err, ERROR_LEASE, "'%s' was handed back to the queue", s->plan.id);
}

int story_note_end(struct story *s, struct error *err)
{
	struct ended e = {
		.evidence = s->evidence,
		.uid = s->owner,
		.own_disk = s->plan.own_disk,
		.disk_was_full = s->disk_was_full,
		.files_were_up = s->files_were_up,
		.disk_was_hidden = s->disk_was_hidden,
		.disk_most = s->disk_most,
		.has_post = s->has_post,
		.deferred = s->deferred,
		.owner = s->hooks->job ? s->hooks->job->owner : NULL,
	};
	int r;

	if (s->hooks->job)
		e.stored = s->hooks->job->inputs;
	r = ended_save(&s->workspace, s->attempt, &e, err);

	s->has_ended = r == 0;
	return r;
}

static int to_the_end(struct story *s, struct error *err)
{
	struct error ignored = ERROR_INIT;
	int r;

	err->stage = "supervise";
	r = story_supervise(s, err);
	if (r == 0)
		r = story_check_handed_back(s, err);
	if (r < 0)
		return r;
	story_note_disk_use(s);
	(void)story_note_end(s, &ignored); /* tried again if it is needed */
	return 0;
}

void story_blank(struct story *s)
{
	*s = (struct story){.null = -1, .disk = -1, .host_workspace = -1, .loop = -1};
	rights_init(&s->rights);
	plan_init(&s->plan);
	plan_init(&s->post_plan);
	s->slot.fd = s->in[0] = s->in[1] = -1;
	for (int i = 0; i < STREAM_COUNT; i++)
		s->out[i][0] = s->out[i][1] = s->log[i] = -1;
}

static void story_init(struct story *s, struct hood *h, const struct request *r,
		       const struct run_hooks *hooks, struct attempt *ret)
{
	story_blank(s);
	s->hood = h;
	s->request = r;
	s->hooks = hooks;
	s->attempt = ret;
	ret->created = clock_utc();
	ret->exit_code = -1;
	ret->verdict = VERDICT_REFUSED;
	if (r->id)
		snprintf(ret->id, sizeof ret->id, "%s", r->id);
}

void story_free(struct story *s)
{
	plan_done(&s->plan);
	plan_done(&s->post_plan);
	post_result_done(&s->post);
	rights_done(&s->rights);
	free(s);
}

/* There is no verdict yet, and there will be: the attempt is told as pending, which is no error of the call. */
static int give_up(struct story *s, struct error *err, struct story **ret_story)
{
	struct error later = ERROR_INIT;

	story_leave(s, err);
	(void)clean_up(s, ENDING_PENDING, &later);
	story_free(s);
	*err = (struct error)ERROR_INIT;
	*ret_story = NULL;
	return 0;
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
		r = to_the_end(s, err);
	if (r == 0) {
		r = story_conclude(s, err);
		if (r < 0 && err->kind != ERROR_LEASE)
			return give_up(s, err, ret_story);
	}
	if (r < 0) {
		/* Nothing is recorded: the caller hears why, and all that was made is unmade. */
		clean_up(s, ENDING_DROPPED, &later);
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
	struct error why = {.stage = "commit"}, later = {.stage = "clean up"};
	enum ending ending = ENDING_COMMITTED;
	int r;

	if (s->deferred && s->host_workspace < 0)
		(void)story_save(s, false, &later);
	s->deferred = false; /* the caller has decided */
	r = story_commit(s, &why);
	if (r < 0 && a->committed) {
		attempt_set_error(a, &why);
	} else if (r < 0 && why.kind == ERROR_LEASE) {
		/* Somebody else runs it, or has: what we have of it is worth nothing. */
		attempt_set_error(a, &why);
		ending = ENDING_DROPPED;
	} else if (r < 0) {
		story_leave(s, &why);
		ending = ENDING_PENDING;
	}
	later = (struct error){.stage = "clean up"};
	if (clean_up(s, ending, &later) < 0 && !a->error_message)
		attempt_set_error(a, &later);
	story_free(s);
}

void hood_story_drop(struct story *s)
{
	struct error why = ERROR_INIT;

	clean_up(s, ENDING_DROPPED, &why);
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

	if (r == 0 && s)
		hood_story_end(s);
	return r;
}
