/*
 * `post-process ID`: the post-process of an attempt that is committed, once more, from the ledger's outputs. It gets a
 * workspace of a made-up id for the time being; a crash leaves what gc removes.
 */
#include "post_process.h"
#include "queue.h"
#include "rights.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

struct repeat {
	struct hood *hood;
	struct ledger *ledger;
	struct attempt *attempt;
	struct job job; /* as it was submitted, if it was */
	bool is_stored; /* its post-process's files are in there */
	struct plan plan;
	struct workspace workspace;
	struct place place;
	char id[ID_ROOM]; /* of its workspace */
	char token[TOKEN_SIZE];
};

static int check_attempt(const struct attempt *a, struct error *err)
{
	if (a->verdict == VERDICT_SUCCEEDED || a->verdict == VERDICT_POST_PROCESS_FAILED)
		return 0;
	return error_set(err, ERROR_REFUSED,
			 "attempt %d of '%s' is %s: only what has succeeded is post-processed", a->number,
			 a->id, verdict_name(a->verdict));
}

/* As a worker of his would: the submission's own files are for its owner alone. */
static int find_submitted(struct repeat *p, struct post_order *o, struct error *err)
{
	_cleanup_rights_ struct rights rights = {0};
	_cleanup_request_ struct request request;
	int r;

	request_init(&request);
	if ((r = request_from_json(&request, p->job.request, err)) < 0 ||
	    (r = rights_find(p->hood, &p->job, &request, &rights, err)) < 0 ||
	    (r = rights_choose_post(p->hood, &rights, o->command, err)) < 0)
		return r;
	p->is_stored = o->is_stored = rights.post_is_own;
	o->is_sites = rights.post_is_sites;
	return 0;
}

/* The files of the attempt's own command: with its submission, or where it was run, if he who asks now has run it, and,
 * where several may have one role, stands there. What an attempt says of a directory is what its owner says: it is not read for others. */
static int find_files(struct repeat *p, const char *from, struct post_order *o, struct error *err)
{
	struct error why = ERROR_INIT;
	const char *queued;
	int mine, r = ledger_queue_load(p->ledger, p->attempt->id, &p->job, &why);

	if (r < 0 && why.kind != ERROR_NOT_FOUND) {
		*err = why;
		return r;
	}
	queued = r == 0 ? json_string_value(json_object_get(p->job.request, "post_process")) : NULL;
	if (queued && strcmp(queued, o->command) == 0)
		return find_submitted(p, o, err);
	mine = r < 0 ? ledger_is_mine(p->ledger, p->attempt, err) : 0;
	if (mine < 0 ||
	    (mine && (ledger_is_own(p->ledger) || (from && strcmp(from, p->hood->directory) == 0))))
		return mine < 0 ? mine : 0;
	return error_set(
		err, ERROR_REFUSED,
		"the files of the post-process of '%s' are not in the ledger, and lay in a directory of who ran it: "
		"name one with --post-process CMD",
		p->attempt->id);
}

/* The command of the call, else of the attempt's own request, else the site's. */
static int make_plan(struct repeat *p, const char *command, struct error *err)
{
	const json_t *request = p->attempt->request;
	const char *asked = json_string_value(json_object_get(request, "post_process"));
	const char *from = json_string_value(json_object_get(request, "directory"));
	const char *strength = json_string_value(json_object_get(p->attempt->plan, "strength"));
	char name[NAME_MAX + 1];
	_cleanup_free_ char *scratch = NULL;
	struct post_order order = {.id = p->attempt->id, .attempt = p->attempt->number};
	int r;

	workspace_scratch_name(p->hood->config.workspace_prefix, p->id, p->token, name, sizeof name);
	r = text_print(&scratch, err, "%s/%s", p->hood->config.workspace_root, name);
	if (r < 0)
		return r;
	order.scratch = scratch;
	order.command = command ? command : asked;
	order.directory = command || !asked || !from ? p->hood->directory : from;
	r = command || !asked ? 0 : find_files(p, from, &order, err);
	if (r < 0)
		return r;
	if (strength && strcmp(strength, strength_name(STRENGTH_LANDLOCK)) == 0)
		order.strength = STRENGTH_LANDLOCK;
	r = post_plan(p->hood, &order, &p->plan, err);
	if (r == 0)
		return error_set(
			err, ERROR_REFUSED,
			"there is no post-process: name one with --post-process CMD, or as post_process.command "
			"in the configuration");
	return r < 0 ? r : 0;
}

static int take_place(struct repeat *p, struct error *err)
{
	struct site *site = NULL;
	int r;

	if ((r = hood_site(p->hood, &site, err)) < 0 || (r = place_take(&p->place, err)) < 0 ||
	    (r = workspace_open(site, p->id, p->token, p->place.uid, p->place.gid, NULL, NULL, NULL,
				&p->workspace, err)) < 0)
		return r;
	p->workspace.record.extra = json_pack("{s:s, s:b}", "repeats", p->attempt->id, RECORD_ENDS_ITSELF,
					      p->plan.strength == STRENGTH_LANDLOCK);
	return p->workspace.record.extra ? workspace_save(&p->workspace, err) : error_memory(err);
}

static int run_it(struct repeat *p, int cancel_fd, struct post_result *result, struct error *err)
{
	struct post_job job = {
		.hood = p->hood,
		.plan = &p->plan,
		.place = &p->place,
		.attempt = p->attempt,
		.cancel_fd = cancel_fd,
		.stop_fd = -1,
		.fetch = ledger_fetch_output,
		.stored = p->is_stored ? &p->job.inputs : NULL,
		.fill = ledger_fetch_input,
		.arg = p->ledger,
	};

	return post_run(&job, result, err);
}

/* Into the ledger with what it printed; a database that does not take it is one more way to fail. */
static int commit_it(struct repeat *p, struct post_result *result, bool *ret_posted, struct error *err)
{
	struct row_source source = spool_source(result->rows);
	int r = ledger_post(p->ledger, p->attempt, &source, ret_posted, err);

	if (r < 0 && err->kind == ERROR_BAD_ROW) {
		result->reason = strdup(err->message);
		*err = (struct error){0};
		return result->reason ? 0 : error_memory(err);
	}
	if (r == 0)
		p->attempt->rows = (int64_t)spool_rows(result->rows);
	return r;
}

static void note_end(struct repeat *p, const struct post_result *result)
{
	struct attempt *a = p->attempt;

	free(a->reason);
	a->reason = NULL;
	a->verdict = result->reason ? VERDICT_POST_PROCESS_FAILED : VERDICT_SUCCEEDED;
	if (result->reason && asprintf(&a->reason, "post-process: %s", result->reason) < 0)
		a->reason = NULL;
	a->status = verdict_exit_status(a->verdict, NULL);
}

static int whole(struct repeat *p, const char *command, int cancel_fd, bool *ret_posted, struct error *err)
{
	_cleanup_(post_result_done) struct post_result result = {0};
	int r;

	if ((r = id_make(p->id, err)) < 0 || (r = token_make(p->token, err)) < 0 ||
	    (r = make_plan(p, command, err)) < 0 || (r = take_place(p, err)) < 0 ||
	    (r = run_it(p, cancel_fd, &result, err)) < 0 ||
	    (!result.reason && (r = commit_it(p, &result, ret_posted, err)) < 0))
		return r;
	note_end(p, &result);
	return 0;
}

static bool has_objects(const struct attempt *a)
{
	for (size_t i = 0; i < a->manifest.n_outputs; i++)
		if (a->manifest.outputs[i].is_object)
			return true;
	return false;
}

int hood_post_process(struct hood *h, const char *id, int number, const char *command, int cancel_fd,
		      struct attempt *ret, bool *ret_posted, struct error *err)
{
	struct repeat p = {.hood = h, .attempt = ret, .workspace = {.run_fd = -1}};
	int r;

	attempt_init(ret);
	*ret_posted = false;
	job_init(&p.job);
	place_init(&p.place, &p.workspace);
	plan_init(&p.plan);
	if ((r = hood_ledger(h, LEDGER_CREATE, &p.ledger, err)) == 0 &&
	    (r = ledger_load(p.ledger, id, number, ret, err)) == 0 && (r = check_attempt(ret, err)) == 0 &&
	    (!has_objects(ret) || (r = ledger_store_ready(p.ledger, err)) == 0))
		r = whole(&p, command, cancel_fd, ret_posted, err);
	if (p.workspace.run_fd >= 0) {
		struct error *why = r < 0 ? NULL : err;
		int e = cgroups_remove(&p.workspace.record, why);

		e = e < 0 ? e : workspace_remove(&p.workspace, why);
		r = r < 0 ? r : e;
		workspace_close(&p.workspace);
	}
	place_release(&p.place);
	plan_done(&p.plan);
	job_done(&p.job);
	return r;
}
