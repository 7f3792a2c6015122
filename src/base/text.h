/*
 * Text that came from outside, made safe to show or to store; and lists of strings.
 */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "buffer.h"

bool utf8_valid(const char *bytes, size_t size);
/* Of a letter that begins so, with 0xc2 or more. */
static inline size_t utf8_length(unsigned char first)
{
	return first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
}
/* The bytes of the character that comes first, or of one that is none; can it be shown as it is? Controls cannot, nor what turns the
 * direction of writing. */
size_t text_next(const char *bytes, size_t size, bool *ret_shown);

/* Bytes → printable text for a terminal or a message: control characters, DEL, C1, bidirectional overrides and
 * what is not UTF-8 become \xNN; a backslash becomes \\. Newly allocated, NULL if memory is out. */
char *text_escape(const char *bytes, size_t size);

/* One line of text in which text_escape() may have been at work already: what is left of control characters is
 * escaped, backslashes stay. Newly allocated, NULL if memory is out. */
char *text_safe(const char *text);

/* text_escape() as a word that can be pasted into a shell: quoted where it must be. */
const char *text_word_into(char *out, size_t room, const char *text);
#define WORD(room, text) text_word_into((char[room]){0}, room, text)
/* text_escape() into a fixed buffer, cut with "…" where it does not fit; returns out. */
const char *text_escape_into(char *out, size_t room, const char *bytes, size_t size);
/* The same for a word in a message, in room of its own, which lives as long as the block around it. */
#define SHOWN(room, text) text_escape_into((char[room]){0}, room, text, strlen(text))

void hex_encode(const uint8_t *bytes, size_t size, char *out); /* out has 2 × size + 1 bytes */
int hex_decode(const char *text, uint8_t *out,
	       size_t size); /* 0, or -EINVAL unless exactly 2 × size digits */
char *base64_encode(const void *bytes, size_t size);
/* The reverse, strict; NUL-terminated, its length in *ret_size. NULL: not base64 (errno EINVAL), or ENOMEM. */
char *base64_decode(const char *text, size_t *ret_size);

/* A whole number in decimal, and nothing after it, from least to most: 0, or -EINVAL and *ret is as it was. */
int int_parse(const char *text, int least, int most, int *ret);

/* A copy of text, or NULL, in place of what *field has. Out of memory: the error is set, and it is as it was. */
int text_set(char **field, const char *text, struct error *err);
/* The same of what is printed, which may name *field. */
int text_print(char **field, struct error *err, const char *format, ...) PRINTF_LIKE(3, 4);

/* Steps from one word to another: letters changed, added, left out or swapped with their neighbour. UINT_MAX: a word is too
 * long to have been meant. */
unsigned text_distance(const char *a, const char *b);

/* NULL-terminated lists. A NULL list is an empty one. */
size_t strv_length(char *const *list);
int strv_append(char ***list, const char *text, struct error *err); /* copies; as text_set() */
/* The same where somebody counts: for lists that may be long. */
int strv_push(char ***list, size_t *count, const char *text, struct error *err);
char **strv_copy(char *const *list);
void strv_free(char **list);
DEFINE_CLEANUP(char **, strv_free);
#define _cleanup_strv_ _cleanup_(strv_freep)

#endif
