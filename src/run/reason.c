#include "reason.h"
#include "exec_reason.h"

#include <signal.h>
#include <string.h>

#include "text.h"

/* What raises a limit that was reached; or who may, where it is the most that the site allows. */
static void say_remedy(const struct end *end, enum limit which, struct buffer *b)
{
	const struct limit_info *info = &limit_table[which];
	const struct limits *most = end->maximum;
	char text[LIMIT_TEXT_SIZE];
	bool is_bound = most && most->origin[which] != LIMIT_UNSET && most->value[which] != LIMIT_NONE;

	if (is_bound && end->plan->limits.value[which] >= most->value[which])
		buffer_printf(b, "; this site allows no more (maximum.%s in its configuration)", info->name);
	else if (end->plan->kind == PLAN_POST_PROCESS)
		buffer_printf(b, "; post_process.limits.%s in the configuration raises it", info->name);
	else if (is_bound)
		buffer_printf(b, "; %s raises it, up to %s on this site", info->option,
			      limit_format(which, most->value[which], text));
	else
		buffer_printf(b, "; %s raises it", info->option);
}

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
	say_remedy(end, LIMIT_MEMORY, b);
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
	say_remedy(end, which, b);
}

/* What a signal is sent for; where a limit sends it, the limit. */
static void say_signal(const struct end *end, int number, struct buffer *b)
{
	static const struct {
		int number;
		const char *meaning;
	} known[] = {
		{SIGSEGV, "it used memory that is not its own: a bug in it, or in a library"},
		{SIGBUS, "a file that it had mapped became shorter, or there was no room for it"},
		{SIGILL, "it has an instruction that this CPU has not: build it for this one"},
		{SIGFPE, "it divided by zero"},
		{SIGABRT, "it gave up by itself, as after a failed assertion"},
		{SIGPIPE, "what it wrote to had been closed"},
	};
	char text[LIMIT_TEXT_SIZE];

	if (number == SIGXFSZ && end->plan->limits.value[LIMIT_FILE_SIZE] != LIMIT_NONE) {
		buffer_printf(b, "; the limit of one file is %s",
			      limit_format(LIMIT_FILE_SIZE, end->plan->limits.value[LIMIT_FILE_SIZE], text));
		say_remedy(end, LIMIT_FILE_SIZE, b);
	}
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (known[i].number == number)
			buffer_printf(b, ": %s", known[i].meaning);
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
	if (e->signal) {
		buffer_printf(b, "ended by signal %d (%s)", e->signal, strsignal(e->signal));
		say_signal(end, e->signal, b);
		return;
	}
	buffer_printf(b, "exit status %d", e->exit_code);
	exec_hint(&failure, b);
}

static void reason_time(const struct end *end, struct buffer *b)
{
	enum limit which = end->evidence->cpu_reached ? LIMIT_CPU_TIME : LIMIT_WALL;
	char text[LIMIT_TEXT_SIZE];

	buffer_printf(b, "%sthe limit is %s", which == LIMIT_CPU_TIME ? "cpu time: " : "",
		      limit_format(which, end->plan->limits.value[which], text));
	say_remedy(end, which, b);
}

static void reason_processes(const struct end *end, struct buffer *b)
{
	char text[LIMIT_TEXT_SIZE];

	buffer_printf(b, "the limit is %s; starting processes or threads was refused (%lld times)",
		      limit_format(LIMIT_PIDS, end->plan->limits.value[LIMIT_PIDS], text),
		      (long long)end->evidence->pids_hits);
	say_remedy(end, LIMIT_PIDS, b);
}

void end_reason(const struct end *end, struct buffer *b)
{
	const struct evidence *e = end->evidence;

	switch (verdict_decide(e)) {
	case VERDICT_FAILED:
		reason_failed(end, b);
		break;
	case VERDICT_TIMED_OUT:
		reason_time(end, b);
		break;
	case VERDICT_OUT_OF_MEMORY:
		reason_memory(end, b);
		break;
	case VERDICT_OUT_OF_PROCESSES:
		reason_processes(end, b);
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
