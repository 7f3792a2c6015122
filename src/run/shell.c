/*
 * `shell ID`: a kept workspace is opened once more, under the hood that its analysis had, to look around and to run it again by
 * hand. A box like any other; nothing is collected, nothing recorded. While it lasts the workspace's record says so: whoever
 * finds it after a crash makes it what it was, kept.
 */
#include "box.h"
#include "cause.h"
#include "clock.h"
#include "reason.h"
#include "story.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct shell {
	struct hood *hood;
	const struct shell_order *order;
	const struct run_hooks *hooks;
	struct attempt *attempt;
	struct workspace workspace;
	bool has_workspace;
	struct place place;
	struct plan plan;
	struct box box;
	char token[TOKEN_SIZE];
};

static int say_not_kept(const char *id, int attempt, struct error *err)
{
	if (err->kind != ERROR_NOT_FOUND)
		return -EINVAL;
	if (attempt)
		return error_set(
			err, ERROR_NOT_FOUND,
			"the workspace of attempt %d of '%s' is not kept on this host: `fumehood run %s --keep on-failure` keeps the "
			"next one if it fails",
			attempt, id, id);
	return error_set(
		err, ERROR_NOT_FOUND,
		"no workspace of '%s' is kept on this host: `fumehood run %s --keep on-failure` keeps the next one if it fails, "
		"and `fumehood get %s` has its outputs",
		id, id, id);
}

static int open_workspace(struct shell *s, const char *id, struct error *err)
{
	struct site *site = NULL;
	int r;

	if ((r = hood_site(s->hood, &site, err)) < 0 || (r = token_make(s->token, err)) < 0 ||
	    (r = place_take(&s->place, err)) < 0)
		return r;
	r = workspace_reopen(site, id, s->order->attempt, s->token, s->place.uid, s->place.gid, &s->workspace,
			     err);
	if (r < 0)
		return say_not_kept(id, s->order->attempt, err);
	s->has_workspace = true;
	return 0;
}

/* What a stranger has submitted ran with his rights, which are not those of who asks now. Whose it was, its record says: who
 * owns that ledger's file may be another by now, and which ledger the caller names says nothing. A record that is silent is
 * of an earlier release. */
static int check_owner(const struct shell *s, struct error *err)
{
	const struct record *r = &s->workspace.record;

	if (!json_is_true(json_object_get(r->extra, "queued")) ||
	    json_is_false(json_object_get(json_object_get(r->extra, RECORD_WHOSE), "bound")))
		return 0;
	return error_set(
		err, ERROR_REFUSED,
		"'%s' was run from a queue with the rights of who submitted it, which are not yours: look at '%s' from outside",
		r->id, r->path);
}

/* Without a terminal it reads its commands from stdin, as a script. HOME is the workspace: no file that lies there says how. */
static int shell_words(bool terminal, char ***ret, struct error *err)
{
	static const char *const bash[] = {"/bin/bash", "--norc", "--noprofile"}, *const sh[] = {"/bin/sh"};
	bool is_bash = access(bash[0], X_OK) == 0;
	const char *const *words = is_bash ? bash : sh;
	int r = 0;

	for (size_t i = 0; r == 0 && i < (is_bash ? ARRAY_SIZE(bash) : ARRAY_SIZE(sh)); i++)
		r = strv_append(ret, words[i], err);
	return r < 0 || !terminal ? r : strv_append(ret, "-i", err);
}

/* The same for what its environment would make it read or run. Empty is as good as none. */
static void set_shell_env(struct plan *p)
{
	static const char *const none[] = {"ENV", "BASH_ENV", "PROMPT_COMMAND", "PS0"};

	for (size_t i = 0; i < ARRAY_SIZE(none); i++)
		plan_set_env(p, none[i], "");
	plan_set_env(p, "HISTFILE", "/dev/null");
	plan_set_env(p, "INPUTRC", "/dev/null");
	plan_set_env(p, "PS1", strstr(p->program, "bash") ? "\\u@\\h:\\w\\$ " : "$ ");
}

/* Time runs while somebody thinks; and a shell runs many commands. The site's own maximum counts all the same. */
static void lift_clocks(const struct hood *h, struct limits *l)
{
	static const enum limit clocks[] = {LIMIT_WALL, LIMIT_CPU_TIME};

	for (size_t i = 0; i < ARRAY_SIZE(clocks); i++) {
		bool bounded = h->config.maximum.origin[clocks[i]] != LIMIT_UNSET;

		l->value[clocks[i]] = bounded ? h->config.maximum.value[clocks[i]] : LIMIT_NONE;
		l->origin[clocks[i]] = LIMIT_ASKED;
	}
}

static int take_words(struct shell *s, struct request *r, struct error *err)
{
	bool is_shell = !s->order->command;

	strv_free(TAKE_PTR(r->command));
	r->command = is_shell ? NULL : strv_copy(s->order->command);
	if (is_shell && shell_words(s->order->terminal, &r->command, err) < 0)
		return -ENOMEM;
	r->terminal = s->order->terminal;
	r->stdin_open = s->hooks->stdin_fd >= 0;
	if (is_shell)
		lift_clocks(s->hood, &r->limits);
	return r->command ? 0 : error_memory(err);
}

/* Inside it has the name that it had, wherever it lies now. */
static int mount_here(struct shell *s, struct error *err)
{
	struct plan *p = &s->plan;

	for (size_t i = 0; i < p->n_mounts; i++)
		if (p->mounts[i].kind == MOUNT_BIND && strcmp(p->mounts[i].target, p->workspace) == 0)
			return text_set(&p->mounts[i].source, s->workspace.record.path, err);
	return 0;
}

static int make_plan(struct shell *s, struct error *err)
{
	const json_t *extra = s->workspace.record.extra;
	_cleanup_request_ struct request r;
	_cleanup_plan_ struct plan like;
	int e;

	request_init(&r);
	plan_init(&like);
	/* Of steps in a workspace that was held each had its own. */
	if (!json_is_object(json_object_get(extra, "request")) ||
	    !json_is_object(json_object_get(extra, "plan")))
		return error_set(
			err, ERROR_REFUSED,
			"what is kept of '%s' was a held workspace, in which each step had a hood of its own: look at '%s' "
			"from outside",
			s->workspace.record.id, s->workspace.record.path);
	memcpy(s->plan.token, s->token, sizeof s->token);
	if ((e = request_from_json(&r, json_object_get(extra, "request"), err)) < 0 ||
	    (e = plan_recall(&like, json_object_get(extra, "plan"), err)) < 0 ||
	    (e = text_set(&r.id, s->workspace.record.id, err)) < 0 ||
	    (!r.directory &&
	     (e = text_set(&r.directory, like.submitter_directory ? like.submitter_directory : "/", err)) <
		     0) ||
	    (e = take_words(s, &r, err)) < 0 ||
	    (e = plan_resolve_shell(s->hood, &r, &like, &s->plan, err)) < 0)
		return e;
	if (!s->order->command)
		set_shell_env(&s->plan);
	e = mount_here(s, err);
	return e < 0 ? e : plan_check(&s->plan, err);
}

static void on_output(void *arg, int stream, const char *data, size_t size)
{
	const struct run_hooks *hooks = ((struct shell *)arg)->hooks;

	hooks->output(hooks->arg, stream, data, size);
}

static int run_box(struct shell *s, struct error *err)
{
	const struct run_hooks *hooks = s->hooks;
	struct box_order order = {
		.plan = &s->plan,
		.place = &s->place,
		.receipt = &s->attempt->receipt,
		.log_prefix = "shell-",
		.cancel_fd = hooks->cancel_fd,
		.stop_fd = -1,
		.stdin_fd = hooks->stdin_fd,
		.pty = pty_of(hooks->terminal),
		.arg = s,
		.output = hooks->output ? on_output : NULL,
	};
	int r;

	if ((r = hood_cgroups(s->hood, &order.cgroups, err)) < 0 ||
	    (r = box_open(&s->box, &order, err)) < 0 || (r = box_start(&s->box, err)) < 0)
		return r;
	s->attempt->started = s->box.started_utc;
	if (hooks->started)
		hooks->started(hooks->arg, s->box.sandbox->exec_errno);
	r = box_watch(&s->box, err);
	if (hooks->ended)
		hooks->ended(hooks->arg);
	return r;
}

static int note_end(struct shell *s, struct error *err)
{
	struct supervise_result *result = &s->box.result;
	struct attempt *a = s->attempt;
	_cleanup_buffer_ struct buffer why = {0};
	struct end end = {.plan = &s->plan,
			  .evidence = &result->evidence,
			  .usage = &result->usage,
			  .disk = &s->box.use};

	a->verdict = verdict_decide(&result->evidence);
	a->exit_code = result->evidence.exit_code;
	a->signal = result->evidence.signal;
	a->status = verdict_exit_status(a->verdict, &result->evidence);
	a->ended = clock_utc();
	a->usage = result->usage;
	memcpy(a->logs, result->logs, sizeof a->logs);
	memset(result->logs, 0, sizeof result->logs);
	end_reason(&end, &why);
	if (buffer_check(&why, err) < 0)
		return -ENOMEM;
	a->reason = why.size ? buffer_take(&why) : NULL;
	a->plan = plan_to_json(&s->plan);
	a->kept = true;
	a->workspace = strdup(s->workspace.record.path);
	return a->plan && a->workspace ? 0 : error_memory(err);
}

static int whole(struct shell *s, const char *id, struct error *err)
{
	struct attempt *a = s->attempt;
	int r;

	err->stage = "workspace";
	if ((r = open_workspace(s, id, err)) < 0 || (r = check_owner(s, err)) < 0)
		return r;
	a->number = (int)json_integer_value(json_object_get(s->workspace.record.extra, "attempt"));
	err->stage = "plan";
	if ((r = make_plan(s, err)) < 0)
		return r;
	err->stage = "sandbox";
	r = run_box(s, err);
	return r < 0 ? r : note_end(s, err);
}

/* Its own logs and cgroups are not the analysis's. */
static int give_back(struct shell *s, struct error *err)
{
	int r = cgroups_remove(&s->workspace.record, err), e;

	(void)unlinkat(s->workspace.run_fd, "shell-stdout", 0);
	(void)unlinkat(s->workspace.run_fd, "shell-stderr", 0);
	e = workspace_give_back(&s->workspace, r < 0 ? NULL : err);
	workspace_close(&s->workspace);
	return r < 0 ? r : e;
}

int hood_shell(struct hood *h, const char *id, const struct shell_order *o, const struct run_hooks *hooks,
	       struct attempt *ret, struct error *err)
{
	struct shell s = {.hood = h, .order = o, .hooks = hooks, .attempt = ret};
	int r;

	attempt_init(ret);
	ret->exit_code = -1;
	ret->verdict = VERDICT_REFUSED;
	ret->created = clock_utc();
	snprintf(ret->id, sizeof ret->id, "%.*s", (int)sizeof ret->id - 1, id);
	place_init(&s.place, &s.workspace);
	plan_init(&s.plan);
	box_init(&s.box);
	r = whole(&s, id, err);
	if (r < 0)
		(void)cause_explain_call(r, err);
	box_close(&s.box);
	if (s.has_workspace) {
		int e = give_back(&s, r < 0 ? NULL : err);

		r = r < 0 ? r : e;
	}
	place_release(&s.place);
	plan_done(&s.plan);
	if (r == 0)
		err->stage = NULL;
	return r;
}
