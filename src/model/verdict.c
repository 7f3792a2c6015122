#include "verdict.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

enum {
	STATUS_OUTPUT_MISSING = 122,
	STATUS_POST_PROCESS_FAILED = 123,
	STATUS_TIMED_OUT = 124,
	STATUS_CANNOT_EXECUTE = 126,
	STATUS_NOT_FOUND = 127,
	STATUS_SIGNAL = 128,
	STATUS_KILLED = STATUS_SIGNAL + SIGKILL,
};

#define VERDICT_NAME(NAME, name) #name,
static const char *const names[] = {VERDICTS(VERDICT_NAME)};

const char *verdict_name(enum verdict v)
{
	return names[v];
}

int verdict_parse(const char *name, enum verdict *ret)
{
	for (int i = 0; i < VERDICT_COUNT; i++)
		if (strcmp(names[i], name) == 0) {
			*ret = (enum verdict)i;
			return 0;
		}
	return -EINVAL;
}

/* A limit that was reached decides only because the analysis then failed. Memory comes first: the kernel killed,
 * whereas a full disk and a refused fork are errors that a program sees and may live with. */
static enum verdict decide_failure(const struct evidence *e)
{
	if (e->oom_kills > 0)
		return VERDICT_OUT_OF_MEMORY;
	if (e->disk_hits > 0)
		return VERDICT_OUT_OF_DISK;
	if (e->pids_hits > 0)
		return VERDICT_OUT_OF_PROCESSES;
	return e->started ? VERDICT_FAILED : VERDICT_REFUSED;
}

enum verdict verdict_decide(const struct evidence *e)
{
	if (!e->started && e->exec_errno)
		return VERDICT_FAILED;
	/* What ended it: exit status 0 after our SIGTERM changes nothing. */
	if (e->wall_reached || e->cpu_reached)
		return VERDICT_TIMED_OUT;
	if (e->disk_killed)
		return VERDICT_OUT_OF_DISK;
	if (e->cancel_signal)
		return VERDICT_CANCELLED;
	if (e->unwatched)
		return VERDICT_LOST;
	if (!e->started || e->exit_code != 0 || e->signal)
		return decide_failure(e);
	if (e->output_missing)
		return VERDICT_OUTPUT_MISSING;
	if (e->post_process_failed)
		return VERDICT_POST_PROCESS_FAILED;
	return VERDICT_SUCCEEDED;
}

/* The analysis's own exit status as a shell would show it; 0 if it left none. */
static int own_status(const struct evidence *e)
{
	if (!e->started && e->exec_errno)
		return e->exec_errno == ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_EXECUTE;
	if (e->signal)
		return STATUS_SIGNAL + e->signal;
	return e->exit_code > 0 ? e->exit_code : 0;
}

int verdict_exit_status(enum verdict v, const struct evidence *e)
{
	switch (v) {
	case VERDICT_SUCCEEDED:
		return 0;
	case VERDICT_FAILED:
	case VERDICT_OUT_OF_DISK:
	case VERDICT_OUT_OF_PROCESSES:
		return own_status(e) ? own_status(e) : STATUS_KILLED;
	case VERDICT_TIMED_OUT:
		return STATUS_TIMED_OUT;
	case VERDICT_OUTPUT_MISSING:
		return STATUS_OUTPUT_MISSING;
	case VERDICT_POST_PROCESS_FAILED:
		return STATUS_POST_PROCESS_FAILED;
	case VERDICT_OUT_OF_MEMORY:
		return STATUS_KILLED;
	case VERDICT_CANCELLED:
		return STATUS_SIGNAL + (e->cancel_signal ? e->cancel_signal : SIGTERM);
	case VERDICT_NONE:
	case VERDICT_LOST:
	case VERDICT_REFUSED:
	case VERDICT_COUNT:
		break;
	}
	return STATUS_OURS;
}
