#include "worker_private.h"

#include <stdio.h>

#include "handover.h"

/* {"engine": "slurm", …}, as text; NULL: nothing is known. */
static char *handle_text(const json_t *handle)
{
	return handle ? json_dumps(handle, JSON_COMPACT) : NULL;
}

int lease_take(struct worker *w, unsigned *ret_claimed, struct error *err)
{
	const struct worker_take *take = w->options->take;
	json_auto_t *handle = slurm_node_handle(&w->node);
	_cleanup_free_ char *text = handle_text(handle);
	_cleanup_job_ struct job job = {0};
	struct error why = ERROR_INIT;
	char lost[320];
	struct take_order order = {
		.batch = take->batch,
		.index = take->index,
		.worker = w->name,
		.lease_ns = w->lease_ns,
		.handle = text,
		.lost = lost,
	};
	int r;

	if (w->has_taken)
		return 0;
	if (w->node.job[0])
		snprintf(lost, sizeof lost, "Slurm started it again on %s", w->node.node);
	else
		snprintf(lost, sizeof lost, "it was started again on %s", w->host);
	r = ledger_take(w->ledger, &order, &job, &why, err);
	if (r < 0)
		return r;
	w->has_taken = true;
	if (r == 1) {
		worker_say(w, "%s", why.message);
		return 0;
	}
	*ret_claimed = 1;
	job.engine = json_incref(handle);
	return lease_start(w, &job, err);
}
