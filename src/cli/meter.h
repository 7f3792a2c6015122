/*
 * How far a crowd of queued analyses is, or what is copied for them: one line, drawn again and again on a terminal, a plain one now and then
 * elsewhere. And how each of them ended.
 */
#ifndef CLI_METER_H
#define CLI_METER_H

#include "cli.h"
#include "waiting.h"

struct meter {
	const struct cli *cli;
	size_t total;
	uint64_t began, said;	 /* clock_now() */
	size_t ended_before;	 /* at the first look */
	bool is_drawn, has_said; /* the cursor stands behind the line */
	char last[160];		 /* what was said last */
};

void meter_show(struct meter *m, const struct wait_counts *c);
/* A line of its own above it, on stderr. */
void meter_say(struct meter *m, const char *format, ...) PRINTF_LIKE(2, 3);
/* The same line for bytes that are on their way; only on a terminal. */
void meter_bytes(struct meter *m, const char *what, uint64_t done, uint64_t total);
void meter_end(struct meter *m);

/* cmd_wait.c: waits for all of ids with a meter; the exit status, or negative. With --json one object at the end. */
int wait_and_tell(struct cli *cli, char *const *ids, json_t *json, struct error *err);

#endif
