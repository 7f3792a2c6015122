/* Which calls can fail with which error: where it makes no sense, none is injected. */
#ifndef CRASH_FAULT_H
#define CRASH_FAULT_H

#include "tracee.h"

struct fault {
	int error;
	const char *name;
};
extern const struct fault faults[];
extern const int n_faults;

/* Can the call that t is about to make fail with it? *ret_make: it is made all the same, and then reports the error. */
bool fault_applies(const struct fault *f, const struct tracee *t, bool *ret_make);
/* Does the call that t is about to make remove a file or a directory? */
bool call_removes(const struct tracee *t);
/* The call that t is about to make, for people: its name, its descriptor, its path. */
void call_describe(const struct tracee *t, char *out, size_t room);

#endif
