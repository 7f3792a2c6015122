/*
 * JSON as it comes: checked in one pass over the bytes, nothing allocated, nothing built. Strict as RFC 8259: UTF-8, no
 * lone surrogates, no control characters in strings; and no NUL, which no database takes as text.
 *
 * A scan_* call takes the place where a value may begin and returns where it ends, or NULL with s->why set.
 */
#ifndef MODEL_JSON_SCAN_H
#define MODEL_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>

enum { JSON_DEPTH_MAX = 64 };

struct json_scan {
	const char *end;
	const char *why;   /* a constant: what was wrong */
	const char *where; /* at which byte */
};

static inline const char *scan_blanks(const struct json_scan *s, const char *p)
{
	while (p < s->end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r'))
		p++;
	return p;
}
/* Any value; depth is how far inside we are already. */
const char *scan_value(struct json_scan *s, const char *p, int depth);
/* A string with its quotes; *ret_escaped: it has a backslash in it, so that it must be decoded. */
const char *scan_string(struct json_scan *s, const char *p, bool *ret_escaped);
/* Blanks, then this character, then blanks. */
const char *scan_mark(struct json_scan *s, const char *p, char mark);

/* Decodes a string that was scanned, without its quotes; out has room for as many bytes. Returns the size. */
size_t json_decode(const char *raw, size_t size, char *out);

#endif
