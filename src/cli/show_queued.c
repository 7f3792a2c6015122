/*
 * What the queue knows of an analysis: for `show`.
 */
#include <stdio.h>

#include "show.h"

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
	_cleanup_free_ char *owner = cli_escape(j->owner);
	_cleanup_free_ char *reason = v->reason ? cli_escape(v->reason) : NULL;
	char since[PRINT_ROOM], due[PRINT_ROOM];

	printf("%s is %s%s%s since %s\n", id, terminal_style(&cli->out, STYLE_YELLOW),
	       job_state_name(v->state), terminal_style(&cli->out, STYLE_RESET),
	       print_instant(v->submitted, since));
	printf("%-12s%s\n", "owner", owner);
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
