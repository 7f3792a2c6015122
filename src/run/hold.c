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
#include <sys/utsname.h>

int hood_workspace_create(struct hood *h, const char *id, const struct process_id *owner, int64_t until,
			  char **ret_path, struct error *err)
{
	struct site *site = NULL;
	int r = id_check(id, err);

	if (r == 0)
		r = hood_site(h, &site, err);
	return r < 0 ? r : workspace_hold(site, id, owner, until, ret_path, err);
}

int hood_workspace_cleanup(struct hood *h, const char *id, struct error *err)
{
	struct recovery recovery = {.hood = h};
	struct site *site = NULL;
	int r = id_check(id, err);

	if (r == 0)
		r = hood_site(h, &site, err);
	return r < 0 ? r : workspace_take(site, id, recover_workspace, &recovery, err);
}

struct holding {
	struct hood *hood;
	struct ledger *ledger;
	const struct commit_order *order;
	struct attempt *attempt;
};

static int holding_put(void *arg, int fd, uint64_t size, uint8_t ret_sha256[DIGEST_SIZE], struct error *err)
{
	struct holding *c = arg;

	return ledger_put_object(c->ledger, fd, size, ret_sha256, err);
}

static int holding_describe(struct holding *c, struct error *err)
{
	struct attempt *a = c->attempt;
	struct utsname host;

	uname(&host);
	a->verdict = VERDICT_SUCCEEDED;
	a->exit_code = 0;
	a->started = a->ended = clock_utc();
	a->host = strdup(host.nodename);
	a->reason = strdup("committed by its own platform");
	a->request = json_pack("{s:s}", "id", a->id);
	a->plan = json_object();
	a->result = json_incref(c->order->result);
	if (!a->host || !a->reason || !a->request || !a->plan ||
	    attempt_event(a, "commit", "from a held workspace") < 0)
		return error_memory(err);
	return receipt_add(&a->receipt, "hood", false, "ran inside the platform's own process") < 0
		       ? error_memory(err)
		       : 0;
}

/* What lies in the workspace, with the analysis's owner: it is the platform itself, so any owner counts. */
static int holding_collect(struct holding *c, int fd, struct error *err)
{
	struct collect_rules rules = {
		.outputs = c->order->outputs,
		.inputs = &c->attempt->inputs,
		.max_bytes = limit_table[LIMIT_OUTPUT_MAX].built_in,
		.max_files = limit_table[LIMIT_FILES].built_in,
		.object_min = ledger_object_min(c->ledger),
		.content_max = ledger_content_max(c->ledger),
		.owner = (uid_t)-1,
	};
	static const char *const none[] = {NULL};

	rules.ignore = none;
	return collect(fd, &rules, holding_put, c, &c->attempt->manifest, err);
}

/* The platform's own function makes rows out of what was collected. */
static int holding_rows(struct holding *c, int fd, struct spool **ret, struct error *err)
{
	struct attempt *a = c->attempt;
	_cleanup_free_ char *lines = NULL;
	size_t size = 0;
	int r = c->order->rows(c->order->arg, a, fd, &lines, &size, err);

	if (r == 0 && size == 0) { /* none needs no table */
		a->rows = 0;
		return 0;
	}
	if (r == 0)
		r = rows_gather(c->hood, -1, lines ? lines : "", size, ret, err);
	if (r == 0)
		a->rows = (int64_t)spool_rows(*ret);
	return r;
}

static int holding_commit(struct holding *c, int fd, struct error *err)
{
	_cleanup_spool_ struct spool *rows = NULL;
	struct attempt *a = c->attempt;
	int r = holding_describe(c, err);

	if (r == 0 && fd >= 0)
		r = holding_collect(c, fd, err);
	if (r == 0 && a->manifest.missing && a->manifest.missing[0])
		a->verdict = VERDICT_OUTPUT_MISSING;
	a->status = a->verdict == VERDICT_SUCCEEDED ? 0 : 122;
	if (r == 0 && c->order->rows && a->verdict == VERDICT_SUCCEEDED)
		r = holding_rows(c, fd, &rows, err);
	return r < 0 ? r : attempt_commit(c->ledger, a, fd, rows, err);
}

int hood_commit(struct hood *h, const char *id, char *const *outputs, json_t *result, bool again,
		struct attempt *ret, struct error *err)
{
	struct commit_order o = {.outputs = outputs, .result = result, .again = again};

	return hood_commit_with(h, id, &o, ret, err);
}

int hood_commit_with(struct hood *h, const char *id, const struct commit_order *o, struct attempt *ret,
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
	r = token_make(ret->token, err);
	if (r == 0)
		r = hood_ledger(h, LEDGER_CREATE, &c.ledger, err);
	if (r == 0)
		r = ledger_store_ready(c.ledger, err);
	if (r == 0)
		r = ledger_analysis(c.ledger, id, &known, err);
	if (r < 0)
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
