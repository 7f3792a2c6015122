#include "usage.h"

#include <string.h>

#include "member.h"

static const struct member usage_members[] = {
	MEMBER(struct usage, wall_ms, MEMBER_COUNT),
	MEMBER(struct usage, cpu_ms, MEMBER_COUNT),
	MEMBER(struct usage, cpu_user_ms, MEMBER_COUNT),
	MEMBER(struct usage, cpu_system_ms, MEMBER_COUNT),
	MEMBER(struct usage, memory_peak_bytes, MEMBER_COUNT),
	MEMBER(struct usage, memory_anon_peak_bytes, MEMBER_COUNT),
	MEMBER(struct usage, swap_peak_bytes, MEMBER_COUNT),
	MEMBER(struct usage, pids_peak, MEMBER_COUNT),
	MEMBER(struct usage, read_bytes, MEMBER_COUNT),
	MEMBER(struct usage, written_bytes, MEMBER_COUNT),
	MEMBER(struct usage, throttled_ms, MEMBER_COUNT),
	MEMBER(struct usage, oom_kills, MEMBER_COUNT),
	MEMBER(struct usage, disk_bytes, MEMBER_COUNT),
	MEMBER(struct usage, disk_files, MEMBER_COUNT),
};

static const struct member sample_members[] = {
	MEMBER(struct sample, at_ms, MEMBER_COUNT),
	MEMBER(struct sample, cpu_ms, MEMBER_COUNT),
	MEMBER(struct sample, memory_bytes, MEMBER_COUNT),
	MEMBER(struct sample, pids, MEMBER_COUNT),
};

static int64_t sum(int64_t a, int64_t b)
{
	return a < 0 || b < 0 ? -1 : a + b;
}

static int64_t higher(int64_t a, int64_t b)
{
	return a < 0 || b < 0 ? -1 : a > b ? a : b;
}

void usage_add(struct usage *u, const struct usage *more)
{
	*u = (struct usage){
		.wall_ms = sum(u->wall_ms, more->wall_ms),
		.cpu_ms = sum(u->cpu_ms, more->cpu_ms),
		.cpu_user_ms = sum(u->cpu_user_ms, more->cpu_user_ms),
		.cpu_system_ms = sum(u->cpu_system_ms, more->cpu_system_ms),
		.memory_peak_bytes = higher(u->memory_peak_bytes, more->memory_peak_bytes),
		.memory_anon_peak_bytes = higher(u->memory_anon_peak_bytes, more->memory_anon_peak_bytes),
		.swap_peak_bytes = higher(u->swap_peak_bytes, more->swap_peak_bytes),
		.pids_peak = higher(u->pids_peak, more->pids_peak),
		.read_bytes = sum(u->read_bytes, more->read_bytes),
		.written_bytes = sum(u->written_bytes, more->written_bytes),
		.throttled_ms = sum(u->throttled_ms, more->throttled_ms),
		.oom_kills = sum(u->oom_kills, more->oom_kills),
		.disk_bytes = higher(u->disk_bytes, more->disk_bytes),
		.disk_files = higher(u->disk_files, more->disk_files),
	};
}

json_t *usage_to_json(const struct usage *u)
{
	return members_to_json(usage_members, ARRAY_SIZE(usage_members), u);
}

int usage_from_json(struct usage *u, const json_t *json, struct error *err)
{
	struct usage read = USAGE_UNKNOWN;
	int r = members_read(&read, usage_members, ARRAY_SIZE(usage_members), json, "usage", err);

	if (r == 0)
		*u = read;
	return r;
}

enum { FIRST_INTERVAL_MS = 100 };

/* Keeps every second sample, the first among them. */
static void timeline_thin(struct timeline *t)
{
	int kept = 0;

	for (int i = 0; i < t->count; i += 2)
		t->samples[kept++] = t->samples[i];
	t->count = kept;
	t->interval_ms *= 2;
}

void timeline_add(struct timeline *t, const struct sample *s)
{
	if (t->interval_ms == 0)
		t->interval_ms = FIRST_INTERVAL_MS;
	if (t->count == SAMPLES_MAX)
		timeline_thin(t);
	if (t->count && s->at_ms - t->samples[t->count - 1].at_ms < t->interval_ms)
		return;
	t->samples[t->count++] = *s;
}

static json_t *sample_to_json(const struct sample *s)
{
	return members_to_json(sample_members, ARRAY_SIZE(sample_members), s);
}

static json_t *samples_to_json(const struct timeline *t)
{
	return JSON_LIST(t->samples, t->count, sample_to_json);
}

json_t *timeline_to_json(const struct timeline *t)
{
	const struct json_entry entries[] = {
		{"interval_ms", json_integer((json_int_t)t->interval_ms)},
		{"samples", samples_to_json(t)},
	};

	return json_from_entries(entries, ARRAY_SIZE(entries));
}

int timeline_from_json(struct timeline *t, const json_t *json, struct error *err)
{
	const json_t *interval = json_object_get(json, "interval_ms"),
		     *samples = json_object_get(json, "samples");

	if (!json_is_integer(interval) || json_integer_value(interval) < 0 || !json_is_array(samples) ||
	    json_array_size(samples) > SAMPLES_MAX)
		return error_set(err, ERROR_SYSTEM, "cannot read a stored timeline: it makes no sense");
	*t = (struct timeline){.interval_ms = json_integer_value(interval)};
	for (size_t i = 0; i < json_array_size(samples); i++) {
		struct sample s = {-1, -1, -1, -1};
		int r = members_read(&s, sample_members, ARRAY_SIZE(sample_members),
				     json_array_get(samples, i), "sample", err);

		if (r < 0)
			return r;
		t->samples[t->count++] = s;
	}
	return 0;
}
