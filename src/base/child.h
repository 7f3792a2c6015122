/*
 * Another program, asked for something: what it says, and how it ends, within a deadline. Not for analyses: it runs with our rights,
 * and is one that the host's owner has installed.
 *
 * It gets exactly the environment that it is given, a process group of its own (a Ctrl-C is for us), no signal blocked or ignored, and
 * none of our descriptors. One that is not done in time is killed; what it has set going by then may be going on.
 */
#ifndef BASE_CHILD_H
#define BASE_CHILD_H

#include <stdint.h>

#include "buffer.h"
#include "error.h"

struct child_order {
	const char *path; /* of the program: not searched for */
	const char *const *argv;
	const char *const *env;
	const char *input; /* its stdin; NULL: empty */
	size_t input_size;
	bool reads_fd; /* instead of input: this file, from its beginning */
	int input_fd;
	uint64_t timeout_ns;
	size_t output_max; /* of each stream; what comes after it is dropped, and is_cut says so */
};

struct child_end {
	int status; /* its exit status, or 128 and the signal that ended it */
	bool is_late;
	bool is_cut;
	struct buffer out, err;
};
void child_end_done(struct child_end *e);
#define _cleanup_child_ _cleanup_(child_end_done)

/* 0 with ret filled, however it ended. Negative: it could not be started. Blocks. */
int child_run(const struct child_order *o, struct child_end *ret, struct error *err);

#endif
