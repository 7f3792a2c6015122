#include "attempt.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "array.h"
#include "text.h"

const char *stream_name(int stream)
{
	static const char *const names[] = {
		[STREAM_STDOUT] = "stdout", [STREAM_STDERR] = "stderr", [STREAM_POST] = "post_process"};

	return names[stream];
}

void attempt_init(struct attempt *a)
{
	*a = (struct attempt){
		.exit_code = -1, .rows = -1, .usage = USAGE_UNKNOWN, .denials = DENIALS_UNKNOWN};
}

size_t lines_from_end(const char *data, size_t size, int *lines, bool *ret_found)
{
	for (size_t at = size; at > 0; at--)
		if (data[at - 1] == '\n' && (*lines)-- == 0) {
			*ret_found = true;
			return at;
		}
	*ret_found = false;
	return 0;
}

void captured_keep_lines(struct captured *c, int lines)
{
	bool found, in_tail = c->tail_size > 0;
	const char *last = in_tail	  ? c->tail + c->tail_size - 1
			   : c->head_size ? c->head + c->head_size - 1
					  : "";
	size_t from;

	/* A line that is not ended is one, too. */
	if (*last && *last != '\n')
		lines--;
	from = lines_from_end(c->tail, c->tail_size, &lines, &found);
	if (found) {
		memmove(c->tail, c->tail + from, c->tail_size - from);
		c->tail_size -= from;
		c->head_size = 0;
		c->omitted = 0;
		return;
	}
	from = lines_from_end(c->head, c->head_size, &lines, &found);
	if (found) {
		memmove(c->head, c->head + from, c->head_size - from);
		c->head_size -= from;
	}
}

void captured_done(struct captured *c)
{
	free(c->head);
	free(c->tail);
	*c = (struct captured){0};
}

static void event_done(struct event *e)
{
	free(e->stage);
	free(e->text);
}

void attempt_done(struct attempt *a)
{
	char *texts[] = {a->owner,	 a->workspace,	a->host,	 a->reason,
			 a->error_stage, a->error_code, a->error_message};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		free(texts[i]);
	json_decref(a->request);
	json_decref(a->plan);
	json_decref(a->result);
	json_decref(a->engine);
	free(a->timeline);
	receipt_done(&a->receipt);
	denials_done(&a->denials);
	manifest_done(&a->manifest);
	inputs_done(&a->inputs);
	for (int i = 0; i < STREAM_COUNT; i++)
		captured_done(&a->logs[i]);
	for (size_t i = 0; i < a->n_queries; i++) {
		free(a->queries[i].name);
		free(a->queries[i].sql);
	}
	free(a->queries);
	captured_done(&a->post_log);
	for (size_t i = 0; i < a->n_steps; i++)
		step_done(&a->steps[i]);
	free(a->steps);
	for (size_t i = 0; i < a->n_events; i++)
		event_done(&a->events[i]);
	free(a->events);
	attempt_init(a);
}

int attempt_status(const struct attempt *a)
{
	return a->committed || (a->step && !a->error_message) ? a->status : STATUS_OURS;
}

void attempt_event(struct attempt *a, const char *stage, const char *format, ...)
{
	struct event e = {.at = clock_utc(), .stage = strdup(stage)}, *more;
	va_list ap;

	va_start(ap, format);
	if (vasprintf(&e.text, format, ap) < 0)
		e.text = NULL;
	va_end(ap);
	more = e.stage && e.text ? ARRAY_ADD(a->events, a->n_events) : NULL;
	if (more)
		*more = e;
	else
		event_done(&e);
	a->failed |= !more;
}

void attempt_event_at(struct attempt *a, int64_t at, const char *stage, const char *text)
{
	attempt_event(a, stage, "%s", text);
	if (a->n_events)
		a->events[a->n_events - 1].at = at;
}

int attempt_check(const struct attempt *a, struct error *err)
{
	return a->failed ? error_memory(err) : receipt_check(&a->receipt, err);
}

void attempt_forgive(struct attempt *a)
{
	a->failed = a->receipt.failed = false;
}

void attempt_identify(struct attempt *a, const char *id, const char *token, int number, json_t *request)
{
	snprintf(a->id, sizeof a->id, "%s", id);
	snprintf(a->token, sizeof a->token, "%s", token);
	a->number = number;
	json_decref(a->request);
	a->request = json_incref(request);
}

void attempt_conclude(struct attempt *a, enum verdict verdict, const char *format, ...)
{
	char *reason;
	va_list ap;
	int n;

	va_start(ap, format);
	n = vasprintf(&reason, format, ap);
	va_end(ap);
	if (n < 0) {
		a->failed = true;
		return;
	}
	free(a->reason);
	a->reason = reason;
	a->verdict = verdict;
	a->status = verdict_exit_status(verdict, &(struct evidence){0});
}

struct query *attempt_add_query(struct attempt *a, const char *name, const char *sql)
{
	struct query *q = ARRAY_ADD(a->queries, a->n_queries);

	if (!q)
		return NULL;
	*q = (struct query){.name = strdup(name), .sql = strdup(sql)};
	return q->name && q->sql ? q : NULL;
}

int attempt_set_error(struct attempt *a, const struct error *err)
{
	_cleanup_free_ char *stage = strdup(err->stage ? err->stage : "");
	_cleanup_free_ char *code = strdup(error_kind_name(err->kind));
	_cleanup_free_ char *message = strdup(err->message);

	if (!stage || !code || !message)
		return -ENOMEM;
	free(a->error_stage);
	free(a->error_code);
	free(a->error_message);
	a->error_stage = TAKE_PTR(stage);
	a->error_code = TAKE_PTR(code);
	a->error_message = TAKE_PTR(message);
	return 0;
}

int attempt_refuse(struct attempt *a, const struct error *why)
{
	a->verdict = VERDICT_REFUSED;
	a->status = STATUS_OURS;
	a->committed = false;
	return attempt_set_error(a, why);
}
