/*
 * The story of one analysis, from top to bottom:
 *
 *   plan ─► workspace ─► box: limits ─► sandbox ─► supervise ─► collect ─► box again: ─► finished ─► commit ─► clean up
 *                                                           │              post-process
 *                                  how it ended is on disk ─┘
 *
 * Each stage is one function, in this order; hood_story() and hood_story_end() call them. Whatever goes wrong before the
 * command has ended ends the story with an error and nothing left behind. Once it has ended nothing of ours may take its
 * result away: what is known is written down at once (ended.h), and a stage that fails after that (story_end.c) leaves the
 * attempt pending, workspace and all, for whoever comes later (recover.c, resume.c).
 */
#include "story.h"
#include "cause.h"
#include "clock.h"
#include "spare.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void story_tell(struct story *s, const char *stage)
{
	struct progress p = {.cpu_ms = -1, .memory_bytes = -1, .pids = -1, .disk_files = -1, .stage = stage};

	pulse_beat(&s->pulse, stage, NULL);
	if (s->box.started)
		p.elapsed_ms = (int64_t)((clock_now() - s->box.started) / NSEC_PER_MSEC);
	if (s->hooks->progress && s->hooks->progress_interval_ms)
		s->hooks->progress(s->hooks->arg, &p);
}

static void on_work(void *arg, const struct work *w)
{
	const struct story *s = arg;
	struct progress p = {.elapsed_ms = (int64_t)((w->told - w->began) / NSEC_PER_MSEC),
			     .cpu_ms = -1,
			     .memory_bytes = -1,
			     .pids = -1,
			     .disk_files = -1,
			     .bytes = w->done,
			     .bytes_total = w->total,
			     .stage = w->what};

	s->hooks->progress(s->hooks->arg, &p);
}

bool story_counts(struct story *s)
{
	s->work = (struct work){.tell = on_work, .arg = s};
	return s->hooks->progress && s->hooks->progress_interval_ms;
}

/* ---- clean up ---- */

/* What stays of a story whose processes are dead. */
enum ending {
	ENDING_DROPPED,	  /* nothing: it was refused, handed back, or is somebody else's */
	ENDING_STEP,	  /* the workspace is held as before, one step more is written down */
	ENDING_COMMITTED, /* what the user wants to keep */
	ENDING_PENDING,	  /* everything, for whoever comes later */
};

static int leave_workspace(struct story *s, enum ending ending, bool keep, bool cgroup_left,
			   struct error *err)
{
	struct tree_size size = s->disk.most;
	struct error ignored = ERROR_INIT;
	unsigned removed = 0;
	int r;

	if ((ending == ENDING_DROPPED || ending == ENDING_STEP) && workspace_is_adopted(&s->workspace))
		return workspace_give_back(&s->workspace, err);
	/* Only the record names a cgroup that is left: with all the rest it is gc's, which tries again. */
	if (ending == ENDING_PENDING || cgroup_left)
		return 0;
	if (keep) {
		(void)keep_fit(s->hood, s->kept_bytes, &removed, &ignored); /* gc tries again */
		r = workspace_keep(&s->workspace, keep_until(s->hood), err);
		s->attempt->kept = r == 0;
		return r;
	}
	/* What lay on a disk of its own has gone with it. */
	if (s->plan && s->plan->own_disk)
		size = (struct tree_size){0};
	return remover_remove(&s->hood->remover, &s->workspace, &size, err);
}

static int clean_up(struct story *s, enum ending ending, struct error *err)
{
	bool keep = ending == ENDING_COMMITTED && attempt_wants_keeping(s->attempt) && !s->too_large,
	     cgroup_left = false;
	int r;

	story_tell(s, "cleaning up");
	s->begun = spare_free(s->begun); /* it was for one that did not start */
	r = box_leave_disk(&s->box, keep, err);
	box_close(&s->box);
	/* Its own and the post-process's, made or half made: what could not be removed then is tried once more. */
	if (s->has_workspace) {
		int e = cgroups_remove(&s->workspace.record, r < 0 ? NULL : err);

		cgroup_left = e < 0;
		r = r < 0 ? r : e;
	}
	if (ending == ENDING_DROPPED && s->ledger)
		ledger_unpin(s->ledger, s->attempt);
	if (s->has_workspace) {
		int e = leave_workspace(s, ending, keep, cgroup_left, r < 0 ? NULL : err);

		workspace_close(&s->workspace);
		s->has_workspace = false;
		r = r < 0 ? r : e;
	}
	place_release(&s->place);
	pulse_close(&s->pulse);
	notices_done(&s->notices);
	s->stop_fd = fd_close(s->stop_fd); /* who waits for the end sees it */
	return r;
}

/* ---- the story ---- */

static int to_the_start(struct story *s, struct error *err)
{
	int r;

	err->stage = "plan";
	r = story_plan(s, err);
	if (r < 0)
		return cause_explain_call(r, err);
	err->stage = "workspace";
	r = story_workspace(s, err);
	if (r < 0)
		return cause_explain_call(r, err);
	err->stage = "limits";
	r = story_box(s, err);
	if (r < 0)
		return cause_explain_call(r, err);
	err->stage = "sandbox";
	return story_start(s, err);
}

/* The worker takes its hands off: somebody else will run it, and nothing is written down. */
int story_check_handed_back(const struct story *s, struct error *err)
{
	if (s->evidence.cancel_signal != CANCEL_HAND_BACK)
		return 0;
	if (s->evidence.by_manager && s->attempt->reason)
		return error_set(err, ERROR_LEASE, "%s", s->attempt->reason);
	return error_set(err, ERROR_LEASE, "'%s' was handed back to the queue", s->plan->id);
}

int story_note_end(struct story *s, struct error *err)
{
	struct ended e = {
		.evidence = s->evidence,
		.uid = s->owner,
		.own_disk = s->plan->own_disk,
		.disk = s->disk,
		.has_post = s->post_plan != NULL,
		.deferred = s->deferred,
		.whose = json_object_get(s->workspace.record.extra, RECORD_WHOSE),
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
	if ((r = story_watch(s, err)) < 0 || (r = story_ask_manager(s, err)) < 0 ||
	    (r = story_check_handed_back(s, err)) < 0)
		return r;
	(void)story_note_end(s, &ignored); /* tried again if it is needed */
	return 0;
}

void story_blank(struct story *s)
{
	*s = (struct story){0};
	rights_init(&s->rights);
	place_init(&s->place, &s->workspace);
	box_init(&s->box);
	s->stop_fd = -1;
	pulse_init(&s->pulse);
	notices_init(&s->notices);
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
	plan_free(s->plan);
	plan_free(s->post_plan);
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
	if ((r = to_the_start(s, err)) == 0 && (r = to_the_end(s, err)) == 0 &&
	    (r = story_conclude(s, err)) < 0 && err->kind != ERROR_LEASE)
		return give_up(s, err, ret_story);
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
	enum ending ending = s->step ? ENDING_STEP : ENDING_COMMITTED;
	int r;

	if (s->deferred && !s->step && !box_is_away(&s->box))
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
