/*
 * The story's plan: which attempt it is, what it may, what it sees; and the same for its post-process. Made once, then const.
 */
#include "file.h"
#include "queue.h"
#include "steps.h"
#include "story.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* ---- which attempt ---- */

static int refuse_queued(const char *id, enum job_state state, struct error *err)
{
	if (state == JOB_FINISHED || state == JOB_CANCELLED || state == JOB_STATES)
		return 0;
	return error_set(err, ERROR_BUSY,
			 "'%s' was submitted and is %s: `fumehood wait %s`, or `fumehood cancel %s` first",
			 id, job_state_name(state), id, id);
}

static int refuse_array(const char *id, const char *task, struct error *err)
{
	if (!*task)
		return 0;
	return error_set(
		err, ERROR_REFUSED,
		"cannot run '%s': there is an array of this name, with the task '%s'; choose another name",
		id, task);
}

/* A step of it has run already: that has asked for another attempt. */
static bool has_begun(const struct story *s)
{
	struct error ignored = ERROR_INIT;
	_cleanup_close_ int fd = -1;
	struct site *site = NULL;
	size_t count = 0;

	if (hood_site(s->hood, &site, &ignored) < 0)
		return false;
	fd = file_open_beneath(site->runs, s->request->id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	return fd >= 0 && steps_count(fd, &count, &ignored) == 0 && count > 0;
}

/* Asked twice: for the plan, and again when the id is ours alone, since another run of it may have ended in between. */
static int next_attempt(struct story *s, int *ret, struct error *err)
{
	const char *id = s->request->id;
	struct run_known known;
	int r;

	*ret = s->hooks->job ? s->hooks->job->attempt : 1; /* the queue has decided that */
	if (!id || s->hooks->job)
		return 0;
	if ((r = ledger_run_known(s->ledger, id, &known, err)) < 0 ||
	    (r = refuse_queued(id, known.state, err)) < 0 || (r = refuse_array(id, known.task, err)) < 0)
		return r;
	if (known.succeeded && !s->request->again && !has_begun(s))
		return error_set(
			err, ERROR_REFUSED,
			"'%s' has already succeeded: --again makes another attempt, `fumehood show %s` shows the last one",
			id, id);
	*ret = known.next_attempt;
	return 0;
}

/* ---- the plan ---- */

/* What cannot be post-processed is refused now, not when it has run. */
int story_plan_post(struct story *s, struct error *err)
{
	const struct rights *rights = &s->rights;
	struct plan *plan;
	struct post_order order = {
		.id = s->plan->id,
		.attempt = s->plan->attempt,
		.scratch = s->plan->scratch,
		.command = s->request->post_process,
		.directory = s->plan->submitter_directory,
		.strength = s->plan->strength,
		.is_stored = rights->post_is_own,
		.is_sites = rights->post_is_sites,
	};
	int r;

	if (!order.command) {
		order.command = s->hood->config.defaults.post_process;
		order.directory = rights->is_queued ? s->hood->directory : s->plan->submitter_directory;
	}
	plan = plan_new();
	if (!plan)
		return error_memory(err);
	r = post_plan(s->hood, &order, plan, err);
	if (r == 1)
		s->post_plan = plan;
	else
		plan_free(plan);
	return r < 0 ? r : 0;
}

/* token: NULL for a new one. */
static int make_plans(struct story *s, int attempt, const char *token, struct error *err)
{
	struct plan *plan = plan_new();
	int r;

	if (!plan)
		return error_memory(err);
	s->plan = plan;
	plan->attempt = attempt;
	if (token)
		memcpy(plan->token, token, sizeof plan->token);
	r = plan_resolve(s->hood, s->request, &s->rights, plan, err);
	return r < 0 ? r : story_plan_post(s, err);
}

int story_plan_again(struct story *s, struct error *err)
{
	const struct plan *before = s->plan;
	int attempt, r = next_attempt(s, &attempt, err);

	if (r < 0 || attempt == before->attempt)
		return r;
	plan_free(TAKE_PTR(s->post_plan));
	r = make_plans(s, attempt, before->token, err);
	plan_free(before);
	s->attempt->number = attempt;
	return r;
}

/* What the attempt knows from its plan. */
static int begin_attempt(struct story *s, struct error *err)
{
	const struct plan *plan = s->plan;
	struct attempt *a = s->attempt;

	snprintf(a->id, sizeof a->id, "%s", plan->id);
	memcpy(a->token, plan->token, sizeof plan->token);
	a->number = plan->attempt;
	a->queued = s->hooks->job != NULL;
	a->is_bound = s->rights.is_bound;
	for (size_t i = 0; plan->prefixes && plan->prefixes[i]; i++)
		receipt_add(&a->receipt, "interpreter", true, "'%s' is shown read-only", plan->prefixes[i]);
	for (size_t i = 0; plan->notes && plan->notes[i]; i++) {
		receipt_warn(&a->receipt, "%s", plan->notes[i]);
		if (s->hooks->warned)
			s->hooks->warned(s->hooks->arg, plan->notes[i]);
	}
	if (s->hooks->job && s->hooks->job->engine) {
		a->engine = json_deep_copy(s->hooks->job->engine);
		if (!a->engine)
			return error_memory(err);
	}
	a->request = request_to_json(s->request);
	a->workspace = strdup(plan->workspace);
	return a->request && a->workspace ? 0 : error_memory(err);
}

static int plan(struct story *s, struct error *err)
{
	const struct job *job = s->hooks->job;
	const char *id = s->request->id;
	int attempt, r;

	if ((r = hood_ledger(s->hood, LEDGER_CREATE, &s->ledger, err)) < 0 ||
	    (id && (r = id_check(id, err)) < 0) ||
	    (r = ledger_may_commit(s->ledger, id ? id : "it", err)) < 0 ||
	    (r = ledger_store_ready(s->ledger, err)) < 0 || (r = next_attempt(s, &attempt, err)) < 0 ||
	    (r = rights_find(s->hood, job, s->request, &s->rights, err)) < 0 ||
	    (r = make_plans(s, attempt, job ? job->token : NULL, err)) < 0 ||
	    (r = queries_check(s->hood, s->request, err)) < 0)
		return r;
	return begin_attempt(s, err);
}

/* For who runs one after the other the ledger is open, and what every analysis has is ready made (stock.h). Everybody else has the
 * time that this takes: a second CPU does it. */
int story_plan(struct story *s, struct error *err)
{
	struct hood *h = s->hood;
	int r;

	if (!h->stock) {
		hood_begin_ledger(h, LEDGER_CREATE);
		story_begin_walls(s);
	}
	r = plan(s, err);
	plan_free(TAKE_PTR(h->common)); /* what nobody has taken is out of date */
	return r;
}
