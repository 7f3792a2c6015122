/*
 * The post-process of steps: that of the last one, once all have succeeded, in the story's own words.
 */
#include "steps.h"
#include "story.h"

#include <stdlib.h>
#include <unistd.h>

/* It has places in the scratch that the last step had: the workspace is ours for so long. */
static int post_in(struct story *s, struct workspace *w, const char *token, struct spool **ret,
		   struct error *err)
{
	struct error later = ERROR_INIT;
	int r, back;

	if ((r = place_take(&s->place, err)) < 0 ||
	    (r = workspace_adopt(w, token, geteuid(), getegid(), err)) < 0)
		return r;
	s->workspace = *w; /* lent */
	r = story_post(s, err);
	*w = s->workspace;
	*ret = TAKE_PTR(s->post.rows);
	back = cgroups_remove(&w->record, r < 0 ? &later : err);
	r = r < 0 ? r : back;
	back = workspace_give_back(w, r < 0 ? &later : err);
	return r < 0 ? r : back;
}

int steps_post_process(struct hood *h, struct ledger *l, struct workspace *w, const struct attempt *last,
		       struct attempt *a, bool has_rows, struct spool **ret, struct error *err)
{
	struct run_hooks hooks = {.cancel_fd = -1, .stdin_fd = -1};
	_cleanup_request_ struct request request;
	struct story *s = malloc(sizeof *s);
	int r;

	request_init(&request);
	if (!s)
		return error_memory(err);
	story_blank(s);
	s->hood = h;
	s->ledger = l;
	s->request = &request;
	s->hooks = &hooks;
	s->attempt = a;
	s->evidence = (struct evidence){.started = true};
	s->plan = plan_new();
	if (!s->plan)
		r = error_memory(err);
	else if ((r = request_from_json(&request, a->steps[a->n_steps - 1].request, err)) == 0 &&
		 (r = plan_recall((struct plan *)s->plan, a->steps[a->n_steps - 1].plan, err)) == 0)
		r = story_plan_post(s, err);
	if (r == 0 && s->post_plan && has_rows)
		r = error_set(err, ERROR_REFUSED,
			      "the post-process makes the rows of '%s': leave out one of the two", a->id);
	if (r == 0 && s->post_plan)
		r = post_in(s, w, last->token, ret, err);
	if (r == 0 && s->post.reason)
		attempt_conclude(a, VERDICT_POST_PROCESS_FAILED, "post-process: %s", s->post.reason);
	place_release(&s->place);
	story_free(s);
	return r;
}
