#include "tracee.h"
#include "file.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

/* Longer than a healthy run takes on a busy machine, shorter than any patience of its own. */
enum { STEP_TIMEOUT_S = 25 };

/* ---- threads ---- */

static bool thread_is_ours(const struct tracee *t, pid_t thread)
{
	for (int i = 0; i < t->n_threads; i++)
		if (t->threads[i] == thread)
			return true;
	return false;
}

static void thread_add(struct tracee *t, pid_t thread)
{
	if (thread_is_ours(t, thread))
		return;
	if (t->n_threads == TRACEE_THREADS_MAX)
		give_up("it has more than %d threads", TRACEE_THREADS_MAX);
	t->threads[t->n_threads++] = thread;
}

static void thread_remove(struct tracee *t, pid_t thread)
{
	for (int i = 0; i < t->n_threads; i++)
		if (t->threads[i] == thread)
			t->threads[i] = t->threads[--t->n_threads];
}

static bool is_thread_of(pid_t pid, pid_t thread)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/task/%d", (int)pid, (int)thread);
	return access(path, F_OK) == 0;
}

static void resume(struct tracee *t, pid_t thread, int how, int signal)
{
	if (ptrace(how, thread, 0, signal) < 0 && errno != ESRCH)
		give_up("cannot resume process %d: %s", (int)thread, strerror(errno));
	if (t->stopped == thread)
		t->stopped = 0;
}

/* ---- waiting ---- */

static void on_alarm(int signal UNUSED)
{
}

/* The next event of one of its threads, or of its end; orphans that die meanwhile are reaped on the way. */
static pid_t await(struct tracee *t, int *ret_status)
{
	struct sigaction action = {.sa_handler = on_alarm};
	pid_t thread;

	sigaction(SIGALRM, &action, NULL);
	alarm(STEP_TIMEOUT_S);
	for (;;) {
		thread = waitpid(-1, ret_status, __WALL);

		if (thread < 0 && errno == EINTR) { /* the alarm: it hangs */
			t->hung = true;
			kill(t->pid, SIGKILL);
			continue;
		}
		if (thread < 0)
			give_up("lost sight of process %d: %s", (int)t->pid, strerror(errno));
		if (thread_is_ours(t, thread))
			break;
		/* The stop of a new thread can come before the news of its birth. */
		if (WIFSTOPPED(*ret_status)) {
			if (is_thread_of(t->pid, thread)) {
				thread_add(t, thread);
				break;
			}
			ptrace(PTRACE_DETACH, thread, 0, 0);
		}
	}
	alarm(0);
	return thread;
}

/* One event that is no call of interest: handled, and the thread resumed. True: it was the end. */
static bool handle(struct tracee *t, pid_t thread, int status, int how)
{
	int signal = WSTOPSIG(status), event = status >> 16;

	if (!WIFSTOPPED(status)) {
		thread_remove(t, thread);
		if (thread != t->pid)
			return false;
		t->status = status;
		t->ended = true;
		return true;
	}
	if (event == PTRACE_EVENT_CLONE) {
		unsigned long child = 0;

		ptrace(PTRACE_GETEVENTMSG, thread, 0, &child);
		if (is_thread_of(t->pid, (pid_t)child))
			thread_add(t, (pid_t)child);
		else if (waitpid((pid_t)child, NULL, __WALL) > 0) /* ECHILD: await() was faster */
			ptrace(PTRACE_DETACH, (pid_t)child, 0, 0);
	}
	resume(t, thread, how, event || signal == SIGTRAP || signal == (SIGTRAP | 0x80) ? 0 : signal);
	return false;
}

/* ---- the way to main ---- */

static uint64_t loaded_entry(pid_t pid)
{
	_cleanup_buffer_ struct buffer b = {0};
	char path[64];
	uint64_t pair[2];

	snprintf(path, sizeof path, "/proc/%d/auxv", (int)pid);
	if (file_load(AT_FDCWD, path, 65536, &b, NULL) < 0)
		give_up("cannot read '%s'", path);
	for (size_t at = 0; at + sizeof pair <= b.size; at += sizeof pair) {
		memcpy(pair, b.data + at, sizeof pair);
		if (pair[0] == AT_ENTRY)
			return pair[1];
	}
	give_up("'%s' names no entry point", path);
}

static long word_read(pid_t pid, uint64_t at)
{
	long word;

	errno = 0;
	word = ptrace(PTRACE_PEEKTEXT, pid, at, 0);
	if (errno)
		give_up("cannot read the program's text: %s", strerror(errno));
	return word;
}

static void word_write(pid_t pid, uint64_t at, long word)
{
	if (ptrace(PTRACE_POKETEXT, pid, at, word) < 0)
		give_up("cannot change the program's text: %s", strerror(errno));
}

/* Runs to the first instruction of main: a breakpoint, taken out again when it is reached. */
static void run_to_main(struct tracee *t, const char *binary)
{
	uint64_t entry, main_at = program_main(binary, &entry);
	struct user_regs_struct regs;
	int status;
	long word;

	if (!main_at)
		give_up("'%s' has no symbol main", binary);
	main_at += loaded_entry(t->pid) - entry;
	word = word_read(t->pid, main_at);
	word_write(t->pid, main_at, (long)(((unsigned long)word & ~0xffUL) | 0xcc));
	resume(t, t->pid, PTRACE_CONT, 0);
	await(t, &status);
	if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP)
		give_up("'%s' did not reach main", binary);
	word_write(t->pid, main_at, word);
	ptrace(PTRACE_GETREGS, t->pid, 0, &regs);
	regs.rip = main_at;
	ptrace(PTRACE_SETREGS, t->pid, 0, &regs);
	t->stopped = t->pid;
}

void tracee_start(struct tracee *t, const struct ground *g, const char *const *argv)
{
	long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL;
	int status;

	*t = (struct tracee){.out = memory_file(), .err = memory_file()};
	t->pid = fork();
	if (t->pid < 0)
		give_up("cannot fork: %s", strerror(errno));
	if (t->pid == 0) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		ground_exec(g, argv, t->out, t->err);
	}
	thread_add(t, t->pid);
	await(t, &status);
	if (!WIFSTOPPED(status) || ptrace(PTRACE_SETOPTIONS, t->pid, 0, options) < 0)
		give_up("cannot trace: %s", strerror(errno));
	do {
		resume(t, t->pid, PTRACE_CONT, 0);
		await(t, &status);
		if (!WIFSTOPPED(status))
			give_up("cannot execute '%s'", g->binary);
	} while (status >> 16 != PTRACE_EVENT_EXEC);
	run_to_main(t, g->binary);
}

/* ---- calls ---- */

/* At the exit of a call that was made to fail. */
static void call_return_error(struct tracee *t)
{
	struct user_regs_struct regs;

	if (ptrace(PTRACE_GETREGS, t->failing, 0, &regs) == 0) {
		if (t->call.number == SYS_brk)
			regs.rdi = t->call.args[0];
		else
			regs.rax = (unsigned long long)-(long long)t->error;
		ptrace(PTRACE_SETREGS, t->failing, 0, &regs);
	}
	t->failing = 0;
}

/* True: at the entry of a call. */
static bool call_look(struct tracee *t, pid_t thread)
{
	struct __ptrace_syscall_info info;

	if (ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof info, &info) < 0)
		return false;
	if (info.op != PTRACE_SYSCALL_INFO_ENTRY) {
		if (thread == t->failing)
			call_return_error(t);
		return false;
	}
	t->call.thread = thread;
	t->call.number = info.entry.nr;
	memcpy(t->call.args, info.entry.args, sizeof t->call.args);
	return true;
}

static bool gives_up_folder(const struct tracee *t)
{
	const struct call *c = &t->call;
	char name[256];

	return (c->number == SYS_renameat || c->number == SYS_renameat2) &&
	       strncmp(string_at(t->pid, c->args[3], name), ".gone-", 6) == 0;
}

bool tracee_next(struct tracee *t)
{
	if (t->ended)
		return false;
	if (t->stopped) {
		t->gone |= t->call.thread == t->stopped && !t->failing && gives_up_folder(t);
		resume(t, t->stopped, PTRACE_SYSCALL, 0);
	}
	for (;;) {
		int status;
		pid_t thread = await(t, &status);

		if (WIFSTOPPED(status) && WSTOPSIG(status) == (SIGTRAP | 0x80) && call_look(t, thread)) {
			t->stopped = thread;
			return true;
		}
		if (handle(t, thread, status, PTRACE_SYSCALL))
			return false;
	}
}

void tracee_fail(struct tracee *t, int error, bool make)
{
	struct user_regs_struct regs;

	if (ptrace(PTRACE_GETREGS, t->call.thread, 0, &regs) < 0)
		give_up("cannot read registers: %s", strerror(errno));
	if (t->call.number == SYS_brk)
		regs.rdi = 0; /* it tells a failure by not moving */
	else if (!make)
		regs.orig_rax = (unsigned long long)-1;
	t->failing = t->call.thread;
	t->error = error;
	if (ptrace(PTRACE_SETREGS, t->call.thread, 0, &regs) < 0)
		give_up("cannot write registers: %s", strerror(errno));
}

static void run_to_end(struct tracee *t)
{
	pid_t thread;
	int status;

	do
		thread = await(t, &status);
	while (!handle(t, thread, status, PTRACE_CONT));
}

void tracee_kill(struct tracee *t)
{
	if (t->ended)
		return;
	kill(t->pid, SIGKILL);
	run_to_end(t);
}

void tracee_finish(struct tracee *t)
{
	/* At the next call the one that was made to fail has returned; from there on it need not stop. */
	if (!tracee_next(t))
		return;
	resume(t, t->stopped, PTRACE_CONT, 0);
	run_to_end(t);
}

void tracee_done(struct tracee *t)
{
	tracee_kill(t);
	fd_close(t->out);
	fd_close(t->err);
}
