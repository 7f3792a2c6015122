/*
 * An output. It was written by nobody whom we know, so that a browser gets it only to save it, or as text that we have escaped; never as what it
 * says that it is.
 */
#include "pages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fetch.h"
#include "csv.h"
#include "file.h"
#include "json_layout.h"
#include "picture.h"
#include "text.h"

enum { PREVIEW_MAX = 64 * 1024, ROWS_MAX = 200, COLUMNS_MAX = 40 };

/* ---- which ---- */

int output_find(struct hood *h, const struct ask *a, struct attempt *attempt, struct ledger **ret_ledger,
		const struct output **ret, struct error *err)
{
	const char *path = ask_param(a, "path");
	int number = 0;

	if (id_check(a->parts[1], err) < 0 || pages_attempt(a, &number, err) < 0)
		return -EINVAL;
	if (!path)
		return error_set(err, ERROR_USAGE, "which output? The address ends with ?path=PATH");
	if (view_load(h, a->parts[1], number, ret_ledger, attempt, err) < 0)
		return -EINVAL;
	*ret = fetch_find(&attempt->manifest, path);
	if (!*ret)
		return error_set(err, ERROR_NOT_FOUND, "'%s' is no output of %s", SHOWN(128, path),
				 a->parts[1]);
	return 0;
}

void output_address(struct buffer *b, const char *id, int attempt, const char *what, const char *path)
{
	buffer_puts(b, "/a/");
	url_escape(b, id);
	buffer_printf(b, "/%s?path=", what);
	url_escape(b, path);
	if (attempt)
		buffer_printf(b, "&attempt=%d", attempt);
}

/* ---- to be saved ---- */

int page_output(struct hood *h, const struct ask *a, bool wants_json UNUSED, struct answer *ret,
		struct error *err)
{
	_cleanup_attempt_ struct attempt attempt;
	const struct output *o;
	const char *slash;
	struct ledger *l;
	int fd = -1;

	attempt_init(&attempt);
	if (output_find(h, a, &attempt, &l, &o, err) < 0 || fetch_open(l, o, &fd, err) < 0)
		return -EINVAL;
	slash = strrchr(o->path, '/');
	ret->file_name = strdup(slash ? slash + 1 : o->path);
	ret->has_file = true;
	ret->fd = fd;
	ret->size = o->size;
	return ret->file_name ? 0 : error_memory(err);
}

/* ---- to be looked at ---- */

/* All of it: a NUL hides nothing that is behind it. */
static void draw_cell(struct html *h, const char *tag, const struct buffer *field)
{
	buffer_printf(&h->out, "<%s>", tag);
	html_bytes(h, field->data, field->size);
	buffer_printf(&h->out, "</%s>", tag);
}

static const char *draw_line(struct html *h, const char *at, const char *end, const char *tag)
{
	bool is_last = false;

	html_raw(h, "<tr>");
	for (int column = 0; !is_last; column++) {
		_cleanup_buffer_ struct buffer field = {0};

		is_last = csv_field(&at, end, &field);
		if (column < COLUMNS_MAX)
			draw_cell(h, tag, &field);
	}
	html_raw(h, "</tr>\n");
	return at;
}

static void draw_table(struct html *h, const char *text, size_t size)
{
	const char *at = text, *end = text + size;

	html_raw(
		h,
		"<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Table\"><table class=\"csv\">\n<thead>");
	at = draw_line(h, at, end, "th");
	html_raw(h, "</thead><tbody>\n");
	for (int row = 0; at < end && row < ROWS_MAX; row++)
		at = draw_line(h, at, end, "td");
	html_raw(h, "</tbody></table></div>\n");
	if (at < end)
		html_raw(h, "<p>There is more of it in the file.</p>\n");
}

/* JSON that is whole is set out; else it is text as any other. */
static void draw_text(struct html *h, const char *text, size_t size, bool is_json)
{
	json_auto_t *json = is_json ? json_loadb(text, size, JSON_DECODE_ANY, NULL) : NULL;

	html_raw(h, "<pre class=\"log\" tabindex=\"0\">");
	if (json)
		json_layout(h, text, size);
	else
		html_bytes(h, text, size);
	html_raw(h, "</pre>\n");
}

static bool is_type(const struct output *o, const char *type)
{
	return o->media_type && strcmp(o->media_type, type) == 0;
}

/* One attribute, an address of this output. */
static void draw_address(struct html *h, const struct ask *a, const struct output *o, const char *attribute,
			 const char *what, const char *more)
{
	_cleanup_buffer_ struct buffer address = {0};
	struct error ignored = ERROR_INIT;
	int attempt = 0;

	(void)pages_attempt(a, &attempt, &ignored);
	output_address(&address, a->parts[1], attempt, what, o->path);
	buffer_puts(&address, more);
	html_attr(h, attribute, address.data);
}

/* The one that is shown was made by us, and is smaller than a large one. */
static void draw_picture(struct html *h, const struct ask *a, const struct output *o)
{
	html_raw(h, "<p><img class=\"picture\"");
	draw_address(h, a, o, "src", "image", "&width=1280");
	html_attr(h, "alt", o->path);
	html_raw(
		h,
		"></p>\n<p>Decoded and encoded anew, at most 1280 pixels wide and high; what was written is in the file. If there is no picture, <a");
	draw_address(h, a, o, "href", "image", "&width=1280");
	html_raw(h, ">its address</a> says why.</p>\n");
}

static void draw_head(struct html *h, const struct ask *a, const struct output *o)
{
	html_raw(h, "<h1><a");
	html_href(h, "/a/", a->parts[1], NULL, NULL);
	html_raw(h, ">");
	html_text(h, a->parts[1]);
	html_raw(h, "</a> / ");
	html_name(h, o->path);
	html_raw(h, "</h1>\n<p><a");
	draw_address(h, a, o, "href", "output", "");
	html_raw(h, ">Save it</a></p>\n");
}

static int draw(const struct ask *a, const struct output *o, const char *text, size_t size,
		struct answer *ret, struct error *err)
{
	struct html h = {0};

	frame_begin(&h, o->path, NULL, false);
	draw_head(&h, a, o);
	if (!text)
		draw_picture(&h, a, o);
	else if (is_type(o, "text/csv"))
		draw_table(&h, text, size);
	else
		draw_text(&h, text, size, is_type(o, "application/json"));
	if (text && o->size > size)
		html_raw(&h, "<p>This is its beginning.</p>\n");
	return frame_answer(&h, ret, err);
}

static int preview_text(struct ledger *l, const struct ask *a, const struct output *o, struct answer *ret,
			struct error *err)
{
	_cleanup_free_ char *text = malloc(PREVIEW_MAX);
	_cleanup_close_ int fd = -1;
	ssize_t n;

	if (!text)
		return error_memory(err);
	if (fetch_open(l, o, &fd, err) < 0)
		return -EINVAL;
	n = pread(fd, text, PREVIEW_MAX, 0);
	if (n < 0)
		return error_system(err, errno, "cannot read an output");
	return draw(a, o, text, (size_t)n, ret, err);
}

int page_preview(struct hood *h, const struct ask *a, bool wants_json UNUSED, struct answer *ret,
		 struct error *err)
{
	_cleanup_attempt_ struct attempt attempt;
	const struct output *o;
	struct ledger *l;

	attempt_init(&attempt);
	if (output_find(h, a, &attempt, &l, &o, err) < 0)
		return -EINVAL;
	return picture_is_likely(o) ? draw(a, o, NULL, 0, ret, err) : preview_text(l, a, o, ret, err);
}
