/*
 * One captured stream: the first bytes and the last are kept, what lies between is only counted. The bytes go to a file
 * as they come (runs/{id}/stdout), so that they survive a crash and `logs -f` can read them: the head first, then a
 * ring for the tail. Never kills, never blocks the analysis.
 */
#ifndef SUPERVISE_CAPTURE_H
#define SUPERVISE_CAPTURE_H

#include <stdint.h>

#include "attempt.h"
#include "error.h"

struct capture {
	int fd;		/* the file; not owned */
	uint64_t head;	/* bytes kept from the start */
	uint64_t tail;	/* and from the end */
	uint64_t total; /* bytes seen */
	int write_errno; /* the first write that failed: nothing more is kept, and it is no failure of the analysis */
	uint64_t written; /* bytes, before that */
};

void capture_init(struct capture *c, int fd, uint64_t max_bytes);
void capture_add(struct capture *c, const char *data, size_t size);
/* Reads back what was kept. */
int capture_finish(const struct capture *c, struct captured *ret, struct error *err);
/* The same for a file that a dead supervisor left: its size is all that is known. */
int capture_recover(int fd, uint64_t max_bytes, struct captured *ret, struct error *err);

#endif
