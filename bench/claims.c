/*
 * How long the ledger's part of the queue takes, without anything that runs.
 *
 *   claims URL COUNT CLAIMS
 *   claims --turns TURNS URL...
 *
 * Submits COUNT analyses in one transaction, then claims and finishes CLAIMS of them one after the other. Prints the
 * seconds of the submission, and the median and the 90th percentile of a claim and of a finish in microseconds.
 *
 * With --turns, ledgers that are filled already take turns: ten more are submitted to each, then ten are claimed and
 * finished. Prints for each the median and the mean of a claim, the median of a finish, of a heartbeat and of a look for
 * leases that are over.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "queue.h"

enum { AT_A_TURN = 10 };
static const uint64_t HOST_MEMORY = 1 << 30;

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

static double submit(struct ledger *l, const char *prefix, int count)
{
	struct job *jobs = calloc((size_t)count, sizeof *jobs);
	json_t *request = json_pack("{s:[s]}", "command", "true");
	struct error err = ERROR_INIT;
	uint64_t begun;
	double seconds;

	for (int i = 0; jobs && i < count; i++) {
		job_init(&jobs[i]);
		snprintf(jobs[i].id, sizeof jobs[i].id, "%s-%08d", prefix, i);
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
	struct claim_order order = {.worker = "bench",
				    .lease_ns = 60 * NSEC_PER_SEC,
				    .memory_total = HOST_MEMORY,
				    .memory_free = HOST_MEMORY};
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

/* ---- in turns ---- */

struct party {
	struct ledger *ledger, *submits;
	struct lease_watch watch;
	double *claims, *finishes, *heartbeats, *looks;
	size_t n, turns;
};

static void no_lease(void *arg UNUSED, const char *id UNUSED, const char *token UNUSED,
		     bool cancelling UNUSED)
{
}

static void take_turn(struct party *p)
{
	struct error err = ERROR_INIT;
	char prefix[32];
	uint64_t begun;

	snprintf(prefix, sizeof prefix, "turn%zu", p->turns);
	submit(p->submits, prefix, AT_A_TURN);
	for (int i = 0; i < AT_A_TURN; i++) {
		struct job job;

		p->claims[p->n] = claim(p->ledger, &job);
		p->finishes[p->n++] = finish(p->ledger, &job);
		job_done(&job);
	}
	begun = clock_now();
	check(ledger_heartbeat(p->ledger, "bench", 60 * NSEC_PER_SEC, no_lease, NULL, &err), &err);
	p->heartbeats[p->turns] = (double)(clock_now() - begun) / NSEC_PER_USEC;
	begun = clock_now();
	check(ledger_expire(p->ledger, &p->watch, NULL, NULL, &err), &err);
	p->looks[p->turns++] = (double)(clock_now() - begun) / NSEC_PER_USEC;
}

static double median(double *list, size_t n)
{
	qsort(list, n, sizeof *list, compare);
	return list[n / 2];
}

static double mean(const double *list, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += list[i];
	return sum / (double)n;
}

static void party_open(struct party *p, const char *url, size_t turns)
{
	struct error err = ERROR_INIT;
	double *all = calloc(turns * 2 * (AT_A_TURN + 1), sizeof *all);

	if (!all)
		exit(1);
	*p = (struct party){.watch = {.worker = "bench", .lease_ns = 60 * NSEC_PER_SEC},
			    .claims = all,
			    .finishes = all + turns * AT_A_TURN,
			    .heartbeats = all + turns * 2 * AT_A_TURN,
			    .looks = all + turns * (2 * AT_A_TURN + 1)};
	check(ledger_open(url, 0, &p->ledger, &err), &err);
	check(ledger_open(url, 0, &p->submits, &err), &err);
}

static int in_turns(size_t turns, char **urls)
{
	struct party parties[16];
	size_t n = 0;

	for (; urls[n] && n < 16; n++)
		party_open(&parties[n], urls[n], turns);
	for (size_t t = 0; t < turns; t++)
		for (size_t i = 0; i < n; i++)
			take_turn(&parties[i]);
	for (size_t i = 0; i < n; i++) {
		struct party *p = &parties[i];

		printf("%.0f %.0f %.0f %.0f %.0f\n", median(p->claims, p->n), mean(p->claims, p->n),
		       median(p->finishes, p->n), median(p->heartbeats, turns), median(p->looks, turns));
		lease_watch_done(&p->watch);
		ledger_close(p->submits);
		ledger_close(p->ledger);
		free(p->claims);
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 3 && strcmp(argv[1], "--turns") == 0 && atoi(argv[2]) > 0)
		return in_turns((size_t)atoi(argv[2]), argv + 3);

	int count = argc == 4 ? atoi(argv[2]) : 0, claims = argc == 4 ? atoi(argv[3]) : 0;
	double *claimed = calloc((size_t)claims + 1, sizeof *claimed),
	       *finished = calloc((size_t)claims + 1, sizeof *finished), seconds;
	struct error err = ERROR_INIT;
	struct ledger *l;

	if (count < 1 || claims < 1 || claims > count || !claimed || !finished) {
		fprintf(stderr, "usage: claims URL COUNT CLAIMS | claims --turns TURNS URL...\n");
		return 1;
	}
	check(ledger_open(argv[1], LEDGER_CREATE, &l, &err), &err);
	seconds = submit(l, "bench", count);
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
