/*
 * What the analysis asked the kernel for and did not get, as denials with a hint: calls that the filter refuses, always; with
 * --explain also paths that are not there under the hood, or not writable, and whom it tried to connect to.
 *
 * The kernel does not tell how an allowed call ends, so the question is asked again, about the same path below the same root, by
 * us. Whether the path exists outside is looked up only with the rights of who has asked for the analysis: not for strangers.
 *
 *   notices_init → notices_on for each (box.h) → notices_done
 */
#ifndef RUN_NOTICES_H
#define RUN_NOTICES_H

#include "denial.h"
#include "plan.h"
#include "sandbox.h"

struct notices {
	const struct plan *plan;
	const char *
		directory; /* what relative paths of the request are relative to; NULL: not to be looked into */
	bool looks_outside;
	struct denials *denials;
	int root_fd;
};

void notices_init(struct notices *x);
void notices_done(struct notices *x);
/* arg is the struct. */
void notices_on(void *arg, const struct notice *n);
/* What is about the machine more than about the analysis comes last. */
void notices_sort(struct notices *x);

/* What is said of calls whose names begin with one of the words, in a row each; the last has none. */
struct call_hint {
	const char *words, *hint;
};
const char *call_hint(const struct call_hint *hints, const char *call); /* NULL: none */

/* notices_path.c, notices_net.c, for notices.c: true if it was theirs. */
bool notices_path(struct notices *x, const struct notice *n);
bool notices_connect(struct notices *x, const struct notice *n);
/* notices_bare.c: the same of a path where there are no namespaces; what a call means that only there is refused, or NULL. */
void notices_bare_path(struct notices *x, const struct notice *n, const char *path, bool writes);
const char *notices_bare_hint(const char *call);
/* "AF_ALG" */
const char *socket_family_name(int family, char out[32]);
/* The path that an argument names, absolute as the analysis has it, without "." and ".."; its length, negative: not to be had. Only
 * notice_is_valid() tells whose memory that was. */
ssize_t notice_path(const struct notice *n, int directory_arg, int path_arg, char *out, size_t room);
/* Is it there under the hood? *ret_mode; -errno. */
int notices_look(struct notices *x, const struct notice *n, const char *path, mode_t *ret_mode);
/* operation: of the filter's the system call, else "read", "write", "execute", "connect". */
void notices_add(struct notices *x, const char *layer, const char *operation, const char *path,
		 const char *target, int errnum, const char *hint_format, ...) PRINTF_LIKE(7, 8);

#endif
