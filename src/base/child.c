#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "file.h"

void child_end_done(struct child_end *e)
{
	buffer_free(&e->out);
	buffer_free(&e->err);
}

struct pipes {
	int out[2], err[2];
	int in;
};

static void pipes_close(struct pipes *p)
{
	fd_close(p->out[0]);
	fd_close(p->out[1]);
	fd_close(p->err[0]);
	fd_close(p->err[1]);
	fd_close(p->in);
}

/* A file in memory as its stdin: nobody has to feed it, and one that reads nothing is no broken pipe. */
static int pipes_open(const struct child_order *o, struct pipes *p, struct error *err)
{
	if (o->reads_fd) {
		p->in = fcntl(o->input_fd, F_DUPFD_CLOEXEC, 0);
	} else if (o->input) {
		p->in = file_in_memory("input", o->input, o->input_size, false, err);
		if (p->in < 0)
			return -1;
	} else {
		p->in = open("/dev/null", O_RDONLY | O_CLOEXEC);
	}
	if (p->in < 0 || pipe2(p->out, O_CLOEXEC) < 0 || pipe2(p->err, O_CLOEXEC) < 0)
		return error_system(err, errno, "cannot make a pipe for '%s'", o->path);
	if (lseek(p->in, 0, SEEK_SET) < 0 && errno != ESPIPE)
		return error_system(err, errno, "cannot rewind what '%s' reads", o->path);
	return 0;
}

static int spawn(const struct child_order *o, const struct pipes *p, pid_t *ret, struct error *err)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	int r;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	posix_spawn_file_actions_adddup2(&actions, p->in, 0);
	posix_spawn_file_actions_adddup2(&actions, p->out[1], 1);
	posix_spawn_file_actions_adddup2(&actions, p->err[1], 2);
	posix_spawnattr_setflags(&attributes,
				 POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	posix_spawnattr_setpgroup(&attributes, 0);
	r = posix_spawn(ret, o->path, &actions, &attributes, (char *const *)o->argv, (char *const *)o->env);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return r ? error_system(err, r, "cannot execute '%s'", o->path) : 0;
}

/* 0: that was its end. */
static ssize_t take(int fd, struct buffer *b, size_t max, bool *is_cut)
{
	char room[16384];
	ssize_t n = read(fd, room, sizeof room);
	size_t fits;

	if (n <= 0)
		return n < 0 && (errno == EINTR || errno == EAGAIN) ? 1 : 0;
	fits = max - b->size < (size_t)n ? max - b->size : (size_t)n;
	*is_cut = *is_cut || fits < (size_t)n;
	buffer_append(b, room, fits);
	return n;
}

static int left_ms(uint64_t until)
{
	uint64_t now = clock_now();

	return now >= until ? 0 : (int)((until - now) / NSEC_PER_MSEC) + 1;
}

/* Until it is dead and both streams are read, or the time is over. A descendant that keeps them open is not waited for. */
static void listen_to(const struct child_order *o, const struct pipes *p, int pidfd, struct child_end *ret)
{
	uint64_t until = clock_now() + o->timeout_ns;
	struct pollfd fds[] = {{p->out[0], POLLIN, 0}, {p->err[0], POLLIN, 0}, {pidfd, POLLIN, 0}};
	struct buffer *streams[] = {&ret->out, &ret->err};
	bool is_dead = false;

	while (!is_dead || fds[0].fd >= 0 || fds[1].fd >= 0) {
		int n = poll(fds, ARRAY_SIZE(fds), is_dead ? 0 : left_ms(until));

		if (n < 0 && errno != EINTR)
			break;
		if (n == 0 && is_dead)
			return;
		if (n == 0 && clock_now() >= until)
			break;
		for (int i = 0; n > 0 && i < 2; i++)
			if (fds[i].revents && take(fds[i].fd, streams[i], o->output_max, &ret->is_cut) == 0)
				fds[i].fd = -1;
		if (n > 0 && fds[2].revents) {
			is_dead = true;
			fds[2].fd = -1;
		}
	}
	ret->is_late = !is_dead;
}

static int status_of(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return 127;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int run(const struct child_order *o, struct pipes *p, struct child_end *ret, struct error *err)
{
	_cleanup_close_ int pidfd = -1;
	pid_t pid;
	int r = spawn(o, p, &pid, err);

	if (r < 0)
		return r;
	fd_close(p->out[1]);
	fd_close(p->err[1]);
	p->out[1] = p->err[1] = -1;
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd >= 0)
		listen_to(o, p, pidfd, ret);
	if (pidfd < 0 || ret->is_late)
		kill(-pid, SIGKILL);
	ret->status = status_of(pid);
	if (pidfd < 0)
		return error_set(err, ERROR_SYSTEM, "cannot watch '%s'", o->path);
	if (buffer_check(&ret->out, err) < 0 || buffer_check(&ret->err, err) < 0)
		return -ENOMEM;
	return 0;
}

int child_run(const struct child_order *o, struct child_end *ret, struct error *err)
{
	struct pipes p = {{-1, -1}, {-1, -1}, -1};
	int r;

	*ret = (struct child_end){0};
	r = pipes_open(o, &p, err);
	if (r == 0)
		r = run(o, &p, ret, err);
	pipes_close(&p);
	if (r < 0) {
		child_end_done(ret);
		*ret = (struct child_end){0};
	}
	return r;
}
