/*
 * How long the ledger's part of the queue takes, without anything that runs.
 *
 *   claims URL COUNT CLAIMS
 *
 * Submits COUNT analyses in one transaction, then claims and finishes CLAIMS of them one after the other. Prints the
 * seconds of the submission, and the median and the 90th percentile of a claim and of a finish in microseconds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "queue.h"

static void check(int r, const struct error *err)
{
	if (r < 0) {
		fprintf(stderr, "claims: %s\n", err->message);
		exit(1);
	}
}

static int no_content(void *arg UNUSED, const struct output *o UNUSED, struct error *err)
{
	return error_set(err, ERROR_SYSTEM, "there is no content");
}

static double submit(struct ledger *l, int count)
{
	struct job *jobs = calloc((size_t)count, sizeof *jobs);
	json_t *request = json_pack("{s:[s]}", "command", "true");
	struct error err = ERROR_INIT;
	uint64_t begun;
	double seconds;

	for (int i = 0; jobs && i < count; i++) {
		job_init(&jobs[i]);
		snprintf(jobs[i].id, sizeof jobs[i].id, "bench-%08d", i);
		jobs[i].submitter = strdup(i % 2 ? "ada" : "grace");
		jobs[i].request = json_incref(request);
	}
	if (!jobs || !request)
		exit(1);
	begun = clock_now();
	check(ledger_submit(l, jobs, (size_t)count, 0, no_content, NULL, NULL, &err), &err);
	seconds = (double)(clock_now() - begun) / NSEC_PER_SEC;
	for (int i = 0; i < count; i++)
		job_done(&jobs[i]);
	free(jobs);
	json_decref(request);
	return seconds;
}

static double claim(struct ledger *l, struct job *ret)
{
	struct claim_order order = {.worker = "bench", .lease_ns = 60 * NSEC_PER_SEC};
	struct error err = ERROR_INIT;
	uint64_t begun = clock_now();
	bool full;
	size_t n;

	check(ledger_claim(l, &order, ret, 1, &n, &full, &err), &err);
	if (n != 1) {
		fprintf(stderr, "claims: nothing to claim\n");
		exit(1);
	}
	return (double)(clock_now() - begun) / NSEC_PER_USEC;
}

static double finish(struct ledger *l, const struct job *job)
{
	_cleanup_attempt_ struct attempt a;
	struct error err = ERROR_INIT;
	uint64_t begun;
	int number;

	attempt_init(&a);
	memcpy(a.id, job->id, sizeof a.id);
	memcpy(a.token, job->token, sizeof a.token);
	a.number = job->attempt;
	a.queued = true;
	a.verdict = VERDICT_SUCCEEDED;
	a.created = a.started = a.ended = clock_utc();
	begun = clock_now();
	check(ledger_commit(l, &a, no_content, NULL, &number, &err), &err);
	return (double)(clock_now() - begun) / NSEC_PER_USEC;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	int count = argc == 4 ? atoi(argv[2]) : 0, claims = argc == 4 ? atoi(argv[3]) : 0;
	double *claimed = calloc((size_t)claims + 1, sizeof *claimed),
	       *finished = calloc((size_t)claims + 1, sizeof *finished), seconds;
	struct error err = ERROR_INIT;
	struct ledger *l;

	if (count < 1 || claims < 1 || claims > count || !claimed || !finished) {
		fprintf(stderr, "usage: claims URL COUNT CLAIMS\n");
		return 1;
	}
	check(ledger_open(argv[1], LEDGER_CREATE, &l, &err), &err);
	seconds = submit(l, count);
	for (int i = 0; i < claims; i++) {
		struct job job;

		claimed[i] = claim(l, &job);
		finished[i] = finish(l, &job);
		job_done(&job);
	}
	qsort(claimed, (size_t)claims, sizeof *claimed, compare);
	qsort(finished, (size_t)claims, sizeof *finished, compare);
	printf("%.3f %.0f %.0f %.0f %.0f\n", seconds, claimed[claims / 2], claimed[claims * 9 / 10],
	       finished[claims / 2], finished[claims * 9 / 10]);
	ledger_close(l);
	free(claimed);
	free(finished);
	return 0;
}
