/*
 * The attack suite: what an analysis would do to get out, done here and now, on this host, against a throw-away
 * platform that the suite makes and removes. `fumehood doctor --attack` and the project's own tests run the same.
 *
 * attack_suite_run() raises the platform below a private directory, then takes one attack after the other: first the
 * control, the same attack by a plain child process without the hood, which must succeed, since an attack that cannot
 * fail is not a test; then under the hood. Both are judged from outside wherever there is an effect outside: the file,
 * the row, the victim. A crash of the caller ends every helper process (they watch for it) and leaves at most the
 * scratch directory.
 */
#ifndef ATTACK_ATTACK_H
#define ATTACK_ATTACK_H

#include <stdbool.h>
#include <stddef.h>

#include "error.h"

enum attack_result {
	ATTACK_HELD,	/* succeeds without the hood, not under it */
	ATTACK_ESCAPED, /* had its effect under the hood as well */
	ATTACK_NOT_HELD, /* had its effect, and the strength that was asked for says that it does not hold it */
	ATTACK_NOT_TESTABLE, /* the control shows nothing on this host, or the hood did not run it */
};

const char *attack_result_name(enum attack_result r); /* "held", "escaped", "not held", "not testable here" */

struct attack_report {
	const char *family;    /* "inputs", "services", … */
	const char *name;      /* "data-open-write" */
	const char *mechanism; /* one line, with the CVE that it imitates if there is one */
	enum attack_result result;
	const char *why; /* the evidence of an escape, why it is not testable; what stopped it, or "" */
	int milliseconds;
};

struct attack_options {
	const char *fumehood; /* the program to try: it understands `run ID [options] -- CMD` */
	const char *family;   /* only this family; NULL: all */
	const char *name;     /* only attacks whose name matches this glob; NULL: all */
	const char *strength; /* the hood's, if it is not its own choice; NULL: that */
	const char *scratch;  /* where the throw-away platform is made; NULL: /tmp */
	bool keep;	      /* leave the platform's directory for inspection */
	bool controls_only;   /* only show what works without the hood */
};

struct attack_summary {
	unsigned held, escaped, not_held, not_testable;
};

typedef void (*attack_report_fn)(void *arg, const struct attack_report *report);

/* 0 with *ret filled whether or not something escaped; negative if the platform could not be made, or if
 * SIGINT, SIGTERM or SIGHUP ended it early; its platform is gone then as well. */
int attack_suite_run(const struct attack_options *o, attack_report_fn fn, void *arg,
		     struct attack_summary *ret, struct error *err);

/* Every attack there is, without running any: result and why mean nothing. For lists and for tests. */
void attack_suite_list(attack_report_fn fn, void *arg);

#endif
