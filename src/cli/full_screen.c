#include "full_screen.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>

#include "buffer.h"

#define ENTER	  "\x1b[?1049h\x1b[?25l"
#define LEAVE	  "\x1b[?25h\x1b[?1049l"
#define HOME	  "\x1b[H"
#define REST_LINE "\x1b[K"
#define REST_ALL  "\x1b[J"

enum { COLUMNS = 80, ROWS = 24 }; /* where nobody tells */

static int write_all(int fd, const char *data, size_t size)
{
	while (size > 0) {
		ssize_t n = write(fd, data, size);
		struct pollfd p = {.fd = fd, .events = POLLOUT};

		if (n < 0 && errno == EAGAIN)
			(void)poll(&p, 1, -1);
		else if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			data += n;
			size -= (size_t)n;
		}
	}
	return 0;
}

static void measure(const struct full_screen *f, int *ret_columns, int *ret_rows)
{
	struct winsize size = {0};

	(void)ioctl(f->out, TIOCGWINSZ, &size);
	*ret_columns = size.ws_col > 0 ? size.ws_col : COLUMNS;
	*ret_rows = size.ws_row > 0 ? size.ws_row : ROWS;
}

int full_screen_open(struct full_screen *f, int in, int out, struct error *err)
{
	struct termios keys;
	int r;

	*f = (struct full_screen){.in = -1, .out = out};
	if (tcgetattr(in, &f->before) == 0) {
		f->in = in;
		keys = f->before;
		keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
		keys.c_cc[VMIN] = 1;
		keys.c_cc[VTIME] = 0;
		keys.c_cc[VSUSP] = _POSIX_VDISABLE; /* stopped, it would leave the terminal as it is now */
		(void)tcsetattr(in, TCSADRAIN, &keys);
	}
	r = write_all(out, ENTER, strlen(ENTER));
	if (r == 0)
		return 0;
	full_screen_close(f);
	return error_system(err, -r, "cannot write to the terminal");
}

/* How many bytes of the line fit: a character of several bytes is not cut. */
static size_t cut(const char *line, size_t size, int columns)
{
	size_t i = 0;

	for (; i < size; i++)
		if (((unsigned char)line[i] & 0xc0) != 0x80 && columns-- == 0)
			break;
	return i;
}

int full_screen_draw(struct full_screen *f, const char *text, struct error *err)
{
	_cleanup_buffer_ struct buffer b = {0};
	int r;

	measure(f, &f->columns, &f->rows);
	buffer_puts(&b, HOME);
	for (int row = 0; *text && row < f->rows; row++) {
		size_t size = strcspn(text, "\n");

		buffer_puts(&b, row ? "\r\n" : "");
		buffer_append(&b, text, cut(text, size, f->columns));
		/* A line that fills its row has nothing behind it, and some terminals would erase its last character. */
		if (cut(text, size, f->columns) == size && (int)size < f->columns)
			buffer_puts(&b, REST_LINE);
		text += size + (text[size] == '\n');
	}
	buffer_puts(&b, REST_ALL);
	if (buffer_check(&b, err) < 0)
		return -1;
	r = write_all(f->out, b.data, b.size);
	return r < 0 ? error_system(err, -r, "cannot write to the terminal") : 0;
}

bool full_screen_is_resized(const struct full_screen *f)
{
	int columns, rows;

	measure(f, &columns, &rows);
	return columns != f->columns || rows != f->rows;
}

void full_screen_close(struct full_screen *f)
{
	(void)write_all(f->out, LEAVE, strlen(LEAVE));
	if (f->in >= 0)
		(void)tcsetattr(f->in, TCSADRAIN, &f->before);
	f->in = -1;
}
