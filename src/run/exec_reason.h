/*
 * Why a command could not be executed, and what to do about it: found by looking at the file that was to be executed, where the
 * analysis would have seen it. It is opened beneath the workspace, or where the plan shows it; its first bytes are all that is
 * read, and what they name is only asked for, never opened. Never from what somebody printed.
 */
#ifndef RUN_EXEC_REASON_H
#define RUN_EXEC_REASON_H

#include "buffer.h"
#include "plan.h"

struct exec_failure {
	const struct plan *plan;
	int workspace;	    /* its descriptor; -1: it cannot be looked at */
	bool looks_outside; /* what lies beside it in the caller's directory is ours to know */
	int errnum;	    /* of the exec; 0: it was executed */
	int exit_code;	    /* then */
};

/* "cannot execute './fit.sh': …": what failed, why, what helps. */
void exec_reason(const struct exec_failure *f, struct buffer *b);
/* It was executed, and its interpreter has not found what the script names, or a shell has stumbled over its line ends: half
 * a sentence, behind "; "; or nothing. */
void exec_hint(const struct exec_failure *f, struct buffer *b);

#endif
