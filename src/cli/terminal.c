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
	terminal_is_8bit |= t->is_tty && !t->utf8;
}

int terminal_width(const struct terminal *t)
{
	struct winsize size;

	if (t->is_tty && ioctl(t->fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
		return size.ws_col;
	return 80;
}

struct look terminal_look(const struct terminal *t)
{
	return (struct look){.colour = t->colour, .utf8 = t->utf8, .obeys = t->is_tty};
}

const char *terminal_style(const struct terminal *t, enum style style)
{
	return print_style(t->colour, style);
}

static bool is_plain(unsigned char c)
{
	return (c >= 0x20 && c < 0x7f) || c == '\n' || c == '\t' || c == '\r' || c == '\b';
}

static void put(struct filter *f, struct buffer *out, const char *text, size_t size)
{
	f->in_line = text[size - 1] != '\n';
	buffer_append(out, text, size);
}

static void put_visible(struct filter *f, struct buffer *out, unsigned char c)
{
	f->in_line = true;
	buffer_printf(out, "\\x%02x", c);
}

/* The held bytes begin no sequence that may pass: controls become visible, the rest is plain text. */
static void release_held(struct filter *f, struct buffer *out)
{
	for (size_t i = 0; i < f->n_held; i++)
		if (is_plain((unsigned char)f->held[i]))
			put(f, out, &f->held[i], 1);
		else
			put_visible(f, out, (unsigned char)f->held[i]);
	f->n_held = 0;
}

/* A complete colour sequence: it moves nothing, so it says nothing about lines. */
static void pass_colour(struct filter *f, struct buffer *out)
{
	f->styled = strspn(f->held + 2, "0") + 3 != f->n_held;
	buffer_append(out, f->held, f->n_held);
	f->n_held = 0;
}

/* Only digits may stand between ESC [ and m: with '>' or '?' the same final byte changes what keys send. */
static bool continues_colour(const struct filter *f, unsigned char c)
{
	if (f->n_held == 1)
		return c == '[';
	return (c >= '0' && c <= '9') || c == ';' || c == ':' || c == 'm';
}

bool terminal_is_8bit;

bool terminal_obeys(const char *letter, size_t size)
{
	if (size == 2 && (unsigned char)letter[0] == 0xc2 && (unsigned char)letter[1] < 0xa0)
		return true;
	for (size_t i = 0; terminal_is_8bit && i < size; i++)
		if ((unsigned char)letter[i] >= 0x80 && (unsigned char)letter[i] < 0xa0)
			return true;
	return false;
}

/* A complete multi-byte sequence: text, unless it is no UTF-8, or C1 in disguise. */
static void pass_character(struct filter *f, struct buffer *out)
{
	if (terminal_obeys(f->held, f->n_held) || !utf8_valid(f->held, f->n_held)) {
		release_held(f, out);
		return;
	}
	put(f, out, f->held, f->n_held);
	f->n_held = 0;
}

/* The byte after those held. False: it did not belong to them, and is to be looked at afresh. */
static bool filter_held(struct filter *f, unsigned char c, struct buffer *out)
{
	bool is_escape = f->held[0] == '\x1b';
	bool fits = f->n_held < sizeof f->held && (is_escape ? continues_colour(f, c) : (c & 0xc0) == 0x80);

	if (!fits) {
		release_held(f, out);
		return false;
	}
	f->held[f->n_held++] = (char)c;
	if (is_escape && c == 'm')
		pass_colour(f, out);
	else if (!is_escape && f->n_held == utf8_length((unsigned char)f->held[0]))
		pass_character(f, out);
	return true;
}

void filter_bytes(struct filter *f, const char *data, size_t size, struct buffer *out)
{
	for (size_t i = 0; i < size;) {
		unsigned char c = (unsigned char)data[i];
		size_t run = 0;

		if (f->n_held > 0) {
			i += filter_held(f, c, out);
			continue;
		}
		while (i + run < size && is_plain((unsigned char)data[i + run]))
			run++;
		if (run > 0) {
			put(f, out, data + i, run);
			i += run;
			continue;
		}
		if (c == 0x1b || (c >= 0xc2 && c <= 0xf4))
			f->held[f->n_held++] = (char)c;
		else
			put_visible(f, out, c);
		i++;
	}
}

void filter_end(struct filter *f, struct buffer *out)
{
	release_held(f, out);
	if (f->styled)
		buffer_puts(out, "\x1b[0m");
	f->styled = false;
}
