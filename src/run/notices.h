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
#include "outside.h"
#include "plan.h"
#include "sandbox.h"

struct notices {
	const struct plan *plan;
	const char *
		directory; /* what relative paths of the request are relative to; NULL: not to be looked into */
	bool looks_outside;
	struct denials *denials;
	int root_fd;
	struct outside outside; /* still to be looked for */
	int blind_errno;	/* its memory could not be read */
};

void notices_init(struct notices *x);
void notices_done(struct notices *x);
/* arg is the struct. */
void notices_on(void *arg, const struct notice *n);
/* The command has ended: what is missing is looked for outside, with these rights (NULL: ours), and all are put in order. What
 * could not be done is a warning. */
void notices_finish(struct notices *x, const struct identity *who, struct receipt *receipt);

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
ssize_t notice_path(struct notices *x, const struct notice *n, int directory_arg, int path_arg, char *out,
		    size_t room);
/* Is it there under the hood? *ret_mode; -errno. */
int notices_look(struct notices *x, const struct notice *n, const char *path, mode_t *ret_mode);
/* operation: of the filter's the system call, else "read", "write", "execute", "connect". */
void notices_add(struct notices *x, const char *layer, const char *operation, const char *path,
		 const char *target, int errnum, const char *hint_format, ...) PRINTF_LIKE(7, 8);

/* One that was found. target NULL: none. */
void notices_add_found(struct notices *x, const char *layer, const struct outside_path *p, const char *target,
		       const char *hint_format, ...) PRINTF_LIKE(5, 6);

/* What the child finds of a path (arg is the struct notices), and what is told of it then. */
enum outside_found notices_judge_path(const void *arg, const struct outside_path *p);
void notices_found_path(struct notices *x, const struct outside_path *p);
enum outside_found notices_bare_judge(const struct notices *x, const struct outside_path *p);
void notices_bare_found(struct notices *x, const struct outside_path *p);

#endif
