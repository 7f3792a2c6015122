#include "plot.h"

#include "print.h"

enum { WIDTH = 640, HEIGHT = 140, LEFT = 76, RIGHT = 10, TOP = 8, BOTTOM = 22 };

static double across(const struct plot *p, double x)
{
	return LEFT + (WIDTH - LEFT - RIGHT) * (p->x_most > 0 ? x / p->x_most : 0);
}

static double down(const struct plot *p, double y)
{
	return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (p->y_most > 0 ? y / p->y_most : 0);
}

static void put(struct html *h, double value)
{
	html_printf(h, "%.1f", value);
}

void plot_label(struct html *h, double x, double y, const char *anchor, const char *text)
{
	html_raw(h, "<text x=\"");
	put(h, x);
	html_raw(h, "\" y=\"");
	put(h, y);
	html_raw(h, "\"");
	html_attr(h, "text-anchor", anchor);
	html_raw(h, ">");
	html_text(h, text);
	html_raw(h, "</text>");
}

void plot_rect(struct html *h, const char *class, const double at[4])
{
	static const char *const names[] = {" x=\"", "\" y=\"", "\" width=\"", "\" height=\""};

	html_raw(h, "<rect");
	html_attr(h, "class", class);
	for (int i = 0; i < 4; i++) {
		html_raw(h, names[i]);
		put(h, at[i]);
	}
	html_raw(h, "\"/>");
}

static void draw_axes(struct html *h, const struct plot *p)
{
	char text[PRINT_ROOM];

	for (int i = 0; i <= 2; i++) {
		double y = p->y_most * i / 2, x = p->x_most * i / 2;

		html_raw(h, "<line class=\"grid\" x1=\"");
		put(h, LEFT);
		html_raw(h, "\" x2=\"");
		put(h, WIDTH - RIGHT);
		html_raw(h, "\" y1=\"");
		put(h, down(p, y));
		html_raw(h, "\" y2=\"");
		put(h, down(p, y));
		html_raw(h, "\"/>");
		plot_label(h, LEFT - 6, down(p, y) + 4, "end", p->y_words((int64_t)y, text));
		plot_label(h, across(p, x), HEIGHT - 6,
			   i == 0   ? "start"
			   : i == 1 ? "middle"
				    : "end",
			   p->x_words((int64_t)x, text));
	}
}

/* They differ by their dashes too (style.css). */
static const char *const classes[PLOT_SERIES_MAX] = {"curve-a", "curve-b"};

static void draw_legend(struct html *h, const struct plot *p)
{
	if (p->n_series < 2)
		return;
	for (size_t i = 0; i < p->n_series; i++) {
		html_raw(
			h,
			" <span class=\"key\"><svg viewBox=\"0 0 28 8\" aria-hidden=\"true\"><line x1=\"0\" x2=\"28\" y1=\"4\" y2=\"4\"");
		html_attr(h, "class", classes[i]);
		html_raw(h, "/></svg> ");
		html_text(h, p->series[i].name);
		html_raw(h, "</span>");
	}
}

static void draw_series(struct html *h, const struct plot *p, size_t which)
{
	const struct plot_series *s = &p->series[which];

	html_raw(h, "<polyline");
	html_attr(h, "class", classes[which]);
	html_raw(h, " points=\"");
	for (size_t i = 0; i < s->n; i++) {
		html_raw(h, i ? " " : "");
		put(h, across(p, s->points[i].x));
		html_raw(h, ",");
		put(h, down(p, s->points[i].y));
	}
	html_raw(h, "\"/>");
}

void plot_curves(struct html *h, const struct plot *p)
{
	html_raw(h, "<figure class=\"plot\"><figcaption>");
	html_text(h, p->title);
	draw_legend(h, p);
	html_raw(h, "</figcaption><svg role=\"img\" viewBox=\"0 0 640 140\"");
	html_attr(h, "aria-label", p->title);
	html_raw(h, ">");
	draw_axes(h, p);
	for (size_t i = 0; i < p->n_series; i++)
		draw_series(h, p, i);
	html_raw(h, "</svg></figure>\n");
}
