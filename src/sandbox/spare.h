/*
 * A spare: an init that is nobody's yet. Its namespaces are made, and of its root what every analysis on this host has; it waits for
 * a spec. It is for one analysis, and is never given back: nothing of an earlier one can be in it.
 *
 * likeness_take says what an analysis wants, spare_make makes one by such a spec, spare_hear() tells when it is ready. Nothing of it
 * outlives the process that made it: there is nothing to be put on record.
 *
 * How old may it be? What is shown of the host is compared when it is used: the plan, which was made a moment ago, says which file
 * lies where, and what is in those that are copied. Overlays are empty until somebody looks into them. What was mounted or
 * unmounted since is not compared: who keeps spares throws them away then (stock.h).
 */
#ifndef SANDBOX_SPARE_H
#define SANDBOX_SPARE_H

#include "buffer.h"
#include "sandbox.h"
#include "spec.h"

/* What a process gets from the thread that makes it, and keeps under the hood. All of it is compared. */
struct surroundings;

/* What a spare is like: two that are the same serve the same analyses. */
struct likeness {
	struct buffer spec;
	struct surroundings *around;
};
/* Of this thread, now. ERROR_REFUSED: for this plan there can be none. */
int likeness_take(const struct plan *plan, struct likeness *ret, struct error *err);
bool likeness_is_same(const struct likeness *a, const struct likeness *b);
void likeness_done(struct likeness *l);
#define _cleanup_likeness_ _cleanup_(likeness_done)

/* Older ones are not used: so long what the host shows may differ from what was compared. */
#define SPARE_AGE_MAX_NS NSEC_PER_SEC

struct spare {
	struct spare *next; /* the stock's */
	struct likeness like;
	struct sandbox *sandbox;
	uint64_t born; /* clock_now() */
	bool is_ready;
};
/* spec is the spare's from then on. Around it is what is around this thread. */
int spare_make(struct buffer *spec, struct spare **ret, struct error *err);
/* Reads what it has to say, when its report_fd is readable: is it ready now? Negative: it never will be. */
int spare_hear(struct spare *s);
struct spare *spare_free(struct spare *s);
DEFINE_CLEANUP(struct spare *, spare_free);

/* One for an analysis that is on its way: it raises what every analysis has while its workspace is still being made. */
int spare_begin(const struct plan *plan, struct spare **ret, struct error *err);
/* Its init, once it is ready; the caller's. NULL: it is not like that, too old, or will never be ready: as if there were none. */
struct sandbox *spare_await(struct spare *s, const struct likeness *like);

/* It is somebody's from now on. descriptors as init_launch()'s; those that are not the supervisor's own. */
int spare_hand_over(const struct sandbox *s, const int descriptors[INIT_FD_END], const struct buffer *spec,
		    struct error *err);

#endif
