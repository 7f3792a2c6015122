/*
 * What an attempt used, from kernel counters. -1 is "not known", which is null in JSON and never 0. The timeline
 * is bounded: when it is full, every second sample goes and the interval doubles.
 */
#ifndef MODEL_USAGE_H
#define MODEL_USAGE_H

#include <jansson.h>
#include <stdint.h>

#include "error.h"

struct usage {
	int64_t wall_ms;
	int64_t cpu_ms;
	int64_t cpu_user_ms;
	int64_t cpu_system_ms;
	int64_t memory_peak_bytes;
	int64_t memory_anon_peak_bytes; /* sampled */
	int64_t swap_peak_bytes;
	int64_t pids_peak;
	int64_t read_bytes;
	int64_t written_bytes;
	int64_t throttled_ms;
	int64_t oom_kills;
	int64_t disk_bytes; /* made: what lay in workspace and /tmp at the end, or at the most where watched */
	int64_t disk_files;
};

#define USAGE_UNKNOWN                                                  \
	{                                                              \
		-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1 \
	}

/* u and what came after it: times and bytes are sums, peaks the higher. What one of them does not know, nobody does. */
void usage_add(struct usage *u, const struct usage *more);

json_t *usage_to_json(const struct usage *u);
int usage_from_json(struct usage *u, const json_t *json, struct error *err);

enum { SAMPLES_MAX = 256 };

struct sample {
	int64_t at_ms; /* since the start */
	int64_t cpu_ms;
	int64_t memory_bytes;
	int64_t pids;
};

struct timeline {
	struct sample samples[SAMPLES_MAX];
	int count;
	int64_t interval_ms; /* 0: timeline_add has not been called yet */
};

/* Adds a sample if the interval since the last one has passed, thinning when full. */
void timeline_add(struct timeline *t, const struct sample *s);

json_t *timeline_to_json(const struct timeline *t);
int timeline_from_json(struct timeline *t, const json_t *json, struct error *err);

#endif
