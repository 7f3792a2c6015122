#include "html.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "text.h"

void html_done(struct html *h)
{
	buffer_free(&h->out);
}

void html_raw(struct html *h, const char *markup)
{
	buffer_puts(&h->out, markup);
}

static const char *entity(unsigned char c)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	default:
		return NULL;
	}
}

/* with: what is shown as it is though it is a control. */
static void put_bytes(struct html *h, const char *text, size_t size, const char *with)
{
	for (size_t i = 0, n; i < size; i += n) {
		const char *name = entity((unsigned char)text[i]);
		bool shown;

		n = text_next(text + i, size - i, &shown);
		if (name)
			buffer_puts(&h->out, name);
		else if (shown || (text[i] && strchr(with, text[i])))
			buffer_append(&h->out, text + i, n);
		else
			for (size_t k = 0; k < n; k++)
				buffer_printf(&h->out, "\\x%02x", (unsigned char)text[i + k]);
	}
}

void html_bytes(struct html *h, const char *text, size_t size)
{
	put_bytes(h, text, size, "\n\t");
}

void html_name(struct html *h, const char *name)
{
	put_bytes(h, name, strlen(name), "");
}

void html_text(struct html *h, const char *text)
{
	if (text)
		html_bytes(h, text, strlen(text));
}

void html_attr(struct html *h, const char *name, const char *value)
{
	if (!value)
		return;
	buffer_printf(&h->out, " %s=\"", name);
	html_text(h, value);
	buffer_puts(&h->out, "\"");
}

void url_escape(struct buffer *b, const char *text)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
		    strchr("-._~", c))
			buffer_append(b, text, 1);
		else
			buffer_printf(b, "%%%02X", c);
	}
}

/* What is escaped for an address needs no other escape. */
void html_href(struct html *h, const char *path, const char *word, const char *name, const char *value)
{
	buffer_printf(&h->out, " href=\"%s", path);
	if (word)
		url_escape(&h->out, word);
	if (name && value) {
		buffer_printf(&h->out, "?%s=", name);
		url_escape(&h->out, value);
	}
	buffer_puts(&h->out, "\"");
}

void html_element(struct html *h, const char *tag, const char *class, const char *text)
{
	buffer_printf(&h->out, "<%s", tag);
	html_attr(h, "class", class);
	buffer_puts(&h->out, ">");
	html_text(h, text);
	buffer_printf(&h->out, "</%s>", tag);
}

void html_table(struct html *h, const char *label, const char *id, const char *columns)
{
	html_raw(h, "<div class=\"wide\" tabindex=\"0\" role=\"region\"");
	html_attr(h, "aria-label", label);
	html_raw(h, "><table");
	html_attr(h, "id", id);
	html_raw(h, "><thead><tr>");
	for (size_t n; *columns; columns += n + (columns[n] == '|')) {
		bool is_number = *columns == '#';

		html_raw(h, is_number ? "<th scope=\"col\" class=\"n\">" : "<th scope=\"col\">");
		n = strcspn(columns, "|");
		html_bytes(h, columns + is_number, n - is_number);
		html_raw(h, "</th>");
	}
	html_raw(h, "</tr></thead><tbody>\n");
}

void html_printf(struct html *h, const char *format, ...)
{
	char line[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof line, format, args);
	va_end(args);
	html_text(h, line);
}
