/*
 * HTML, written as it is made. Markup is ours and a literal; everything that anybody else may have written goes through html_text() or an
 * attribute, which escape it: there is no other way for it to get into a page.
 *
 * Out of memory is sticky, as in buffer.h: who consumes the page asks once.
 */
#ifndef WEB_HTML_H
#define WEB_HTML_H

#include <stdint.h>

#include "buffer.h"

/* Zero-initialise, and html_done(). */
struct html {
	struct buffer out;
};

void html_done(struct html *h);
/* Markup of our own, a literal. */
void html_raw(struct html *h, const char *markup);
/* Any bytes: what is no UTF-8, and what would be no character on a page, is shown as an escape. NULL: nothing. */
void html_text(struct html *h, const char *text);
void html_bytes(struct html *h, const char *text, size_t size);
/* Of a file, on one line: a line break is shown as what it is, and not as the space that a browser makes of it. */
void html_name(struct html *h, const char *name);
/* ` NAME="VALUE"`; value NULL: nothing. */
void html_attr(struct html *h, const char *name, const char *value);
/* A link's ` href="…"`: a path of ours, whose last part is somebody's word, and a question mark with one more; each may be NULL. */
void html_href(struct html *h, const char *path, const char *word, const char *name, const char *value);
/* `<TAG CLASS>TEXT</TAG>`; class NULL: none. */
void html_element(struct html *h, const char *tag, const char *class, const char *text);
/* The beginning of a table up to its first row; id may be NULL. columns: "Id|#Wall", # for one of numbers. */
void html_table(struct html *h, const char *label, const char *id, const char *columns);
/* As text, formatted: never markup. */
void html_printf(struct html *h, const char *format, ...) PRINTF_LIKE(2, 3);
/* What RFC 3986 reserves becomes %XX. */
void url_escape(struct buffer *b, const char *text);

#endif
