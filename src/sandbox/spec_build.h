/* Plan → blob (spec.h). Private to the sandbox. */
#ifndef SANDBOX_SPEC_BUILD_H
#define SANDBOX_SPEC_BUILD_H

#include "buffer.h"
#include "sandbox.h"

/* idmaps[i]: index of an idmap for mount i, or -1. */
int spec_build(const struct plan *plan, const struct sandbox_options *o, const int *idmaps, bool own_userns,
	       struct buffer *ret, struct error *err);

#endif
