#include "terminal.h"

#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>

static bool locale_is_utf8(void)
{
	static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *value = getenv(names[i]);

		if (value && *value)
			return strcasestr(value, "UTF-8") || strcasestr(value, "UTF8");
	}
	return false;
}

void terminal_probe(struct terminal *t, int fd)
{
	const char *no_colour = getenv("NO_COLOR"), *kind = getenv("TERM");

	t->fd = fd;
	t->is_tty = isatty(fd);
	t->colour = t->is_tty && !(no_colour && *no_colour) && kind && strcmp(kind, "dumb") != 0;
	t->utf8 = locale_is_utf8();
}

int terminal_width(const struct terminal *t)
{
	struct winsize size;

	if (t->is_tty && ioctl(t->fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
		return size.ws_col;
	return 80;
}

const char *terminal_style(const struct terminal *t, enum style style)
{
	static const char *const sequences[] = {
		[STYLE_RESET] = "\x1b[0m", [STYLE_BOLD] = "\x1b[1m",   [STYLE_DIM] = "\x1b[2m",
		[STYLE_RED] = "\x1b[31m",  [STYLE_GREEN] = "\x1b[32m", [STYLE_YELLOW] = "\x1b[33m",
	};

	return t->colour ? sequences[style] : "";
}

static bool is_plain(unsigned char c)
{
	return (c >= 0x20 && c < 0x7f) || c == '\n' || c == '\t' || c == '\r' || c == '\b';
}

static int put(struct filter *f, struct buffer *out, const char *text, size_t size)
{
	f->in_line = text[size - 1] != '\n';
	return buffer_append(out, text, size);
}

static int put_visible(struct filter *f, struct buffer *out, unsigned char c)
{
	f->in_line = true;
	return buffer_printf(out, "\\x%02x", c);
}

/* The held bytes begin no sequence that may pass: controls become visible, the rest is plain text. */
static int release_held(struct filter *f, struct buffer *out)
{
	int r = 0;

	for (size_t i = 0; i < f->n_held && r == 0; i++)
		r = is_plain((unsigned char)f->held[i]) ? put(f, out, &f->held[i], 1)
							: put_visible(f, out, (unsigned char)f->held[i]);
	f->n_held = 0;
	return r;
}

/* A complete colour sequence: it moves nothing, so it says nothing about lines. */
static int pass_colour(struct filter *f, struct buffer *out)
{
	size_t n = f->n_held;

	f->styled = strspn(f->held + 2, "0") + 3 != n;
	f->n_held = 0;
	return buffer_append(out, f->held, n);
}

/* Only digits may stand between ESC [ and m: with '>' or '?' the same final byte changes what keys send. */
static bool continues_colour(const struct filter *f, unsigned char c)
{
	if (f->n_held == 1)
		return c == '[';
	return (c >= '0' && c <= '9') || c == ';' || c == ':' || c == 'm';
}

static size_t utf8_length(unsigned char first)
{
	return first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
}

/* A complete multi-byte sequence: text, unless it is no UTF-8, or one of C1 (U+0080 to U+009F) in disguise. */
static int pass_character(struct filter *f, struct buffer *out)
{
	size_t n = f->n_held;
	bool is_c1 = (unsigned char)f->held[0] == 0xc2 && (unsigned char)f->held[1] < 0xa0;

	if (is_c1 || !utf8_valid(f->held, n))
		return release_held(f, out);
	f->n_held = 0;
	return put(f, out, f->held, n);
}

/* The byte after those held. *ret_again: it did not belong to them, and is to be looked at afresh. */
static int filter_held(struct filter *f, unsigned char c, struct buffer *out, bool *ret_again)
{
	bool is_escape = f->held[0] == '\x1b';
	bool fits = f->n_held < sizeof f->held && (is_escape ? continues_colour(f, c) : (c & 0xc0) == 0x80);

	*ret_again = !fits;
	if (!fits)
		return release_held(f, out);
	f->held[f->n_held++] = (char)c;
	if (is_escape)
		return c == 'm' ? pass_colour(f, out) : 0;
	return f->n_held == utf8_length((unsigned char)f->held[0]) ? pass_character(f, out) : 0;
}

int filter_bytes(struct filter *f, const char *data, size_t size, struct buffer *out)
{
	int r = 0;

	for (size_t i = 0; i < size && r == 0;) {
		unsigned char c = (unsigned char)data[i];
		size_t run = 0;
		bool again;

		if (f->n_held > 0) {
			r = filter_held(f, c, out, &again);
			i += !again;
			continue;
		}
		while (i + run < size && is_plain((unsigned char)data[i + run]))
			run++;
		if (run > 0) {
			r = put(f, out, data + i, run);
			i += run;
			continue;
		}
		if (c == 0x1b || (c >= 0xc2 && c <= 0xf4))
			f->held[f->n_held++] = (char)c;
		else
			r = put_visible(f, out, c);
		i++;
	}
	return r;
}

int filter_end(struct filter *f, struct buffer *out)
{
	int r = release_held(f, out);

	if (r == 0 && f->styled)
		r = buffer_puts(out, "\x1b[0m");
	f->styled = false;
	return r;
}
