#include "dispatch.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "array.h"
#include "clock.h"
#include "text.h"

/* A crowd of bells is one look. */
static const uint64_t list_min_ns = 300 * NSEC_PER_MSEC;
static const uint64_t ledger_again_ns = NSEC_PER_SEC;
static const uint64_t slurm_again_max_ns = 30 * NSEC_PER_SEC;

/* ---- entries ---- */

struct entry *dispatch_find(struct dispatch *d, const char *id)
{
	for (size_t i = 0; i < d->n; i++)
		if (strcmp(d->entries[i]->id, id) == 0)
			return d->entries[i];
	return NULL;
}

static struct entry *entry_new(struct dispatch *d, const char *id, const char *token, struct error *err)
{
	struct entry *e = calloc(1, sizeof *e), **place;

	place = e ? ARRAY_ADD(d->entries, d->n) : NULL;
	if (!place) {
		free(e);
		error_memory(err);
		return NULL;
	}
	*place = e;
	job_init(&e->job);
	snprintf(e->id, sizeof e->id, "%s", id);
	snprintf(e->token, sizeof e->token, "%s", token);
	snprintf(e->now, sizeof e->now, "%s", token);
	return e;
}

static void entry_free(struct entry *e)
{
	job_done(&e->job);
	strv_free(e->options);
	free(e);
}

void entry_forget(struct dispatch *d, struct entry *e)
{
	for (size_t i = 0; i < d->n; i++)
		if (d->entries[i] == e) {
			d->entries[i] = d->entries[--d->n];
			break;
		}
	entry_free(e);
}

void dispatch_done(struct dispatch *d)
{
	for (size_t i = 0; i < d->n; i++)
		entry_free(d->entries[i]);
	free(d->entries);
	free(d->stumbles);
}

void entry_describe(const struct dispatch *d, const struct entry *e, enum outcome outcome,
		    struct engine_end *ret)
{
	*ret = (struct engine_end){.outcome = outcome};
	attempt_init(&ret->attempt);
	memcpy(ret->id, e->id, sizeof ret->id);
	memcpy(ret->token, e->token, sizeof ret->token);
	memcpy(ret->attempt.id, e->id, sizeof ret->attempt.id);
	snprintf(ret->where, sizeof ret->where, "%s%sSlurm%s%s of %s", e->seen.node,
		 *e->seen.node ? ", " : "", *e->seen.job ? " job " : "", e->seen.job, d->slurm->cluster);
}

void entry_end(struct dispatch *d, struct entry *e, enum outcome outcome, const char *format, ...)
{
	struct engine_end end;
	va_list args;

	entry_describe(d, e, outcome, &end);
	if (format) {
		end.why.kind = ERROR_BUSY;
		va_start(args, format);
		vsnprintf(end.why.message, sizeof end.why.message, format, args);
		va_end(args);
	}
	d->tell(d->arg, &end);
	entry_forget(d, e);
}

char *entry_handle(const struct dispatch *d, const struct entry *e)
{
	json_auto_t *handle = json_object();
	const struct {
		const char *key, *value;
	} words[] = {
		{"engine", "slurm"},	  {"cluster", d->slurm->cluster}, {"job", e->seen.job},
		{"state", e->seen.state}, {"reason", e->seen.reason},	  {"node", e->seen.node},
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (*words[i].value &&
		    json_object_set_new(handle, words[i].key, json_string(words[i].value)) < 0)
			return NULL;
	return json_dumps(handle, JSON_COMPACT);
}

int entry_settle(struct dispatch *d, struct entry *e, enum verdict verdict, struct error *err,
		 const char *format, ...)
{
	_cleanup_free_ char *handle = entry_handle(d, e);
	struct handed_end order = {.id = e->id, .token = e->now, .verdict = verdict, .handle = handle};
	struct engine_end end;
	struct ledger *l;
	char reason[1024];
	va_list args;
	int r;

	va_start(args, format);
	vsnprintf(reason, sizeof reason, format, args);
	va_end(args);
	order.reason = reason;
	if (!handle)
		return error_memory(err);
	if (hood_ledger(d->hood, LEDGER_CREATE, &l, err) < 0)
		return -1;
	r = ledger_handed_end(l, &order, err);
	/* Its owner has locked it, as he can: the next look tries again, and the others do not wait for that. */
	if (r < 0 && err->kind == ERROR_LOCKED) {
		*err = (struct error)ERROR_INIT;
		return 1;
	}
	if (r != 0)
		return r;
	entry_describe(d, e, OUTCOME_SETTLED, &end);
	attempt_conclude(&end.attempt, verdict, "%s", reason);
	end.attempt.committed = true;
	d->tell(d->arg, &end);
	entry_forget(d, e);
	return 0;
}

void entry_again(struct entry *e, uint64_t at)
{
	e->is_sent = false;
	e->missing = 0;
	e->try_at = at;
	e->seen = (struct slurm_seen){0};
}

/* Of one that was adopted the ledger has it all. */
int entry_load(struct dispatch *d, struct entry *e, struct error *err)
{
	struct ledger *l;

	if (e->is_loaded)
		return 0;
	if (hood_ledger(d->hood, LEDGER_CREATE, &l, err) < 0 || ledger_queue_load(l, e->id, &e->job, err) < 0)
		return -1;
	e->is_loaded = true;
	return 0;
}

const char *entry_option(struct dispatch *d, struct entry *e, const char *name)
{
	struct error ignored = ERROR_INIT;
	const char *found = NULL;

	if (!e->has_options && entry_load(d, e, &ignored) == 0 &&
	    slurm_options(d->slurm, hood_config(d->hood), &e->job, &e->options, &ignored) == 0)
		e->has_options = true;
	for (size_t i = 0; e->options && e->options[i]; i++)
		if (strncmp(e->options[i], name, strlen(name)) == 0)
			found = e->options[i] + strlen(name);
	return found;
}

/* ---- what operators read ---- */

void dispatch_say(struct dispatch *d, const char *format, ...)
{
	struct engine_end end = {.outcome = OUTCOME_SAID};
	va_list args;

	attempt_init(&end.attempt);
	va_start(args, format);
	vsnprintf(end.why.message, sizeof end.why.message, format, args);
	va_end(args);
	d->tell(d->arg, &end);
}

void dispatch_complain(struct dispatch *d, struct trouble *t, const struct error *why)
{
	if (strncmp(t->said, why->message, sizeof t->said - 1) == 0)
		return;
	snprintf(t->said, sizeof t->said, "%s", why->message);
	dispatch_say(d, "Slurm does not do what it is asked, trying again: %s", why->message);
}

uint64_t dispatch_fail(struct dispatch *d, struct trouble *t, const struct error *why)
{
	uint64_t wait = job_back_off(t->tries++);

	dispatch_complain(d, t, why);
	return clock_now() + (wait < slurm_again_max_ns ? wait : slurm_again_max_ns);
}

void dispatch_answered(struct dispatch *d, struct trouble *t)
{
	if (*t->said)
		dispatch_say(d, "Slurm does what it is asked again");
	*t = (struct trouble){0};
}

int dispatch_note(struct dispatch *d, struct ledger *l, struct error *err)
{
	_cleanup_free_ struct handle_note *notes = calloc(d->n + 1, sizeof *notes);
	_cleanup_strv_ char **handles = NULL;
	size_t n = 0;
	int r;

	if (!notes)
		return error_memory(err);
	for (size_t i = 0; i < d->n; i++) {
		const struct entry *e = d->entries[i];
		_cleanup_free_ char *handle = NULL;

		if (e->is_noted || !*e->batch || !*e->seen.state)
			continue;
		handle = entry_handle(d, e);
		if (!handle)
			return error_memory(err);
		if (strv_append(&handles, handle, err) < 0)
			return -1;
		notes[n++] = (struct handle_note){.batch = e->batch, .index = e->index};
	}
	for (size_t i = 0; i < n; i++)
		notes[i].handle = handles[i];
	r = n ? ledger_handles_set(l, notes, n, err) : 0;
	for (size_t i = 0; r == 0 && i < d->n; i++)
		d->entries[i]->is_noted = true;
	return r;
}

/* ---- from the worker ---- */

static int adopt(void *arg, const struct handed_seen *h, struct error *err)
{
	struct dispatch *d = arg;
	json_auto_t *handle = h->handle ? json_loads(h->handle, 0, NULL) : NULL;
	const char *job = json_string_value(json_object_get(handle, "job"));
	struct entry *e;

	if (!h->batch) /* claimed, and no more: the worker hands it back */
		return 0;
	e = entry_new(d, h->id, h->token, err);
	if (!e)
		return -1;
	snprintf(e->batch, sizeof e->batch, "%s", h->batch);
	snprintf(e->seen.job, sizeof e->seen.job, "%s", job ? job : "");
	e->index = h->index;
	e->is_sent = true;
	e->is_noted = true;
	e->is_taken = h->is_taken;
	e->cancelling = h->cancelling;
	e->retries = h->retries;
	return 0;
}

int dispatch_adopt(struct dispatch *d, struct error *err)
{
	struct ledger *l;

	return hood_ledger(d->hood, LEDGER_CREATE, &l, err) < 0 ||
			       ledger_handed(l, d->worker, adopt, d, err) < 0
		       ? -1
		       : 0;
}

int dispatch_start(struct dispatch *d, struct job *job, struct error *err)
{
	struct entry *e = dispatch_find(d, job->id);

	/* We have claimed it again before we saw that it was queued again. */
	if (e)
		entry_end(d, e, OUTCOME_LEFT, NULL);
	e = entry_new(d, job->id, job->token, err);
	if (!e)
		return -1;
	e->job = *job;
	*job = (struct job){0};
	e->is_loaded = true;
	e->retries = e->job.retries;
	return 0;
}

void dispatch_cancel(struct dispatch *d, const char *token, enum engine_cancel how)
{
	for (size_t i = 0; i < d->n; i++) {
		struct entry *e = d->entries[i];

		if (strcmp(e->token, token) != 0)
			continue;
		if (how == ENGINE_CANCEL)
			e->cancelling = true;
		else if (e->is_sent)
			entry_end(d, e, OUTCOME_LEFT, NULL);
		else
			entry_end(d, e, OUTCOME_HANDED_BACK, "it had not been given to Slurm");
		return;
	}
}

/* ---- its turn ---- */

static bool has_new(const struct dispatch *d, uint64_t now)
{
	for (size_t i = 0; i < d->n; i++)
		if (!d->entries[i]->is_sent && d->entries[i]->try_at <= now)
			return true;
	return false;
}

/* First what is known, then what is to be: one that was cancelled is not submitted. */
static int turn(struct dispatch *d, uint64_t now, struct error *err)
{
	struct ledger *l;

	if (hood_ledger(d->hood, LEDGER_CREATE, &l, err) < 0)
		return -1;
	if (now >= d->look_at) {
		d->look_at = now + d->slurm->poll_ns;
		d->is_poked = false;
		if (dispatch_look(d, l, err) < 0)
			return -1;
	} else if (d->is_poked && now >= d->listed_at + list_min_ns) {
		d->is_poked = false;
		if (dispatch_list(d, l, err) < 0)
			return -1;
	}
	if (dispatch_scancel(d, err) < 0)
		return -1;
	return has_new(d, now) ? dispatch_submit(d, l, err) : 0;
}

void dispatch_turn(struct dispatch *d)
{
	struct error err = ERROR_INIT;
	uint64_t now = clock_now();

	if (d->n == 0 || now < d->try_at)
		return;
	d->try_at = 0;
	/* The worker says that the ledger is away: it hears of it, too. */
	if (turn(d, now, &err) < 0)
		d->try_at = clock_now() + ledger_again_ns;
}

uint64_t dispatch_due(const struct dispatch *d)
{
	uint64_t at = d->look_at;

	if (d->n == 0)
		return UINT64_MAX;
	if (d->is_poked && d->listed_at + list_min_ns < at)
		at = d->listed_at + list_min_ns;
	for (size_t i = 0; i < d->n; i++) {
		const struct entry *e = d->entries[i];

		if (!e->is_sent && e->try_at < at)
			at = e->try_at;
		if (e->cancelling && !e->is_taken)
			at = 0;
	}
	return at > d->try_at ? at : d->try_at;
}
