/*
 * The steps of an attempt, and what they come to together.
 */
#include "attempt.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "array.h"
#include "text.h"

void step_done(struct step *s)
{
	free(s->reason);
	json_decref(s->request);
	json_decref(s->plan);
	receipt_done(&s->receipt);
	for (int i = 0; i < STREAM_COUNT; i++)
		captured_done(&s->logs[i]);
	*s = (struct step){0};
}

const char *stream_step_name(int stream, size_t step, char out[STREAM_TEXT_SIZE])
{
	if (step == 0)
		return stream_name(stream);
	snprintf(out, STREAM_TEXT_SIZE, "%s.%zu", stream_name(stream), step);
	return out;
}

static int append(char **to, size_t *size, const char *data, size_t more, struct error *err)
{
	char *grown = realloc(*to, *size + more + 1);

	if (!grown)
		return error_memory(err);
	if (more)
		memcpy(grown + *size, data, more);
	*to = grown;
	*size += more;
	return 0;
}

int captured_join(struct captured *c, const struct captured *more, struct error *err)
{
	bool cut = c->omitted > 0;
	int r;

	if (cut && more->omitted) {
		c->omitted += c->tail_size + more->head_size + more->omitted;
		c->tail_size = 0;
		return append(&c->tail, &c->tail_size, more->tail, more->tail_size, err);
	}
	c->omitted += more->omitted;
	/* What is not cut is all in one piece. */
	if (cut) {
		r = append(&c->tail, &c->tail_size, more->head, more->head_size, err);
	} else if ((r = append(&c->head, &c->head_size, c->tail, c->tail_size, err)) == 0) {
		c->tail_size = 0;
		r = append(&c->head, &c->head_size, more->head, more->head_size, err);
	}
	return r < 0 ? r : append(&c->tail, &c->tail_size, more->tail, more->tail_size, err);
}

/* What is the first step's stays the attempt's: who it is, and what was asked for. */
static int begin(struct attempt *a, const struct attempt *step, struct error *err)
{
	int r;

	attempt_identify(a, step->id, step->token, step->number, step->request);
	a->created = step->created;
	a->started = step->started;
	a->verdict = VERDICT_SUCCEEDED;
	a->exit_code = 0;
	a->plan = json_incref(step->plan);
	a->usage = step->usage;
	if ((step->workspace && (r = text_set(&a->workspace, step->workspace, err)) < 0) ||
	    (step->host && (r = text_set(&a->host, step->host, err)) < 0))
		return r;
	return 0;
}

/* The first that failed decides. */
static int take_verdict(struct attempt *a, const struct attempt *step, struct error *err)
{
	if (a->verdict != VERDICT_SUCCEEDED)
		return 0;
	a->verdict = step->verdict;
	a->exit_code = step->exit_code;
	a->signal = step->signal;
	a->status = step->status;
	return step->reason ? text_set(&a->reason, step->reason, err) : 0;
}

/* As if it had been one: what the steps before have used is below. */
static int join_timeline(struct attempt *a, const struct attempt *step, int64_t cpu_before, struct error *err)
{
	int64_t shift = (step->started - a->started) / (int64_t)NSEC_PER_MSEC;

	if (!step->timeline)
		return 0;
	if (!a->timeline && !(a->timeline = calloc(1, sizeof *a->timeline)))
		return error_memory(err);
	for (int i = 0; i < step->timeline->count; i++) {
		struct sample s = step->timeline->samples[i];

		s.at_ms += shift;
		if (s.cpu_ms >= 0)
			s.cpu_ms = cpu_before < 0 ? -1 : s.cpu_ms + cpu_before;
		timeline_add(a->timeline, &s);
	}
	return 0;
}

static bool is_known_input(const struct attempt *a, const struct input *in)
{
	const struct input *known = inputs_find(&a->inputs, in->path);

	return known && memcmp(known->sha256, in->sha256, sizeof in->sha256) == 0;
}

static int join_inputs(struct attempt *a, const struct attempt *step, struct error *err)
{
	for (size_t i = 0; i < step->inputs.count; i++) {
		int r = is_known_input(a, &step->inputs.list[i])
				? 0
				: inputs_add(&a->inputs, &step->inputs.list[i], err);

		if (r < 0)
			return r;
	}
	return 0;
}

static int join_queries(struct attempt *a, const struct attempt *step, struct error *err)
{
	for (size_t i = 0; i < step->n_queries; i++) {
		const struct query *q = &step->queries[i];
		struct query *more = attempt_add_query(a, q->name, q->sql), copy = *q;

		if (!more)
			return error_memory(err);
		copy.name = more->name;
		copy.sql = more->sql;
		*more = copy;
	}
	return 0;
}

static void move(struct step *to, struct attempt *from)
{
	*to = (struct step){
		.verdict = from->verdict,
		.exit_code = from->exit_code,
		.signal = from->signal,
		.status = from->status,
		.started = from->started,
		.ended = from->ended,
		.usage = from->usage,
		.receipt = from->receipt,
	};
	to->reason = TAKE_PTR(from->reason);
	to->request = TAKE_PTR(from->request);
	to->plan = TAKE_PTR(from->plan);
	from->receipt = (struct receipt){0};
	memcpy(to->logs, from->logs, sizeof to->logs);
	memset(from->logs, 0, sizeof from->logs);
}

int attempt_add_step(struct attempt *a, struct attempt *step, struct error *err)
{
	int64_t cpu_before = a->n_steps ? a->usage.cpu_ms : 0;
	struct step *more;
	int r;

	if (a->n_steps)
		usage_add(&a->usage, &step->usage);
	else if ((r = begin(a, step, err)) < 0)
		return r;
	a->ended = step->ended;
	if ((r = take_verdict(a, step, err)) < 0 || (r = join_timeline(a, step, cpu_before, err)) < 0 ||
	    (r = join_inputs(a, step, err)) < 0 || (r = join_queries(a, step, err)) < 0)
		return r;
	for (size_t i = 0; i < step->n_events; i++)
		attempt_event_at(a, step->events[i].at, step->events[i].stage, step->events[i].text);
	receipt_join(&a->receipt, &step->receipt);
	denials_join(&a->denials, &step->denials);
	more = ARRAY_ADD(a->steps, a->n_steps);
	if (!more)
		return error_memory(err);
	move(more, step);
	return attempt_check(a, err);
}

int attempt_join_logs(struct attempt *a, struct error *err)
{
	for (size_t n = 0; n < a->n_steps; n++)
		for (int i = 0; i < STREAM_COUNT; i++) {
			int r = captured_join(&a->logs[i], &a->steps[n].logs[i], err);

			if (r < 0)
				return r;
		}
	return 0;
}
