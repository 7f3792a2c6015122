#include "view.h"

#include <string.h>

#include "queue.h"
#include "text.h"

static json_t *instant_json(int64_t at)
{
	char text[CLOCK_TEXT_SIZE];

	if (!at)
		return json_null();
	clock_format(at, text);
	return json_string(text);
}

json_t *view_queued(const struct queued *q)
{
	bool ended = q->state == JOB_FINISHED || q->state == JOB_CANCELLED;

	return json_pack("{s:s, s:s, s:s?, s:o, s:o, s:i, s:s?, s:s?, s:s?, s:b, s:o, s:o}", "id", q->id,
			 "state", job_state_name(q->state), "verdict",
			 ended ? verdict_name(q->verdict) : NULL, "status",
			 ended ? json_integer(q->status) : json_null(), "attempt",
			 q->attempt > 0 ? json_integer(q->attempt) : json_null(), "priority", q->priority,
			 "submitter", q->submitter, "worker", q->worker, "reason", q->reason, "cancelling",
			 q->cancelling, "submitted", instant_json(q->submitted), "due", instant_json(q->due));
}

static int append(void *arg, const struct queued *q, struct error *err)
{
	return json_array_append_new(arg, view_queued(q)) < 0 ? error_memory(err) : 0;
}

int view_queue(struct hood *h, const char *state, const char *prefix, int limit, json_t **ret,
	       struct error *err)
{
	json_t *rows = json_array();
	struct ledger *ledger;
	enum job_state wanted = JOB_STATES;
	char shown[64];
	int r = rows ? 0 : error_memory(err);

	if (r == 0 && state && job_state_parse(state, &wanted) < 0)
		r = error_set(err, ERROR_USAGE,
			      "there is no state '%s': it is waiting, queued, running, finished or cancelled",
			      text_escape_into(shown, sizeof shown, state, strlen(state)));
	if (r == 0)
		r = hood_ledger(h, LEDGER_CREATE, &ledger, err);
	if (r == 0)
		r = ledger_queue_list(ledger, state ? (int)wanted : -1, prefix, limit, append, rows, err);
	if (r < 0)
		json_decref(rows);
	else
		*ret = rows;
	return r;
}

/* ---- one of them, as `show` has it ---- */

static int note(void *arg, const struct queued *q, struct error *err)
{
	struct queue_view *v = arg;

	v->found = true;
	v->state = q->state;
	v->submitted = q->submitted;
	v->json = json_pack("{s:s, s:o, s:o, s:s?, s:s?, s:b}", "state", job_state_name(q->state),
			    "submitted", instant_json(q->submitted), "due", instant_json(q->due), "worker",
			    q->worker, "reason", q->reason, "cancelling", q->cancelling);
	return v->json ? 0 : error_memory(err);
}

static int add_job(json_t *json, const struct job *j)
{
	json_t *after = json_array();

	for (size_t i = 0; j->after && j->after[i]; i++)
		json_array_append_new(after, json_string(j->after[i]));
	return json_object_update_new(json, json_pack("{s:s?, s:i, s:i, s:i, s:o}", "submitter", j->submitter,
						      "priority", j->priority, "retries", j->retries, "tries",
						      j->tries, "after", after));
}

void queue_view_done(struct queue_view *v)
{
	json_decref(v->json);
	json_decref(v->request);
}

int queue_view_load(struct queue_view *v, struct ledger *l, const char *id, struct error *err)
{
	_cleanup_job_ struct job job;
	char *const ids[] = {(char *)id, NULL};
	int r;

	job_init(&job);
	r = ledger_queue_look(l, ids, note, v, err);
	if (r < 0 || !v->found)
		return r;
	r = ledger_queue_load(l, id, &job, err);
	if (r < 0)
		return r;
	v->request = json_incref(job.request);
	return add_job(v->json, &job) < 0 ? error_memory(err) : 0;
}
