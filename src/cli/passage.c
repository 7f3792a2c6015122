#include "passage.h"

#include <string.h>

#include "terminal.h"
#include "text.h"

/* Soft reset by hand: not every terminal knows how, and some reset more. The other screen first, since the rest is kept for each. */
const char passage_reset[] =
	"\x1b[?1049l\x1b[?1047l\x1b[?47l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1005l\x1b[?1006l"
	"\x1b[?1015l\x1b[?2004l\x1b[?2026l\x1b[?1l\x1b[?5l\x1b[?6l\x1b[?7h\x1b[?12l\x1b[?25h\x1b[?45l\x1b[?66l"
	"\x1b[4l\x1b[0 q\x1b>\x1b(B\x0f\x1b[r\x1b[m";

enum { MODE_DIGITS_MAX = 5 };

/* Modes that change what is drawn, or what keys and mouse send; none that makes the terminal speak by itself. */
static bool is_mode(const char *digits, size_t n)
{
	static const char *const known[] = {"1",    "5",    "6",    "7",    "12",   "25",   "45",
					    "47",   "66",   "1000", "1002", "1003", "1004", "1005",
					    "1006", "1015", "1047", "1048", "1049", "2004", "2026"};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (strlen(known[i]) == n && memcmp(known[i], digits, n) == 0)
			return true;
	return false;
}

static bool are_modes(const char *list, size_t size)
{
	while (size > 0) {
		size_t n = 0;

		while (n < size && list[n] != ';')
			n++;
		if (n > MODE_DIGITS_MAX || !is_mode(list, n))
			return false;
		if (n == size)
			return true;
		list += n + 1;
		size -= n + 1;
	}
	return false;
}

static bool are_numbers(const char *list, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (!(list[i] >= '0' && list[i] <= '9') && list[i] != ';' && list[i] != ':')
			return false;
	return true;
}

/* Whole: ESC [ … final. */
static bool may_pass(const char *s, size_t size)
{
	const char *list = s + 2;
	size_t n = size - 3;
	char final = s[size - 1];

	if (n > 0 && *list == '?') {
		if (final == 'h' || final == 'l')
			return are_modes(list + 1, n - 1);
		return (final == 'J' || final == 'K') && are_numbers(list + 1, n - 1);
	}
	if (final == 'q' && n > 0 && list[n - 1] == ' ') /* the cursor's form */
		return are_numbers(list, n - 1);
	if (final == 'p') /* soft reset */
		return n == 1 && *list == '!';
	if (final == 'h' || final == 'l')
		return n == 1 && *list == '4';
	if (final == 'u' || final == 's')
		return n == 0;
	return strchr("@ABCDEFGHIJKLMPSTXZ`abdefgmr", final) && are_numbers(list, n);
}

static void drop_held(struct passage *p)
{
	p->n_held = 0;
	p->state = PASSAGE_TEXT;
}

static void pass_held(struct passage *p, struct buffer *out)
{
	buffer_append(out, p->held, p->n_held);
	p->is_set |= p->held[0] == '\x1b';
	p->in_line = true;
	drop_held(p);
}

static bool hold(struct passage *p, char c)
{
	if (p->n_held == sizeof p->held)
		return false;
	p->held[p->n_held++] = c;
	return true;
}

/* Behind ESC: one letter, or one of a charset, or what begins a sequence or a string. */
static void take_escape(struct passage *p, char c, struct buffer *out)
{
	bool is_second = p->n_held == 2, is_charset = is_second && (p->held[1] == '(' || p->held[1] == ')');

	if (is_second ? is_charset && strchr("B0AUK", c) : strchr("78=>DEHMc", c) != NULL) {
		hold(p, c);
		pass_held(p, out);
	} else if (!is_second && c == '[') {
		hold(p, c);
		p->state = PASSAGE_SEQUENCE;
	} else if (!is_second && strchr("]PX^_", c)) {
		p->n_held = 0;
		p->state = PASSAGE_STRING;
	} else if (!is_second && c >= 0x20 && c <= 0x2f) {
		hold(p, c);
	} else {
		drop_held(p);
	}
}

/* A sequence that is too long, or has a byte that none has, is none. */
static void take_sequence(struct passage *p, char c, struct buffer *out)
{
	if (!hold(p, c) || c < 0x20 || c > 0x7e) {
		/* Its rest would be shown as text: so is what another program would have made of it. */
		drop_held(p);
		return;
	}
	if (c < 0x40)
		return;
	if (may_pass(p->held, p->n_held))
		pass_held(p, out);
	else
		drop_held(p);
}

/* Ends with BEL or ESC \. A new sequence ends it too, as it does for terminals. */
static void take_string(struct passage *p, char c)
{
	if (p->state == PASSAGE_STRING_ESCAPE) {
		p->state = PASSAGE_TEXT;
		if (c == '\\')
			return;
		p->held[0] = '\x1b';
		p->n_held = 1;
		p->state = PASSAGE_ESCAPE;
	} else if (c == '\a' || c == '\x18' || c == '\x1a') {
		p->state = PASSAGE_TEXT;
	} else if (c == '\x1b') {
		p->state = PASSAGE_STRING_ESCAPE;
	}
}

static void take_letter(struct passage *p, char c, struct buffer *out)
{
	hold(p, c);
	if (p->n_held < utf8_length((unsigned char)p->held[0]))
		return;
	if (!utf8_valid(p->held, p->n_held) || terminal_obeys(p->held, p->n_held))
		drop_held(p);
	else
		pass_held(p, out);
}

static bool is_plain(unsigned char c)
{
	return (c >= 0x20 && c < 0x7f) || (c >= '\a' && c <= '\r');
}

static void take_text(struct passage *p, char c, struct buffer *out)
{
	unsigned char byte = (unsigned char)c;

	if (byte == 0x1b || (byte >= 0xc2 && byte <= 0xf4)) {
		hold(p, c);
		p->state = byte == 0x1b ? PASSAGE_ESCAPE : PASSAGE_LETTER;
	} else if (byte == 0x0e || byte == 0x0f) {
		p->is_set = true;
		buffer_append(out, &c, 1);
	}
}

static size_t pass_plain(struct passage *p, const char *data, size_t size, struct buffer *out)
{
	size_t n = 0;

	while (n < size && is_plain((unsigned char)data[n]))
		n++;
	if (n > 0) {
		buffer_append(out, data, n);
		p->in_line = data[n - 1] != '\n';
	}
	return n;
}

void passage_bytes(struct passage *p, const char *data, size_t size, struct buffer *out)
{
	for (size_t i = 0; i < size;) {
		char c = data[i];

		if (!c) { /* fills time, on terminals that were printers */
			i++;
			continue;
		}
		if (p->state == PASSAGE_LETTER && (c & 0xc0) != 0x80)
			drop_held(p);
		/* A sequence that is broken off by another begins anew. */
		if (c == '\x1b' && (p->state == PASSAGE_ESCAPE || p->state == PASSAGE_SEQUENCE))
			drop_held(p);
		switch (p->state) {
		case PASSAGE_TEXT: {
			size_t n = pass_plain(p, data + i, size - i, out);

			i += n;
			if (n == 0)
				take_text(p, data[i++], out);
			continue;
		}
		case PASSAGE_ESCAPE:
			take_escape(p, c, out);
			break;
		case PASSAGE_SEQUENCE:
			take_sequence(p, c, out);
			break;
		case PASSAGE_STRING:
		case PASSAGE_STRING_ESCAPE:
			take_string(p, c);
			/* What ended the string is looked at by whom it begins. */
			if (p->state == PASSAGE_ESCAPE)
				continue;
			break;
		case PASSAGE_LETTER:
			take_letter(p, c, out);
			break;
		}
		i++;
	}
}

void passage_end(struct passage *p, struct buffer *out)
{
	drop_held(p);
	if (p->is_set)
		buffer_puts(out, passage_reset);
	p->is_set = false;
}
