#include "screen.h"

#include <errno.h>
#include <poll.h>

/* A terminal or pipe that somebody else has made non-blocking is waited for as well. */
static int write_patiently(int fd, const char *data, size_t size)
{
	while (size > 0) {
		ssize_t n = write(fd, data, size);
		struct pollfd p = {.fd = fd, .events = POLLOUT};

		if (n < 0 && errno == EAGAIN)
			(void)poll(&p, 1, -1);
		else if (n == 0 || (n < 0 && errno != EINTR))
			return n < 0 ? -errno : -EIO;
		if (n > 0) {
			data += n;
			size -= (size_t)n;
		}
	}
	return 0;
}

static int erase_status(struct screen *s, struct buffer *out)
{
	bool shown = s->status_shown;

	s->status_shown = false;
	return shown ? buffer_puts(out, TERMINAL_ERASE_LINE) : 0;
}

static int end_filters(struct screen *s, struct buffer *out)
{
	int r = 0;

	for (int i = 0; i < SCREEN_STREAMS && r == 0; i++) {
		s->filters[i].in_line = s->in_line;
		r = filter_end(&s->filters[i], out);
		s->in_line = s->filters[i].in_line;
	}
	return r;
}

int screen_output(struct screen *s, int stream, const char *data, size_t size)
{
	_cleanup_buffer_ struct buffer out = {0};
	struct filter *f = &s->filters[stream];
	int r;

	if (!s->is_terminal) {
		s->in_line = data[size - 1] != '\n';
		return write_patiently(s->fd, data, size);
	}
	r = erase_status(s, &out);
	f->in_line = s->in_line;
	if (r == 0)
		r = filter_bytes(f, data, size, &out);
	s->in_line = f->in_line;
	return r < 0 ? r : write_patiently(s->fd, out.data, out.size);
}

int screen_say(struct screen *s, const char *text, size_t size)
{
	_cleanup_buffer_ struct buffer out = {0};
	int r = erase_status(s, &out);

	if (r == 0)
		r = end_filters(s, &out);
	if (r == 0 && s->in_line)
		r = buffer_puts(&out, "\n");
	if (r == 0)
		r = buffer_append(&out, text, size);
	s->in_line = text[size - 1] != '\n';
	return r < 0 ? r : write_patiently(s->fd, out.data, out.size);
}

int screen_status(struct screen *s, const char *text)
{
	_cleanup_buffer_ struct buffer out = {0};
	int r;

	if (!s->is_terminal || s->in_line || (!*text && !s->status_shown))
		return 0;
	r = buffer_printf(&out, TERMINAL_ERASE_LINE "%s", text);
	s->status_shown = *text != 0;
	return r < 0 ? r : write_patiently(s->fd, out.data, out.size);
}

int screen_end(struct screen *s)
{
	_cleanup_buffer_ struct buffer out = {0};
	int r = erase_status(s, &out);

	if (r == 0)
		r = end_filters(s, &out);
	return r < 0 ? r : write_patiently(s->fd, out.data, out.size);
}
