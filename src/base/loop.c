#include "loop.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>

struct source {
	struct loop *loop;
	struct source *next;
	int fd;
	bool is_timer; /* then the descriptor is ours */
	bool removed;
	loop_fd_fn on_fd;
	loop_timer_fn on_timer;
	void *arg;
};

struct loop {
	int epoll;
	bool quit;
	struct source *sources;
};

int loop_open(struct loop **ret, struct error *err)
{
	struct loop *loop = calloc(1, sizeof *loop);

	if (!loop)
		return error_memory(err);
	loop->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epoll < 0) {
		int saved = errno;

		free(loop);
		return error_system(err, saved, "cannot make an event loop");
	}
	*ret = loop;
	return 0;
}

static void source_free(struct source *s)
{
	if (s->is_timer)
		fd_close(s->fd);
	free(s);
}

/* Frees what loop_remove() has marked. Only between two rounds, when no event can point to it. */
static void sweep(struct loop *loop)
{
	struct source **at = &loop->sources;

	while (*at) {
		struct source *s = *at;

		if (!s->removed) {
			at = &s->next;
			continue;
		}
		*at = s->next;
		source_free(s);
	}
}

struct loop *loop_close(struct loop *loop)
{
	if (!loop)
		return NULL;
	for (struct source *s = loop->sources; s; s = s->next)
		s->removed = true;
	sweep(loop);
	fd_close(loop->epoll);
	free(loop);
	return NULL;
}

static int source_add(struct loop *loop, struct source *template, uint32_t events, struct source **ret,
		      struct error *err)
{
	struct source *s = malloc(sizeof *s);
	struct epoll_event event = {.events = events, .data.ptr = s};

	if (!s)
		return error_memory(err);
	*s = *template;
	s->loop = loop;
	if (epoll_ctl(loop->epoll, EPOLL_CTL_ADD, s->fd, &event) < 0) {
		int saved = errno;

		free(s);
		return error_system(err, saved, "cannot watch descriptor %d", template->fd);
	}
	s->next = loop->sources;
	loop->sources = s;
	if (ret)
		*ret = s;
	return 0;
}

int loop_add_fd(struct loop *loop, int fd, uint32_t events, loop_fd_fn fn, void *arg, struct source **ret,
		struct error *err)
{
	struct source template = {.fd = fd, .on_fd = fn, .arg = arg};

	return source_add(loop, &template, events, ret, err);
}

int loop_timer_set(struct source *timer, uint64_t when)
{
	struct itimerspec t = {
		.it_value = {.tv_sec = (time_t)(when / NSEC_PER_SEC), .tv_nsec = (long)(when % NSEC_PER_SEC)},
	};

	return timerfd_settime(timer->fd, TFD_TIMER_ABSTIME, &t, NULL) < 0 ? -errno : 0;
}

int loop_add_timer(struct loop *loop, uint64_t when, loop_timer_fn fn, void *arg, struct source **ret,
		   struct error *err)
{
	struct source template = {.is_timer = true, .on_timer = fn, .arg = arg}, *s;
	int r;

	template.fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (template.fd < 0)
		return error_system(err, errno, "cannot make a timer");
	r = source_add(loop, &template, EPOLLIN, &s, err);
	if (r < 0) {
		fd_close(template.fd);
		return r;
	}
	if (when)
		r = loop_timer_set(s, when);
	if (r < 0) {
		loop_remove(s);
		return error_system(err, -r, "cannot set a timer");
	}
	if (ret)
		*ret = s;
	return 0;
}

void loop_remove(struct source *s)
{
	if (!s || s->removed)
		return;
	epoll_ctl(s->loop->epoll, EPOLL_CTL_DEL, s->fd, NULL);
	s->removed = true;
}

static int dispatch(struct source *s, uint32_t events, struct error *err)
{
	uint64_t times;

	if (s->removed)
		return 0;
	if (!s->is_timer)
		return s->on_fd(s->arg, s->fd, events, err);
	if (read(s->fd, &times, sizeof times) != sizeof times)
		return 0;
	return s->on_timer(s->arg, err);
}

static int loop_step(struct loop *loop, struct error *err)
{
	struct epoll_event events[16];
	int n = epoll_wait(loop->epoll, events, ARRAY_SIZE(events), -1), r = 0;

	if (n < 0 && errno != EINTR)
		return error_system(err, errno, "cannot wait for events");
	for (int i = 0; i < n && r >= 0; i++)
		r = dispatch(events[i].data.ptr, events[i].events, err);
	sweep(loop);
	return r < 0 ? r : 0;
}

int loop_run(struct loop *loop, struct error *err)
{
	int r = 0;

	loop->quit = false;
	while (!loop->quit && r == 0)
		r = loop_step(loop, err);
	return r;
}

void loop_quit(struct loop *loop)
{
	loop->quit = true;
}
