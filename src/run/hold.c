/*
 * For analyses that run inside the platform's own process: a held workspace, its clean-up, and `commit`, which puts
 * what lies there through the same door as a run's outputs.
 */
#include "private.h"
#include "clock.h"
#include "collect.h"
#include "file.h"
#include "spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

int hood_workspace_create(struct hood *h, const char *id, const struct process_id *owner, int64_t until,
			  char **ret_path, struct error *err)
{
	struct site *site = NULL;
	int r;

	if ((r = id_check(id, err)) < 0 || (r = hood_site(h, &site, err)) < 0)
		return r;
	return workspace_hold(site, id, owner, until, ret_path, err);
}

int hood_workspace_cleanup(struct hood *h, const char *id, struct error *err)
{
	struct recovery recovery = {.hood = h};
	struct site *site = NULL;
	int r;

	if ((r = id_check(id, err)) < 0 || (r = hood_site(h, &site, err)) < 0)
		return r;
	return workspace_take(site, id, recover_workspace, &recovery, err);
}

struct holding {
	struct hood *hood;
	struct ledger *ledger;
	const struct commit_order *order;
	struct attempt *attempt;
};

static int holding_describe(struct holding *c, struct error *err)
{
	struct attempt *a = c->attempt;

	a->exit_code = 0;
	a->started = a->ended = clock_utc();
	a->host = host_name();
	a->request = json_pack("{s:s}", "id", a->id);
	a->plan = json_object();
	a->result = json_incref(c->order->result);
	attempt_conclude(a, VERDICT_SUCCEEDED, "committed by its own platform");
	attempt_event(a, "commit", "from a held workspace");
	receipt_add(&a->receipt, "hood", false, "ran inside the platform's own process");
	return a->host && a->request && a->plan ? 0 : error_memory(err);
}

/* What lies in the workspace, with the analysis's owner: it is the platform itself, so any owner counts. */
static int holding_collect(struct holding *c, int fd, struct error *err)
{
	static const char *const none[] = {NULL};
	struct collect_rules rules = {
		.outputs = c->order->outputs,
		.inputs = &c->attempt->inputs,
		.ignore = none,
		.max_bytes = limit_table[LIMIT_OUTPUT_MAX].built_in,
		.max_files = limit_table[LIMIT_FILES].built_in,
		.object_min = ledger_object_min(c->ledger),
		.content_max = ledger_content_max(c->ledger),
		.owner = (uid_t)-1,
	};

	return collect(fd, &rules, ledger_take_object, c->ledger, &c->attempt->manifest, err);
}

/* The platform's own function makes rows out of what was collected. */
static int holding_rows(struct holding *c, int fd, struct spool **ret, struct error *err)
{
	struct attempt *a = c->attempt;
	_cleanup_free_ char *lines = NULL;
	size_t size = 0;
	int r = c->order->rows(c->order->arg, a, fd, &lines, &size, err);

	/* None needs no table. */
	if (r < 0 || (size && (r = rows_gather(c->hood, -1, lines ? lines : "", size, ret, err)) < 0))
		return r;
	a->rows = size ? (int64_t)spool_rows(*ret) : 0;
	return 0;
}

static int holding_commit(struct holding *c, int fd, struct error *err)
{
	_cleanup_spool_ struct spool *rows = NULL;
	struct attempt *a = c->attempt;
	int r;

	if ((r = holding_describe(c, err)) < 0 || (fd >= 0 && (r = holding_collect(c, fd, err)) < 0))
		return r;
	if (a->manifest.missing && a->manifest.missing[0])
		a->verdict = VERDICT_OUTPUT_MISSING;
	a->status = verdict_exit_status(a->verdict, NULL);
	if (c->order->rows && a->verdict == VERDICT_SUCCEEDED && (r = holding_rows(c, fd, &rows, err)) < 0)
		return r;
	return attempt_commit(c->ledger, a, fd, rows, err);
}

int hood_commit(struct hood *h, const char *id, const struct commit_order *o, struct attempt *ret,
		struct error *err)
{
	struct holding c = {.hood = h, .order = o, .attempt = ret};
	_cleanup_close_ int fd = -1;
	struct analysis_state known;
	struct live live;
	int r;

	attempt_init(ret);
	ret->created = clock_utc();
	r = id_check(id, err);
	if (r < 0)
		return r;
	snprintf(ret->id, sizeof ret->id, "%s", id);
	if ((r = token_make(ret->token, err)) < 0 ||
	    (r = hood_ledger(h, LEDGER_CREATE, &c.ledger, err)) < 0 ||
	    (r = ledger_store_ready(c.ledger, err)) < 0 ||
	    (r = ledger_analysis(c.ledger, id, &known, err)) < 0)
		return r;
	if (known.succeeded && !o->again)
		return error_set(err, ERROR_REFUSED,
				 "'%s' has already succeeded: --again makes another attempt", id);
	ret->number = known.last_attempt + 1;
	r = hood_live(h, id, &live, err);
	if (r < 0 && !((o->result || o->rows) && err->kind == ERROR_NOT_FOUND))
		return err->kind == ERROR_NOT_FOUND
			       ? error_set(
					 err, ERROR_NOT_FOUND,
					 "'%s' has no held workspace: `fumehood workspace create %s` makes one, or give "
					 "--result FILE.json",
					 id, id)
			       : r;
	if (r == 0) {
		bool held = live.held;

		ret->workspace = strdup(live.path);
		fd = held ? file_open_nolinks(AT_FDCWD, live.path, O_RDONLY | O_DIRECTORY) : -1;
		live_done(&live);
		if (!held)
			return error_set(err, ERROR_BUSY, "'%s' is running now: it is committed when it ends",
					 id);
		if (fd < 0)
			return error_system(err, -fd, "cannot open the workspace of '%s'", id);
	}
	*err = (struct error){0};
	return holding_commit(&c, fd, err);
}
