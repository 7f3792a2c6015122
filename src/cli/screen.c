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

static void erase_status(struct screen *s, struct buffer *out)
{
	if (s->status_shown)
		buffer_puts(out, TERMINAL_ERASE_LINE);
	s->status_shown = false;
}

static void end_filters(struct screen *s, struct buffer *out)
{
	passage_end(&s->passage, out);
	for (int i = 0; i < SCREEN_STREAMS; i++) {
		s->filters[i].in_line = s->in_line;
		filter_end(&s->filters[i], out);
		s->in_line = s->filters[i].in_line;
	}
}

static int flush(const struct screen *s, const struct buffer *out)
{
	int r = buffer_check(out, NULL);

	return r < 0 ? r : write_patiently(s->fd, out->data, out->size);
}

int screen_output(struct screen *s, int stream, const char *data, size_t size)
{
	_cleanup_buffer_ struct buffer out = {0};
	struct filter *f = &s->filters[stream];

	if (s->is_terminal && s->shows_terminal) {
		passage_bytes(&s->passage, data, size, &out);
		s->in_line = s->passage.in_line;
		if (s->is_changed && s->passage.is_set)
			*s->is_changed = true;
		return flush(s, &out);
	}
	if (!s->is_terminal) {
		s->in_line = data[size - 1] != '\n';
		return write_patiently(s->fd, data, size);
	}
	erase_status(s, &out);
	f->in_line = s->in_line;
	filter_bytes(f, data, size, &out);
	s->in_line = f->in_line;
	return flush(s, &out);
}

int screen_say(struct screen *s, const char *text, size_t size)
{
	_cleanup_buffer_ struct buffer out = {0};

	erase_status(s, &out);
	end_filters(s, &out);
	if (s->in_line)
		buffer_puts(&out, s->shows_terminal ? "\r\n" : "\n");
	buffer_append(&out, text, size);
	s->in_line = text[size - 1] != '\n';
	return flush(s, &out);
}

int screen_status(struct screen *s, const char *text)
{
	_cleanup_buffer_ struct buffer out = {0};

	if (!s->is_terminal || s->in_line || (!*text && !s->status_shown))
		return 0;
	buffer_printf(&out, TERMINAL_ERASE_LINE "%s", text);
	s->status_shown = *text != 0;
	return flush(s, &out);
}

int screen_end(struct screen *s)
{
	_cleanup_buffer_ struct buffer out = {0};

	erase_status(s, &out);
	end_filters(s, &out);
	return flush(s, &out);
}
