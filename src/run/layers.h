/*
 * How directories and files of the host are shown: each through an overlay of this analysis alone, never bound, so that
 * sockets, FIFOs, locks and leases behind it stay out of reach.
 *
 * What is mounted below such a directory is not part of the overlay. Root lays one over each of these mounts as well. To
 * an ordinary user the kernel refuses the outer one, since it would show what a mount hides: there the directory is
 * put together from its parts, an overlay for each directory that has no mount below it, links as links, and small
 * files as copies. What cannot be shown in either way is refused in a sentence; the kernel's own refusals come later
 * (sandbox.h).
 *
 *   layers_init → layers_show for each, outer ones first → layers_done
 */
#ifndef RUN_LAYERS_H
#define RUN_LAYERS_H

#include "mountinfo.h"
#include "plan.h"

struct layers {
	struct plan *plan;
	struct mountinfo mounts;
	bool locked;   /* no overlay can be laid over a directory with mounts below it */
	size_t copied; /* bytes */
};

int layers_init(struct layers *l, struct plan *plan, struct error *err);
void layers_done(struct layers *l);
#define _cleanup_layers_ _cleanup_(layers_done)

/* source, canonical, a directory or a regular file, at target, and with whose rights it is read. */
int layers_show(struct layers *l, const char *source, const char *target, const struct reader *reader,
		struct error *err);
/* Can path, below the directory `layer`, be shown through one overlay over that, which others share? Not where something is
 * mounted on the way or below, nor where the kernel refuses an overlay over all of it. */
bool layers_can_share(const struct layers *l, const char *layer, const char *path);
/* Then so, as everybody reads it, at its own path; layer is a literal. To be called for neighbours one after the other. */
struct mount *layers_share(struct layers *l, const char *layer, const char *path);

#endif
