/*
 * What the queue knows of an analysis: for `show`.
 */
#include <stdio.h>
#include <string.h>

#include "show.h"
#include "text.h"

void queue_view_done(struct queue_view *v)
{
	if (v->found)
		job_done(&v->job);
	free(v->worker);
	free(v->reason);
}

static int take(void *arg, const struct queued *q, struct error *err)
{
	struct queue_view *v = arg;

	v->found = true;
	v->state = q->state;
	v->cancelling = q->cancelling;
	v->submitted = q->submitted;
	v->due = q->due;
	v->worker = q->worker ? strdup(q->worker) : NULL;
	v->reason = q->reason ? strdup(q->reason) : NULL;
	return (q->worker && !v->worker) || (q->reason && !v->reason) ? error_memory(err) : 0;
}

int queue_view_load(struct queue_view *v, struct ledger *l, const char *id, struct error *err)
{
	char *const ids[] = {(char *)id, NULL};
	int r;

	job_init(&v->job);
	r = ledger_queue_look(l, ids, take, v, err);
	if (r == 0 && v->found)
		r = ledger_queue_load(l, id, &v->job, err);
	return r;
}

static json_t *instant_json(int64_t at)
{
	char text[CLOCK_TEXT_SIZE];

	if (!at)
		return json_null();
	clock_format(at, text);
	return json_string(text);
}

static json_t *after_json(char *const *after)
{
	json_t *list = json_array();

	for (size_t i = 0; after && after[i]; i++)
		json_array_append_new(list, json_string(after[i]));
	return list;
}

json_t *queue_view_json(const struct queue_view *v)
{
	const struct job *j = &v->job;

	return json_pack("{s:s, s:s?, s:i, s:i, s:i, s:o, s:o, s:o, s:s?, s:s?, s:b}", "state",
			 job_state_name(v->state), "submitter", j->submitter, "priority", j->priority,
			 "retries", j->retries, "tries", j->tries, "after", after_json(j->after), "submitted",
			 instant_json(v->submitted), "due", instant_json(v->due), "worker", v->worker,
			 "reason", v->reason, "cancelling", v->cancelling);
}

static void print_after(char *const *after)
{
	printf("%-12s", "waits for");
	for (size_t i = 0; after[i]; i++)
		printf("%s%s", i ? ", " : "", after[i]);
	printf("\n");
}

void show_queued(const struct cli *cli, const char *id, const struct queue_view *v)
{
	const struct job *j = &v->job;
	_cleanup_free_ char *submitter = cli_escape(j->submitter), *worker = cli_escape(v->worker);
	_cleanup_free_ char *reason = v->reason ? cli_escape(v->reason) : NULL;
	char since[PRINT_ROOM], due[PRINT_ROOM];

	printf("%s is %s%s%s since %s\n", id, terminal_style(&cli->out, STYLE_YELLOW),
	       job_state_name(v->state), terminal_style(&cli->out, STYLE_RESET),
	       print_instant(v->submitted, since));
	printf("%-12s%s, priority %d\n", "submitter", submitter, j->priority);
	if (j->after && j->after[0])
		print_after(j->after);
	if (v->due)
		printf("%-12s%s\n", "not before", print_instant(v->due, due));
	if (j->tries > 0)
		printf("%-12s%d of %d\n", "tried again", j->tries, j->retries);
	if (v->state == JOB_RUNNING)
		printf("%-12s%s%s\n", "worker", worker, v->cancelling ? ", which is told to end it" : "");
	if (reason)
		printf("%-12s%s\n", "reason", reason);
}

int show_request(const struct cli *cli, const struct queue_view *v, struct error *err)
{
	const struct inputs *in = &v->job.inputs;

	for (size_t i = 0; i < in->count; i++) {
		_cleanup_free_ char *path = cli_escape(in->list[i].path);
		char size[PRINT_ROOM];

		printf("%-12s%s, %s\n", i ? "" : "inputs", path, print_size((int64_t)in->list[i].size, size));
	}
	printf("%-12s", "request");
	fflush(stdout);
	return cli_print_json(cli, json_incref(v->job.request), err);
}
