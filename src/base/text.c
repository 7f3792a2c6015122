#include "text.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "array.h"
#include "error.h"

enum { DISTANCE_ROOM = 64 };

/* The length of the UTF-8 sequence at p, its code point in *ret; 0 if there is none. Overlong forms, surrogates
 * and what lies above U+10FFFF are not UTF-8. */
static size_t utf8_next(const unsigned char *p, size_t size, uint32_t *ret)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t n = p[0] < 0x80 ? 1 : p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : p[0] >= 0xc2 ? 2 : 0;
	uint32_t c;

	if (n == 0 || n > size || p[0] > 0xf4)
		return 0;
	c = n == 1 ? p[0] : p[0] & (0x7fU >> n);
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3f);
	}
	if (n > 1 && (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff)))
		return 0;
	*ret = c;
	return n;
}

bool utf8_valid(const char *bytes, size_t size)
{
	uint32_t c;

	for (size_t i = 0, n; i < size; i += n) {
		n = utf8_next((const unsigned char *)bytes + i, size - i, &c);
		if (n == 0)
			return false;
	}
	return true;
}

/* What a terminal would obey instead of show: C0, DEL, C1, line separators, bidirectional controls. */
static bool is_control(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x200e && c <= 0x200f) ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0x61c || c == 0xfeff;
}

size_t text_next(const char *bytes, size_t size, bool *ret_shown)
{
	uint32_t c = 0;
	size_t n = utf8_next((const unsigned char *)bytes, size, &c);

	*ret_shown = n && !is_control(c);
	return n ? n : 1;
}

static void escape(struct buffer *b, const char *bytes, size_t size)
{
	const unsigned char *p = (const unsigned char *)bytes;

	for (size_t i = 0, n; i < size; i += n ? n : 1) {
		uint32_t c = 0;

		n = utf8_next(p + i, size - i, &c);
		if (n && c == '\\')
			buffer_puts(b, "\\\\");
		else if (n && !is_control(c))
			buffer_append(b, bytes + i, n);
		else
			for (size_t k = 0; k < (n ? n : 1); k++)
				buffer_printf(b, "\\x%02x", p[i + k]);
	}
}

char *text_escape(const char *bytes, size_t size)
{
	_cleanup_buffer_ struct buffer b = {0};

	buffer_reserve(&b, size);
	escape(&b, bytes, size);
	return buffer_take(&b);
}

char *text_safe(const char *text)
{
	_cleanup_buffer_ struct buffer out = {0};

	for (;;) {
		size_t n = strcspn(text, "\\");

		escape(&out, text, n);
		if (text[n] == 0)
			return buffer_take(&out);
		buffer_puts(&out, "\\");
		text += n + 1;
	}
}

const char *text_escape_into(char *out, size_t room, const char *bytes, size_t size)
{
	_cleanup_free_ char *text = text_escape(bytes, size);
	size_t n;

	if (!text)
		text = strdup("?");
	n = text ? strlen(text) : 0;
	if (n < room) {
		memcpy(out, text ? text : "", n + 1);
		return out;
	}
	n = room - sizeof "…";
	while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
		n--;
	memcpy(out, text, n);
	memcpy(out + n, "…", sizeof "…");
	return out;
}

static bool is_plain_word(const char *text)
{
	return *text && text[strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
					  "_./+,:=@%-")] == 0;
}

const char *text_word_into(char *out, size_t room, const char *text)
{
	_cleanup_buffer_ struct buffer b = {0};

	/* What is no text cannot be pasted anyway. */
	if (is_plain_word(text) || strchr(text, '\\'))
		return text_escape_into(out, room, text, strlen(text));
	buffer_puts(&b, "'");
	for (const char *c = text; *c; c++)
		if (*c == '\'')
			buffer_puts(&b, "'\\''");
		else
			buffer_append(&b, c, 1);
	buffer_puts(&b, "'");
	text_escape_into(out, room, b.data ? b.data : "?", b.data ? b.size : 1);
	/* A backslash of ours is one, not two. */
	for (char *c = out; (c = strstr(c, "'\\\\''")); c += 4)
		memmove(c + 1, c + 2, strlen(c + 2) + 1);
	return out;
}

void hex_encode(const uint8_t *bytes, size_t size, char *out)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < size; i++) {
		out[2 * i] = digits[bytes[i] >> 4];
		out[2 * i + 1] = digits[bytes[i] & 15];
	}
	out[2 * size] = 0;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

int hex_decode(const char *text, uint8_t *out, size_t size)
{
	if (strlen(text) != 2 * size)
		return -EINVAL;
	for (size_t i = 0; i < size; i++) {
		int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return -EINVAL;
		out[i] = (uint8_t)(high << 4 | low);
	}
	return 0;
}

char *base64_encode(const void *bytes, size_t size)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const uint8_t *p = bytes;
	char *out = malloc((size + 2) / 3 * 4 + 1), *q = out;

	if (!out)
		return NULL;
	for (size_t i = 0; i < size; i += 3) {
		size_t left = size - i;
		uint32_t v = (uint32_t)p[i] << 16 | (left > 1 ? (uint32_t)p[i + 1] << 8 : 0) |
			     (left > 2 ? p[i + 2] : 0);

		*q++ = digits[v >> 18];
		*q++ = digits[v >> 12 & 63];
		*q++ = left > 1 ? digits[v >> 6 & 63] : '=';
		*q++ = left > 2 ? digits[v & 63] : '=';
	}
	*q = 0;
	return out;
}

static int base64_digit(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

char *base64_decode(const char *text, size_t *ret_size)
{
	size_t size = strlen(text), padding = 0, n = 0;
	_cleanup_free_ char *out = malloc(size / 4 * 3 + 1);
	uint32_t v = 0;

	while (padding < 2 && padding < size && text[size - 1 - padding] == '=')
		padding++;
	if (!out)
		return NULL;
	errno = EINVAL;
	if (size % 4)
		return NULL;
	for (size_t i = 0; i < size; i++) {
		int digit = i < size - padding ? base64_digit(text[i]) : 0;

		if (digit < 0)
			return NULL;
		v = v << 6 | (uint32_t)digit;
		if (i % 4 == 3)
			for (int shift = 16; shift >= 0; shift -= 8)
				out[n++] = (char)(v >> shift & 255);
	}
	n -= padding;
	out[n] = 0;
	*ret_size = n;
	return TAKE_PTR(out);
}

int int_parse(const char *text, int least, int most, int *ret)
{
	char *end;
	long n;

	errno = 0;
	n = strtol(text, &end, 10);
	if (errno || end == text || *end || n < least || n > most)
		return -EINVAL;
	*ret = (int)n;
	return 0;
}

static int text_put(char **field, char *text, bool made, struct error *err)
{
	if (!made)
		return error_memory(err);
	free(*field);
	*field = text;
	return 0;
}

int text_set(char **field, const char *text, struct error *err)
{
	char *copy = text ? strdup(text) : NULL;

	return text_put(field, copy, copy || !text, err);
}

int text_print(char **field, struct error *err, const char *format, ...)
{
	char *text = NULL;
	va_list ap;
	int n;

	va_start(ap, format);
	n = vasprintf(&text, format, ap);
	va_end(ap);
	return text_put(field, text, n >= 0, err);
}

size_t strv_length(char *const *list)
{
	size_t n = 0;

	while (list && list[n])
		n++;
	return n;
}

int strv_push(char ***list, size_t *count, const char *text, struct error *err)
{
	char **more = array_grow(*list, *count + 1, sizeof *more);

	if (more) {
		*list = more;
		more[*count] = strdup(text);
	}
	return more && more[*count] ? ((*count)++, 0) : error_memory(err);
}

int strv_append(char ***list, const char *text, struct error *err)
{
	size_t n = strv_length(*list);

	return strv_push(list, &n, text, err);
}

char **strv_copy(char *const *list)
{
	_cleanup_strv_ char **copy = calloc(strv_length(list) + 1, sizeof *copy);

	for (size_t n = 0; copy && list && list[n]; n++)
		if (!(copy[n] = strdup(list[n])))
			return NULL;
	return TAKE_PTR(copy);
}

void strv_free(char **list)
{
	for (size_t i = 0; list && list[i]; i++)
		free(list[i]);
	free(list);
}

unsigned text_distance(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b);
	unsigned row[3][DISTANCE_ROOM];

	if (n >= DISTANCE_ROOM || m >= DISTANCE_ROOM)
		return UINT_MAX;
	for (size_t i = 0; i <= n; i++) {
		unsigned *now = row[i % 3], *before = row[(i + 2) % 3], *earlier = row[(i + 1) % 3];

		now[0] = (unsigned)i;
		for (size_t j = 1; j <= m; j++) {
			if (i == 0) {
				now[j] = (unsigned)j;
				continue;
			}
			now[j] = before[j - 1] + (a[i - 1] != b[j - 1]);
			if (before[j] + 1 < now[j])
				now[j] = before[j] + 1;
			if (now[j - 1] + 1 < now[j])
				now[j] = now[j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    earlier[j - 2] + 1 < now[j])
				now[j] = earlier[j - 2] + 1;
		}
	}
	return row[n % 3][m];
}
