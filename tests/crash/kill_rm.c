/*
 * The kill sweeps over what removes and what copies: SIGKILL at the k-th call of `rm`, after which the analysis is whole or gone, its
 * neighbour is whole, and `rm` can be said again; and at the k-th call of `db backup`, which can be begun anew.
 */
#include "fault.h"
#include "sweep.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static int run(const struct ground *g, const char *const *argv, bool must, struct problems *p)
{
	_cleanup_outcome_ struct outcome o;

	ground_command(g, argv, &o);
	if (must && o.status != 0)
		problem(p, "%s %s ended with status %#x: %s%s", argv[1], argv[2], (unsigned)o.status,
			o.err.data ? o.err.data : "", o.out.data ? o.out.data : "");
	return o.status;
}

static void analyse(const struct ground *g, const char *id, struct problems *p)
{
	const char *argv[GROUND_ARGS_MAX];

	ground_run_argv(g, id, false, argv);
	run(g, argv, true, p);
}

/* False: it had ended before. */
static bool kill_at(const struct ground *g, const char *const *argv, int k, char *call, size_t room)
{
	struct tracee t;
	int n = 0;

	tracee_start(&t, g, argv);
	while (n < k && tracee_next(&t))
		n++;
	call_describe(&t, call, room);
	if (n == k) {
		tracee_kill(&t);
		count(&totals->steps, 1);
	} else {
		totals->calls = n;
	}
	tracee_done(&t);
	return n == k;
}

typedef bool (*one_kill)(struct ground *g, const struct options *o, int k);

static void work(struct ground *g, const struct options *o, int index, one_kill one)
{
	int k = o->offset + 1 + index * o->every;

	while (one(g, o, k))
		k += o->workers * o->every;
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
	if (run(g, show, false, &p) == 0)
		ledger_check(g, gone, EXPECT_SUCCEEDED, 0, &p);
	if (k % 2)
		recover(g, &p);
	run(g, rm, false, &p);
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
	work(g, o, index, kill_rm_step);
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
	if (there && run(g, backup, false, &p) != 0) {
		remove_tree(dir);
		run(g, backup, true, &p);
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
	work(g, o, index, kill_backup_step);
}

static void kill_backup_summary(const struct options *o UNUSED)
{
	printf("db backup killed at %d of %d calls after main\n", totals->steps, totals->calls);
}

const struct mode mode_kill_backup = {"kill-backup", "20s", kill_backup_work, kill_backup_summary};
