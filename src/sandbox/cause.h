/*
 * Why a host does not let a layer be raised, and what to do about it: one table, of what `doctor` tells and `run` refuses with.
 */
#ifndef SANDBOX_CAUSE_H
#define SANDBOX_CAUSE_H

#include "error.h"
#include "probe.h"

struct cause {
	char what[256]; /* half a sentence: why it cannot be */
	char remedy[500];
};

/* Of probe_try()'s errno. Looks at the host again: sysctls, profiles, mounts. */
void cause_find(enum probe which, int errnum, const struct probe_identity *who, struct cause *ret);

/* Can every layer that is required be raised? Refused, with the first that cannot. */
int cause_check(const struct probe_identity *who, struct error *err);
/* After a start has failed: where a layer that is required cannot be raised, err is that instead. Returns r. */
int cause_explain(const struct probe_identity *who, int r, struct error *err);
/* The same before a start, and for little: of the calls that can be tried without a child. */
int cause_explain_call(int r, struct error *err);

#endif
