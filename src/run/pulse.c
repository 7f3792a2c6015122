#include "pulse.h"
#include "clock.h"
#include "file.h"
#include "member.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define PULSE_NAME "pulse.json"

/* One write of one size, so that nothing of an earlier one is left behind it. */
enum { PULSE_SIZE = 512, RATE_MIN_MS = 200, READ_TRIES = 3 };

static const struct pulse unknown = {.elapsed_ms = -1,
				     .cpu_ms = -1,
				     .cpu_permille = -1,
				     .memory_bytes = -1,
				     .memory_peak_bytes = -1,
				     .pids = -1,
				     .wall_limit_ms = -1,
				     .memory_limit_bytes = -1};

/* ---- writing ---- */

void pulse_init(struct pulse_writer *w)
{
	*w = (struct pulse_writer){.fd = -1, .last = unknown};
}

static int64_t limit_or_none(const struct limits *l, int id, uint64_t unit)
{
	return l->value[id] == LIMIT_NONE ? -1 : (int64_t)(l->value[id] / unit);
}

void pulse_open(struct pulse_writer *w, int run_fd, const struct limits *l)
{
	w->fd = openat(run_fd, PULSE_NAME, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (w->fd >= 0 && fchmod(w->fd, 0600) < 0) /* whatever the umask is */
		w->fd = fd_close(w->fd);
	w->last.wall_limit_ms = limit_or_none(l, LIMIT_WALL, NSEC_PER_MSEC);
	w->last.memory_limit_bytes = limit_or_none(l, LIMIT_MEMORY, 1);
}

/* Over some time at least: a process that was just started has used all of a moment. */
static void note_rate(struct pulse_writer *w, const struct sample *s)
{
	int64_t ms = s->at_ms - w->rate_at_ms;

	if (s->cpu_ms < 0 || ms < RATE_MIN_MS)
		return;
	w->last.cpu_permille = (s->cpu_ms - w->rate_cpu_ms) * 1000 / ms;
	w->rate_at_ms = s->at_ms;
	w->rate_cpu_ms = s->cpu_ms;
}

static void note_sample(struct pulse_writer *w, const struct sample *s)
{
	struct pulse *p = &w->last;

	note_rate(w, s);
	p->elapsed_ms = s->at_ms;
	p->cpu_ms = s->cpu_ms;
	p->memory_bytes = s->memory_bytes;
	p->pids = s->pids;
	if (s->memory_bytes > p->memory_peak_bytes)
		p->memory_peak_bytes = s->memory_bytes;
}

void pulse_beat(struct pulse_writer *w, const char *stage, const struct sample *sample)
{
	struct pulse *p = &w->last;
	char text[PULSE_SIZE + 1];
	int n;

	if (w->fd < 0)
		return;
	if (sample)
		note_sample(w, sample);
	if (stage) {
		snprintf(p->stage, sizeof p->stage, "%s", stage);
		/* The command is not there yet, or any more. */
		p->memory_bytes = p->pids = p->cpu_permille = -1;
	}
	n = snprintf(
		text, sizeof text,
		"{\"stage\":\"%s\",\"at\":%lld,\"elapsed_ms\":%lld,\"cpu_ms\":%lld,\"cpu_permille\":%lld,"
		"\"memory_bytes\":%lld,\"memory_peak_bytes\":%lld,\"pids\":%lld,\"wall_limit_ms\":%lld,"
		"\"memory_limit_bytes\":%lld}",
		p->stage, (long long)clock_utc(), (long long)p->elapsed_ms, (long long)p->cpu_ms,
		(long long)p->cpu_permille, (long long)p->memory_bytes, (long long)p->memory_peak_bytes,
		(long long)p->pids, (long long)p->wall_limit_ms, (long long)p->memory_limit_bytes);
	if (n < 0 || n >= PULSE_SIZE)
		return;
	memset(text + n, ' ', PULSE_SIZE - (size_t)n);
	text[PULSE_SIZE - 1] = '\n';
	(void)!pwrite(w->fd, text, PULSE_SIZE, 0);
}

void pulse_close(struct pulse_writer *w)
{
	w->fd = fd_close(w->fd);
}

/* ---- reading ---- */

json_t *pulse_to_json(const struct pulse *p)
{
#define KNOWN(n) ((n) < 0 ? json_null() : json_integer(n))
	const struct json_entry entries[] = {
		{"stage", json_string(p->stage)},
		{"at", json_instant(p->at > 0 ? p->at : 0)},
		{"elapsed_ms", KNOWN(p->elapsed_ms)},
		{"cpu_ms", KNOWN(p->cpu_ms)},
		{"cpu_percent", p->cpu_permille < 0 ? json_null() : json_real((double)p->cpu_permille / 10)},
		{"memory_bytes", KNOWN(p->memory_bytes)},
		{"memory_peak_bytes", KNOWN(p->memory_peak_bytes)},
		{"pids", KNOWN(p->pids)},
		{"wall_limit_ms", KNOWN(p->wall_limit_ms)},
		{"memory_limit_bytes", KNOWN(p->memory_limit_bytes)},
	};
#undef KNOWN

	return json_from_entries(entries, ARRAY_SIZE(entries));
}

static int64_t number_or_none(const json_t *json, const char *key)
{
	const json_t *n = json_object_get(json, key);

	return json_is_integer(n) && json_integer_value(n) >= 0 ? json_integer_value(n) : -1;
}

/* The stage is one of ours, whoever wrote it: it goes to terminals. */
static bool is_stage(const char *text)
{
	static const char *const stages[] = {"staging",		"running",    "collecting",
					     "post-processing", "committing", "cleaning up"};

	for (size_t i = 0; i < ARRAY_SIZE(stages); i++)
		if (strcmp(text, stages[i]) == 0)
			return true;
	return false;
}

int pulse_from_json(struct pulse *ret, const json_t *json)
{
	const char *stage = json_string_value(json_object_get(json, "stage"));
	const json_t *percent = json_object_get(json, "cpu_percent"), *at = json_object_get(json, "at");

	*ret = unknown;
	if (!stage || !is_stage(stage))
		return -EINVAL;
	snprintf(ret->stage, sizeof ret->stage, "%s", stage);
	ret->at = number_or_none(json, "at");
	if (json_is_string(at) && clock_parse(json_string_value(at), &ret->at) < 0)
		ret->at = -1;
	ret->elapsed_ms = number_or_none(json, "elapsed_ms");
	ret->cpu_ms = number_or_none(json, "cpu_ms");
	ret->cpu_permille = number_or_none(json, "cpu_permille");
	if (json_is_number(percent) && json_number_value(percent) >= 0 && json_number_value(percent) < 1e9)
		ret->cpu_permille = (int64_t)(json_number_value(percent) * 10 + 0.5);
	ret->memory_bytes = number_or_none(json, "memory_bytes");
	ret->memory_peak_bytes = number_or_none(json, "memory_peak_bytes");
	ret->pids = number_or_none(json, "pids");
	ret->wall_limit_ms = number_or_none(json, "wall_limit_ms");
	ret->memory_limit_bytes = number_or_none(json, "memory_limit_bytes");
	return 0;
}

int pulse_read(int run_fd, struct pulse *ret)
{
	_cleanup_close_ int fd = openat(run_fd, PULSE_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	char text[PULSE_SIZE];

	*ret = unknown;
	for (int i = 0; fd >= 0 && i < READ_TRIES; i++) {
		ssize_t n = pread(fd, text, sizeof text, 0);
		json_auto_t *json = n > 0 ? json_loadb(text, (size_t)n, JSON_REJECT_DUPLICATES, NULL) : NULL;

		if (json)
			return pulse_from_json(ret, json);
	}
	return -ENOENT;
}

int hood_pulse(struct hood *h, const char *id, struct pulse *ret)
{
	struct error ignored = ERROR_INIT;
	_cleanup_close_ int run_fd = -1;
	struct site *site = NULL;

	*ret = unknown;
	if (id_check(id, &ignored) < 0 || hood_site(h, &site, &ignored) < 0)
		return -EINVAL;
	run_fd = file_open_beneath(site->runs, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	return run_fd < 0 ? -ENOENT : pulse_read(run_fd, ret);
}
