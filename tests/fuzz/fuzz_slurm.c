/* The first byte chooses what Slurm's command is, the rest is what it says: what is taken is whole and fits. */
#include "fuzz.h"

#include <stdio.h>
#include <string.h>

#include "macros.h"
#include "slurm_parse.h"

static void line(const char *text)
{
	struct slurm_seen seen, again;
	char back[4 * SLURM_WORD_ROOM + SLURM_JOB_ROOM + 32];
	int n;

	if (slurm_seen_parse(text, strlen(text), &seen) < 0)
		return;
	PROMISE(*seen.job && *seen.state && seen.index >= 0 && seen.status >= 0 && seen.status <= 255);
	n = snprintf(back, sizeof back, "%s|%s|%s|%s|0|%s|", seen.job, seen.state, seen.reason, seen.node,
		     seen.name);
	PROMISE(slurm_seen_parse(back, (size_t)n, &again) == 0 && again.index == seen.index &&
		again.phase == seen.phase && strcmp(again.name, seen.name) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *text = size ? fuzz_text(data + 1, size - 1) : fuzz_text(data, 0);
	char job[SLURM_JOB_ROOM], out[64];

	switch (size ? data[0] % 4 : 0) {
	case 0:
		line(text);
		break;
	case 1:
		PROMISE(slurm_job_parse(text, job) < 0 || (*job && strspn(job, "0123456789") == strlen(job)));
		break;
	case 2:
		PROMISE(slurm_setting_parse(text, "ClusterName", out, sizeof out) < 0 || *out);
		break;
	default:
		(void)slurm_failure_parse(text, out, sizeof out);
		PROMISE(strlen(out) < sizeof out);
	}
	return 0;
}
