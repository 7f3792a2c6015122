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
#include "text.h"

enum { PREVIEW_MAX = 64 * 1024, ROWS_MAX = 200, COLUMNS_MAX = 40 };

/* ---- which ---- */

static int open_output(struct hood *h, const struct ask *a, struct attempt *attempt,
		       const struct output **ret, int *ret_fd, struct error *err)
{
	const char *path = ask_param(a, "path");
	struct ledger *l;
	int number = 0;

	if (id_check(a->parts[1], err) < 0 || pages_attempt(a, &number, err) < 0)
		return -EINVAL;
	if (!path)
		return error_set(err, ERROR_USAGE, "which output? The address ends with ?path=PATH");
	if (view_load(h, a->parts[1], number, &l, attempt, err) < 0)
		return -EINVAL;
	*ret = fetch_find(&attempt->manifest, path);
	if (!*ret)
		return error_set(err, ERROR_NOT_FOUND, "'%s' is no output of %s", SHOWN(128, path),
				 a->parts[1]);
	return fetch_open(l, *ret, ret_fd, err);
}

/* ---- to be saved ---- */

int page_output(struct hood *h, const struct ask *a, bool wants_json UNUSED, struct answer *ret,
		struct error *err)
{
	_cleanup_attempt_ struct attempt attempt;
	const struct output *o;
	const char *slash;
	int fd = -1;

	attempt_init(&attempt);
	if (open_output(h, a, &attempt, &o, &fd, err) < 0)
		return -EINVAL;
	slash = strrchr(o->path, '/');
	ret->file_name = strdup(slash ? slash + 1 : o->path);
	ret->has_file = true;
	ret->fd = fd;
	ret->size = o->size;
	return ret->file_name ? 0 : error_memory(err);
}

/* ---- to be looked at ---- */

static const char *draw_line(struct html *h, const char *at, const char *end, const char *tag)
{
	bool is_last = false;

	html_raw(h, "<tr>");
	for (int column = 0; !is_last; column++) {
		_cleanup_buffer_ struct buffer field = {0};

		is_last = csv_field(&at, end, &field);
		if (column < COLUMNS_MAX)
			html_element(h, tag, NULL, field.size ? field.data : "");
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
	_cleanup_free_ char *set_out = json ? json_dumps(json, JSON_INDENT(2) | JSON_ENCODE_ANY) : NULL;

	html_raw(h, "<pre class=\"log\" tabindex=\"0\">");
	if (set_out)
		html_text(h, set_out);
	else
		html_bytes(h, text, size);
	html_raw(h, "</pre>\n");
}

static bool is_type(const struct output *o, const char *type)
{
	return o->media_type && strcmp(o->media_type, type) == 0;
}

/* Where it can be saved from. */
static void address_of(struct html *h, const struct ask *a, const struct output *o)
{
	_cleanup_buffer_ struct buffer path = {0};

	buffer_puts(&path, "/a/");
	url_escape(&path, a->parts[1]);
	buffer_puts(&path, "/output");
	html_href(h, path.data ? path.data : "", NULL, "path", o->path);
}

static int draw(const struct ask *a, const struct output *o, const char *text, size_t size,
		struct answer *ret, struct error *err)
{
	struct html h = {0};
	int r;

	frame_begin(&h, o->path, NULL, false);
	html_raw(&h, "<h1><a");
	html_href(&h, "/a/", a->parts[1], NULL, NULL);
	html_raw(&h, ">");
	html_text(&h, a->parts[1]);
	html_raw(&h, "</a> / ");
	html_text(&h, o->path);
	html_raw(&h, "</h1>\n<p><a");
	address_of(&h, a, o);
	html_raw(&h, ">Save it</a></p>\n");
	if (is_type(o, "text/csv"))
		draw_table(&h, text, size);
	else
		draw_text(&h, text, size, is_type(o, "application/json"));
	if (o->size > size)
		html_raw(&h, "<p>This is its beginning.</p>\n");
	frame_end(&h);
	r = frame_answer(&h, ret, err);
	html_done(&h);
	return r;
}

int page_preview(struct hood *h, const struct ask *a, bool wants_json UNUSED, struct answer *ret,
		 struct error *err)
{
	_cleanup_free_ char *text = malloc(PREVIEW_MAX);
	_cleanup_attempt_ struct attempt attempt;
	_cleanup_close_ int fd = -1;
	const struct output *o;
	ssize_t n;

	attempt_init(&attempt);
	if (!text)
		return error_memory(err);
	if (open_output(h, a, &attempt, &o, &fd, err) < 0)
		return -EINVAL;
	n = pread(fd, text, PREVIEW_MAX, 0);
	if (n < 0)
		return error_system(err, errno, "cannot read an output");
	return draw(a, o, text, (size_t)n, ret, err);
}
