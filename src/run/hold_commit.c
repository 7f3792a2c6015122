/*
 * `commit` of a held workspace: what lies there goes through the same door as a run's outputs, as what its steps came to, or, if
 * nothing has run in it, as what the platform itself has made.
 */
#include "clock.h"
#include "collect.h"
#include "file.h"
#include "spool.h"
#include "steps.h"
#include "story.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

struct holding_commit {
	struct hood *hood;
	struct ledger *ledger; /* NULL: it cannot be reached, and why is the reason */
	struct error why;
	const struct commit_order *order;
	struct attempt *attempt;
	bool again;	     /* as asked for; what ran was asked for when it did */
	bool done;	     /* there was a workspace */
	bool kept;	     /* and it is kept */
	struct attempt last; /* of the steps; its plan says what is to be done with all of it */
	struct plan plan;    /* that plan, recalled */
	char **globs;	     /* what the steps have declared; NULL: everything */
};

/* Without steps: the platform itself has made what lies there. */
static int describe(struct holding_commit *c, struct error *err)
{
	struct attempt *a = c->attempt;

	a->exit_code = 0;
	a->started = a->ended = clock_utc();
	a->host = host_name();
	a->request = json_pack("{s:s}", "id", a->id);
	a->plan = json_object();
	attempt_conclude(a, VERDICT_SUCCEEDED, "committed by its own platform");
	attempt_event(a, "commit", "from a held workspace");
	receipt_add(&a->receipt, "hood", false, "ran inside the platform's own process");
	if (!a->host || !a->request || !a->plan)
		return error_memory(err);
	return token_make(a->token, err);
}

/* What one step has declared, if it has. 1, 0: everything counts. */
static int add_globs(char ***globs, const struct step *step, struct error *err)
{
	static const char *const keys[] = {"output", "optional_output"};
	bool any = false;

	for (size_t k = 0; k < ARRAY_SIZE(keys); k++) {
		const json_t *list = json_object_get(step->plan, keys[k]);

		for (size_t i = 0; i < json_array_size(list); i++, any = true) {
			int r = strv_append(globs, json_string_value(json_array_get(list, i)), err);

			if (r < 0)
				return r;
		}
	}
	return any;
}

static int recall_globs(struct holding_commit *c, struct error *err)
{
	for (size_t i = 0; i < c->attempt->n_steps; i++) {
		int r = add_globs(&c->globs, &c->attempt->steps[i], err);

		if (r == 1)
			continue;
		strv_free(c->globs);
		c->globs = NULL;
		return r;
	}
	return 0;
}

/* 1: there are steps, and this is what they came to. */
static int recall_steps(struct holding_commit *c, struct workspace *w, struct error *err)
{
	struct attempt *a = c->attempt;
	int r = steps_load(w, a, &c->last, err);

	if (r <= 0)
		return r;
	/* The last one alone has given its plan to the sum. */
	r = plan_recall(&c->plan, a->steps[a->n_steps - 1].plan, err);
	if (r < 0 || (r = recall_globs(c, err)) < 0)
		return r;
	if (c->order->verdict != VERDICT_NONE && c->order->verdict != a->verdict)
		attempt_conclude(a, c->order->verdict, "as its caller says");
	attempt_event(a, "commit", "%zu steps", a->n_steps);
	return 1;
}

/* What lies in the workspace, whoever its owner is: it was given back to the platform. */
static int gather(struct holding_commit *c, int fd, bool steps, struct error *err)
{
	const char *ours[3] = {0};
	int n_ours = 0;
	struct collect_rules rules = {
		.outputs = c->order->outputs,
		.optional_outputs = c->order->outputs ? NULL : c->globs,
		.inputs = steps ? &c->last.inputs : &c->attempt->inputs,
		.flows = &c->attempt->inputs,
		.ignore = ours,
		.max_bytes = steps ? c->plan.limits.value[LIMIT_OUTPUT_MAX]
				   : limit_table[LIMIT_OUTPUT_MAX].built_in,
		.max_files = steps ? c->plan.limits.value[LIMIT_FILES] : limit_table[LIMIT_FILES].built_in,
		.object_min = c->ledger ? ledger_object_min(c->ledger) : UINT64_MAX,
		.content_max = c->ledger ? ledger_content_max(c->ledger) : UINT64_MAX,
		.work = c->ledger ? ledger_work(c->ledger) : NULL,
		.owner = (uid_t)-1,
	};
	struct manifest *m = &c->attempt->manifest;
	struct error without = {.stage = err->stage};
	int r;

	if (c->plan.data)
		ours[n_ours++] = "data";
	if (c->plan.docs)
		ours[n_ours++] = "docs";
	r = collect(fd, &rules, c->ledger ? ledger_take_object : NULL, c->ledger, m, err);
	if (r == 0 || !steps || !c->ledger)
		return r;
	/* The object store may be full. What there is can be told without it, and the commit puts it there. */
	rules.object_min = UINT64_MAX;
	r = collect(fd, &rules, NULL, NULL, m, &without);
	return r;
}

/* The platform's own function makes rows out of what was collected. */
static int make_rows(struct holding_commit *c, struct workspace *w, struct spool **ret, struct error *err)
{
	struct attempt *a = c->attempt;
	_cleanup_free_ char *lines = NULL;
	size_t size = 0;
	int r = c->order->rows(c->order->arg, a, w ? w->fd : -1, &lines, &size, err);

	/* None needs no table. */
	if (r < 0 ||
	    (size && (r = rows_gather(c->hood, w ? w->run_fd : -1, lines ? lines : "", size, ret, err)) < 0))
		return r;
	a->rows = size ? (int64_t)spool_rows(*ret) : 0;
	return 0;
}

static int keep(struct holding_commit *c, struct workspace *w, struct error *err)
{
	struct error ignored = ERROR_INIT;
	unsigned removed = 0;
	uint64_t bytes;

	if (!keep_can_fit(c->hood, w->fd, &bytes))
		return error_set(
			err, ERROR_REFUSED,
			"the workspace of '%s' is not kept: it is larger than all that may be (keep.max_bytes)",
			c->attempt->id);
	(void)keep_fit(c->hood, bytes, &removed, &ignored); /* gc tries again */
	return workspace_keep(w, keep_until(c->hood), err);
}

/* --into and --keep, as the last step was run with them. Committed it is by now. */
static void after(struct holding_commit *c, struct workspace *w)
{
	struct attempt *a = c->attempt;
	struct error why = {.stage = "into"};
	struct rights none;

	rights_init(&none);
	if (a->verdict == VERDICT_SUCCEEDED && c->plan.into &&
	    rights_copy_into(c->hood, &none, c->ledger, a, &c->plan, w->site->state, &why) < 0) {
		a->status = verdict_exit_status(VERDICT_REFUSED, NULL);
		attempt_set_error(a, &why);
	}
	rights_done(&none);
	why = (struct error){.stage = "clean up"};
	if (steps_forget(w, &why) == 0 && (c->plan.keep == KEEP_ALWAYS || (c->plan.keep == KEEP_ON_FAILURE &&
									   a->verdict != VERDICT_SUCCEEDED)))
		c->kept = a->kept = keep(c, w, &why) == 0;
	if (why.message[0] && !a->error_message)
		attempt_set_error(a, &why);
}

static int next_number(struct holding_commit *c, bool steps, struct error *err)
{
	struct attempt *a = c->attempt;
	struct analysis_state known;
	int r;

	if (!c->ledger)
		return 0;
	r = ledger_analysis(c->ledger, a->id, &known, err);
	if (r < 0)
		return r;
	if (known.succeeded && !c->order->again && !steps)
		return error_set(err, ERROR_REFUSED,
				 "'%s' has already succeeded: --again makes another attempt", a->id);
	a->number = known.next_attempt;
	return 0;
}

/* Steps have run, and all that they come to is known: it is not thrown away. */
static int leave(struct holding_commit *c, struct workspace *w, int r, struct error *err)
{
	struct error ignored = ERROR_INIT;
	const struct error why = *err;

	attempt_forgive(c->attempt);
	if (steps_leave(w, c->attempt, &why, &ignored) < 0)
		return r;
	c->attempt->pending = true;
	attempt_set_error(c->attempt, &why);
	*err = (struct error){.stage = why.stage};
	return attempt_join_logs(c->attempt, err);
}

static int commit_steps(struct holding_commit *c, struct workspace *w, struct spool *rows, struct error *err)
{
	int r;

	err->stage = "commit";
	if (!c->ledger) {
		*err = c->why;
		return leave(c, w, -EIO, err);
	}
	r = attempt_commit(c->ledger, c->attempt, w->fd, rows, err);
	if (r < 0)
		return leave(c, w, r, err);
	after(c, w);
	return attempt_join_logs(c->attempt, err);
}

/* w NULL: there is no workspace, only a result or rows. */
static int commit_all(struct holding_commit *c, struct workspace *w, struct error *err)
{
	_cleanup_spool_ struct spool *rows = NULL;
	struct attempt *a = c->attempt;
	int fd = w ? w->fd : -1, steps = w ? recall_steps(c, w, err) : 0, r;

	if (steps == 0 && c->order->verdict != VERDICT_NONE)
		return error_set(
			err, ERROR_USAGE,
			"no step has run in the workspace of '%s', so there is no verdict to replace: leave it out",
			a->id);
	if (steps == 0 && !c->ledger) {
		*err = c->why;
		return -EIO;
	}
	if (c->order->result &&
	    json_dumpb(c->order->result, NULL, 0, JSON_COMPACT | JSON_ENCODE_ANY) > 4 << 20)
		return error_set(err, ERROR_USAGE, "the result is larger than 4 MiB: make it an output");
	if (steps < 0 || (r = steps ? 0 : describe(c, err)) < 0)
		return steps < 0 ? steps : r;
	a->result = json_incref(c->order->result);
	if ((r = next_number(c, steps, err)) < 0 || (fd >= 0 && (r = gather(c, fd, steps, err)) < 0))
		return r;
	if (a->manifest.missing && a->manifest.missing[0] && a->verdict == VERDICT_SUCCEEDED) {
		a->verdict = VERDICT_OUTPUT_MISSING;
		a->status = verdict_exit_status(a->verdict, NULL);
	}
	if (steps && a->verdict == VERDICT_SUCCEEDED &&
	    (r = steps_post_process(c->hood, c->ledger, w, &c->last, a, c->order->rows != NULL, &rows, err)) <
		    0)
		return r;
	if (c->order->rows && a->verdict == VERDICT_SUCCEEDED && (r = make_rows(c, w, &rows, err)) < 0)
		return r;
	return steps ? commit_steps(c, w, rows, err) : attempt_commit(c->ledger, a, fd, rows, err);
}

/* A crash has kept us from forgetting them. */
static int tell_committed(struct holding_commit *c, struct workspace *w, int number, struct error *err)
{
	char id[ID_ROOM];
	int r = steps_forget(w, err);

	memcpy(id, c->attempt->id, sizeof id);
	attempt_done(c->attempt);
	if (r < 0 || (r = ledger_load(c->ledger, id, number, c->attempt, err)) < 0)
		return r;
	c->attempt->committed = true;
	for (int i = 0; i < STREAM_COUNT && r == 0; i++)
		r = ledger_load_log(c->ledger, c->attempt, i, &c->attempt->logs[i], err);
	return r;
}

static int commit_workspace(void *arg, struct workspace *w, struct error *err)
{
	struct holding_commit *c = arg;
	int number, r;

	c->done = true;
	if (w->record.owner == OWNER_SUPERVISOR) {
		struct recovery recovery = {.hood = c->hood};

		if (!workspace_is_adopted(w))
			return error_set(
				err, ERROR_REFUSED,
				"an earlier run of analysis '%s' has died: clean up with: fumehood gc",
				w->record.id);
		if ((r = cgroups_remove(&w->record, err)) < 0 || (r = step_settle(&recovery, w, err)) < 0)
			return r;
	}
	r = text_set(&c->attempt->workspace, w->record.path, err);
	if (r < 0)
		return r;
	r = c->ledger ? steps_are_committed(c->ledger, w, &number, err) : 0;
	if (r != 0)
		return r < 0 ? r : tell_committed(c, w, number, err);
	return commit_all(c, w, err);
}

static void holding_init(struct holding_commit *c, struct hood *h, const struct commit_order *o,
			 struct attempt *a)
{
	*c = (struct holding_commit){.hood = h, .order = o, .attempt = a};
	attempt_init(&c->last);
	plan_init(&c->plan);
	attempt_init(a);
	a->created = clock_utc();
}

static void holding_done(struct holding_commit *c)
{
	attempt_done(&c->last);
	plan_done(&c->plan);
	strv_free(c->globs);
}

int steps_commit(struct hood *h, struct ledger *l, struct workspace *w, bool *ret_kept, struct error *err)
{
	const struct commit_order order = {.outputs = NULL};
	_cleanup_attempt_ struct attempt a;
	struct holding_commit c;
	int r;

	holding_init(&c, h, &order, &a);
	memcpy(a.id, w->record.id, sizeof a.id);
	c.ledger = l;
	r = commit_workspace(&c, w, err);
	if (r == 0 && a.pending)
		r = error_set(err, ERROR_LEDGER, "%s", a.error_message);
	*ret_kept = c.kept;
	holding_done(&c);
	return r;
}

/* Words that make no sense are told at once; a ledger that is away is not, since steps can wait for it. */
static int reach_ledger(struct holding_commit *c, struct error *err)
{
	int r = hood_ledger(c->hood, LEDGER_CREATE, &c->ledger, err);

	r = r < 0 ? r : ledger_store_ready(c->ledger, err);
	if (r == 0 || err->kind == ERROR_SCHEMA ||
	    (error_kind_shown(err->kind) != ERROR_LEDGER && err->kind != ERROR_SYSTEM))
		return r;
	c->ledger = NULL;
	c->why = *err;
	*err = (struct error){.stage = err->stage};
	return 0;
}

/* There is no workspace: a result, or rows, may be all there is. */
static int commit_bare(struct holding_commit *c, struct error *err)
{
	const char *id = c->attempt->id;

	if (!c->ledger) {
		*err = c->why;
		return -EIO;
	}
	if (c->order->result || c->order->rows)
		return commit_all(c, NULL, err);
	return error_set(
		err, ERROR_NOT_FOUND,
		"'%s' has no held workspace: `fumehood workspace create %s` makes one, or give --result FILE.json",
		id, id);
}

int hood_commit(struct hood *h, const char *id, const struct commit_order *o, struct attempt *ret,
		struct error *err)
{
	struct holding_commit c;
	struct site *site = NULL;
	int r;

	holding_init(&c, h, o, ret);
	r = id_check(id, err);
	if (r < 0)
		return r;
	if (o->verdict >= VERDICT_COUNT || o->verdict == VERDICT_LOST || o->verdict == VERDICT_REFUSED)
		return error_set(
			err, ERROR_USAGE,
			"a verdict that is said is one that an analysis can come to, such as succeeded or failed");
	snprintf(ret->id, sizeof ret->id, "%s", id);
	r = hood_site(h, &site, err);
	if (r < 0 || (r = reach_ledger(&c, err)) < 0)
		return r;
	r = workspace_take(site, id, commit_workspace, &c, err);
	if (r == 0 && !c.done)
		r = commit_bare(&c, err);
	holding_done(&c);
	return r;
}
