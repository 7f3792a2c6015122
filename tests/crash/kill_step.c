/*
 * The kill sweeps over what runs in a held workspace: SIGKILL at the k-th call of a step, after one that has succeeded; and at
 * the k-th call of the commit of two. In both the workspace is still its holder's, and what ran is recorded once.
 */
#include "fault.h"
#include "sweep.h"

#include <stdio.h>

void held_make(const struct ground *g, const char *id, struct problems *p)
{
	const char *argv[] = {g->binary, "workspace", "create", id, "--for", "1h", NULL};

	command_say(g, argv, NULL, p);
}

void held_step(const struct ground *g, const char *id, struct problems *p)
{
	const char *argv[GROUND_ARGS_MAX];

	ground_run_argv(g, id, false, argv);
	command_say(g, argv, NULL, p);
}

void held_remove(const struct ground *g, const char *id, struct problems *p)
{
	const char *argv[] = {g->binary, "workspace", "cleanup", id, NULL};

	command_say(g, argv, NULL, p);
}

/* It may have been committed already, and is told so. */
void held_commit(const struct ground *g, const char *id)
{
	const char *argv[] = {g->binary, "commit", id, NULL};

	command_say(g, argv, NULL, NULL);
}

/* ---- a step ---- */

/* Of the second: the first has succeeded, and so has whatever had not begun. */
static enum expected step_expects(const struct ground *g, const char *id, const struct sight *sight)
{
	/* On a disk of its own, which dies with it, its end alone is worth nothing. */
	if (sight->ended && !sight->own_disk)
		return EXPECT_SUCCEEDED;
	return !sight->init_noted || run_has(g, id, "step-2.json") ? EXPECT_SUCCEEDED : EXPECT_LOST;
}

static bool kill_step_step(struct ground *g, const struct options *o, int k)
{
	const char *argv[GROUND_ARGS_MAX];
	struct problems p = {0};
	char id[64], call[600];
	enum expected expected;
	struct sight sight;
	struct tracee t;
	bool there;

	ground_reset_ledger(g, o->fresh);
	snprintf(id, sizeof id, "%s-%d", g->tag, k);
	held_make(g, id, &p);
	held_step(g, id, &p);
	ground_run_argv(g, id, false, argv);
	there = tracee_to(&t, g, argv, k);
	sight_take(g, id, t.gone, &sight);
	expected = there ? step_expects(g, id, &sight) : EXPECT_SUCCEEDED;
	tracee_end(&t, there, call, sizeof call);
	if (k % 2)
		recover(g, &p);
	held_step(g, id, &p); /* the workspace is the next one's */
	if (k % 3)
		held_commit(g, id);
	held_remove(g, id, &p);
	ledger_check(g, id, expected, 0, &p);
	recover(g, &p);
	remains_check(g, sight.init_lives, &p);
	step_report(&p, "%s: a step killed at call %d: %s", id, k, call);
	return there;
}

static void kill_step_work(struct ground *g, const struct options *o, int index)
{
	calls_work(g, o, index, kill_step_step);
}

static void kill_step_summary(const struct options *o UNUSED)
{
	printf("a step killed at %d of %d calls after main, the next one ran\n", totals->steps,
	       totals->calls);
}

const struct mode mode_kill_step = {"kill-step", "20s", kill_step_work, kill_step_summary};

/* ---- the commit ---- */

static bool kill_commit_step(struct ground *g, const struct options *o, int k)
{
	char id[64], call[600];
	const char *argv[] = {g->binary, "commit", id, NULL};
	struct problems p = {0};
	struct tracee t;
	bool there;

	ground_reset_ledger(g, o->fresh);
	snprintf(id, sizeof id, "%s-%d", g->tag, k);
	held_make(g, id, &p);
	held_step(g, id, &p);
	held_step(g, id, &p);
	ground_block(g);
	there = tracee_to(&t, g, argv, k);
	tracee_end(&t, there, call, sizeof call);
	ground_unblock(g);
	if (k % 2)
		recover(g, &p);
	if (k % 3)
		held_commit(g, id);
	held_remove(g, id, &p);
	ledger_check(g, id, EXPECT_SUCCEEDED, 0, &p);
	recover(g, &p);
	remains_check(g, true, &p);
	step_report(&p, "%s: the commit of steps killed at call %d: %s", id, k, call);
	return there;
}

static void kill_commit_work(struct ground *g, const struct options *o, int index)
{
	calls_work(g, o, index, kill_commit_step);
}

static void kill_commit_summary(const struct options *o UNUSED)
{
	printf("the commit of two steps killed at %d of %d calls after main\n", totals->steps, totals->calls);
}

const struct mode mode_kill_commit = {"kill-commit", "20s", kill_commit_work, kill_commit_summary};
