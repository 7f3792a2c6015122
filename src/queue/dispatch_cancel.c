/*
 * Those that somebody cancels: who waits is settled here, and its job ended; who was taken is the node's, which hears of it as every worker
 * does, and is ended through Slurm only if it does not.
 */
#include "dispatch.h"

#include <string.h>

#include "clock.h"
#include "text.h"

static const uint64_t cancel_grace_ns = 15 * NSEC_PER_SEC;

/* First in the ledger: a node that starts it now finds nothing to take. */
static int cancel_waiting(struct dispatch *d, struct entry *e, char ***jobs, struct error *err)
{
	char job[SLURM_JOB_ROOM];
	int r;

	memcpy(job, e->seen.job, sizeof job);
	r = entry_settle(d, e, VERDICT_CANCELLED, err, "cancelled before it started");
	if (r < 0)
		return r;
	if (r == 1) { /* a node was faster, and sees it by itself */
		e->cancelling = false;
		d->is_poked = true;
		return 0;
	}
	return *job ? strv_append(jobs, job, err) : 0;
}

static int cancel_all(struct dispatch *d, char ***jobs, struct error *err)
{
	uint64_t now = clock_now();
	int r = 0;

	for (size_t i = d->n; r == 0 && i-- > 0;) {
		struct entry *e = d->entries[i];

		if (!e->cancelling)
			continue;
		if (!e->is_taken) {
			r = cancel_waiting(d, e, jobs, err);
		} else if (!e->cancel_at) {
			e->cancel_at = now + cancel_grace_ns;
		} else if (now >= e->cancel_at && *e->seen.job) {
			e->cancel_at = now + cancel_grace_ns;
			r = strv_append(jobs, e->seen.job, err);
		}
	}
	return r;
}

int dispatch_scancel(struct dispatch *d, struct error *err)
{
	_cleanup_strv_ char **jobs = NULL;
	struct error why = ERROR_INIT;
	int r = cancel_all(d, &jobs, err);

	/* Those that are settled are told to Slurm even if the ledger did not answer for the rest. */
	if (jobs && slurm_cancel(d->slurm, jobs, &why) < 0)
		(void)dispatch_fail(d, &d->asking, &why);
	return r;
}
