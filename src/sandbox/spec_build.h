/* Plan → blob (spec.h). Private to the sandbox. */
#ifndef SANDBOX_SPEC_BUILD_H
#define SANDBOX_SPEC_BUILD_H

#include "buffer.h"
#include "sandbox.h"

/* idmaps[i]: index of an idmap for mount i, or -1. made: so many mounts, the first, are there already. */
int spec_build(const struct plan *plan, const struct sandbox_options *o, const int *idmaps, size_t made,
	       bool own_userns, struct buffer *ret, struct error *err);
/* Of the plan only what every analysis has: for a spare. Two that are equal, byte for byte, make the same. */
int spec_build_spare(const struct plan *plan, struct buffer *ret, struct error *err);

#endif
