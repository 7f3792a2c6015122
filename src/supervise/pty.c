#include "pty.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

struct pty {
	struct pty_job job;
	struct loop *loop;
	struct source *window, *room;
	loop_timer_fn on_room;
	void *arg;
};

/* The kernel tells the foreground group inside (SIGWINCH) if it is another. */
static void take_size(const struct pty_job *job)
{
	struct winsize size = {0};

	if (job->like_fd < 0 || ioctl(job->like_fd, TIOCGWINSZ, &size) < 0 || !size.ws_row || !size.ws_col)
		size = (struct winsize){.ws_row = PTY_ROWS, .ws_col = PTY_COLUMNS};
	(void)ioctl(job->master, TIOCSWINSZ, &size);
}

/* Modes of a master are those of the other side. Which keys erase and interrupt is as the user has it; the rest is as a
 * fresh terminal's, whatever program has left his in. */
int pty_prepare(const struct pty_job *job, struct error *err)
{
	struct termios modes, like;

	if (tcgetattr(job->master, &modes) < 0)
		return error_system(err, errno, "cannot look at the command's terminal");
	modes.c_iflag |= IUTF8;
	if (job->like_fd >= 0 && tcgetattr(job->like_fd, &like) == 0)
		for (int i = 0; i < NCCS; i++)
			if (i != VMIN && i != VTIME && i != VEOF)
				modes.c_cc[i] = like.c_cc[i];
	if (tcsetattr(job->master, TCSANOW, &modes) < 0)
		return error_system(err, errno, "cannot set up the command's terminal");
	take_size(job);
	return 0;
}

static int on_window(void *arg, int fd, UNUSED uint32_t events, UNUSED struct error *err)
{
	struct pty *p = arg;
	char bytes[64];
	ssize_t n = read(fd, bytes, sizeof bytes);

	if (n == 0) {
		loop_remove(p->window);
		p->window = NULL;
	}
	if (n > 0)
		take_size(&p->job);
	return 0;
}

static int on_room(void *arg, UNUSED int fd, UNUSED uint32_t events, struct error *err)
{
	struct pty *p = arg;

	loop_remove(p->room);
	p->room = NULL;
	return p->on_room(p->arg, err);
}

bool pty_has_room(const struct pty *p)
{
	struct pollfd room = {.fd = p->job.room_fd, .events = POLLIN};

	return p->job.room_fd < 0 || poll(&room, 1, 0) != 0;
}

int pty_await_room(struct pty *p, loop_timer_fn fn, void *arg, struct error *err)
{
	p->on_room = fn;
	p->arg = arg;
	return p->room ? 0 : loop_add_fd(p->loop, p->job.room_fd, EPOLLIN, on_room, p, &p->room, err);
}

int pty_open(struct loop *loop, const struct pty_job *job, struct pty **ret, struct error *err)
{
	struct pty *p = calloc(1, sizeof *p);
	int r;

	if (!p)
		return error_memory(err);
	p->job = *job;
	p->loop = loop;
	take_size(job); /* it may have changed since */
	r = job->window_fd < 0 ? 0
			       : loop_add_fd(loop, job->window_fd, EPOLLIN, on_window, p, &p->window, err);
	if (r < 0) {
		pty_close(p);
		return r;
	}
	*ret = p;
	return 0;
}

void pty_close(struct pty *p)
{
	if (!p)
		return;
	loop_remove(p->window);
	loop_remove(p->room);
	free(p);
}
