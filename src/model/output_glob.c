#include "output_glob.h"

#include <string.h>

#include "text.h"

/*
 * A pattern is matched component by component; within one, '*' backs up only to its last occurrence, and so does
 * "**" over components. That is enough (the shortest match of an earlier star leaves most to the later ones), and
 * makes the time at worst the product of the two lengths.
 */

/* One character: a code point, or a byte that is not UTF-8 as a value above all code points. */
static size_t next_char(const char *p, size_t size, uint32_t *ret)
{
	unsigned char first = (unsigned char)*p;
	size_t n = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 0;

	if (n == 0 || n > size || !utf8_valid(p, n)) {
		*ret = 0x200000U + first;
		return 1;
	}
	*ret = n == 1 ? first : first & (0x7fU >> n);
	for (size_t i = 1; i < n; i++)
		*ret = *ret << 6 | ((unsigned char)p[i] & 0x3f);
	return n;
}

/* At "[…]": its length, and whether c is in it; 0 if it has no end, and is a plain '['. */
static size_t match_set(const char *pattern, size_t size, uint32_t c, bool *ret)
{
	bool negated = size > 1 && (pattern[1] == '!' || pattern[1] == '^'), found = false;
	size_t start = negated ? 2 : 1, i = start;

	while (i < size && (pattern[i] != ']' || i == start)) {
		uint32_t low, high;

		i += next_char(pattern + i, size - i, &low);
		high = low;
		if (i + 1 < size && pattern[i] == '-' && pattern[i + 1] != ']')
			i += 1 + next_char(pattern + i + 1, size - i - 1, &high);
		found |= c >= low && c <= high;
	}
	if (i >= size)
		return 0;
	*ret = found != negated;
	return i + 1;
}

/* One step that is not a star: how much of the pattern it takes, 0 if the character does not fit. */
static size_t match_char(const char *pattern, size_t size, uint32_t c)
{
	uint32_t wanted;
	size_t n;
	bool in = false;

	if (*pattern == '?')
		return 1;
	n = *pattern == '[' ? match_set(pattern, size, c, &in) : 0;
	if (n)
		return in ? n : 0;
	n = next_char(pattern, size, &wanted);
	return wanted == c ? n : 0;
}

static bool match_component(const char *pattern, size_t pattern_size, const char *name, size_t size)
{
	size_t p = 0, s = 0, star = SIZE_MAX, star_s = 0;
	uint32_t c;

	while (s < size) {
		size_t step = next_char(name + s, size - s, &c), taken;

		if (p < pattern_size && pattern[p] == '*') {
			star = p++;
			star_s = s;
			continue;
		}
		taken = p < pattern_size ? match_char(pattern + p, pattern_size - p, c) : 0;
		if (taken) {
			p += taken;
			s += step;
			continue;
		}
		if (star == SIZE_MAX)
			return false;
		p = star + 1;
		star_s += next_char(name + star_s, size - star_s, &c);
		s = star_s;
	}
	while (p < pattern_size && pattern[p] == '*')
		p++;
	return p == pattern_size;
}

/* The component at *p, passing over "." and empty ones; size 0 at the end. *p is left behind its slash. */
static const char *next_component(const char **p, size_t *ret_size)
{
	for (;;) {
		const char *start = *p;
		size_t n = strcspn(start, "/");

		*p = start + n + (start[n] == '/');
		*ret_size = n;
		if ((n > 0 && !(n == 1 && start[0] == '.')) || start[n] == 0) {
			if (n == 1 && start[0] == '.')
				*ret_size = 0;
			return start;
		}
	}
}

static bool ends_in(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n >= m && strcmp(text + n - m, end) == 0;
}

/* A pattern that ends in a slash, or in one and two stars, means what lies in a directory, not a file of its name. */
static bool names_only_below(const char *pattern)
{
	return ends_in(pattern, "/") || ends_in(pattern, "/**");
}

bool output_glob_match(const char *pattern, const char *path)
{
	bool below_only = names_only_below(pattern);
	const char *p = pattern, *s = path, *star_p = NULL, *star_s = NULL;

	for (;;) {
		const char *after_p = p, *after_s = s;
		size_t p_size, s_size;
		const char *want = next_component(&after_p, &p_size);
		const char *have = next_component(&after_s, &s_size);

		/* All of the pattern is used: what is left of the path lies below what it names. */
		if (p_size == 0)
			return s_size > 0 || !below_only;
		if (p_size == 2 && want[0] == '*' && want[1] == '*') {
			star_p = p = after_p;
			star_s = s;
			continue;
		}
		if (s_size > 0 && match_component(want, p_size, have, s_size)) {
			p = after_p;
			s = after_s;
			continue;
		}
		if (!star_p || s_size == 0)
			return false;
		next_component(&star_s, &s_size);
		if (s_size == 0)
			return false;
		p = star_p;
		s = star_s;
	}
}
