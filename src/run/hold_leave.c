/*
 * Steps whose commit was asked for, and failed: what they come to, with the result, the verdict and the rows that came with
 * the order, is on disk, and the workspace is nobody's any longer. It is pending, as a run's is: gc, the worker and the next
 * run of the same id commit it (recover.c).
 */
#include "clock.h"
#include "ended.h"
#include "rights.h"
#include "steps.h"

#include <unistd.h>

/* The record last: until then it is held, and what lies beside it is written anew by whoever commits next. */
int steps_leave(struct workspace *w, const struct attempt *a, const struct error *why, struct error *err)
{
	const struct pending p = {.stage = (char *)why->stage,
				  .code = (char *)error_kind_name(why->kind),
				  .message = (char *)why->message,
				  .since = clock_utc()};
	const struct rights own = {0};
	json_t *extra = json_pack("{s:i, s:I, s:O?, s:O?, s:o}", "attempt", a->number, "created",
				  (json_int_t)a->created, "request", a->request, "plan", a->plan,
				  RECORD_WHOSE, rights_to_json(&own, w->record.ledger));
	const struct ended e = {.evidence = {.started = true, .exit_code = a->exit_code, .signal = a->signal},
				.uid = geteuid(),
				.whose = json_object_get(extra, RECORD_WHOSE)};
	int r;

	if (!extra)
		return error_memory(err);
	if ((r = finished_save(w, a, true, err)) < 0 || (r = ended_save(w, a, &e, err)) < 0 ||
	    (r = ended_set_pending(w, &p, err)) < 0) {
		json_decref(extra);
		return r;
	}
	return workspace_leave(w, a->token, extra, err);
}
