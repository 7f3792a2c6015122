/*
 * The story while the command runs: the walls are raised, it is started, and watched to its end.
 */
#include "clock.h"
#include "spare.h"
#include "story.h"

#include <string.h>

void story_begin_walls(struct story *s)
{
	struct hood *h = s->hood;
	struct error ignored = ERROR_INIT; /* if it cannot be, the plan or the start says why */

	if (s->request->strength != STRENGTH_LANDLOCK && h->config.defaults.strength != STRENGTH_LANDLOCK &&
	    scene_begin(h, &ignored) == 0)
		(void)spare_begin(h->common, &s->begun, &ignored);
}

int story_start(struct story *s, struct error *err)
{
	int r = box_start(&s->box, err);

	s->attempt->started = s->box.started_utc;
	if (r == 0 && s->box.sandbox->listener_fd >= 0 && s->attempt->denials.more < 0)
		s->attempt->denials.more = 0;
	if (r == 0 && s->hooks->started)
		s->hooks->started(s->hooks->arg, s->box.sandbox->exec_errno);
	return r;
}

/* ---- what it says, as it says it ---- */

static void pass_on(const struct story *s, int stream, const char *data, size_t size)
{
	if (size)
		s->hooks->output(s->hooks->arg, stream, data, size);
}

/* Where the caller's copy of a stream ends, so that he does not take it for the whole. */
static void pass_on_end(const struct story *s, int stream, bool in_line)
{
	char note[400], text[LIMIT_TEXT_SIZE];
	int n = snprintf(
		note, sizeof note,
		"%s[fumehood: %s is longer than log_max, %s: its head and tail are kept, see fumehood logs %s; --log-max keeps more]\n",
		in_line ? "\n" : "", stream_name(stream),
		limit_format(LIMIT_LOG_MAX, s->plan->limits.value[LIMIT_LOG_MAX], text), s->plan->id);

	pass_on(s, stream, note, (size_t)n);
}

/* Whoever captures what we pass on has no other bound. */
void story_on_output(void *arg, int stream, const char *data, size_t size)
{
	struct story *s = arg;
	struct passed_on *p = &s->passed_on[stream];
	uint64_t left = s->plan->limits.value[LIMIT_LOG_MAX] - p->bytes;

	if (p->at_end)
		return;
	if (s->plan->terminal) { /* somebody looks at it, and it waits for him */
		pass_on(s, stream, data, size);
		return;
	}
	if (size <= left) {
		pass_on(s, stream, data, size);
		p->bytes += size;
		p->in_line = data[size - 1] != '\n';
		return;
	}
	pass_on(s, stream, data, (size_t)left);
	pass_on_end(s, stream, left ? data[left - 1] != '\n' : p->in_line);
	p->at_end = true;
}

bool story_tells_progress(const struct story *s)
{
	return s->hooks->progress && s->hooks->progress_interval_ms;
}

void story_on_progress(void *arg, const struct sample *now, int64_t files)
{
	struct story *s = arg;
	struct progress p = {
		.elapsed_ms = now->at_ms,
		.cpu_ms = now->cpu_ms,
		.memory_bytes = now->memory_bytes,
		.pids = now->pids,
		.disk_files = files,
		.stage = "running",
	};

	pulse_beat(&s->pulse, NULL, now);
	if (story_tells_progress(s))
		s->hooks->progress(s->hooks->arg, &p);
}

/* ---- its end ---- */

/* At every strength what nobody has set is only watched, and that holds as it says. What somebody has set a disk of its own would
 * hold; where there is none (--strength landlock), it does not. */
static void note_watched_disk(struct story *s, enum limit which, uint64_t most)
{
	const struct limits *l = &s->plan->limits;
	bool is_set = l->origin[which] >= LIMIT_SITE;
	char name[32], text[LIMIT_TEXT_SIZE], seen[LIMIT_TEXT_SIZE];

	if (l->value[which] == LIMIT_NONE || s->plan->own_disk || (which == LIMIT_FILES && !is_set))
		return;
	snprintf(name, sizeof name, "limit %s", limit_table[which].name);
	receipt_add(
		&s->attempt->receipt, name, s->plan->strength != STRENGTH_LANDLOCK || !is_set,
		"%s, watched: what is written between two looks (0.2 to 5 s apart) may exceed it, what is deleted is seen while a process has it open; "
		"%s was seen",
		limit_format(which, l->value[which], text), limit_format(which, most, seen));
}

/* What the watch over plain directories can and cannot hold is part of the receipt. */
static void note_watched_limits(struct story *s)
{
	const struct limits *l = &s->plan->limits;
	struct receipt *receipt = &s->attempt->receipt;
	char text[LIMIT_TEXT_SIZE];
	bool bare = s->plan->strength == STRENGTH_LANDLOCK;

	if (l->value[LIMIT_WALL] != LIMIT_NONE)
		receipt_add(receipt, "limit wall", true, "%s, kept by %s",
			    limit_format(LIMIT_WALL, l->value[LIMIT_WALL], text), bare ? "init" : "PID 1");
	if (l->value[LIMIT_CPU_TIME] != LIMIT_NONE)
		receipt_add(receipt, "limit cpu_time", box_counts_cpu_time(&s->box), "%s, sampled",
			    limit_format(LIMIT_CPU_TIME, l->value[LIMIT_CPU_TIME], text));
	note_watched_disk(s, LIMIT_DISK, s->disk.most.bytes);
	note_watched_disk(s, LIMIT_FILES, s->disk.most.files);
}

static void note_logs(struct story *s)
{
	const int *errnums = s->box.result.log_errno;

	for (int i = 0; i < STREAM_COUNT; i++)
		if (errnums[i])
			receipt_warn(&s->attempt->receipt, "the log of %s is not whole: %s", stream_name(i),
				     strerror(errnums[i]));
}

/* What a failure of ours has ended is lost, and says so; of what had ended by itself nothing is missing. */
static int note_unwatched(struct story *s, struct error *err)
{
	struct attempt *a = s->attempt;
	int r;

	if (s->evidence.unwatched) {
		r = text_print(&a->reason, err, "it could not be watched any longer, and was ended: %.600s",
			       err->message);
		if (r < 0)
			return r;
		if (attempt_set_error(a, err) < 0)
			return error_memory(err);
	}
	*err = (struct error){.stage = err->stage};
	return 0;
}

/* What lies outside is looked for with the rights of who has asked, or not at all. */
static void explain(struct story *s)
{
	notices_finish(&s->notices, s->rights.is_bound ? &s->rights.who : NULL, &s->attempt->receipt);
}

int story_watch(struct story *s, struct error *err)
{
	struct supervise_result *result = &s->box.result;
	struct attempt *a = s->attempt;
	int r;

	story_tell(s, "running");
	r = box_watch(&s->box, err);
	if (s->hooks->ended)
		s->hooks->ended(s->hooks->arg);
	s->evidence = result->evidence;
	s->disk = s->box.use;
	a->usage = result->usage;
	a->timeline = TAKE_PTR(result->timeline);
	memcpy(a->logs, result->logs, sizeof a->logs);
	memset(result->logs, 0, sizeof result->logs);
	a->ended = clock_utc();
	explain(s);
	if (r < 0)
		r = note_unwatched(s, err);
	note_logs(s);
	if (r == 0)
		note_watched_limits(s);
	/* It has run: nothing of it is given up for a line in its receipt. */
	attempt_forgive(a);
	box_retire(&s->box);
	return r;
}
