#include "pages.h"

#include <string.h>

#include "text.h"

const struct page pages[] = {
	{"", NULL, page_list},		 {"a", "", page_one},
	{"a", "output", page_output},	 {"a", "preview", page_preview},
	{"compare", NULL, page_compare}, {"numbers", NULL, page_numbers},
	{"queue", NULL, page_queue},	 {"timeline", NULL, page_timeline},
	{"workers", NULL, page_workers}, {0},
};

static bool is_page(const struct page *p, const struct ask *a)
{
	if (strcmp(p->name, a->n_parts ? a->parts[0] : "") != 0)
		return false;
	if (!p->within)
		return a->n_parts <= 1;
	return *p->within ? a->n_parts == 3 && strcmp(a->parts[2], p->within) == 0 : a->n_parts == 2;
}

int pages_answer(struct hood *h, const struct ask *a, bool wants_json, struct answer *ret, struct error *err)
{
	for (const struct page *p = pages; p->name; p++)
		if (is_page(p, a))
			return p->answer(h, a, wants_json, ret, err);
	return error_set(err, ERROR_NOT_FOUND, "there is no page '/%s' here",
			 SHOWN(64, a->n_parts ? a->parts[0] : ""));
}

int pages_number(const struct ask *a, const char *name, int *ret, struct error *err)
{
	const char *text = ask_param(a, name);

	if (text && int_parse(text, 1, INT32_MAX, ret) < 0)
		return error_set(err, ERROR_USAGE, "%s wants a number from 1 on, not '%s'", name,
				 SHOWN(32, text));
	return 0;
}

int pages_attempt(const struct ask *a, int *ret, struct error *err)
{
	return pages_number(a, "attempt", ret, err);
}

/* ---- of when ---- */

int pages_of_span(struct hood *h, const struct ask *a, const char *since, span_view_fn view,
		  span_draw_fn draw, struct answer *ret, struct error *err)
{
	const char *from = ask_param(a, "since"), *to = ask_param(a, "until");
	struct view_filter f = {0};
	json_t *seen = NULL;
	int r;

	if (view_filter_set(&f, "since", from ? from : since, err) < 0 ||
	    (to && view_filter_set(&f, "until", to, err) < 0) || view(h, &f, &seen, err) < 0)
		return -1;
	if (!draw)
		return answer_json(ret, seen, err);
	r = draw(seen, a, ret, err);
	json_decref(seen);
	return r;
}

void pages_span_form(struct html *h, const struct ask *a, const char *path, const char *since)
{
	const char *from = ask_param(a, "since");

	html_raw(h, "<form class=\"filters\" method=\"get\"");
	html_attr(h, "action", path);
	html_raw(h, ">\n<label>Since <input name=\"since\" placeholder=\"2h, 2026-11-15\"");
	html_attr(h, "value", from ? from : since);
	html_raw(h, "></label>\n<label>Until <input name=\"until\" placeholder=\"now\"");
	html_attr(h, "value", ask_param(a, "until"));
	html_raw(h, "></label>\n<button>Show</button>\n</form>\n");
}

/* ---- files of our own ---- */

extern const char asset_page[], asset_login[], asset_icon[];
extern const size_t asset_page_size, asset_login_size, asset_icon_size;

int pages_asset(const struct ask *a, struct answer *ret, struct error *err)
{
	const struct {
		const char *name, *type, *data;
		size_t size;
	} files[] = {
		{"style.css", "text/css; charset=utf-8", asset_style, asset_style_size},
		{"page.js", "text/javascript; charset=utf-8", asset_page, asset_page_size},
		{"icon.svg", "image/svg+xml", asset_icon, asset_icon_size},
		{"login.js", "text/javascript; charset=utf-8", asset_login, asset_login_size},
	};

	if (a->n_parts != 2 || strcmp(a->parts[0], "assets") != 0)
		return 1;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		if (strcmp(files[i].name, a->parts[1]) == 0) {
			ret->type = files[i].type;
			ret->is_constant = true;
			buffer_append(&ret->body, files[i].data, files[i].size);
			return buffer_check(&ret->body, err);
		}
	return 1;
}

int pages_login(bool was_wrong, struct answer *ret, struct error *err)
{
	struct html h = {0};

	html_raw(
		&h,
		"<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>Fumehood</title>\n"
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		"<meta name=\"color-scheme\" content=\"light dark\">\n"
		"<link rel=\"stylesheet\" href=\"/assets/style.css\">\n<link rel=\"icon\" href=\"/assets/icon.svg\">\n"
		"<script type=\"module\" src=\"/assets/login.js\"></script>\n</head>\n<body>\n<main id=\"main\">\n<h1>Fumehood</h1>\n");
	if (was_wrong)
		html_raw(&h, "<p class=\"error\">That is not the token of this page.</p>\n");
	html_raw(
		&h,
		"<p>The address that <code>fumehood web</code> printed opens it. Or give the token, which is the part of it after <code>#</code>:</p>\n"
		"<form method=\"post\" action=\"/login\" id=\"login\">\n<label>Token <input name=\"token\" type=\"password\" "
		"autocomplete=\"off\" required></label> <button>Look</button>\n</form>\n</main>\n</body>\n</html>\n");
	return answer_html(&h, ret, err);
}
