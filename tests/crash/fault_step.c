/*
 * The fault sweeps over what runs in a held workspace: the k-th call that can fail does, in the second of three steps, or in the
 * commit of two. What was said is true: the workspace is still its holder's, the next step runs, and what ran is recorded once.
 */
#include "fault.h"
#include "sweep.h"

#include <stdio.h>

/* Runs argv with the k-th call that can failing. False: there was none. */
static bool fail_at(const struct ground *g, const struct options *o, const struct fault *f, int k,
		    const char *const *argv, struct tracee *t, char *call, size_t room)
{
	bool make;
	int n = 0;

	tracee_start(t, g, argv);
	while ((n < k || o->lasting) && tracee_next(t)) {
		if ((o->removals && !call_removes(t)) || !fault_applies(f, t, &make) || ++n < k)
			continue;
		if (n == k)
			call_describe(t, call, room);
		tracee_fail(t, f->error, make);
	}
	tracee_finish(t);
	if (n >= k)
		count(&totals->steps, 1);
	return n >= k;
}

typedef bool (*one_fault)(struct ground *g, const struct options *o, const struct fault *f, int k);

static void work(struct ground *g, const struct options *o, int index, one_fault one)
{
	for (int i = 0; i < n_faults; i++) {
		int k = o->offset + 1 + index * o->every;

		if (o->error && faults[i].error != o->error)
			continue;
		while (one(g, o, &faults[i], k))
			k += o->workers * o->every;
	}
}

static void summary(const struct options *o, const char *what)
{
	printf("%d faults injected into %s%s: it did all in spite of %d, and said what it could not for %d\n",
	       totals->steps, what, o->lasting ? ", each lasting" : "", totals->succeeded, totals->refused);
}

/* ---- a step ---- */

static bool fault_step_step(struct ground *g, const struct options *o, const struct fault *f, int k)
{
	const char *argv[GROUND_ARGS_MAX];
	struct problems p = {0};
	char id[64], call[600] = "";
	struct tracee t;
	bool there;

	ground_reset_ledger(g, o->fresh);
	snprintf(id, sizeof id, "%s-%s-%d", g->tag, f->name, k);
	held_make(g, id, &p);
	held_step(g, id, &p);
	ground_run_argv(g, id, false, argv);
	there = fail_at(g, o, f, k, argv, &t, call, sizeof call);
	sentence_judge(&t, "a step", &p);
	held_step(g, id, &p);
	held_commit(g, id);
	held_remove(g, id, &p);
	ledger_check(g, id, EXPECT_ENDED, 0, &p);
	recover(g, &p);
	remains_check(g, false, &p);
	step_report(&p, "%s: %s at the %d. call of a step that can: %s", id, f->name, k, call);
	tracee_done(&t);
	return there;
}

static void fault_step_work(struct ground *g, const struct options *o, int index)
{
	work(g, o, index, fault_step_step);
}

static void fault_step_summary(const struct options *o)
{
	summary(o, "steps");
}

const struct mode mode_fault_step = {"fault-step", "1s", fault_step_work, fault_step_summary};

/* ---- the commit ---- */

static bool fault_commit_step(struct ground *g, const struct options *o, const struct fault *f, int k)
{
	char id[64], call[600] = "";
	const char *argv[] = {g->binary, "commit", id, "--json", NULL};
	struct problems p = {0};
	struct tracee t;
	bool there;

	ground_reset_ledger(g, o->fresh);
	snprintf(id, sizeof id, "%s-%s-%d", g->tag, f->name, k);
	held_make(g, id, &p);
	held_step(g, id, &p);
	held_step(g, id, &p);
	there = fail_at(g, o, f, k, argv, &t, call, sizeof call);
	sentence_judge(&t, "a commit", &p);
	if (k % 2)
		held_commit(g, id);
	held_remove(g, id, &p);
	ledger_check(g, id, g->post ? EXPECT_ANY : EXPECT_SUCCEEDED, 0, &p);
	recover(g, &p);
	remains_check(g, false, &p);
	step_report(&p, "%s: %s at the %d. call of a commit that can: %s", id, f->name, k, call);
	tracee_done(&t);
	return there;
}

static void fault_commit_work(struct ground *g, const struct options *o, int index)
{
	work(g, o, index, fault_commit_step);
}

static void fault_commit_summary(const struct options *o)
{
	summary(o, "commits of steps");
}

const struct mode mode_fault_commit = {"fault-commit", "1s", fault_commit_work, fault_commit_summary};
