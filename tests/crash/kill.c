/*
 * The kill sweep: SIGKILL at the k-th call of a whole run, for every k. Then recovery, then the promises.
 */
#include "fault.h"
#include "sweep.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

enum { STORE_CHECK_EVERY = 32 };

/* The same analysis once more: it finds what the dead one left, settles that, and runs. */
static void recover_by_run(const struct ground *g, const char *id, struct problems *p)
{
	_cleanup_outcome_ struct outcome o;
	const char *argv[GROUND_ARGS_MAX];

	ground_run_argv(g, id, true, argv);
	ground_command(g, argv, &o);
	if (o.status != 0)
		problem(p, "the next run ended with status %#x: %s%s", (unsigned)o.status,
			o.err.data ? o.err.data : "", o.out.data ? o.out.data : "");
}

static void check(struct ground *g, const struct options *o, const char *id, const struct sight *sight,
		  struct problems *p)
{
	enum expected expected = sight_expects(sight);

	if (o->by_run) {
		recover_by_run(g, id, p);
		ledger_check(g, id, EXPECT_SUCCEEDED, expected == EXPECT_NOTHING ? 0 : 1, p);
	}
	recover(g, p);
	remains_check(g, sight->init_noted, p);
	if (!o->by_run)
		ledger_check(g, id, expected, 0, p);
	if (!g->db[0] || totals->steps % STORE_CHECK_EVERY == 0)
		store_check(g, p);
}

static void whole_run_check(const struct ground *g, const struct tracee *t, struct problems *p)
{
	_cleanup_buffer_ struct buffer out = {0};

	memory_file_read(t->out, &out);
	if (g->blocked ? WIFEXITED(t->status) && WEXITSTATUS(t->status) == 125 && out.data &&
				 strstr(out.data, "\"pending\": true")
		       : t->status == 0)
		return;
	problem(p, "the whole run ended with status %#x: %s", (unsigned)t->status, out.data ? out.data : "");
}

/* Where a run is killed: at call k, or, k being 0, at the first call of a stage. */
struct instant {
	int k;
	enum stage stage;
};

static bool is_there(const struct ground *g, const char *id, const struct tracee *t, int n, struct instant at)
{
	struct sight sight;

	if (at.k)
		return n == at.k;
	sight_take(g, id, t->gone, &sight);
	return sight.stage == at.stage;
}

/* False: it had ended before. */
static bool kill_step(struct ground *g, const struct options *o, struct instant at)
{
	const char *argv[GROUND_ARGS_MAX];
	struct problems p = {0};
	struct sight sight;
	struct tracee t;
	char id[64], call[600];
	bool there = false;
	int n = 0;

	ground_reset_ledger(g, o->fresh);
	ground_block(g);
	snprintf(id, sizeof id, "%s-%s%d", g->tag, at.k ? "" : "stage", at.k ? at.k : (int)at.stage);
	ground_run_argv(g, id, false, argv);
	tracee_start(&t, g, argv);
	while (!there && tracee_next(&t))
		there = is_there(g, id, &t, ++n, at);
	sight_take(g, id, t.gone, &sight);
	call_describe(&t, call, sizeof call);
	if (!there) {
		totals->calls = n;
		whole_run_check(g, &t, &p);
	} else {
		tracee_kill(&t);
		count(&totals->steps, 1);
		count(&totals->stages[sight.stage], 1);
	}
	ground_unblock(g);
	check(g, o, id, &sight, &p);
	step_report(&p, "%s: killed at call %d (%s, stage %s)", id, n, call, stage_names[sight.stage]);
	if (o->verbose)
		printf("%d\t%s\t%s\n", n, call, stage_names[sight.stage]);
	tracee_done(&t);
	return there;
}

/* Some runs have no call of their own in it. */
static bool is_expected(const struct options *o, enum stage stage)
{
	/* finished.json is there before the commit only for contents that were stored before it. */
	bool saves = !o->wish.own_disk && !o->wish.small && !o->wish.inside;

	return (saves || stage != STAGE_COMMIT) && !(o->wish.blocked && stage >= STAGE_CLEAN_UP);
}

/* A sample may step over a stage of few calls. */
static void kill_in_stages(struct ground *g, const struct options *o)
{
	for (int i = 0; i < STAGE_COUNT; i++)
		if (totals->stages[i] == 0 && is_expected(o, i))
			kill_step(g, o, (struct instant){.stage = i});
}

static void kill_work(struct ground *g, const struct options *o, int index)
{
	struct problems p = {0};
	struct instant at = {.k = o->offset + 1 + index * o->every};

	while (kill_step(g, o, at))
		at.k += o->workers * o->every;
	if (index == 0 && o->every > 1)
		kill_in_stages(g, o);
	store_check(g, &p);
	step_report(&p, "db check at the end");
}

static void kill_summary(const struct options *o)
{
	printf("killed at %d of %d calls after main%s:", totals->steps, totals->calls,
	       o->by_run ? ", recovered by the next run" : ", recovered by gc");
	for (int i = 0; i < STAGE_COUNT; i++)
		printf(" %s %d%s", stage_names[i], totals->stages[i], i + 1 < STAGE_COUNT ? "," : "\n");
	for (int i = 0; i < STAGE_COUNT; i++)
		if (totals->stages[i] == 0 && is_expected(o, i)) {
			printf("BROKEN the stage '%s' was never hit\n", stage_names[i]);
			totals->broken++;
		}
}

const struct mode mode_kill = {"kill", "20s", kill_work, kill_summary};

/* ---- the same for gc ---- */

/* Leaves a dead run, as soon as it has this file. */
static void run_leave(struct ground *g, const char *id, const char *file)
{
	const char *argv[GROUND_ARGS_MAX];
	struct tracee t;

	ground_run_argv(g, id, false, argv);
	tracee_start(&t, g, argv);
	while (tracee_next(&t))
		if (run_has(g, id, file))
			break;
	tracee_done(&t);
}

void dead_leave(struct ground *g, const char *label, struct dead *ret)
{
	snprintf(ret->finished, sizeof ret->finished, "%s-%s-finished", g->tag, label);
	snprintf(ret->ended, sizeof ret->ended, "%s-%s-ended", g->tag, label);
	snprintf(ret->begun, sizeof ret->begun, "%s-%s-begun", g->tag, label);
	run_leave(g, ret->finished, "finished.json");
	run_leave(g, ret->ended, "ended");
	run_leave(g, ret->begun, "stdout");
}

void dead_check(struct ground *g, const struct dead *d, struct problems *p)
{
	recover(g, p);
	remains_check(g, true, p);
	ledger_check(g, d->finished, EXPECT_SUCCEEDED, 0, p);
	ledger_check(g, d->ended, EXPECT_SUCCEEDED, 0, p);
	ledger_check(g, d->begun, EXPECT_LOST, 0, p);
	store_check(g, p);
}

/* Kills gc at its call k. False: it had ended before. */
static bool kill_gc_step(struct ground *g, const struct options *o, int k)
{
	const char *argv[] = {g->binary, "gc", "--json", NULL};
	struct problems p = {0};
	char label[32], call[600];
	struct tracee t;
	struct dead dead;
	int n = 0;

	ground_reset_ledger(g, o->fresh);
	snprintf(label, sizeof label, "%d", k);
	dead_leave(g, label, &dead);
	tracee_start(&t, g, argv);
	while (n < k && tracee_next(&t))
		n++;
	call_describe(&t, call, sizeof call);
	if (n < k) {
		totals->calls = n;
	} else {
		tracee_kill(&t);
		count(&totals->steps, 1);
	}
	dead_check(g, &dead, &p);
	step_report(&p, "%s: gc killed at call %d: %s", dead.finished, k, call);
	tracee_done(&t);
	return n == k;
}

static void kill_gc_work(struct ground *g, const struct options *o, int index)
{
	int k = o->offset + 1 + index * o->every;

	while (kill_gc_step(g, o, k))
		k += o->workers * o->every;
}

static void kill_gc_summary(const struct options *o UNUSED)
{
	printf("gc killed at %d of %d calls after main\n", totals->steps, totals->calls);
}

const struct mode mode_kill_gc = {"kill-gc", "20s", kill_gc_work, kill_gc_summary};
