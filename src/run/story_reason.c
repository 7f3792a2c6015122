/*
 * Why it ended, in one line with the evidence.
 */
#include "story.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

static int list_some(struct buffer *b, char *const *list, size_t most)
{
	char shown[128];
	int r = 0;

	for (size_t i = 0; r == 0 && list && list[i]; i++) {
		if (i == most)
			return buffer_puts(b, ", …");
		r = buffer_printf(b, "%s'%s'", i ? ", " : "",
				  text_escape_into(shown, sizeof shown, list[i], strlen(list[i])));
	}
	return r;
}

static int reason_missing(const struct story *s, struct buffer *b)
{
	const struct manifest *m = &s->attempt->manifest;
	int r = buffer_puts(b, "no output matches ");

	if (r == 0)
		r = list_some(b, m->missing, 5);
	if (r == 0)
		r = buffer_puts(b,
				m->present && m->present[0] ? "; there was " : "; there was no file at all");
	return r == 0 && m->present ? list_some(b, m->present, 8) : r;
}

/* Who was killed: the command itself, or others that it had started; the counter says how many in all. */
static int reason_memory(const struct story *s, struct buffer *b)
{
	char limit[LIMIT_TEXT_SIZE], peak[LIMIT_TEXT_SIZE], shown[128];
	const char *name = strrchr(s->plan.program, '/');
	const struct usage *u = &s->attempt->usage;
	bool itself = s->evidence.signal == SIGKILL;
	int64_t others = u->oom_kills - itself;
	int r;

	name = text_escape_into(shown, sizeof shown, name ? name + 1 : s->plan.program,
				strlen(name ? name + 1 : s->plan.program));
	limit_format(LIMIT_MEMORY, s->plan.limits.value[LIMIT_MEMORY], limit);
	if (u->memory_peak_bytes < 0)
		r = buffer_printf(b, "the limit is %s; ", limit);
	else
		r = buffer_printf(b, "it used %s of %s; ",
				  limit_format(LIMIT_MEMORY, (uint64_t)u->memory_peak_bytes, peak), limit);
	if (r == 0 && itself)
		r = buffer_printf(b, "the kernel killed '%s'", name);
	if (r == 0 && others > 0)
		r = buffer_printf(b, "%s%lld of its child processes", itself ? " and " : "the kernel killed ",
				  (long long)others);
	return r;
}

/* Bytes or files; where they were only watched, how much it came to. */
static int reason_disk(const struct story *s, struct buffer *b)
{
	const struct limits *l = &s->plan.limits;
	enum limit which =
		s->disk_was_full || s->disk_most.bytes > l->value[LIMIT_DISK] ? LIMIT_DISK : LIMIT_FILES;
	uint64_t used = which == LIMIT_DISK ? s->disk_most.bytes : s->disk_most.files;
	char limit[LIMIT_TEXT_SIZE], most[LIMIT_TEXT_SIZE];

	if (s->disk_was_hidden)
		return buffer_printf(
			b,
			"a directory of it cannot be looked into, or was moved away under every look, which "
			"counts as over the limit of %s",
			limit_format(LIMIT_DISK, l->value[LIMIT_DISK], limit));
	limit_format(which, l->value[which], limit);
	if (s->plan.own_disk)
		return buffer_printf(b, "the limit is %s%s, and it was full", limit,
				     which == LIMIT_FILES ? " files" : "");
	return buffer_printf(b, "the limit is %s%s; when it was stopped there were %s", limit,
			     which == LIMIT_FILES ? " files" : "", limit_format(which, used, most));
}

/* One line of evidence for people. */
int story_reason(const struct story *s, struct buffer *b)
{
	const struct evidence *e = &s->evidence;
	const struct limits *l = &s->plan.limits;
	char text[LIMIT_TEXT_SIZE], shown[256];

	switch (s->attempt->verdict) {
	case VERDICT_FAILED:
		if (e->exec_errno)
			return buffer_printf(
				b, "cannot execute '%s': %s%s",
				text_escape_into(shown, sizeof shown, s->plan.program,
						 strlen(s->plan.program)),
				strerror(e->exec_errno),
				e->exec_errno == ENOENT
					? " (it, or the interpreter that it names, is not there; --ro shows more)"
					: "");
		return e->signal
			       ? buffer_printf(b, "ended by signal %d (%s)", e->signal, strsignal(e->signal))
			       : buffer_printf(b, "exit status %d", e->exit_code);
	case VERDICT_TIMED_OUT:
		return e->cpu_reached
			       ? buffer_printf(b, "cpu time: the limit is %s",
					       limit_format(LIMIT_CPU_TIME, l->value[LIMIT_CPU_TIME], text))
			       : buffer_printf(b, "the limit is %s",
					       limit_format(LIMIT_WALL, l->value[LIMIT_WALL], text));
	case VERDICT_OUTPUT_MISSING:
		return reason_missing(s, b);
	case VERDICT_OUT_OF_MEMORY:
		return reason_memory(s, b);
	case VERDICT_OUT_OF_PROCESSES:
		return buffer_printf(
			b, "the limit is %s; starting processes or threads was refused (%lld times)",
			limit_format(LIMIT_PIDS, l->value[LIMIT_PIDS], text), (long long)e->pids_hits);
	case VERDICT_OUT_OF_DISK:
		return reason_disk(s, b);
	case VERDICT_POST_PROCESS_FAILED:
		return buffer_printf(b, "post-process: %s", s->post.reason);
	case VERDICT_CANCELLED:
		return buffer_printf(b, "by %s",
				     e->cancel_signal == SIGINT ? "Ctrl-C" : strsignal(e->cancel_signal));
	default:
		return 0;
	}
}
