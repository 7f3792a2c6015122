#include "pump.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <unistd.h>

struct pump {
	struct loop *loop;
	int from, to;
	struct source *in, *out; /* one of them at a time: what we wait for */
	bool is_file;		 /* a regular file cannot be waited for, and need not be */
	char end, last;		 /* what is written when it has ended, 0: nothing; the last byte that was */
	bool at_end;
	char data[65536];
	size_t at, size;
};

static int await_input(struct pump *p, struct error *err);
static int await_room(struct pump *p, struct error *err);

static void finish(struct pump *p)
{
	loop_remove(p->in);
	loop_remove(p->out);
	p->in = p->out = NULL;
	p->to = fd_close(p->to);
}

static int pour(struct pump *p, struct error *err)
{
	while (p->at < p->size) {
		ssize_t n = write(p->to, p->data + p->at, p->size - p->at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return await_room(p, err);
		if (n < 0) { /* nobody reads it any more */
			finish(p);
			return 0;
		}
		p->at += (size_t)n;
	}
	return p->is_file ? await_room(p, err) : await_input(p, err);
}

/* On a terminal a line that is not whole is given to its reader by the first, and its end told by the second. */
static int say_end(struct pump *p, struct error *err)
{
	p->at_end = true;
	p->at = 0;
	p->size = p->last && p->last != '\n' && p->last != '\r' ? 2 : 1;
	p->data[0] = p->data[1] = p->end;
	return pour(p, err);
}

static int draw(struct pump *p, struct error *err)
{
	ssize_t n = read(p->from, p->data, sizeof p->data);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return p->is_file ? await_room(p, err) : await_input(p, err);
	if (n <= 0 && p->end && !p->at_end)
		return say_end(p, err);
	if (n <= 0) {
		finish(p);
		return 0;
	}
	p->at = 0;
	p->size = (size_t)n;
	p->last = p->data[n - 1];
	return pour(p, err);
}

static int on_input(void *arg, UNUSED int fd, UNUSED uint32_t events, struct error *err)
{
	return draw(arg, err);
}

static int on_room(void *arg, UNUSED int fd, UNUSED uint32_t events, struct error *err)
{
	struct pump *p = arg;

	return p->at < p->size ? pour(p, err) : draw(p, err);
}

static int await_input(struct pump *p, struct error *err)
{
	loop_remove(p->out);
	p->out = NULL;
	return p->in ? 0 : loop_add_fd(p->loop, p->from, EPOLLIN, on_input, p, &p->in, err);
}

static int await_room(struct pump *p, struct error *err)
{
	loop_remove(p->in);
	p->in = NULL;
	return p->out ? 0 : loop_add_fd(p->loop, p->to, EPOLLOUT, on_room, p, &p->out, err);
}

int pump_open(struct loop *loop, int from, int to, char end, struct pump **ret, struct error *err)
{
	struct pump *p = calloc(1, sizeof *p);
	int r;

	if (!p) {
		fd_close(to);
		return error_memory(err);
	}
	p->loop = loop;
	p->from = from;
	p->to = to;
	p->end = end;
	fcntl(to, F_SETFL, O_NONBLOCK);
	r = await_input(p, err);
	if (r < 0 && err->errnum == EPERM) { /* epoll's word for a regular file */
		p->is_file = true;
		r = await_room(p, err);
	}
	if (r < 0) {
		pump_close(p);
		return r;
	}
	*ret = p;
	return 0;
}

void pump_close(struct pump *p)
{
	if (!p)
		return;
	finish(p);
	free(p);
}
