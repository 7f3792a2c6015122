/*
 * What is new, into Slurm: those that have the same options are one array. Their batch is in the ledger before sbatch is called, so that
 * whenever we die the rows say which job would be theirs.
 */
#include "dispatch.h"

#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "text.h"

static const uint64_t hole_ns = NSEC_PER_SEC;

struct batch {
	char name[TOKEN_SIZE];
	struct entry **entries;
	struct handed *list;
	bool *kept;
	size_t n;
};

static void batch_done(struct batch *b)
{
	free(b->entries);
	free(b->list);
	free(b->kept);
}

static bool same_options(char *const *a, char *const *b)
{
	size_t n = strv_length(a);

	if (n != strv_length(b))
		return false;
	for (size_t i = 0; i < n; i++)
		if (strcmp(a[i], b[i]) != 0)
			return false;
	return true;
}

static bool is_new(const struct entry *e, uint64_t now)
{
	return !e->is_sent && e->try_at <= now;
}

/* 0; 1: it is refused, and told; negative: the ledger did not answer. */
static int entry_prepare(struct dispatch *d, struct entry *e, struct error *err)
{
	struct error why = ERROR_INIT;
	int r;

	if (e->has_options)
		return 0;
	r = entry_load(d, e, &why);
	if (r < 0 && why.kind == ERROR_NOT_FOUND) {
		entry_end(d, e, OUTCOME_LEFT, "its row was removed");
		return 1;
	}
	if (r < 0) {
		*err = why;
		return r;
	}
	if (slurm_options(d->slurm, hood_config(d->hood), &e->job, &e->options, &why) == 0) {
		e->has_options = true;
		return 0;
	}
	r = entry_settle(d, e, VERDICT_REFUSED, err, "%s", why.message);
	if (r == 1)
		entry_end(d, e, OUTCOME_HANDED_BACK, "%s", why.message);
	return r < 0 ? r : 1;
}

/* Backwards: who is refused leaves the list. */
static int prepare(struct dispatch *d, uint64_t now, struct error *err)
{
	for (size_t i = d->n; i-- > 0;)
		if (is_new(d->entries[i], now) && entry_prepare(d, d->entries[i], err) < 0)
			return -1;
	return 0;
}

static int by_id(const void *a, const void *b)
{
	const struct entry *const *x = a, *const *y = b;

	return strverscmp((*x)->id, (*y)->id);
}

/* The first that is new, and all that may go with it; none: n is 0. In the order of their ids, as people count the tasks of an array. */
static int batch_gather(struct dispatch *d, uint64_t now, struct batch *b, struct error *err)
{
	size_t most = (size_t)d->slurm->array_max;

	if (d->batch_max && d->batch_max < most)
		most = d->batch_max;
	b->entries = calloc(d->n + 1, sizeof(struct entry *));
	b->list = calloc(d->n + 1, sizeof *b->list);
	b->kept = calloc(d->n + 1, sizeof *b->kept);
	if (!b->entries || !b->list || !b->kept)
		return error_memory(err);
	for (size_t i = 0; i < d->n && b->n < most; i++)
		if (is_new(d->entries[i], now) && d->entries[i]->has_options &&
		    (b->n == 0 || same_options(b->entries[0]->options, d->entries[i]->options)))
			b->entries[b->n++] = d->entries[i];
	if (b->n)
		qsort(b->entries, b->n, sizeof(struct entry *), by_id);
	for (size_t i = 0; i < b->n; i++)
		b->list[i] = (struct handed){.id = b->entries[i]->id, .token = b->entries[i]->now};
	return b->n ? token_make(b->name, err) : 0;
}

/* Who is not in the batch is no longer ours, or its owner has locked it: the worker finds out. How many are. */
static size_t batch_keep(struct dispatch *d, struct batch *b)
{
	size_t n = 0;

	for (size_t i = 0; i < b->n; i++) {
		struct entry *e = b->entries[i];

		if (!b->kept[i]) {
			entry_end(d, e, OUTCOME_HANDED_BACK, "it could not be handed over to Slurm");
			b->entries[i] = NULL;
			continue;
		}
		memcpy(e->batch, b->name, sizeof e->batch);
		e->index = (int)i;
		e->is_sent = true;
		n++;
	}
	return n;
}

static void note_pending(const struct dispatch *d, const struct batch *b, const char *job)
{
	for (size_t i = 0; i < b->n; i++) {
		struct entry *e = b->entries[i];

		if (!e)
			continue;
		e->seen = (struct slurm_seen){.phase = SLURM_PENDING, .state = "PENDING"};
		e->is_noted = false;
		e->known_at = clock_now();
		snprintf(e->seen.job, sizeof e->seen.job, d->slurm->array_max > 1 ? "%s_%d" : "%s", job,
			 e->index);
	}
}

/* They wait for Slurm, and who looks at them reads why. */
static void entry_put_off(struct entry *e, uint64_t at, const char *why)
{
	entry_again(e, at);
	snprintf(e->seen.state, sizeof e->seen.state, "UNSENT");
	text_escape_into(e->seen.reason, sizeof e->seen.reason, why, strlen(why));
	e->is_noted = false;
}

static void put_off(const struct batch *b, uint64_t at, const char *why)
{
	for (size_t i = 0; i < b->n; i++)
		if (b->entries[i])
			entry_put_off(b->entries[i], at, why);
}

/* It may be their own options that Slurm does not like: nobody else waits for that. */
static void put_off_alone(struct dispatch *d, const struct batch *b, const struct error *why)
{
	for (size_t i = 0; i < b->n; i++)
		if (b->entries[i])
			entry_put_off(b->entries[i], clock_now() + job_back_off(b->entries[i]->puzzles++),
				      why->message);
	dispatch_complain(d, &d->puzzling, why);
}

/* An array counts as all its tasks: fewer may find room. */
static void put_off_half(struct dispatch *d, const struct batch *b, const char *why)
{
	d->batch_max = b->n / 2;
	put_off(b, 0, why);
}

static int refuse(struct dispatch *d, const struct batch *b, const char *why, struct error *err)
{
	for (size_t i = 0; i < b->n; i++) {
		struct entry *e = b->entries[i];
		int r = e ? entry_settle(d, e, VERDICT_REFUSED, err, "Slurm refused it: %s", why) : 0;

		if (r < 0)
			return r;
		if (r == 1)
			entry_again(e, clock_now() + hole_ns);
	}
	return 0;
}

static int batch_send(struct dispatch *d, struct batch *b, struct error *err)
{
	struct error why = ERROR_INIT;
	enum slurm_failure failure;
	char job[SLURM_JOB_ROOM];
	char *const *options = NULL;

	for (size_t i = 0; i < b->n && !options; i++)
		options = b->entries[i] ? b->entries[i]->options : NULL;
	if (slurm_submit(d->slurm, b->name, b->n, options, job, &failure, &why) == 0) {
		dispatch_answered(d, &d->submitting);
		d->batch_max *= 2;
		note_pending(d, b, job);
		return 0;
	}
	if (failure == SLURM_REFUSED)
		return refuse(d, b, why.message, err);
	if (failure == SLURM_FULL && b->n > 1)
		return put_off_half(d, b, why.message), 0;
	if (failure == SLURM_STRANGE || failure == SLURM_MISUSED)
		return put_off_alone(d, b, &why), 0;
	put_off(b, dispatch_fail(d, &d->submitting, &why), why.message);
	return 1;
}

/* 1: there was one; 0: nothing is new any more. */
static int submit_one(struct dispatch *d, struct ledger *l, uint64_t now, struct error *err)
{
	_cleanup_(batch_done) struct batch b = {0};
	int r = batch_gather(d, now, &b, err);

	if (r < 0 || b.n == 0)
		return r;
	if (ledger_hand_over(l, d->worker, b.name, b.list, b.n, b.kept, err) < 0)
		return -1;
	r = batch_keep(d, &b) > 0 ? batch_send(d, &b, err) : 0;
	if (r < 0)
		return r;
	/* Slurm does not take more now; who is left is tried with these. */
	for (size_t i = 0; r == 1 && i < d->n; i++)
		if (is_new(d->entries[i], now))
			d->entries[i]->try_at = b.entries[0] ? b.entries[0]->try_at : now + hole_ns;
	return 1;
}

int dispatch_submit(struct dispatch *d, struct ledger *l, struct error *err)
{
	uint64_t now = clock_now();
	int r = prepare(d, now, err);

	while (r == 0 && (r = submit_one(d, l, now, err)) == 1)
		r = dispatch_note(d, l, err);
	return r;
}
