#include "pump.h"
#include "keys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { PUMP_PIECE = 1 << 16, KEYS_PIECE = 4096, PUMP_ROOM = 1 << 20 };

struct pump {
	struct loop *loop;
	int from, to;
	struct source *in, *out; /* what we wait for: one of them at a time, or both where somebody types */
	bool is_file;		 /* a regular file cannot be waited for, and need not be */
	char end, last;		 /* what is written when it has ended, 0: nothing; the last byte that was */
	bool at_end;
	bool has_ended; /* of what is typed: no more comes */
	struct keys keys;
	void (*on_out)(void *arg); /* NULL: nobody types */
	void *arg;
	char data[PUMP_ROOM];
	size_t at, size;
};

static int await_input(struct pump *p, struct error *err);
static int await_room(struct pump *p, struct error *err);
static int say_end(struct pump *p, struct error *err);

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
		if (n < 0 && !p->on_out) { /* nobody reads it any more */
			finish(p);
			return 0;
		}
		/* A command that has closed its terminal runs on: whoever types is heard all the same. */
		p->at = n < 0 ? p->size : p->at + (size_t)n;
	}
	if (p->has_ended && !p->at_end)
		return say_end(p, err);
	if (p->has_ended) {
		finish(p);
		return 0;
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

/* Behind what nobody has read yet; what is beyond all room is lost. */
static void add(struct pump *p, const char *data, size_t size)
{
	size_t room;

	if (p->at > 0) {
		memmove(p->data, p->data + p->at, p->size - p->at);
		p->size -= p->at;
		p->at = 0;
	}
	room = sizeof p->data - p->size;
	if (size > room)
		size = room;
	memcpy(p->data + p->size, data, size);
	p->size += size;
}

static int draw_keys(struct pump *p, struct error *err)
{
	char typed[KEYS_PIECE], passed[KEYS_PIECE + 1];
	ssize_t n = read(p->from, typed, sizeof typed);
	size_t size = 0;

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (n <= 0 || keys_pass(&p->keys, typed, (size_t)n, passed, &size)) {
		loop_remove(p->in);
		p->in = NULL;
		p->has_ended = n <= 0;
		if (n > 0)
			p->on_out(p->arg);
		return p->has_ended && p->at == p->size ? say_end(p, err) : 0;
	}
	add(p, passed, size);
	if (size > 0)
		p->last = passed[size - 1];
	return pour(p, err);
}

static int draw(struct pump *p, struct error *err)
{
	ssize_t n = read(p->from, p->data, PUMP_PIECE);

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
	struct pump *p = arg;

	return p->on_out ? draw_keys(p, err) : draw(p, err);
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
	if (!p->on_out) {
		loop_remove(p->in);
		p->in = NULL;
	}
	return p->out ? 0 : loop_add_fd(p->loop, p->to, EPOLLOUT, on_room, p, &p->out, err);
}

int pump_open(struct loop *loop, int from, int to, char end, void (*on_out)(void *arg), void *arg,
	      struct pump **ret, struct error *err)
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
	p->on_out = on_out;
	p->arg = arg;
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
