#include "resume.h"
#include "ability.h"
#include "holder.h"
#include "steps.h"
#include "story.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

int remains_find(const struct workspace *w, struct remains *ret, struct error *err)
{
	int r = pending_load(w->run_fd, &ret->pending, err);

	if (r < 0)
		return r;
	ret->is_pending = r == 1;
	if (ret->pending.holder.pid > 0) {
		r = !record_is_of_this_boot(&w->record) ? 0
							: holder_open(&ret->pending.holder, &ret->fd, err);
		ret->gone = r == 0;
		return r < 0 ? r : 0;
	}
	ret->fd = w->fd < 0 ? -1 : fcntl(w->fd, F_DUPFD_CLOEXEC, 3);
	return w->fd >= 0 && ret->fd < 0 ? error_system(err, errno, "cannot open '%s'", w->record.path) : 0;
}

void remains_done(struct remains *r)
{
	pending_done(&r->pending);
	json_decref(r->whose);
	r->fd = fd_close(r->fd);
}

/* On a disk that went with its supervisor there is nothing; and what a caller wanted to decide on, and did not come to, is
 * not ours to commit. */
static bool can_go_on(const struct ended *e, const struct remains *r)
{
	if (e->own_disk && !r->pending.copied && r->pending.holder.pid <= 0)
		return false;
	return r->fd >= 0 && !r->gone && (!e->deferred || r->is_pending);
}

int remains_recall(const struct workspace *w, struct remains *ret, struct error *err)
{
	_cleanup_rights_ struct rights ignored = {0};
	_cleanup_ended_ struct ended e;
	int r;

	ended_init(&e);
	ret->whose = json_incref(json_object_get(w->record.extra, RECORD_WHOSE));
	if (!ret->whose && !ability_is_root() && !json_is_true(json_object_get(w->record.extra, "queued")))
		ret->whose = rights_to_json(&ignored, NULL); /* in his own state directory it is his */
	if (!ret->whose)
		r = error_set(
			err, ERROR_REFUSED,
			"an older version has begun it, and did not write down whose it is: finish it with "
			"that version, or give it up with `fumehood cancel`");
	else if ((r = ended_load(w->run_fd, &e, err)) >= 0 && e.whose && !json_equal(e.whose, ret->whose))
		r = error_set(err, ERROR_REFUSED,
			      "its record and its end do not say the same of whose it is");
	r = r < 0 ? r : rights_recall(ret->whose, &ignored, err);
	return r < 0 ? error_prefix(err, r, "'%s' is left alone", w->record.id) : 0;
}

int remains_rights(struct hood *h, const struct remains *remains, const struct attempt *a, struct rights *ret,
		   struct error *err)
{
	_cleanup_request_ struct request request;
	int r;

	request_init(&request);
	if ((r = request_from_json(&request, a->request, err)) < 0 ||
	    (r = rights_recall(remains->whose, ret, err)) < 0)
		return r;
	return rights_apply(h, ret, &request, err);
}

/* As it was asked for then, by the configuration of now: whoever has another one cannot do it. */
static int recall_post(struct story *s, const struct ended *e, const struct remains *remains,
		       struct error *err)
{
	int r;

	if (!e->has_post || s->step || verdict_decide(&e->evidence) != VERDICT_SUCCEEDED)
		return 0;
	if ((r = remains_rights(s->hood, remains, s->attempt, &s->rights, err)) < 0 ||
	    (r = story_plan_post(s, err)) < 0 || s->post_plan)
		return r;
	return error_set(
		err, ERROR_REFUSED,
		"the post-process of '%s' is not in this configuration: give the one that it was run "
		"with (--config)",
		s->attempt->id);
}

static int recall_plan(struct story *s, struct error *err)
{
	const struct attempt *a = s->attempt;
	struct plan *plan = plan_new();
	int r;

	if (!plan)
		return error_memory(err);
	s->plan = plan;
	r = plan_recall(plan, a->plan, err);
	memcpy(plan->token, a->token, sizeof plan->token);
	plan->attempt = a->number;
	return r;
}

static int recall(struct story *s, struct ended *e, const struct remains *remains, struct request *request,
		  struct error *err)
{
	int r;

	if ((r = request_from_json(request, s->attempt->request, err)) < 0 || (r = recall_plan(s, err)) < 0)
		return r;
	s->evidence = e->evidence;
	s->owner = e->uid;
	s->disk = e->disk;
	s->has_ended = true;
	r = recall_post(s, e, remains, err);
	/* As root the post-process runs as nobody that the analysis was. */
	return r < 0 || !s->post_plan ? r : place_take(&s->place, err);
}

static int conclude(struct story *s, struct workspace *w, int fd, struct error *err)
{
	int r;

	/* Lent: the stages work in the story's own. */
	s->workspace = *w;
	s->workspace.fd = fd;
	s->workspace.run_fd = w->run_fd;
	r = story_conclude(s, err);
	s->workspace.fd = w->fd;
	*w = s->workspace;
	return r;
}

int story_resume(struct hood *h, struct ledger *l, struct workspace *w, const struct remains *remains,
		 struct attempt *a, struct spool **ret_rows, struct error *err)
{
	struct job job = {0};
	struct run_hooks hooks = {.cancel_fd = -1, .stdin_fd = -1, .job = &job};
	_cleanup_request_ struct request request;
	_cleanup_ended_ struct ended e;
	struct story *s;
	int r;

	ended_init(&e);
	request_init(&request);
	r = ended_load(w->run_fd, &e, err);
	if (r <= 0 || !can_go_on(&e, remains))
		return r < 0 ? r : 0;
	s = malloc(sizeof *s);
	if (!s)
		return error_memory(err);
	story_blank(s);
	attempt_done(a);
	*a = e.attempt;
	attempt_init(&e.attempt);
	s->hood = h;
	s->ledger = l;
	s->request = &request;
	s->hooks = &hooks;
	job.inputs = e.stored; /* lent */
	s->attempt = a;
	s->step = record_step(&w->record);
	if ((r = attempt_load_logs(w, s->step, a, err)) == 0 &&
	    (r = recall(s, &e, remains, &request, err)) == 0 && (r = conclude(s, w, remains->fd, err)) == 0)
		*ret_rows = TAKE_PTR(s->post.rows);
	place_release(&s->place);
	story_free(s);
	return r < 0 ? r : 1;
}
