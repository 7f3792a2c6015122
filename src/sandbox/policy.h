/*
 * How the system call policy is written down (policy.c), for the program that turns it into BPF at build time
 * (filter_compile.c).
 */
#ifndef SANDBOX_POLICY_H
#define SANDBOX_POLICY_H

#include <linux/seccomp.h>
#include <stdint.h>

#define ALLOW	  SECCOMP_RET_ALLOW
#define REFUSE(e) (SECCOMP_RET_ERRNO | (e))
#define PRETEND	  REFUSE(0) /* it says that it was done, and does nothing */
/* Refused, and nobody need hear of it: programs ask and go on without. So is whatever "does not exist" (ENOSYS). */
#define POLICY_USUAL 0x8000U
#define USUAL(e)     (REFUSE(e) | POLICY_USUAL)

#define UPPER(arg) ((arg) + 6)

/* arg & mask == value. UPPER(arg) is the upper half. */
struct policy_check {
	int arg;
	uint32_t mask, value;
};

/* If all its checks hold, the action. The first clause that holds decides; a clause without checks always holds. */
struct clause {
	uint32_t action;
	int n;
	struct policy_check checks[4];
};

/* Numbers of which an argument may be any: allowed. */
struct policy_list {
	int arg;
	const uint32_t *numbers; /* the last is 0 */
};

struct policy_row {
	const char *calls; /* names; "name:number" for what is newer than libseccomp; below 424 x86_64's */
	const char *reason;
	uint32_t action;
	struct clause clauses[12]; /* before `action`; the first with n = -1 ends them */
	struct policy_list any;	   /* after the clauses, before `action`; numbers NULL: none */
};

#define END                             \
	{                               \
		0, -1,                  \
		{                       \
			{               \
				0, 0, 0 \
			}               \
		}                       \
	}
#define INT(arg, value)                 \
	{                               \
		arg, 0xffffffffU, value \
	}

extern const struct policy_row policy[];
extern const unsigned policy_rows;
/* policy_bare.c: in place of what policy[] says of the same calls, where there are no namespaces. */
extern const struct policy_row policy_bare[];
extern const unsigned policy_bare_rows;
extern const uint32_t policy_questions[]; /* what an ioctl may ask */
extern const char policy_watched[];	  /* names */

#endif
