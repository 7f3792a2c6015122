#include "job.h"

#include <errno.h>
#include <string.h>

#include "attempt.h"
#include "clock.h"
#include "text.h"

static const char *const state_names[JOB_STATES] = {
	[JOB_WAITING] = "waiting",   [JOB_QUEUED] = "queued",	    [JOB_RUNNING] = "running",
	[JOB_FINISHED] = "finished", [JOB_CANCELLED] = "cancelled", [JOB_RESTORED] = "restored",
};

const char *job_state_name(enum job_state s)
{
	return state_names[s];
}

int job_state_parse(const char *name, enum job_state *ret)
{
	for (int i = 0; i < JOB_STATES; i++)
		if (strcmp(state_names[i], name) == 0) {
			*ret = (enum job_state)i;
			return 0;
		}
	return -EINVAL;
}

void job_init(struct job *j)
{
	*j = (struct job){.retries = JOB_RETRIES_DEFAULT};
}

void job_done(struct job *j)
{
	free(j->owner);
	free(j->submitter);
	strv_free(j->after);
	json_decref(j->request);
	json_decref(j->engine);
	strv_free(j->notes);
	free(j->unreadable);
	inputs_done(&j->inputs);
	*j = (struct job){0};
}

uint64_t job_back_off(int n)
{
	enum { FIRST_S = 1, LAST_S = 300 };
	uint64_t s = n < 0 ? FIRST_S : n > 8 ? LAST_S : (uint64_t)FIRST_S << n;

	return (s > LAST_S ? LAST_S : s) * NSEC_PER_SEC;
}
