#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <poll.h>
#include <pty.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>

#include "clock.h"
#include "dial.h"
#include "file.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

/* The hood has analyses to end and workspaces to remove before it is gone itself. */
enum { TICK_MS = 5, NOBODY = 65534, PLAIN_END_MS = 1000, HOOD_END_MS = 15000 };

static struct board *signal_board;

static void count_signal(int sig)
{
	char what[64];
	snprintf(what, sizeof(what), "signal %d to the supervisor's process group", sig);
	board_hit(signal_board, what);
}

static int leak_rights(const char *path)
{
	int pair[2], fd = open(path, O_RDONLY);
	char byte = 'x', room[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec part = {&byte, 1};
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room)};
	if (fd < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		return -1;
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);
	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(head), &fd, sizeof(fd));
	sendmsg(pair[0], &message, 0);
	close(fd);
	fcntl(pair[0], F_DUPFD_CLOEXEC, 900); /* the other end stays open, unseen */
	close(pair[0]);
	return pair[1];
}

static int leak_socket(const char *path)
{
	union address to;
	socklen_t size = address_unix(&to, path);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	return fd >= 0 && !connect(fd, &to.any, size) ? fd : -1;
}

static int leak_memory(const char *secret)
{
	int fd = memfd_create("leak", 0);
	if (fd >= 0 && file_write_all(fd, secret, strlen(secret)))
		return -1;
	return fd;
}

/* Descriptors that survive exec, at numbers that the attacker is told. The order is that of platform.c. */
static void leak_descriptors(struct platform *p)
{
	const struct targets *t = &p->targets;
	int fds[] = {open(targets_text(t, "secret"), O_RDONLY),	 leak_memory(p->nonce),
		     open(p->root, O_RDONLY | O_DIRECTORY),	 open(p->root, O_PATH | O_DIRECTORY),
		     leak_socket(targets_text(t, "run.stream")), leak_rights(targets_text(t, "secret")),
		     (int)syscall(SYS_pidfd_open, p->victim, 0), open("/proc/self/ns/net", O_RDONLY)};
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		if (fds[i] < 0)
			continue;
		dup2(fds[i], LEAK_FIRST + (int)i); /* a pidfd is born close-on-exec; its copy is not */
		close(fds[i]);
	}
	dup2(LEAK_FIRST, LEAK_HIGH);
}

static long keyctl(int operation, long a, long b, long c)
{
	return syscall(SYS_keyctl, operation, a, b, c, 0);
}

/* A session keyring of the run's own and the user's keyring hold the secret; the latter for two minutes only. */
static long plant_keys(struct platform *p)
{
	const char *name = targets_text(&p->targets, "key");
	long session = keyctl(KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0);
	keyctl(KEYCTL_LINK, KEY_SPEC_USER_KEYRING, KEY_SPEC_SESSION_KEYRING, 0); /* as after a login */
	syscall(SYS_add_key, "user", name, p->nonce, 32, KEY_SPEC_SESSION_KEYRING);
	long key = syscall(SYS_add_key, "user", name, p->nonce, 32, KEY_SPEC_USER_KEYRING);
	if (key > 0) {
		keyctl(KEYCTL_SETPERM, key, 0x3f3f0000, 0);
		keyctl(KEYCTL_SET_TIMEOUT, key, 120, 0);
	}
	return session;
}

static void set_environment(struct platform *p)
{
	static const char *const secrets[] = {"PGPASSWORD", "API_TOKEN", "AWS_SECRET_ACCESS_KEY",
					      "SSH_AUTH_SOCK"};
	char text[700];
	clearenv();
	for (size_t i = 0; i < ARRAY_SIZE(secrets); i++)
		setenv(secrets[i], p->nonce, 1);
	snprintf(text, sizeof(text), "%s/home", p->root);
	setenv("HOME", text, 1);
	snprintf(text, sizeof(text), "%s/home/bin:/usr/local/bin:/usr/bin:/bin", p->root);
	setenv("PATH", text, 1);
	snprintf(text, sizeof(text), "%s/var/state", p->root);
	setenv("XDG_STATE_HOME", text, 1);
	snprintf(text, sizeof(text), "%s/var/share", p->root);
	setenv("XDG_DATA_HOME", text, 1);
	snprintf(text, sizeof(text), "sqlite:%s/var/ledger.db", p->root);
	setenv("FUMEHOOD_DB", text, 1);
	setenv("TERM", "xterm", 1);
}

static void enter_platform(struct platform *p)
{
	if (p->mounts >= 0 && setns(p->mounts, CLONE_NEWNS))
		_exit(126);
	if (chdir(p->root))
		_exit(126);
	set_environment(p);
}

/* How the terminal looks, to be compared. */
struct terminal {
	struct termios mode;
	struct winsize size;
	int discipline;
	mode_t access;
};

static void terminal_look(int fd, struct terminal *ret)
{
	struct stat st = {0};
	memset(ret, 0, sizeof(*ret));
	tcgetattr(fd, &ret->mode);
	ioctl(fd, TIOCGWINSZ, &ret->size);
	ioctl(fd, TIOCGETD, &ret->discipline);
	fstat(fd, &st);
	ret->access = st.st_mode;
}

static void terminal_judge(struct board *b, int fd, const struct terminal *before)
{
	struct terminal now;
	int typed = 0;
	terminal_look(fd, &now);
	if (now.discipline != before->discipline) {
		board_hit(b, "the terminal's line discipline was changed");
		ioctl(fd, TIOCSETD, &before->discipline);
	}
	if (now.mode.c_lflag != before->mode.c_lflag)
		board_hit(b, "the terminal's modes were changed");
	if (now.size.ws_row != before->size.ws_row)
		board_hit(b, "the terminal's size was changed");
	if (now.access != before->access)
		board_hit(b, "the terminal's access mode was changed");
	if (!ioctl(fd, FIONREAD, &typed) && typed > 0)
		board_hit(b, "something was typed into the terminal");
}

static bool unprivileged(const struct stage *s)
{
	return !s->hooded && (s->attack->flags & UNPRIVILEGED) && can_be_nobody();
}

static void exec_supervisor(struct stage *s, char *const argv[])
{
	static const int signals[] = {SIGUSR1, SIGTERM, SIGHUP, SIGINT};
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		signal(signals[i], SIG_DFL);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	leak_descriptors(s->platform);
	if (s->attack->flags & STDIN_FILE)
		dup2(open("streams/stdin", O_RDONLY), STDIN_FILENO);
	if (s->attack->flags & STDIN_DIRECTORY)
		dup2(open(".", O_RDONLY | O_DIRECTORY), STDIN_FILENO);
	if (s->attack->flags & STDOUT_FILE)
		dup2(open("var/stdout", O_WRONLY | O_APPEND), STDOUT_FILENO);
	if (unprivileged(s) && (setgid(NOBODY) || setuid(NOBODY)))
		_exit(126);
	execv(argv[0], argv);
	_exit(127);
}

/* The launcher: supervises the supervisor, and looks at what is shared with it. Its exit status is the other's. */
static void launcher(struct stage *s, char *const argv[], int out, int errors, const char *terminal)
{
	struct board *b = s->platform->board;
	struct terminal before;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal_board = b;
	enter_platform(s->platform);
	if (terminal) {
		setsid();
		int fd = open(terminal, O_RDWR); /* becomes the controlling one */
		for (int i = 0; i < 3; i++)
			dup2(fd, i);
		terminal_look(0, &before);
	} else {
		setpgid(0, 0);
		dup2(open("/dev/null", O_RDONLY), 0);
		dup2(out, 1);
		dup2(errors, 2);
	}
	long session = plant_keys(s->platform);
	signal(SIGUSR1, count_signal);
	signal(SIGTTOU, SIG_IGN);
	pid_t pid = fork();
	if (pid == 0)
		exec_supervisor(s, argv);
	b->child = pid;
	int status = 0;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (session > 0 && keyctl(KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0, 0) != session)
		board_hit(b, "the supervisor's session keyring was replaced");
	if (terminal)
		terminal_judge(b, 0, &before);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

static void take(int fd, struct buffer *b)
{
	char block[16384];
	for (ssize_t n; fd >= 0 && (n = read(fd, block, sizeof(block))) > 0;)
		if (b->size < 4U << 20)
			buffer_append(b, block, (size_t)n);
}

/* Reads both streams and calls during() until the launcher is gone or patience is out. */
static void attend(struct stage *s, pid_t pid, int out, int errors, int patience_ms)
{
	uint64_t end = clock_now() + (uint64_t)patience_ms * NSEC_PER_MSEC;
	while (waitpid(pid, &s->status, WNOHANG) == 0) {
		struct pollfd streams[] = {{.fd = out, .events = POLLIN}, {.fd = errors, .events = POLLIN}};
		poll(streams, 2, TICK_MS);
		if (streams[0].revents & POLLHUP || streams[1].revents & POLLHUP)
			poll(NULL, 0, 1);
		take(out, &s->output);
		take(errors, &s->errors);
		if (s->attack->during && s->platform->board->child && !s->hit)
			s->attack->during(s);
		if (clock_now() < end && (s->hung || !suite_stopped()))
			continue;
		if (s->platform->board->child <= 0) /* nobody to ask yet; 0 would be our own process group */
			continue;
		if (s->hung) { /* asked already, and its time is over */
			kill(s->platform->board->child, SIGKILL);
			kill(pid, SIGKILL);
		}
		s->hung = true;
		kill(s->platform->board->child, SIGTERM);
		end = clock_now() + (uint64_t)(s->hooded ? HOOD_END_MS : PLAIN_END_MS) * NSEC_PER_MSEC;
	}
	take(out, &s->output);
	take(errors, &s->errors);
}

int launch(struct stage *s, char *const argv[], int patience_ms)
{
	int out[2] = {-1, -1}, errors[2] = {-1, -1}, master = -1, slave = -1;
	char terminal[128] = "";
	bool on_terminal = s->attack->flags & ON_TERMINAL;
	if (on_terminal) {
		struct winsize size = {.ws_row = 24, .ws_col = 80};
		if (openpty(&master, &slave, terminal, NULL, &size))
			return -errno;
		fcntl(master, F_SETFD, FD_CLOEXEC);
		fcntl(slave, F_SETFD, FD_CLOEXEC);
		fcntl(master, F_SETFL, O_NONBLOCK);
	} else if (pipe2(out, O_CLOEXEC) || pipe2(errors, O_CLOEXEC)) {
		return -errno;
	}
	targets_set(&s->platform->targets, "terminal", "%s", terminal);
	int r = platform_write_targets(s->platform, s->hooded, s->marker);
	s->platform->board->child = 0;
	pid_t pid = r ? -1 : fork();
	if (pid == 0)
		launcher(s, argv, out[1], errors[1], on_terminal ? terminal : NULL);
	fd_close(out[1]);
	fd_close(errors[1]);
	if (out[0] >= 0) {
		fcntl(out[0], F_SETFL, O_NONBLOCK);
		fcntl(errors[0], F_SETFL, O_NONBLOCK);
	}
	if (pid > 0)
		attend(s, pid, on_terminal ? master : out[0], errors[0], patience_ms);
	fd_close(slave);
	fd_close(master);
	fd_close(out[0]);
	fd_close(errors[0]);
	return pid < 0 ? -EAGAIN : 0;
}

pid_t launch_beside(struct platform *p, char *const argv[], int *ret_output)
{
	int out[2];
	if (pipe2(out, O_CLOEXEC))
		return -errno;
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		setpgid(0, 0);
		enter_platform(p);
		plant_keys(p);
		dup2(open("var/beside-secret", O_RDONLY), 0);
		dup2(out[1], 1);
		dup2(open("var/beside.log", O_WRONLY | O_CREAT | O_APPEND, 0666), 2);
		execv(argv[0], argv);
		_exit(127);
	}
	close(out[1]);
	fcntl(out[0], F_SETFL, O_NONBLOCK);
	*ret_output = out[0];
	return pid;
}
