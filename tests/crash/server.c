/*
 * The server sweep: while the run stands at the k-th call of its commit, something is done to the database server; the
 * run goes on as it can, the server is healed, gc follows. The verdict was on disk, so it must be in the ledger then.
 */
#include "fault.h"
#include "sweep.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

/* A server that it starts must not become our child: those are taken for remains. */
static void shell(const char *command)
{
	prctl(PR_SET_CHILD_SUBREAPER, 0);
	if (command && system(command) != 0)
		give_up("failed: %s", command);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/* False: the run had ended before call k of its commit. */
static bool server_step(struct ground *g, const struct options *o, int k)
{
	const char *argv[GROUND_ARGS_MAX];
	char id[64], call[600] = "";
	struct problems p = {0};
	struct tracee t;
	int n = 0;

	snprintf(id, sizeof id, "%s-%d", g->tag, k);
	ground_run_argv(g, id, false, argv);
	tracee_start(&t, g, argv);
	while (n < k && tracee_next(&t))
		n += n > 0 || run_has(g, id, "finished.json");
	if (n == k) {
		call_describe(&t, call, sizeof call);
		shell(o->hurt);
		tracee_finish(&t);
		shell(o->heal);
		count(&totals->steps, 1);
	} else {
		totals->calls = n;
	}
	answer_judge(g, &t, &p);
	recover(g, &p);
	remains_check(g, true, &p);
	ledger_check(g, id, EXPECT_SUCCEEDED, 0, &p);
	step_report(&p, "%s: the server was hurt at call %d after the verdict: %s", id, k, call);
	tracee_done(&t);
	return n == k;
}

static void server_work(struct ground *g, const struct options *o, int index)
{
	int k = o->offset + 1 + index * o->every;

	while (server_step(g, o, k))
		k += o->workers * o->every;
}

static void server_summary(const struct options *o UNUSED)
{
	printf("the server was hurt at %d of %d calls after the verdict: %d runs committed in spite of it, %d "
	       "were committed by gc\n",
	       totals->steps, totals->calls, totals->succeeded, totals->refused);
}

const struct mode mode_server = {"server", "1s", server_work, server_summary};
