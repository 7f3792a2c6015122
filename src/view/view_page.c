/*
 * `show` for people: what is going on, what the queue knows, and then the attempt.
 */
#include <stdio.h>

#include "print.h"
#include "view.h"

static void put_pending(FILE *to, const struct look *look, const struct subject *s)
{
	_cleanup_free_ char *why = text_safe(s->live.why ? s->live.why : "its supervisor died");

	fprintf(to,
		"%s%s attempt %d is pending%s: its command has ended, and the rest is not done: %s; make room or mend "
		"that, then: fumehood gc\n",
		print_style(look->colour, STYLE_YELLOW), s->live.id, s->live.attempt,
		print_style(look->colour, STYLE_RESET), why ? why : "?");
}

/* Only what is known. */
static void put_pulse(FILE *to, const struct pulse *p)
{
	char text[PRINT_ROOM], most[PRINT_ROOM];

	fprintf(to, "%-12s%s", "so far", p->stage);
	if (p->elapsed_ms >= 0)
		fprintf(to, ", %s", print_duration(p->elapsed_ms, text));
	if (p->cpu_ms >= 0)
		fprintf(to, ", cpu %s", print_duration(p->cpu_ms, text));
	if (p->cpu_permille >= 0)
		fprintf(to, " (%lld%% now)", (long long)((p->cpu_permille + 5) / 10));
	if (p->memory_bytes >= 0)
		fprintf(to, ", memory %s, at most %s", print_size(p->memory_bytes, text),
			print_size(p->memory_peak_bytes, most));
	if (p->pids >= 0)
		fprintf(to, ", %lld %s", (long long)p->pids, p->pids == 1 ? "process" : "processes");
	fputs("\n", to);
}

static void put_live(FILE *to, const struct look *look, const struct subject *s)
{
	char room[PRINT_ROOM];
	_cleanup_free_ char *path = print_escape(s->live.path);
	const char *id = s->live.id, *since = print_instant(s->live.created, room);

	const char *how = s->live.kept ? "kept" : "held";

	if (s->live.held && !s->live.created)
		fprintf(to, "%s has a workspace that is %s: %s\n", id, how, path);
	else if (s->live.held)
		fprintf(to, "%s has a workspace that is %s since %s: %s\n", id, how, since, path);
	else if (s->live.alive) {
		fprintf(to, "%s%s attempt %d is running%s since %s: fumehood logs -f %s\n",
			print_style(look->colour, STYLE_YELLOW), id, s->live.attempt,
			print_style(look->colour, STYLE_RESET), since, id);
		if (s->live.has_pulse)
			put_pulse(to, &s->live.pulse);
	} else if (s->live.pending)
		put_pending(to, look, s);
	else
		fprintf(to,
			"%s attempt %d of %s was left by a supervisor that died: fumehood gc finishes it\n",
			id, s->live.attempt, since);
}

static void put_after(FILE *to, char *const *after)
{
	fprintf(to, "%-12s", "waits for");
	for (size_t i = 0; after[i]; i++)
		fprintf(to, "%s%s", i ? ", " : "", after[i]);
	fprintf(to, "\n");
}

static void put_queued(FILE *to, const struct look *look, const char *id, const struct queue_view *v)
{
	const struct job *j = &v->job;
	_cleanup_free_ char *submitter = print_escape(j->submitter), *worker = print_escape(v->worker);
	_cleanup_free_ char *owner = print_escape(j->owner);
	_cleanup_free_ char *reason = v->reason ? print_escape(v->reason) : NULL;
	char since[PRINT_ROOM], due[PRINT_ROOM];

	fprintf(to, "%s is %s%s%s since %s\n", id, print_style(look->colour, STYLE_YELLOW),
		job_state_name(v->state), print_style(look->colour, STYLE_RESET),
		print_instant(v->submitted, since));
	fprintf(to, "%-12s%s\n", "owner", owner);
	fprintf(to, "%-12s%s, priority %d\n", "submitter", submitter, j->priority);
	if (j->after && j->after[0])
		put_after(to, j->after);
	if (v->due)
		fprintf(to, "%-12s%s\n", "not before", print_instant(v->due, due));
	if (j->tries > 0)
		fprintf(to, "%-12s%d of %d\n", "tried again", j->tries, j->retries);
	if (v->state == JOB_RUNNING)
		fprintf(to, "%-12s%s%s\n", "worker", worker,
			v->cancelling ? ", which is told to end it" : "");
	if (v->engine)
		view_engine_line(to, v->engine);
	if (v->has_pulse)
		put_pulse(to, &v->pulse);
	if (reason)
		fprintf(to, "%-12s%s\n", "reason", reason);
}

/* What was asked, for one that has no attempt yet. */
static int put_request(FILE *to, const struct look *look, const struct queue_view *v, struct error *err)
{
	const struct inputs *in = &v->job.inputs;

	for (size_t i = 0; i < in->count; i++) {
		_cleanup_free_ char *path = print_escape(in->list[i].path);
		char size[PRINT_ROOM];

		fprintf(to, "%-12s%s, %s\n", i ? "" : "inputs", path,
			print_size((int64_t)in->list[i].size, size));
	}
	fprintf(to, "%-12s", "request");
	return view_json(to, look, v->job.request, err);
}

int view_page(FILE *to, const struct look *look, const struct subject *s, struct error *err)
{
	if (s->is_live)
		put_live(to, look, s);
	if (s->held.n_steps) {
		if (view_steps(to, look, &s->held, err) < 0)
			return -1;
		fprintf(to, "  fumehood commit %s ends the attempt, and records them%s\n", s->live.id,
			s->in_ledger ? "\n" : "");
	}
	if (s->queue.found && (!s->in_ledger || s->queue.state != JOB_FINISHED))
		put_queued(to, look, s->attempt.id, &s->queue);
	if (s->queue.found && !s->in_ledger)
		return put_request(to, look, &s->queue, err);
	return s->in_ledger ? view_attempt(to, look, &s->attempt, s->attempts, err) : 0;
}
