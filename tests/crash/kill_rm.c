/*
 * The kill sweeps over what removes and what copies: SIGKILL at the k-th call of `rm`, after which the analysis is whole or gone, its
 * neighbour is whole, and `rm` can be said again; and at the k-th call of `db backup`, which can be begun anew.
 */
#include "fault.h"
#include "sweep.h"

#include <stdio.h>

static void analyse(const struct ground *g, const char *id, struct problems *p)
{
	const char *argv[GROUND_ARGS_MAX];

	ground_run_argv(g, id, false, argv);
	command_say(g, argv, NULL, p);
}

static bool kill_at(const struct ground *g, const char *const *argv, int k, char *call, size_t room)
{
	struct tracee t;
	bool there = tracee_to(&t, g, argv, k);

	tracee_end(&t, there, call, room);
	return there;
}

/* ---- rm ---- */

static bool kill_rm_step(struct ground *g, const struct options *o, int k)
{
	char gone[64], stays[64], call[600];
	const char *rm[] = {g->binary, "rm", gone, "--json", NULL};
	const char *show[] = {g->binary, "show", gone, "--json", NULL};
	struct problems p = {0};
	bool there;

	ground_reset_ledger(g, o->fresh);
	snprintf(gone, sizeof gone, "%s-%d-gone", g->tag, k);
	snprintf(stays, sizeof stays, "%s-%d-stays", g->tag, k);
	analyse(g, gone, &p);
	analyse(g, stays, &p);
	there = kill_at(g, rm, k, call, sizeof call);
	/* Whole, or nothing of it. */
	if (command_say(g, show, NULL, NULL) == 0)
		ledger_check(g, gone, EXPECT_SUCCEEDED, 0, &p);
	if (k % 2)
		recover(g, &p);
	command_say(g, rm, NULL, NULL);
	ledger_check(g, gone, EXPECT_NOTHING, 0, &p);
	ledger_check(g, stays, EXPECT_SUCCEEDED, 0, &p);
	recover(g, &p);
	remains_check(g, true, &p);
	store_check(g, &p);
	step_report(&p, "%s: rm killed at call %d: %s", gone, k, call);
	return there;
}

static void kill_rm_work(struct ground *g, const struct options *o, int index)
{
	calls_work(g, o, index, kill_rm_step);
}

static void kill_rm_summary(const struct options *o UNUSED)
{
	printf("rm killed at %d of %d calls after main\n", totals->steps, totals->calls);
}

const struct mode mode_kill_rm = {"kill-rm", "20s", kill_rm_work, kill_rm_summary};

/* ---- db backup ---- */

static bool kill_backup_step(struct ground *g, const struct options *o, int k)
{
	char id[64], dir[512], call[600];
	const char *backup[] = {g->binary, "db", "backup", dir, "--json", NULL};
	struct problems p = {0};
	bool there;

	ground_reset_ledger(g, o->fresh);
	snprintf(id, sizeof id, "%s-%d", g->tag, k);
	snprintf(dir, sizeof dir, "%s/out/backup", g->dir);
	remove_tree(dir);
	analyse(g, id, &p);
	there = kill_at(g, backup, k, call, sizeof call);
	/* Complete, or begun anew. */
	if (there && command_say(g, backup, NULL, NULL) != 0) {
		remove_tree(dir);
		command_say(g, backup, NULL, &p);
	}
	remove_tree(dir);
	ledger_check(g, id, EXPECT_SUCCEEDED, 0, &p);
	recover(g, &p);
	remains_check(g, true, &p);
	store_check(g, &p);
	step_report(&p, "%s: db backup killed at call %d: %s", id, k, call);
	return there;
}

static void kill_backup_work(struct ground *g, const struct options *o, int index)
{
	calls_work(g, o, index, kill_backup_step);
}

static void kill_backup_summary(const struct options *o UNUSED)
{
	printf("db backup killed at %d of %d calls after main\n", totals->steps, totals->calls);
}

const struct mode mode_kill_backup = {"kill-backup", "20s", kill_backup_work, kill_backup_summary};
