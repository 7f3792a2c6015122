/*
 * Workspaces of analyses that run inside the host, and the house: gc, doctor, post-process, the ledger itself.
 */
#include "lib.h"
#include "backup.h"
#include "view.h"

#include <errno.h>
#include <string.h>

#include "buffer.h"
#include "process.h"

FH_PUBLIC int fh_plan(fh_hood *hood, const fh_request *request, char **ret_json, fh_error *err)
{
	json_t *json = NULL;
	struct request complete;
	struct plan plan;
	struct call c;
	int r = call_begin(&c, hood, "plan", err);

	if (r < 0)
		return r;
	plan_init(&plan);
	r = request_complete(request, &complete, &c.err);
	if (r == 0)
		r = hood_plan(c.hood, &complete, &plan, &c.err);
	if (r == 0)
		json = plan_to_json(&plan);
	plan_done(&plan);
	request_done(&complete);
	return call_end_json(&c, r, json, ret_json, err);
}

/* ---- workspaces ---- */

FH_PUBLIC int fh_workspace_create(fh_hood *hood, const char *id, pid_t owner, int64_t seconds,
				  char **ret_path, fh_error *err)
{
	return fh_workspace_create_limited(hood, id, owner, seconds, NULL, NULL, ret_path, err);
}

/* 1: something is asked for. */
static int read_limit(enum limit which, const char *text, struct limits *l, struct error *err)
{
	int r = text ? limit_parse(which, text, &l->value[which], err) : 0;

	if (r == 0 && text)
		l->origin[which] = LIMIT_ASKED;
	return r < 0 ? r : text != NULL;
}

FH_PUBLIC int fh_workspace_create_limited(fh_hood *hood, const char *id, pid_t owner, int64_t seconds,
					  const char *disk, const char *files, char **ret_path, fh_error *err)
{
	struct process_id process = {0};
	struct limits limits = {0};
	int64_t until = 0;
	struct call c;
	char *path = NULL;
	int r;

	if (seconds < 0 || seconds > INT64_MAX / 4 / (int64_t)NSEC_PER_SEC)
		return fail_with(err, FH_USAGE, "a workspace cannot be held for %lld seconds",
				 (long long)seconds);
	r = call_begin(&c, hood, "workspace", err);
	if (r < 0)
		return r;
	if (seconds > 0)
		until = clock_utc() + seconds * (int64_t)NSEC_PER_SEC;
	else if (process_identify(owner ? owner : getpid(), &process) < 0)
		r = error_set(&c.err, ERROR_REFUSED, "there is no process %d to hold the workspace",
			      (int)owner);
	if (r == 0 && (r = read_limit(LIMIT_DISK, disk, &limits, &c.err)) >= 0)
		r = read_limit(LIMIT_FILES, files, &limits, &c.err);
	if (r >= 0)
		r = hood_workspace_create(c.hood, id, until ? NULL : &process, until,
					  disk || files ? &limits : NULL, &path, &c.err);
	r = call_end(&c, r, err);
	if (r == 0)
		*ret_path = path;
	return r;
}

FH_PUBLIC int fh_workspace_cleanup(fh_hood *hood, const char *id, fh_error *err)
{
	struct call c;
	int r = call_begin(&c, hood, "workspace", err);

	return r < 0 ? r : call_end(&c, hood_workspace_cleanup(c.hood, id, false, &c.err), err);
}

FH_PUBLIC int fh_workspace_discard(fh_hood *hood, const char *id, fh_error *err)
{
	struct call c;
	int r = call_begin(&c, hood, "workspace", err);

	return r < 0 ? r : call_end(&c, hood_workspace_cleanup(c.hood, id, true, &c.err), err);
}

struct fh_rows {
	struct buffer lines;
};

static void rows_done(fh_rows *rows)
{
	buffer_free(&rows->lines);
}

FH_PUBLIC int fh_rows_add(fh_rows *rows, const char *lines, size_t size, fh_error *err)
{
	return buffer_append(&rows->lines, lines, size) < 0 ? fail_memory(err) : 0;
}

struct maker {
	fh_rows_fn fn;
	void *arg;
};

/* The host's function sees a copy: it may keep it. */
static int make_rows(void *arg, const struct attempt *a, int fd, char **ret_lines, size_t *ret_size,
		     struct error *err)
{
	const struct maker *maker = arg;
	fh_result *seen = result_copy(a);
	_cleanup_(rows_done) fh_rows rows = {{0}};
	fh_error said = {0};
	int r;

	if (!seen)
		return error_memory(err);
	r = maker->fn(maker->arg, seen, fd, &rows, &said);
	fh_result_free(seen);
	if (r != 0 && said.message[0])
		return error_from_public(err, &said);
	if (r != 0)
		return error_set(err, ERROR_REFUSED,
				 "the caller made no rows for '%s': nothing was committed", a->id);
	*ret_size = rows.lines.size;
	*ret_lines = buffer_take(&rows.lines);
	return *ret_lines ? 0 : error_memory(err);
}

FH_PUBLIC int fh_commit(fh_hood *hood, const char *id, const char *const *outputs, const char *result_json,
			fh_rows_fn fn, void *arg, unsigned flags, fh_result **ret, fh_error *err)
{
	return fh_commit_as(hood, id, outputs, result_json, fn, arg, FH_NONE, flags, ret, err);
}

FH_PUBLIC int fh_commit_as(fh_hood *hood, const char *id, const char *const *outputs, const char *result_json,
			   fh_rows_fn fn, void *arg, int verdict, unsigned flags, fh_result **ret,
			   fh_error *err)
{
	struct maker maker = {fn, arg};
	struct commit_order order = {.outputs = (char *const *)outputs,
				     .verdict = (enum verdict)verdict,
				     .again = flags & FH_AGAIN,
				     .arg = &maker,
				     .rows = fn ? make_rows : NULL};
	fh_result *result;
	struct call c;
	int r;

	r = flags_check("fh_commit", flags, FH_AGAIN, err);
	if (r < 0)
		return r;
	r = call_begin(&c, hood, "commit", err);
	if (r < 0)
		return r;
	result = result_new();
	if (!result)
		r = error_memory(&c.err);
	if (r == 0 && result_json && !(order.result = json_read(result_json, &c.err)))
		r = -EINVAL;
	if (r == 0)
		r = hood_commit(c.hood, id, &order, &result->attempt, &c.err);
	json_decref(order.result);
	return call_end_result(&c, r, result, ret, err);
}

/* ---- the house ---- */

static int house(fh_hood *hood, const char *stage, int (*fn)(struct hood *h, json_t **ret, struct error *err),
		 char **ret_json, fh_error *err)
{
	json_t *json = NULL;
	struct call c;
	int r = call_begin(&c, hood, stage, err);

	if (r < 0)
		return r;
	r = fn(c.hood, &json, &c.err);
	return call_end_json(&c, r, json, ret_json, err);
}

FH_PUBLIC int fh_gc(fh_hood *hood, char **ret_json, fh_error *err)
{
	return house(hood, "gc", view_gc, ret_json, err);
}

FH_PUBLIC int fh_doctor(fh_hood *hood, char **ret_json, fh_error *err)
{
	return house(hood, "doctor", view_doctor, ret_json, err);
}

FH_PUBLIC int fh_delegate(const char *user, char **ret_done, fh_error *err)
{
	struct error why = {.stage = "doctor"};
	struct quiet quiet;
	char *done = NULL;
	int r;

	quiet_begin(&quiet);
	r = hood_delegate(user, &done, &why);
	quiet_end(&quiet);
	if (r < 0)
		return fail(err, &why);
	*ret_done = done;
	return 0;
}

FH_PUBLIC int fh_post_process(fh_hood *hood, const char *id, int attempt, const char *command, int cancel_fd,
			      fh_result **ret, int *ret_posted, fh_error *err)
{
	fh_result *result;
	bool posted = false;
	struct call c;
	int r = call_begin(&c, hood, "post-process", err);

	if (r < 0)
		return r;
	result = result_new();
	r = result ? id_check(id, &c.err) : error_memory(&c.err);
	if (r == 0)
		r = hood_post_process(c.hood, id, attempt, command, cancel_fd, &result->attempt, &posted,
				      &c.err);
	r = call_end_result(&c, r, result, ret, err);
	if (r == 0 && ret_posted)
		*ret_posted = posted;
	return r;
}

FH_PUBLIC int fh_shell(fh_hood *hood, const char *id, int attempt, char *const *command, int stdin_fd,
		       int terminal, int cancel_fd, fh_result **ret, fh_error *err)
{
	const struct shell_order order = {.attempt = attempt, .command = command, .terminal = terminal != 0};
	const struct run_hooks hooks = {.stdin_fd = stdin_fd, .cancel_fd = cancel_fd};
	fh_result *result;
	struct call c;
	int r = call_begin(&c, hood, "shell", err);

	if (r < 0)
		return r;
	result = result_new();
	r = result ? id_check(id, &c.err) : error_memory(&c.err);
	if (r == 0 && (!command || !command[0] || attempt < 0))
		r = error_set(&c.err, ERROR_USAGE,
			      "a command is needed, and an attempt has a number of 1 or more");
	if (r == 0)
		r = hood_shell(c.hood, id, &order, &hooks, &result->attempt, &c.err);
	return call_end_result(&c, r, result, ret, err);
}

/* ---- what is no longer wanted ---- */

static int discard(fh_hood *hood, const char *stage, char *const *words, struct remove_order *o,
		   const char *older, const char *verdicts, char **ret_json, fh_error *err)
{
	json_t *json = NULL;
	struct call c;
	int r = call_begin(&c, hood, stage, err);

	if (r < 0)
		return r;
	if (!words)
		r = view_remove_age(o, older, verdicts, &c.err);
	if (r == 0)
		r = view_remove(c.hood, words, o, &json, &c.err);
	return call_end_json(&c, r, json, ret_json, err);
}

FH_PUBLIC int fh_remove(fh_hood *hood, const char *const *ids, int attempt, unsigned flags, char **ret_json,
			fh_error *err)
{
	struct remove_order o = {
		.attempt = attempt, .dry_run = flags & FH_DRY_RUN, .force = flags & FH_FORCE};
	int r = flags_check("fh_remove", flags, FH_DRY_RUN | FH_FORCE, err);

	return r < 0 ? r : discard(hood, "rm", (char *const *)ids, &o, NULL, NULL, ret_json, err);
}

FH_PUBLIC int fh_prune(fh_hood *hood, const char *older, const char *verdicts, unsigned flags,
		       char **ret_json, fh_error *err)
{
	struct remove_order o = {.dry_run = flags & FH_DRY_RUN,
				 .force = flags & FH_FORCE,
				 .keeps_outputs = flags & FH_KEEP_OUTPUTS};
	int r = flags_check("fh_prune", flags, FH_DRY_RUN | FH_FORCE | FH_KEEP_OUTPUTS, err);

	return r < 0 ? r : discard(hood, "prune", NULL, &o, older, verdicts, ret_json, err);
}

/* ---- the ledger itself ---- */

static int database(fh_hood *hood, unsigned flags,
		    int (*fn)(struct ledger *l, json_t **ret, struct error *err), char **ret_json,
		    fh_error *err)
{
	json_t *json = NULL;
	struct ledger *ledger;
	struct call c;
	int r = call_begin(&c, hood, "db", err);

	if (r < 0)
		return r;
	r = hood_ledger(c.hood, flags, &ledger, &c.err);
	if (r == 0)
		r = fn(ledger, &json, &c.err);
	if (r == 0)
		r = json_array_size(json_object_get(json, "problems")) > 0;
	return call_end_json(&c, r, json, ret_json, err);
}

FH_PUBLIC int fh_db_init(fh_hood *hood, char **ret_json, fh_error *err)
{
	return database(hood, LEDGER_CREATE, ledger_status, ret_json, err);
}

static int roles_status(struct ledger *l, json_t **ret, struct error *err)
{
	int r = ledger_roles(l, err);

	return r < 0 ? r : ledger_status(l, ret, err);
}

FH_PUBLIC int fh_db_roles(fh_hood *hood, char **ret_json, fh_error *err)
{
	return database(hood, LEDGER_CREATE, roles_status, ret_json, err);
}

FH_PUBLIC int fh_db_status(fh_hood *hood, char **ret_json, fh_error *err)
{
	return database(hood, LEDGER_READ_ONLY, ledger_status, ret_json, err);
}

FH_PUBLIC int fh_db_check(fh_hood *hood, char **ret_json, fh_error *err)
{
	return database(hood, LEDGER_READ_ONLY, ledger_check, ret_json, err);
}

FH_PUBLIC int fh_db_upgrade(fh_hood *hood, char **ret_json, fh_error *err)
{
	return database(hood, LEDGER_UPGRADE, ledger_status, ret_json, err);
}

/* ---- a copy of it ---- */

static int copy_ledger(fh_hood *hood, bool restores, const char *directory, bool force, char **ret_json,
		       fh_error *err)
{
	json_t *json = NULL;
	struct ledger *ledger;
	struct call c;
	int r = call_begin(&c, hood, "db", err);

	if (r < 0)
		return r;
	r = hood_ledger(c.hood, restores ? LEDGER_CREATE : LEDGER_READ_ONLY, &ledger, &c.err);
	if (r == 0)
		r = restores ? ledger_restore(ledger, directory, force, &json, &c.err)
			     : ledger_backup(ledger, directory, &json, &c.err);
	return call_end_json(&c, r, json, ret_json, err);
}

FH_PUBLIC int fh_backup(fh_hood *hood, const char *directory, char **ret_json, fh_error *err)
{
	return copy_ledger(hood, false, directory, false, ret_json, err);
}

FH_PUBLIC int fh_restore(fh_hood *hood, const char *directory, unsigned flags, char **ret_json, fh_error *err)
{
	int r = flags_check("fh_restore", flags, FH_FORCE, err);

	return r < 0 ? r : copy_ledger(hood, true, directory, flags & FH_FORCE, ret_json, err);
}
