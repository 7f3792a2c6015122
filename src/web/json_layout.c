#include "json_layout.h"

#include <string.h>

/* Deeper ones begin no further to the right: else a short text has very long lines. */
enum { DEPTH_MAX = 24 };

static const char *skip_space(const char *at, const char *end)
{
	while (at < end && strchr(" \t\r\n", *at))
		at++;
	return at;
}

static const char *end_of_string(const char *at, const char *end)
{
	for (at++; at < end && *at != '"'; at++)
		at += *at == '\\';
	return at < end ? at + 1 : end;
}

/* A string, a number, a name: what stands between the signs that say how deep it is. */
static const char *end_of_word(const char *at, const char *end)
{
	if (*at == '"')
		return end_of_string(at, end);
	while (at < end && !strchr(" \t\r\n,:[]{}", *at))
		at++;
	return at;
}

static void new_line(struct html *h, size_t depth)
{
	html_raw(h, "\n");
	for (size_t i = 0; i < depth && i < DEPTH_MAX; i++)
		html_raw(h, "  ");
}

static const char *put_opening(struct html *h, const char *at, const char *end, size_t *depth)
{
	const char *next = skip_space(at + 1, end);

	html_bytes(h, at, 1);
	if (next < end && (*next == ']' || *next == '}')) {
		html_bytes(h, next, 1);
		return next + 1;
	}
	new_line(h, ++*depth);
	return next;
}

static const char *put_sign(struct html *h, const char *at, size_t *depth)
{
	bool closes = *at == ']' || *at == '}';

	if (closes)
		new_line(h, *depth ? --*depth : 0);
	html_bytes(h, at, 1);
	if (*at == ':')
		html_raw(h, " ");
	else if (!closes)
		new_line(h, *depth);
	return at + 1;
}

void json_layout(struct html *h, const char *text, size_t size)
{
	const char *end = text + size;
	size_t depth = 0;

	for (const char *at = skip_space(text, end), *from; at < end; at = skip_space(at, end)) {
		from = at;
		if (*at == '[' || *at == '{') {
			at = put_opening(h, at, end, &depth);
		} else if (strchr("]},:", *at)) {
			at = put_sign(h, at, &depth);
		} else {
			at = end_of_word(at, end);
			html_bytes(h, from, (size_t)(at - from));
		}
	}
}
