/*
 * What became of them: Slurm is asked for all its jobs at once, then the ledger for all rows; what each pair means is judge().
 */
#include "dispatch.h"

#include <stdio.h>
#include <string.h>

#include "array.h"
#include "clock.h"
#include "lookup.h"
#include "text.h"

/* Not in Slurm's list so often, and it is gone: a controller that has just come up may not know all yet. */
enum { MISSING_MAX = 3 };
/* One node that is broken is no reason to refuse what is not to be tried again: nothing of it has run. */
enum { STUMBLES_MIN = 3 };
/* Slurm remembers what has ended for MinJobAge, which is rarely less than this. */
static const uint64_t remembered_ns = 60 * NSEC_PER_SEC;
static const uint64_t again_ns = NSEC_PER_SEC;

/* ---- what Slurm says ---- */

enum { NAME_ROOM = SLURM_WORD_ROOM + 16 };

/* Entries by what their line in squeue has: the job's name, which has the batch in it, and the task. Not by its id: a controller that
 * was killed may give the ids of its latest jobs to others. */
struct index {
	struct dispatch *dispatch;
	struct lookup names;
};

static void name_of(const char *batch, int index, char out[NAME_ROOM])
{
	snprintf(out, NAME_ROOM, "%s%s %d", SLURM_NAME, batch, index);
}

static int same_name(const void *arg, size_t position, const char *name)
{
	const struct dispatch *d = arg;
	char own[NAME_ROOM];

	name_of(d->entries[position]->batch, d->entries[position]->index, own);
	return strcmp(own, name) == 0;
}

static int index_make(struct index *x, struct error *err)
{
	struct dispatch *d = x->dispatch;
	char name[NAME_ROOM];

	for (size_t i = 0; i < d->n; i++) {
		struct entry *e = d->entries[i];

		e->was_seen = false;
		name_of(e->batch, e->index, name);
		if (e->is_sent && lookup_add(&x->names, name, i) < 0)
			return error_memory(err);
	}
	return 0;
}

/* Their lines stand together, mostly. */
static int note_array(struct dispatch *d, const struct slurm_seen *seen, struct error *err)
{
	if (strncmp(seen->name, SLURM_NAME, strlen(SLURM_NAME)) != 0 ||
	    (d->n_arrays && strcmp(d->arrays[d->n_arrays - 1], seen->name) == 0))
		return 0;
	return strv_push(&d->arrays, &d->n_arrays, seen->name, err);
}

static bool knows_array(const struct dispatch *d, const struct entry *e)
{
	for (size_t i = 0; i < d->n_arrays; i++)
		if (strcmp(d->arrays[i] + strlen(SLURM_NAME), e->batch) == 0)
			return true;
	return false;
}

/* Anybody can give his job our name: where not all are our own user's, it must have the id as well. */
static bool is_meant(const struct dispatch *d, const struct entry *e, const struct slurm_seen *seen)
{
	return !d->slurm->users || strcmp(e->seen.job, seen->job) == 0;
}

static int on_seen(void *arg, const struct slurm_seen *seen, struct error *err)
{
	struct index *x = arg;
	struct dispatch *d = x->dispatch;
	char name[NAME_ROOM];
	struct entry *e;
	size_t at;

	if (note_array(d, seen, err) < 0)
		return -1;
	/* What is left of an array whose last tasks were cancelled is none of them. */
	if (d->slurm->array_max > 1 && !strchr(seen->job, '_'))
		return 0;
	snprintf(name, sizeof name, "%s %d", seen->name, seen->index);
	at = lookup_find(&x->names, name, same_name, d);
	if (at == SIZE_MAX || !is_meant(d, d->entries[at], seen))
		return 0;
	e = d->entries[at];
	if (strcmp(e->seen.state, seen->state) != 0 || strcmp(e->seen.reason, seen->reason) != 0 ||
	    strcmp(e->seen.node, seen->node) != 0 || strcmp(e->seen.job, seen->job) != 0)
		e->is_noted = false;
	e->seen = *seen;
	e->was_seen = true;
	e->known_at = clock_now();
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int list_batches(const struct dispatch *d, char ***ret, struct error *err)
{
	_cleanup_free_ const char **all = calloc(d->n + 1, sizeof *all);
	size_t n = 0, count = 0;

	if (!all)
		return error_memory(err);
	for (size_t i = 0; i < d->n; i++)
		if (d->entries[i]->is_sent)
			all[n++] = d->entries[i]->batch;
	n = array_sort_distinct(all, n, sizeof *all, by_name);
	for (size_t i = 0; i < n; i++)
		if (strv_push(ret, &count, all[i], err) < 0)
			return -1;
	return 0;
}

/* Those that were to be in the list. */
static int list_missing(const struct dispatch *d, char ***batches, char ***jobs, struct error *err)
{
	size_t n = 0, m = 0;

	for (size_t i = 0; i < d->n; i++) {
		const struct entry *e = d->entries[i];

		if (!e->is_sent || e->is_taken || e->was_seen || !*e->seen.job)
			continue;
		if (strv_push(batches, &n, e->batch, err) < 0 || strv_push(jobs, &m, e->seen.job, err) < 0)
			return -1;
	}
	return 0;
}

static int ask_all(struct index *x, struct error *err)
{
	_cleanup_strv_ char **batches = NULL;

	return list_batches(x->dispatch, &batches, err) < 0
		       ? -1
		       : slurm_look(x->dispatch->slurm, batches, NULL, on_seen, x, err);
}

static int ask_missing(struct index *x, struct error *err)
{
	_cleanup_strv_ char **batches = NULL, **jobs = NULL;

	return list_missing(x->dispatch, &batches, &jobs, err) < 0
		       ? -1
		       : slurm_look(x->dispatch->slurm, batches, jobs, on_seen, x, err);
}

static int ask_slurm(struct dispatch *d, struct error *err)
{
	struct index x = {.dispatch = d};
	int r = index_make(&x, err) < 0 || ask_all(&x, err) < 0 || ask_missing(&x, err) < 0 ? -1 : 0;

	lookup_done(&x.names);
	return r;
}

/* ---- what the ledger says ---- */

struct listing {
	struct dispatch *dispatch;
	struct lookup ids;
};

static int same_id(const void *arg, size_t position, const char *name)
{
	const struct dispatch *d = arg;

	return strcmp(d->entries[position]->id, name) == 0;
}

static int on_handed(void *arg, const struct handed_seen *h, struct error *err UNUSED)
{
	struct listing *x = arg;
	struct dispatch *d = x->dispatch;
	size_t at = lookup_find(&x->ids, h->id, same_id, d);
	struct entry *e;

	if (at == SIZE_MAX)
		return 0;
	e = d->entries[at];
	/* Claimed by us again, and the worker is about to say so. */
	if (!h->batch || strcmp(h->batch, e->batch) != 0)
		return 0;
	e->is_listed = true;
	snprintf(e->now, sizeof e->now, "%s", h->token);
	e->is_taken = h->is_taken;
	e->cancelling = h->cancelling;
	e->retries = h->retries;
	return 0;
}

static int ask_ledger(struct dispatch *d, struct ledger *l, struct error *err)
{
	struct listing x = {.dispatch = d};
	int r = 0;

	for (size_t i = 0; r == 0 && i < d->n; i++) {
		d->entries[i]->is_listed = !d->entries[i]->is_sent;
		r = lookup_add(&x.ids, d->entries[i]->id, i);
	}
	r = r < 0 ? error_memory(err) : ledger_handed(l, d->worker, on_handed, &x, err);
	lookup_done(&x.ids);
	d->listed_at = clock_now();
	return r;
}

/* ---- those that are not ours any more ---- */

static struct stumble *stumble_of(struct dispatch *d, const char *id)
{
	struct stumble *s;

	for (size_t i = 0; i < d->n_stumbles; i++)
		if (strcmp(d->stumbles[i].id, id) == 0)
			return &d->stumbles[i];
	s = ARRAY_ADD(d->stumbles, d->n_stumbles);
	if (s)
		snprintf(s->id, sizeof s->id, "%s", id);
	return s;
}

static void stumble_forget(struct dispatch *d, const char *id)
{
	for (size_t i = 0; i < d->n_stumbles; i++)
		if (strcmp(d->stumbles[i].id, id) == 0) {
			d->stumbles[i] = d->stumbles[--d->n_stumbles];
			return;
		}
}

static void settled_elsewhere(struct dispatch *d, struct entry *e, const struct queued *q)
{
	struct engine_end end;

	entry_describe(d, e, OUTCOME_SETTLED, &end);
	end.attempt.number = q->attempt;
	attempt_conclude(&end.attempt, q->state == JOB_CANCELLED ? VERDICT_CANCELLED : q->verdict, "%s",
			 q->reason ? q->reason : "");
	end.attempt.status = q->status;
	end.attempt.committed = true;
	stumble_forget(d, e->id);
	d->tell(d->arg, &end);
	entry_forget(d, e);
}

static int on_gone(void *arg, const struct queued *q, struct error *err UNUSED)
{
	struct dispatch *d = arg;
	struct entry *e = dispatch_find(d, q->id);

	if (!e || e->is_listed)
		return 0;
	if (q->state == JOB_FINISHED || q->state == JOB_CANCELLED)
		settled_elsewhere(d, e, q);
	else
		entry_end(d, e, OUTCOME_LEFT, "it is %s again%s%s", job_state_name(q->state),
			  q->reason ? ": " : "", q->reason ? q->reason : "");
	return 0;
}

/* What Slurm still has of them is left alone: it finds nothing to take, or is about to end by itself, cleaning up. */
static int sort_out_gone(struct dispatch *d, struct ledger *l, struct error *err)
{
	_cleanup_strv_ char **ids = NULL;

	for (size_t i = 0; i < d->n; i++)
		if (!d->entries[i]->is_listed && strv_append(&ids, d->entries[i]->id, err) < 0)
			return -1;
	if (!ids)
		return 0;
	if (ledger_queue_look(l, ids, on_gone, d, err) < 0)
		return -1;
	/* Removed from the ledger altogether. */
	for (size_t i = d->n; i-- > 0;)
		if (!d->entries[i]->is_listed)
			entry_end(d, d->entries[i], OUTCOME_LEFT, "its row was removed");
	return 0;
}

/* ---- what it means ---- */

/* Its job has ended, and nobody took it. */
static int not_started(struct dispatch *d, struct entry *e, struct error *err)
{
	struct stumble *s = stumble_of(d, e->id);
	const struct slurm_seen *seen = &e->seen;
	char why[768], hint[320] = "";
	int r;

	if (seen->status == 127 || seen->status == 126)
		snprintf(hint, sizeof hint, "; can '%.200s' be executed there? (slurm: {command: PATH})",
			 d->slurm->command);
	else if (d->slurm->log)
		snprintf(hint, sizeof hint, "; see '%.200s' there", d->slurm->log);
	else
		snprintf(hint, sizeof hint, "; with slurm: {log: DIR} it says there why");
	snprintf(why, sizeof why, "Slurm job %s was %s%s%s with status %d before it could take it%s",
		 seen->job, seen->state, *seen->node ? " on " : "", seen->node, seen->status, hint);
	if (s && s->count++ < (e->retries > STUMBLES_MIN ? e->retries : STUMBLES_MIN)) {
		entry_end(d, e, OUTCOME_BUSY, "%s", why);
		return 0;
	}
	stumble_forget(d, e->id);
	r = entry_settle(d, e, VERDICT_REFUSED, err, "no node could start it: %s", why);
	return r < 0 ? r : 0;
}

static int judge_waiting(struct dispatch *d, struct entry *e, struct error *err)
{
	switch (e->seen.phase) {
	case SLURM_CANCELLED:
		return entry_settle(d, e, VERDICT_CANCELLED, err, "Slurm job %s was cancelled by scancel%s%s",
				    e->seen.job, *e->seen.reason ? ": " : "", e->seen.reason);
	case SLURM_LOST: /* nothing of it ran */
		entry_again(e, clock_now() + again_ns);
		return 0;
	case SLURM_DONE:
	case SLURM_TIMEOUT:
	case SLURM_OOM:
		return not_started(d, e, err);
	case SLURM_PENDING:
	case SLURM_ACTIVE:
		break;
	}
	return 0;
}

/* The node has died with it, or of it, before it could say so itself. */
static int judge_taken(struct dispatch *d, struct entry *e, struct error *err)
{
	const struct slurm_seen *seen = &e->seen;
	const char *limit;

	switch (seen->phase) {
	case SLURM_TIMEOUT:
		limit = entry_option(d, e, "--time=");
		return entry_settle(d, e, VERDICT_TIMED_OUT, err,
				    "Slurm ended it: its job's own time limit was reached (--time=%s)",
				    limit ? limit : "?");
	case SLURM_OOM:
		limit = entry_option(d, e, "--mem=");
		return entry_settle(d, e, VERDICT_OUT_OF_MEMORY, err,
				    "Slurm ended it: its job's own memory limit was reached (--mem=%s)",
				    limit ? limit : "?");
	case SLURM_CANCELLED:
		return entry_settle(d, e, VERDICT_CANCELLED, err,
				    e->cancelling ? "cancelled; Slurm job %s was ended"
						  : "Slurm job %s was cancelled by scancel",
				    seen->job);
	case SLURM_LOST:
		return entry_settle(d, e, VERDICT_LOST, err, "Slurm: %s on %s%s%s", seen->state,
				    *seen->node ? seen->node : "?", *seen->reason ? ", " : "", seen->reason);
	case SLURM_DONE:
		return entry_settle(d, e, VERDICT_LOST, err,
				    "Slurm job %s ended on %s with status %d before it was committed",
				    seen->job, *seen->node ? seen->node : "?", seen->status);
	case SLURM_PENDING:
	case SLURM_ACTIVE:
		break;
	}
	return 0;
}

/* Slurm has nothing of it. A task that is cancelled while it is pending leaves no trace but the rest of its array; all else means that
 * Slurm has lost it, or never had it. What a node has taken is the node's, as long as its lease is. */
static int judge_missing(struct dispatch *d, struct entry *e, struct error *err)
{
	int r;

	if (++e->missing < MISSING_MAX)
		return 0;
	if (*e->seen.job && e->seen.phase == SLURM_PENDING && knows_array(d, e) &&
	    clock_now() - e->known_at < remembered_ns + MISSING_MAX * d->slurm->poll_ns) {
		snprintf(e->seen.state, sizeof e->seen.state, "CANCELLED");
		r = entry_settle(d, e, VERDICT_CANCELLED, err, "Slurm job %s was cancelled by scancel",
				 e->seen.job);
		return r < 0 ? r : 0;
	}
	entry_again(e, 0);
	return 0;
}

static int judge(struct dispatch *d, struct entry *e, struct error *err)
{
	int r;

	if (e->was_seen) {
		e->missing = 0;
		r = e->is_taken ? judge_taken(d, e, err) : judge_waiting(d, e, err);
		return r < 0 ? r : 0;
	}
	return e->is_taken ? 0 : judge_missing(d, e, err);
}

int dispatch_list(struct dispatch *d, struct ledger *l, struct error *err)
{
	return ask_ledger(d, l, err) < 0 ? -1 : sort_out_gone(d, l, err);
}

static void forget_arrays(struct dispatch *d)
{
	strv_free(d->arrays);
	d->arrays = NULL;
	d->n_arrays = 0;
}

static int look(struct dispatch *d, struct ledger *l, struct error *err)
{
	struct error why = ERROR_INIT;
	bool answered = ask_slurm(d, &why) == 0;

	if (!answered)
		d->look_at = dispatch_fail(d, &d->asking, &why);
	else
		dispatch_answered(d, &d->asking);
	if (dispatch_list(d, l, err) < 0)
		return -1;
	for (size_t i = d->n; answered && i-- > 0;)
		if (d->entries[i]->is_sent && judge(d, d->entries[i], err) < 0)
			return -1;
	return dispatch_note(d, l, err);
}

int dispatch_look(struct dispatch *d, struct ledger *l, struct error *err)
{
	int r = look(d, l, err);

	forget_arrays(d);
	return r;
}
