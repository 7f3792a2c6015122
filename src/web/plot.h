/*
 * Plots, as SVG within a page: shapes with attributes, no style and no script, so that the strictest policy shows them.
 */
#ifndef WEB_PLOT_H
#define WEB_PLOT_H

#include "html.h"

struct plot_point {
	double x, y;
};
/* One curve over time. Points in the order of x. words: y as people read it, into a room of PRINT_ROOM. */
struct plot {
	const char *title;
	const struct plot_point *points;
	size_t n;
	double x_most, y_most; /* the ends of both axes; they begin at 0 */
	const char *(*x_words)(int64_t value, char *out);
	const char *(*y_words)(int64_t value, char *out);
};
void plot_curve(struct html *h, const struct plot *p);

#endif
