/*
 * The system call filter, compiled from policy.c's table at build time: three programs that allow and refuse the same. The first
 * refuses by itself; the second asks its listener about what it refuses, so that somebody hears of it; the third asks about some
 * calls that it allows as well.
 */
#ifndef SANDBOX_FILTER_H
#define SANDBOX_FILTER_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>

enum filter_kind { FILTER_SILENT, FILTER_TELL, FILTER_EXPLAIN, FILTER_KINDS };
enum { FILTER_CALLS = 1024 };

struct filter {
	const struct sock_filter *code;
	unsigned short length;
};
extern const struct filter filters[FILTER_KINDS];
extern const struct filter filters_bare[FILTER_KINDS]; /* without namespaces: policy_bare.c */

/* What the kernel would do: SECCOMP_RET_*. */
uint32_t filter_judge(const struct filter *f, const struct seccomp_data *data);

/* What a call is named; NULL: no row has it. */
extern const char *const filter_names[FILTER_CALLS], *const filter_names_bare[FILTER_CALLS];

#endif
