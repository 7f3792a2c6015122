/*
 * The kill sweeps over what is kept: SIGKILL at the k-th call of a command in a kept workspace, and at the k-th call of the next
 * attempt, for which it moves aside. In both it is still kept, and can be opened, afterwards.
 */
#include "fault.h"
#include "sweep.h"

#include <stdio.h>

static void keep(const struct ground *g, const char *id, struct problems *p)
{
	const char *argv[] = {g->binary, "run", id,   "--keep",		  "always",
			      "--",	 "sh",	"-c", "echo first >mark", NULL};

	command_say(g, argv, NULL, p);
}

/* Whoever died over it, it is there. */
static void look(const struct ground *g, const char *id, struct problems *p)
{
	const char *argv[] = {g->binary, "shell", id, "--attempt", "1", "--", "cat", "mark", NULL};

	command_say(g, argv, "first", p);
}

static void clean(const struct ground *g, const char *id, bool init_noted, struct problems *p)
{
	const char *argv[] = {g->binary, "workspace", "cleanup", id, NULL};

	command_say(g, argv, NULL, p);
	recover(g, p);
	remains_check(g, init_noted, p);
}

static bool step(struct ground *g, const struct options *o, const char *const *argv, const char *id, int k)
{
	struct problems p = {0};
	struct sight sight;
	struct tracee t;
	char call[600];
	bool there;

	ground_reset_ledger(g, o->fresh);
	keep(g, id, &p);
	there = tracee_to(&t, g, argv, k);
	sight_take(g, id, t.gone, &sight);
	tracee_end(&t, there, call, sizeof call);
	if (k % 2)
		recover(g, &p);
	look(g, id, &p);
	clean(g, id, sight.init_lives, &p);
	step_report(&p, "%s: '%s' killed at call %d: %s", id, argv[1], k, call);
	return there;
}

static bool shell_step(struct ground *g, const struct options *o, int k)
{
	char id[64];
	const char *argv[] = {g->binary, "shell", id, "--", "true", NULL};

	snprintf(id, sizeof id, "%s-%d", g->tag, k);
	return step(g, o, argv, id, k);
}

static bool aside_step(struct ground *g, const struct options *o, int k)
{
	char id[64];
	const char *argv[] = {g->binary, "run", id, "--again", "--keep", "always", "--", "true", NULL};

	snprintf(id, sizeof id, "%s-%d", g->tag, k);
	return step(g, o, argv, id, k);
}

static void kill_shell_work(struct ground *g, const struct options *o, int index)
{
	calls_work(g, o, index, shell_step);
}

static void kill_aside_work(struct ground *g, const struct options *o, int index)
{
	calls_work(g, o, index, aside_step);
}

static void summary(const struct options *o UNUSED)
{
	printf("killed at %d of %d calls after main, what was kept could be opened\n", totals->steps,
	       totals->calls);
}

const struct mode mode_kill_shell = {"kill-shell", "20s", kill_shell_work, summary};
const struct mode mode_kill_aside = {"kill-aside", "20s", kill_aside_work, summary};
