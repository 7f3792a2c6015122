/*
 * How init comes to be: a process of its own in new namespaces, executed from memory, with its descriptors in their places
 * (spec.h) and two channels to the supervisor. It has done nothing yet but read its spec, and waits for a word.
 */
#ifndef SANDBOX_LAUNCH_H
#define SANDBOX_LAUNCH_H

#include "buffer.h"
#include "sandbox.h"
#include "spec.h"

struct sandbox *sandbox_new(bool bare); /* with nothing in it yet; NULL if memory is out */

/* source[i] is the descriptor that becomes init's number i, -1: none; the channels', the spec's and the supervisor's own are
 * filled in. userns: a user namespace owns the others; s->bare: there are none. Fills s's pid, pidfd and channels: its death is
 * the end of what is read there. */
int init_launch(struct sandbox *s, bool userns, int source[INIT_FD_END], const struct buffer *spec,
		struct error *err);
int init_tell(const struct sandbox *s, char byte); /* CONTROL_*; -errno */
/* Init waits for a word, and we for it: one that did not leave must not become a wait for nothing. */
int init_let_go(const struct sandbox *s, struct error *err);

#endif
