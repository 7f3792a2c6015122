/*
 * What is pending and is not wanted any more: `cancel` says so here, or has said so in the ledger. It is recorded as
 * cancelled, its outputs are thrown away.
 */
#include "resume.h"
#include "queue.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

struct asked {
	bool cancelling;
};

static int note_asked(void *arg, const struct queued *q, struct error *err UNUSED)
{
	((struct asked *)arg)->cancelling = q->state == JOB_RUNNING && q->cancelling;
	return 0;
}

/* Has somebody cancelled it since its command ended? Who did so before has cancelled the command, not its result. */
static int is_given_up(const struct recovery *rec, struct ledger *l, const struct workspace *w,
		       const struct remains *remains, const struct ended *e, struct error *err)
{
	struct asked asked = {0};
	int r;

	if (rec->gives_up)
		return 1;
	if (!remains->is_pending || !e->attempt.queued || e->evidence.cancel_signal)
		return 0;
	r = ledger_queue_look(l, (char *[]){(char *)w->record.id, NULL}, note_asked, &asked, err);
	return r < 0 ? r : asked.cancelling;
}

/* All that is known of it but its outputs and rows. */
static int given_up_describe(struct workspace *w, struct ended *e, const struct remains *remains,
			     struct attempt *a, struct error *err)
{
	const char *why = remains->pending.message ? remains->pending.message : "it was not finished yet";
	int r;

	attempt_done(a);
	*a = e->attempt;
	attempt_init(&e->attempt);
	r = attempt_load_logs(w, 0, a, err);
	if (r < 0)
		return r;
	a->exit_code = e->evidence.exit_code;
	a->signal = e->evidence.signal;
	attempt_conclude(a, VERDICT_CANCELLED,
			 "given up while it was pending, its outputs thrown away: %.600s", why);
	attempt_event(a, "cancelled", "%s", a->reason ? a->reason : "");
	return 0;
}

int pending_give_up(struct recovery *rec, struct ledger *l, struct workspace *w,
		    const struct remains *remains, struct error *err)
{
	_cleanup_attempt_ struct attempt a;
	_cleanup_ended_ struct ended e;
	int r;

	attempt_init(&a);
	ended_init(&e);
	if ((r = ended_load(w->run_fd, &e, err)) <= 0 || (r = is_given_up(rec, l, w, remains, &e, err)) <= 0)
		return r;
	r = given_up_describe(w, &e, remains, &a, err);
	r = r < 0 ? r : attempt_commit(l, &a, -1, NULL, err);
	if (r < 0 && err->kind != ERROR_LEASE)
		return r;
	rec->report.given_up += r == 0;
	*err = (struct error){.stage = err->stage};
	token_unpin(l, w);
	return 1;
}

/* ---- cancel ---- */

/* Nothing but what is pending, and meant for the ledger that was named: another one may know another analysis by this id. */
static int give_up_workspace(void *arg, struct workspace *w, struct error *err)
{
	_cleanup_free_ char *url = w->record.ledger ? ledger_url_redacted(w->record.ledger) : NULL;
	struct recovery *rec = arg;
	int same = w->record.ledger ? ledger_url_same(w->record.ledger, rec->hood->ledger_url) : 1;

	if (same < 0 || (w->record.ledger && !url))
		return error_memory(err);
	if (w->record.owner != OWNER_SUPERVISOR || !ended_exists(w->run_fd))
		return 0;
	if (same)
		return recover_workspace(rec, w, err);
	rec->is_elsewhere = true;
	return error_set(
		err, ERROR_NOT_FOUND,
		"'%s' is pending here, but its result is for another ledger, '%s': to give it up, name that "
		"with --db",
		w->record.id, url);
}

static int give_up_here(struct hood *h, const char *id, bool queued, bool *ret_done, struct error *err)
{
	struct recovery rec = {.hood = h, .gives_up = true};
	struct error none = ERROR_INIT;
	struct site *site = NULL;
	bool is_pending;
	struct live live;
	int r;

	*ret_done = false;
	if (hood_live(h, id, &live, &none) < 0)
		return 0;
	is_pending = live.pending;
	live_done(&live);
	if (!is_pending)
		return 0;
	r = hood_site(h, &site, err);
	r = r < 0 ? r : workspace_take(site, id, give_up_workspace, &rec, err);
	*ret_done = r == 0;
	/* Its worker is at it at this moment, and will find that it is cancelled; or it is none of this ledger's. */
	return r < 0 && queued && (rec.is_elsewhere || err->kind == ERROR_BUSY) ? 0 : r;
}

/* Nobody here runs it, and the queue does not know it: what is there to be cancelled? */
static int say_unknown(const char *id, struct error *err)
{
	_cleanup_free_ char *why = strdup(err->message);

	return error_set(
		err, ERROR_NOT_FOUND,
		"%s, and nothing of that name runs here: what 'run' has started on another host, or as another "
		"user, is cancelled there",
		why ? why : id);
}

/* What the queue has for others to run is theirs to end. */
static int stop_here(struct hood *h, const char *id, struct run_stop *ret, struct error *err)
{
	struct run_stop stop;
	int r = run_stop_tell(h, id, &stop, err);

	if (r == 1 && ret)
		*ret = stop;
	else
		run_stop_done(&stop);
	return r;
}

int hood_cancel(struct hood *h, const char *id, const char **ret_was, struct run_stop *ret_stop,
		struct error *err)
{
	struct error unknown = ERROR_INIT;
	enum job_state before = JOB_FINISHED;
	struct ledger *ledger;
	bool done;
	int queued, r = hood_ledger(h, LEDGER_CREATE, &ledger, err);

	if (ret_stop)
		ret_stop->fd = -1;
	if (r < 0)
		return r;
	queued = ledger_cancel(ledger, id, &before, &unknown);
	if (queued < 0 && unknown.kind != ERROR_NOT_FOUND) {
		*err = unknown;
		return queued;
	}
	r = give_up_here(h, id, queued == 0, &done, err);
	if (r < 0)
		return r;
	if (!done && (queued < 0 || before == JOB_FINISHED || before == JOB_CANCELLED)) {
		r = stop_here(h, id, ret_stop, err);
		if (r < 0)
			return r;
		if (r == 1) {
			*ret_was = job_state_name(JOB_RUNNING);
			return 0;
		}
	}
	if (queued < 0 && !done) {
		*err = unknown;
		return say_unknown(id, err);
	}
	*ret_was = done ? "pending" : job_state_name(before);
	return 0;
}
