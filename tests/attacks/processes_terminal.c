/*
 * Processes: the terminal that the supervisor was started from. What is typed into it, the shell executes afterwards.
 * The suite looks for typed bytes, changed modes and a changed size once the run is over.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/tiocl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "act.h"
#include "stage.h"

/* Every descriptor that may be the terminal, until fn succeeds with one. */
static int each_terminal(const struct targets *t, int (*fn)(int fd, long number), long number)
{
	int r = -ENOTTY;
	for (int fd = 0; r && fd < 3; fd++)
		r = fn(fd, number);
	const char *names[] = {"/dev/tty", targets_text(t, "terminal"), "/proc/self/fd/0", "/proc/self/fd/2"};
	for (size_t i = 0; r && i < ARRAY_SIZE(names); i++) {
		_cleanup_close_ int fd = open(names[i], O_RDWR | O_NONBLOCK | O_NOCTTY);
		r = fd < 0 ? -errno : fn(fd, number);
	}
	return r;
}

/* The request as the kernel's ABI has it: 64 bits wide, whatever a filter compares. */
static int type_into(int fd, long request)
{
	for (const char *c = "echo spoiled\n"; *c; c++)
		if (syscall(SYS_ioctl, fd, request, c))
			return -errno;
	return 0;
}

ACT(type_text)
{
	return each_terminal(t, type_into, a->number);
}

static int open_and_type(const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDWR | O_NOCTTY | O_NONBLOCK);
	return fd < 0 ? -errno : type_into(fd, TIOCSTI);
}

ACT(type_by_path)
{
	return open_and_type(a->arg[0] == '/' ? a->arg : targets_text(t, a->arg));
}

/* Take the terminal first: a session of one's own may have it as controlling terminal. */
ACT(type_as_session_leader)
{
	_cleanup_close_ int fd = open(targets_text(t, "terminal"), O_RDWR | O_NOCTTY);
	if (fd < 0)
		return -errno;
	pid_t child = fork();
	if (child == 0) {
		setsid();
		ioctl(fd, TIOCSCTTY, 1);
		_exit(-type_into(fd, TIOCSTI));
	}
	int status = 0;
	waitpid(child, &status, 0);
	return -WEXITSTATUS(status);
}

static int silence(int fd, long unused)
{
	struct termios mode;
	(void)unused;
	if (tcgetattr(fd, &mode))
		return -errno;
	mode.c_lflag &= ~(tcflag_t)(ECHO | ICANON);
	return result(tcsetattr(fd, TCSANOW, &mode));
}

ACT(change_modes)
{
	return each_terminal(t, silence, a->number);
}

static int resize(int fd, long unused)
{
	struct winsize size = {.ws_row = 3, .ws_col = 3};
	(void)unused;
	return result(ioctl(fd, TIOCSWINSZ, &size));
}

ACT(change_size)
{
	return each_terminal(t, resize, a->number);
}

static int set_discipline(int fd, long number)
{
	int discipline = (int)number;
	return result(ioctl(fd, TIOCSETD, &discipline));
}

ACT(change_discipline)
{
	return each_terminal(t, set_discipline, a->number);
}

static int find_terminal(int fd, long unused)
{
	struct termios mode;
	(void)unused;
	return tcgetattr(fd, &mode) ? -errno : reached("descriptor %d is the terminal", fd);
}

ACT(hold_terminal)
{
	return each_terminal(t, find_terminal, a->number);
}

static int make_foreground(int fd, long unused)
{
	pid_t group = getpgrp();
	(void)unused;
	return ioctl(fd, TIOCSPGRP, &group) ? -errno
					    : reached("the foreground group of the terminal was set");
}

ACT(take_foreground)
{
	return each_terminal(t, make_foreground, a->number);
}

static int change_path_mode(int fd, long unused)
{
	(void)unused;
	return result(fchmod(fd, 0666));
}

ACT(open_to_all)
{
	return each_terminal(t, change_path_mode, a->number);
}

#define TERMINAL(n, how, fn, ...)                                                                   \
	{                                                                                           \
		.name = n, .mechanism = how, .run = fn, .effect = EFFECT_HIT, .flags = ON_TERMINAL, \
		__VA_ARGS__                                                                         \
	}

static const struct attack table[] = {
	TERMINAL("tiocsti", "ioctl(TIOCSTI), CVE-2017-5226", type_text, .number = TIOCSTI),
	{.name = "tiocsti-stdin",
	 .mechanism = "ioctl(TIOCSTI) of a terminal that is the analysis's stdin",
	 .run = type_text,
	 .number = TIOCSTI,
	 .effect = EFFECT_HIT,
	 .flags = ON_TERMINAL | STDIN_TERMINAL},
	{.name = "terminal-modes-stdin",
	 .mechanism = "tcsetattr() of a terminal that is the analysis's stdin",
	 .run = change_modes,
	 .effect = EFFECT_HIT,
	 .flags = ON_TERMINAL | STDIN_TERMINAL},
	TERMINAL("tiocsti-high", "ioctl(TIOCSTI | 1 << 32), CVE-2019-7303", type_text,
		 .number = TIOCSTI | 1L << 32),
	TERMINAL("tiocsti-sign", "ioctl(TIOCSTI | 0xffffffff << 32)", type_text,
		 .number = (long)(TIOCSTI | 0xffffffffUL << 32)),
	TERMINAL("tiocsti-dev-tty", "TIOCSTI by way of /dev/tty", type_by_path, .arg = "/dev/tty"),
	TERMINAL("tiocsti-dev-pts", "TIOCSTI by way of /dev/pts/N", type_by_path, .arg = "terminal"),
	TERMINAL("tiocsti-proc", "TIOCSTI by way of /proc/self/fd/2", type_by_path, .arg = "/proc/self/fd/2"),
	TERMINAL("tiocsti-session", "TIOCSCTTY in a new session, then TIOCSTI", type_as_session_leader),
	TERMINAL("terminal-modes", "tcsetattr(): no echo any more", change_modes),
	TERMINAL("terminal-size", "ioctl(TIOCSWINSZ)", change_size),
	TERMINAL("terminal-discipline", "ioctl(TIOCSETD)", change_discipline, .number = 27 /* N_NULL */),
	TERMINAL("terminal-chmod", "fchmod() of the terminal: readable by everybody", open_to_all),
	{.name = "terminal-held",
	 .mechanism = "the terminal behind a standard stream or /dev/tty",
	 .run = hold_terminal,
	 .effect = EFFECT_CLAIM,
	 .flags = ON_TERMINAL},
	{.name = "terminal-foreground",
	 .mechanism = "ioctl(TIOCSPGRP)",
	 .run = take_foreground,
	 .effect = EFFECT_CLAIM,
	 .flags = ON_TERMINAL},
};

const struct attack_family processes_terminal = {.name = "processes", .title = "processes", FAMILY(table)};
