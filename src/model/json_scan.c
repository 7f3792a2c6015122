#include "json_scan.h"

#include <stdint.h>
#include <string.h>

#include "text.h"

static const char *wrong(struct json_scan *s, const char *p, const char *why)
{
	s->why = p >= s->end ? "it ends too early" : why;
	s->where = p;
	return NULL;
}

const char *scan_mark(struct json_scan *s, const char *p, char mark)
{
	static const char *const whys[] = {
		['{'] = "there is no '{'",
		['}'] = "there is no ',' or '}'",
		[':'] = "there is no ':'",
		[','] = "there is no ','",
	};

	p = scan_blanks(s, p);
	if (p >= s->end || *p != mark)
		return wrong(s, p, whys[(unsigned char)mark]);
	return scan_blanks(s, p + 1);
}

static int hex4(const char *p, const char *end)
{
	int n = 0;

	if (end - p < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		int c = p[i] | 0x20, digit = p[i] >= '0' && p[i] <= '9' ? p[i] - '0'
					     : c >= 'a' && c <= 'f'	? c - 'a' + 10
									: -1;

		if (digit < 0)
			return -1;
		n = n << 4 | digit;
	}
	return n;
}

/* p is after the backslash; where the escape ends. */
static const char *scan_escape(struct json_scan *s, const char *p)
{
	int first, second;

	if (p >= s->end)
		return wrong(s, p, "");
	if (*p != 'u')
		return strchr("\"\\/bfnrt", *p) && *p ? p + 1 : wrong(s, p, "a string has an unknown escape");
	first = hex4(p + 1, s->end);
	if (first < 0)
		return wrong(s, p, "a string has a \\u without four digits");
	if (first == 0)
		return wrong(s, p, "a string has a NUL character, which no database takes");
	if (first < 0xd800 || first > 0xdfff)
		return p + 5;
	second = s->end - p >= 11 && p[5] == '\\' && p[6] == 'u' ? hex4(p + 7, s->end) : -1;
	if (first > 0xdbff || second < 0xdc00 || second > 0xdfff)
		return wrong(s, p, "a string has half a surrogate pair");
	return p + 11;
}

const char *scan_string(struct json_scan *s, const char *p, bool *ret_escaped)
{
	const char *start = p + 1;
	unsigned char all = 0; /* bits that any byte has: mostly it is ASCII, and there is nothing to check */

	*ret_escaped = false;
	if (p >= s->end || *p != '"')
		return wrong(s, p, "there is no string where one must be");
	for (p = start;;) {
		if (p >= s->end)
			return wrong(s, p, "");
		if (*p == '"')
			break;
		if ((unsigned char)*p < 0x20)
			return wrong(s, p, "a string has a control character");
		all |= (unsigned char)*p;
		if (*p++ == '\\') {
			*ret_escaped = true;
			p = scan_escape(s, p);
			if (!p)
				return NULL;
		}
	}
	return !(all & 0x80) || utf8_valid(start, (size_t)(p - start))
		       ? p + 1
		       : wrong(s, start, "a string is not UTF-8");
}

static const char *scan_digits(const struct json_scan *s, const char *p)
{
	while (p < s->end && *p >= '0' && *p <= '9')
		p++;
	return p;
}

static const char *scan_number(struct json_scan *s, const char *p)
{
	static const char why[] = "a number makes no sense";
	const char *digits;

	if (*p == '-')
		p++;
	digits = p;
	p = scan_digits(s, p);
	if (p == digits || (*digits == '0' && p - digits > 1))
		return wrong(s, digits, why);
	if (p < s->end && *p == '.') {
		digits = p + 1;
		p = scan_digits(s, digits);
		if (p == digits)
			return wrong(s, p, why);
	}
	if (p < s->end && (*p == 'e' || *p == 'E')) {
		digits = p + 1;
		if (digits < s->end && (*digits == '+' || *digits == '-'))
			digits++;
		p = scan_digits(s, digits);
		if (p == digits)
			return wrong(s, p, why);
	}
	return p;
}

static const char *scan_word(struct json_scan *s, const char *p, const char *word)
{
	size_t n = strlen(word);

	return (size_t)(s->end - p) >= n && memcmp(p, word, n) == 0 ? p + n
								    : wrong(s, p, "this is no JSON value");
}

static const char *scan_array(struct json_scan *s, const char *p, int depth)
{
	p = scan_blanks(s, p + 1);
	if (p < s->end && *p == ']')
		return p + 1;
	for (;;) {
		p = scan_value(s, p, depth + 1);
		if (!p)
			return NULL;
		p = scan_blanks(s, p);
		if (p < s->end && *p == ']')
			return p + 1;
		if (p >= s->end || *p != ',')
			return wrong(s, p, "there is no ',' or ']'");
		p = scan_blanks(s, p + 1);
	}
}

static const char *scan_object(struct json_scan *s, const char *p, int depth)
{
	bool escaped;

	p = scan_blanks(s, p + 1);
	if (p < s->end && *p == '}')
		return p + 1;
	for (;;) {
		p = scan_string(s, p, &escaped);
		if (p)
			p = scan_mark(s, p, ':');
		if (p)
			p = scan_value(s, p, depth + 1);
		if (!p)
			return NULL;
		p = scan_blanks(s, p);
		if (p < s->end && *p == '}')
			return p + 1;
		p = scan_mark(s, p, ',');
		if (!p)
			return NULL;
	}
}

const char *scan_value(struct json_scan *s, const char *p, int depth)
{
	bool escaped;

	if (p >= s->end)
		return wrong(s, p, "");
	if (depth > JSON_DEPTH_MAX)
		return wrong(s, p, "it is nested too deep");
	switch (*p) {
	case '{':
		return scan_object(s, p, depth);
	case '[':
		return scan_array(s, p, depth);
	case '"':
		return scan_string(s, p, &escaped);
	case 't':
		return scan_word(s, p, "true");
	case 'f':
		return scan_word(s, p, "false");
	case 'n':
		return scan_word(s, p, "null");
	}
	return *p == '-' || (*p >= '0' && *p <= '9') ? scan_number(s, p)
						     : wrong(s, p, "this is no JSON value");
}

static size_t put_utf8(char *out, uint32_t c)
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 0x3f));
		out[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | c >> 18);
	out[1] = (char)(0x80 | (c >> 12 & 0x3f));
	out[2] = (char)(0x80 | (c >> 6 & 0x3f));
	out[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

size_t json_decode(const char *raw, size_t size, char *out)
{
	static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
	const char *p = raw, *end = raw + size;
	size_t n = 0;

	while (p < end) {
		const char *known;
		uint32_t c;

		if (*p != '\\') {
			out[n++] = *p++;
			continue;
		}
		p++;
		if (*p != 'u') {
			known = strchr(from, *p);
			out[n++] = known ? to[known - from] : *p;
			p++;
			continue;
		}
		c = (uint32_t)hex4(p + 1, end);
		p += 5;
		if (c >= 0xd800 && c <= 0xdbff) {
			c = 0x10000 + ((c - 0xd800) << 10) + ((uint32_t)hex4(p + 2, end) - 0xdc00);
			p += 6;
		}
		n += put_utf8(out + n, c);
	}
	return n;
}
