/*
 * What the parts of an examination share; private to `doctor`.
 */
#ifndef RUN_DOCTOR_H
#define RUN_DOCTOR_H

#include "private.h"
#include "probe.h"
#include "receipt.h"

struct examination {
	struct hood *hood;
	doctor_fn fn;
	void *arg;
	bool bare; /* the site's own strength is landlock: it needs no namespaces */
	bool failed;
};

void examine_say(struct examination *x, const char *name, bool required, bool ok, const char *remedy,
		 const char *format, ...) PRINTF_LIKE(6, 7);

/* Each layer by itself, in a child. What was raised around a command is in its receipt, and is not told twice. */
void examine_host(struct examination *x, const struct probe_identity *who, const struct receipt *receipt);

/* Where workspaces and state are kept: can something be made there? */
void examine_grounds(struct examination *x, const struct site *site);

#endif
