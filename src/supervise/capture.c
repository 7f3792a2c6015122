#include "capture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void capture_init(struct capture *c, int fd, uint64_t max_bytes)
{
	*c = (struct capture){.fd = fd, .head = max_bytes - max_bytes / 2, .tail = max_bytes / 2};
}

static void write_at(struct capture *c, const char *data, size_t size, uint64_t at)
{
	while (size > 0 && !c->write_errno) {
		ssize_t n = pwrite(c->fd, data, size, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			c->write_errno = n < 0 ? errno : EIO;
			return;
		}
		data += n;
		size -= (size_t)n;
		at += (uint64_t)n;
		c->written += (uint64_t)n;
	}
}

void capture_add(struct capture *c, const char *data, size_t size)
{
	while (size > 0) {
		uint64_t at = c->total, room;
		size_t n;

		if (at < c->head) {
			room = c->head - at;
		} else if (c->tail == 0) {
			c->total += size;
			return;
		} else {
			at = c->head + (c->total - c->head) % c->tail;
			room = c->head + c->tail - at;
		}
		n = size < room ? size : (size_t)room;
		write_at(c, data, n, at);
		data += n;
		size -= n;
		c->total += n;
	}
}

static int read_at(int fd, char *out, size_t size, uint64_t at, struct error *err)
{
	while (size > 0) {
		ssize_t n = pread(fd, out, size, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return error_system(err, n < 0 ? errno : EIO, "cannot read a captured log again");
		out += n;
		size -= (size_t)n;
		at += (uint64_t)n;
	}
	return 0;
}

int capture_finish(const struct capture *c, struct captured *ret, struct error *err)
{
	uint64_t beyond = c->total > c->head ? c->total - c->head : 0;
	size_t head = (size_t)(c->total - beyond), tail = (size_t)(beyond < c->tail ? beyond : c->tail);
	size_t turn =
		beyond > c->tail && c->tail ? (size_t)(beyond % c->tail) : 0; /* where the oldest byte lies */
	_cleanup_free_ char *first = NULL, *last = NULL;
	int r;

	/* What could not be written is counted as omitted, and so is a ring that it has torn. */
	if (c->write_errno) {
		head = c->written < head ? (size_t)c->written : head;
		beyond = c->total - head;
		tail = turn = 0;
	}
	first = malloc(head + 1);
	last = malloc(tail + 1);
	if (!first || !last)
		return error_memory(err);
	if ((r = read_at(c->fd, first, head, 0, err)) < 0 ||
	    (r = read_at(c->fd, last, tail - turn, c->head + turn, err)) < 0 ||
	    (r = read_at(c->fd, last + tail - turn, turn, c->head, err)) < 0)
		return r;
	*ret = (struct captured){.head = TAKE_PTR(first),
				 .head_size = head,
				 .tail = TAKE_PTR(last),
				 .tail_size = tail,
				 .omitted = beyond - tail};
	return 0;
}

int capture_recover(int fd, uint64_t max_bytes, struct captured *ret, struct error *err)
{
	struct capture c;
	struct stat st;

	capture_init(&c, fd, max_bytes);
	if (fstat(fd, &st) < 0)
		return error_system(err, errno, "cannot look at a captured log");
	/* A full ring has lost where it began: the head is certain, the tail comes in the ring's order. */
	c.total = (uint64_t)st.st_size < c.head + c.tail ? (uint64_t)st.st_size : c.head + c.tail;
	return capture_finish(&c, ret, err);
}
