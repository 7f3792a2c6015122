#include "pages.h"

#include <string.h>

static const struct {
	const char *path, *title;
} menu[] = {{"/", "Analyses"},
	    {"/queue", "Queue"},
	    {"/timeline", "Timeline"},
	    {"/numbers", "Numbers"},
	    {"/compare", "Compare"}};

void frame_begin(struct html *h, const char *title, const char *here, bool live)
{
	html_raw(h, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>");
	html_text(h, title);
	html_raw(
		h,
		" · Fumehood</title>\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		"<meta name=\"color-scheme\" content=\"light dark\">\n"
		"<link rel=\"stylesheet\" href=\"/assets/style.css\">\n<link rel=\"icon\" href=\"/assets/icon.svg\">\n"
		"<script type=\"module\" src=\"/assets/page.js\"></script>\n</head>\n<body");
	html_raw(h, live ? " data-live>\n" : ">\n");
	html_raw(
		h,
		"<a class=\"skip\" href=\"#main\">Skip to what it says</a>\n<header>\n<nav aria-label=\"Pages\">");
	for (size_t i = 0; i < ARRAY_SIZE(menu); i++) {
		html_raw(h, "<a");
		html_href(h, menu[i].path, NULL, NULL, NULL);
		html_attr(h, "aria-current", here && strcmp(here, menu[i].path) == 0 ? "page" : NULL);
		html_raw(h, ">");
		html_text(h, menu[i].title);
		html_raw(h, "</a>");
	}
	html_raw(h, "</nav>\n</header>\n<main id=\"main\">\n");
}

int frame_answer(struct html *h, struct answer *ret, struct error *err)
{
	html_raw(h, "</main>\n<footer>Fumehood " FUMEHOOD_VERSION "</footer>\n</body>\n</html>\n");
	return answer_html(h, ret, err);
}

int answer_html(struct html *h, struct answer *ret, struct error *err)
{
	if (buffer_check(&h->out, err) < 0) {
		html_done(h);
		return -1;
	}
	buffer_free(&ret->body);
	ret->body = h->out;
	h->out = (struct buffer){0};
	ret->type = "text/html; charset=utf-8";
	return 0;
}
