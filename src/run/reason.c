#include "reason.h"
#include "exec_reason.h"

#include <signal.h>
#include <string.h>

#include "text.h"

/* Who was killed: the command itself, or others that it had started; the counter says how many in all. */
static void reason_memory(const struct end *end, struct buffer *b)
{
	char limit[LIMIT_TEXT_SIZE], peak[LIMIT_TEXT_SIZE];
	const char *name = strrchr(end->plan->program, '/');
	const struct usage *u = end->usage;
	bool itself = end->evidence->signal == SIGKILL;
	int64_t others = u->oom_kills - itself;

	name = SHOWN(128, name ? name + 1 : end->plan->program);
	limit_format(LIMIT_MEMORY, end->plan->limits.value[LIMIT_MEMORY], limit);
	if (u->memory_peak_bytes < 0)
		buffer_printf(b, "the limit is %s; ", limit);
	else
		buffer_printf(b, "it used %s of %s; ",
			      limit_format(LIMIT_MEMORY, (uint64_t)u->memory_peak_bytes, peak), limit);
	if (itself)
		buffer_printf(b, "the kernel killed '%s'", name);
	if (others > 0)
		buffer_printf(b, "%s%lld of its child processes", itself ? " and " : "the kernel killed ",
			      (long long)others);
}

/* Bytes or files; where they were only watched, how much it came to. */
static void reason_disk(const struct end *end, struct buffer *b)
{
	const struct limits *l = &end->plan->limits;
	enum limit which = end->disk->was_full || end->disk->most.bytes > l->value[LIMIT_DISK] ? LIMIT_DISK
											       : LIMIT_FILES;
	uint64_t used = which == LIMIT_DISK ? end->disk->most.bytes : end->disk->most.files;
	char limit[LIMIT_TEXT_SIZE], most[LIMIT_TEXT_SIZE];

	if (end->disk->was_hidden) {
		buffer_printf(
			b,
			"a directory of it cannot be looked into, or was moved away under every look, which "
			"counts as over the limit of %s",
			limit_format(LIMIT_DISK, l->value[LIMIT_DISK], limit));
		return;
	}
	limit_format(which, l->value[which], limit);
	buffer_printf(b, "the limit is %s%s", limit, which == LIMIT_FILES ? " files" : "");
	if (end->plan->own_disk)
		buffer_puts(b, ", and it was full");
	else
		buffer_printf(b, "; when it was stopped there were %s", limit_format(which, used, most));
}

static void reason_failed(const struct end *end, struct buffer *b)
{
	const struct evidence *e = end->evidence;
	struct exec_failure failure = {
		.plan = end->plan,
		.workspace = end->workspace,
		.looks_outside = end->looks_outside,
		.errnum = e->exec_errno,
		.exit_code = e->exit_code,
	};

	if (e->exec_errno) {
		exec_reason(&failure, b);
		return;
	}
	if (e->signal)
		buffer_printf(b, "ended by signal %d (%s)", e->signal, strsignal(e->signal));
	else
		buffer_printf(b, "exit status %d", e->exit_code);
	exec_hint(&failure, b);
}

void end_reason(const struct end *end, struct buffer *b)
{
	const struct evidence *e = end->evidence;
	const uint64_t *limit = end->plan->limits.value;
	char text[LIMIT_TEXT_SIZE];

	switch (verdict_decide(e)) {
	case VERDICT_FAILED:
		reason_failed(end, b);
		break;
	case VERDICT_TIMED_OUT:
		if (e->cpu_reached)
			buffer_printf(b, "cpu time: the limit is %s",
				      limit_format(LIMIT_CPU_TIME, limit[LIMIT_CPU_TIME], text));
		else
			buffer_printf(b, "the limit is %s",
				      limit_format(LIMIT_WALL, limit[LIMIT_WALL], text));
		break;
	case VERDICT_OUT_OF_MEMORY:
		reason_memory(end, b);
		break;
	case VERDICT_OUT_OF_PROCESSES:
		buffer_printf(b, "the limit is %s; starting processes or threads was refused (%lld times)",
			      limit_format(LIMIT_PIDS, limit[LIMIT_PIDS], text), (long long)e->pids_hits);
		break;
	case VERDICT_OUT_OF_DISK:
		reason_disk(end, b);
		break;
	case VERDICT_CANCELLED:
		buffer_printf(b, "by %s",
			      e->cancel_signal == SIGINT ? "Ctrl-C" : strsignal(e->cancel_signal));
		break;
	default:
		break;
	}
}
