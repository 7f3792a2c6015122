/*
 * An analysis that did not end by itself, in a worker that is a job of a batch system: that one may have ended it, and us with it. It is asked,
 * and what it says becomes evidence. Only of what we have not ended ourselves.
 */
#include "story.h"
#include "text.h"

#include <signal.h>

static bool may_be_the_manager(const struct evidence *e)
{
	if (e->cancel_signal)
		return e->cancel_signal == CANCEL_HAND_BACK;
	if (!e->started || e->wall_reached || e->cpu_reached || e->disk_killed || e->unwatched)
		return false;
	return e->exit_code != 0 || e->signal;
}

static void believe(struct evidence *e, enum manager_said said)
{
	e->cancel_signal = 0;
	e->by_manager = true;
	switch (said) {
	case MANAGER_TIMED_OUT:
		e->wall_reached = true;
		break;
	case MANAGER_CANCELLED:
		e->cancel_signal = SIGTERM;
		break;
	case MANAGER_TAKES_BACK:
		e->cancel_signal = CANCEL_HAND_BACK;
		break;
	case MANAGER_OUT_OF_MEMORY:
		e->oom_kills = e->oom_kills > 0 ? e->oom_kills : 1;
		break;
	case MANAGER_SAYS_NOTHING:
		break;
	}
}

int story_ask_manager(struct story *s, struct error *err)
{
	const struct run_manager *m = s->hooks->manager;
	struct attempt *a = s->attempt;
	struct manager_question q = {
		.evidence = &s->evidence,
		.usage = &a->usage,
		.memory_limit = s->plan->limits.value[LIMIT_MEMORY],
	};
	char reason[MANAGER_REASON_SIZE] = "";
	enum manager_said said;

	if (!m || !may_be_the_manager(&s->evidence))
		return 0;
	cgroup_memory_around(&q.memory_around, &q.oom_kills_around);
	said = m->ask(m->arg, &q, a->engine, reason);
	if (said == MANAGER_SAYS_NOTHING)
		return 0;
	believe(&s->evidence, said);
	attempt_event(a, "manager", "%s", reason);
	return text_set(&a->reason, reason, err);
}
