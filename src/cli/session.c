#include "session.h"
#include "passage.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

/* What the handlers need. There is one user, and he has one terminal. */
static struct {
	int fd, window;
	volatile bool *is_changed;
	volatile sig_atomic_t is_raw;
	struct termios before, raw;
} user = {.fd = -1, .window = -1};

static void tell_window(void)
{
	ssize_t n = write(user.window, "w", 1);

	(void)n; /* a full pipe has told enough */
}

static void on_window(int number UNUSED)
{
	int saved = errno;

	tell_window();
	errno = saved;
}

/* Stopped from outside: the terminal is somebody else's until we go on. */
static void on_stop(int number UNUSED)
{
	int saved = errno;

	if (user.is_raw)
		(void)tcsetattr(user.fd, TCSANOW, &user.before);
	raise(SIGSTOP);
	errno = saved;
}

/* In the foreground again: whoever had it meanwhile has left it as he likes. */
static void on_continue(int number UNUSED)
{
	int saved = errno;

	if (user.is_raw && tcgetpgrp(user.fd) == getpgrp()) {
		(void)tcsetattr(user.fd, TCSANOW, &user.raw);
		tell_window();
	}
	errno = saved;
}

static const struct {
	int number;
	void (*handler)(int);
} handlers[] = {{SIGWINCH, on_window}, {SIGTSTP, on_stop}, {SIGCONT, on_continue}};

static void handle(bool ours)
{
	for (size_t i = 0; i < ARRAY_SIZE(handlers); i++) {
		struct sigaction act = {.sa_handler = ours ? handlers[i].handler : SIG_DFL,
					.sa_flags = SA_RESTART};

		sigemptyset(&act.sa_mask);
		sigaction(handlers[i].number, &act, NULL);
	}
}

/* The other screen, the mouse and so on. A terminal that takes nothing is not waited for. */
static void keeper_reset(void)
{
	sigset_t alarms;
	ssize_t n;

	signal(SIGALRM, SIG_DFL);
	sigemptyset(&alarms);
	sigaddset(&alarms, SIGALRM);
	pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
	alarm(2);
	n = write(2, passage_reset, strlen(passage_reset));
	(void)n;
}

/* Waits for a byte, or for our end without one. It has nothing open but the terminal, what shows it and this pipe. */
static void keeper_main(int pipe_fd) __attribute__((noreturn));
static void keeper_main(int pipe_fd)
{
	char byte;
	ssize_t n;

	dup2(user.fd, 0);
	dup2(STDOUT_FILENO, 2);
	dup2(pipe_fd, 1);
	syscall(SYS_close_range, 3, ~0U, 0);
	do
		n = read(1, &byte, 1);
	while (n < 0 && errno == EINTR);
	if (n == 0)
		(void)tcsetattr(0, TCSANOW, &user.before);
	if (n == 0 && user.is_changed && *user.is_changed)
		keeper_reset();
	_exit(0);
}

/* With every signal blocked: SIGTTOU would stop it, and whatever ends our group must not end it first. */
static void keeper_start(struct session *s)
{
	sigset_t all, before;
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	s->keeper = fork();
	if (s->keeper == 0) {
		close(fds[1]);
		keeper_main(fds[0]);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	close(fds[0]);
	if (s->keeper < 0)
		close(fds[1]);
	s->keeper_fd = s->keeper < 0 ? -1 : fds[1];
	s->keeper = s->keeper < 0 ? 0 : s->keeper;
}

static void keeper_end(struct session *s)
{
	ssize_t n;

	if (!s->keeper)
		return;
	n = write(s->keeper_fd, "d", 1);
	(void)n;
	s->keeper_fd = fd_close(s->keeper_fd);
	while (waitpid(s->keeper, NULL, 0) < 0 && errno == EINTR)
		;
	s->keeper = 0;
}

int session_open(struct session *s, struct error *err)
{
	void *shared;
	int fds[2];

	*s = (struct session){.fd = -1, .window_fd = -1, .keeper_fd = -1};
	if (tcgetattr(STDIN_FILENO, &user.before) < 0)
		return 0;
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return error_system(err, errno, "cannot make a pipe for the terminal's size");
	s->window_fd = fds[0];
	s->fd = user.fd = STDIN_FILENO;
	user.window = fds[1];
	shared = mmap(NULL, sizeof *user.is_changed, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	/* For the life of the process: who draws may do so until its end. */
	s->is_changed = user.is_changed = shared == MAP_FAILED ? NULL : shared;
	return 0;
}

void session_enter(struct session *s)
{
	if (s->fd < 0 || user.is_raw)
		return;
	user.raw = user.before;
	cfmakeraw(&user.raw);
	keeper_start(s);
	handle(true);
	user.is_raw = tcsetattr(user.fd, TCSADRAIN, &user.raw) == 0;
	tell_window();
}

/* What was typed for the other terminal and not read there is not for the user's shell. */
void session_leave(struct session *s)
{
	if (s->fd >= 0 && user.is_raw) {
		user.is_raw = 0;
		handle(false);
		(void)tcsetattr(user.fd, TCSAFLUSH, &user.before);
	}
	keeper_end(s);
}

void session_close(struct session *s)
{
	session_leave(s);
	s->window_fd = fd_close(s->window_fd);
	user.window = fd_close(user.window);
	user.fd = s->fd = -1;
}
