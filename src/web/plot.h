/*
 * Plots, as SVG within a page: shapes with attributes, no style and no script, so that the strictest policy shows them.
 */
#ifndef WEB_PLOT_H
#define WEB_PLOT_H

#include <jansson.h>

#include "html.h"

struct plot_point {
	double x, y;
};
/* One of the curves of a plot, its points in the order of x. name: what it is called where there are several. */
struct plot_series {
	const char *name;
	struct plot_point *points;
	size_t n;
};
enum { PLOT_SERIES_MAX = 2 };
/* Curves over time, over each other. words: a value as people read it, into a room of PRINT_ROOM. */
struct plot {
	const char *title;
	struct plot_series series[PLOT_SERIES_MAX];
	size_t n_series;
	double x_most, y_most; /* the ends of both axes; they begin at 0 */
	const char *(*x_words)(int64_t value, char *out);
	const char *(*y_words)(int64_t value, char *out);
};
void plot_curves(struct html *h, const struct plot *p);

/* What other pictures are made of. at: x, y, width, height; anchor: "start", "middle" or "end". */
void plot_rect(struct html *h, const char *class, const double at[4]);
void plot_label(struct html *h, double x, double y, const char *anchor, const char *text);

/* ---- plot_usage.c: what attempts used over time ---- */

struct plot_usage {
	const char *name;
	const json_t *samples; /* of an attempt's timeline */
};
/* CPU, memory and processes; nothing if no one of them was looked at more than once. */
void plot_usage(struct html *h, const struct plot_usage *usages, size_t n);

#endif
