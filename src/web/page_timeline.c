/*
 * Who ran when, on which host, and where it waited: as a picture with a lane for each that a host did at once, and the same as a table.
 */
#include "pages.h"
#include "plot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "text.h"

enum { WIDTH = 1000, LEFT = 120, LANE = 16, LANES_MAX = 300, HEAD = 20 };

struct bar {
	const json_t *row;
	const char *host;		   /* "": it has none yet */
	int64_t submitted, started, ended; /* submitted 0: it did not wait */
	size_t lane;
};

struct picture {
	struct bar *bars;
	size_t n;
	int64_t from, to;
	struct lane {
		const char *host;
		int64_t busy_until;
	} lanes[LANES_MAX];
	size_t n_lanes;
};

/* ---- where everything is ---- */

static int64_t instant_of(const json_t *row, const char *key)
{
	int64_t at = 0;

	return clock_parse(words_of(row, key), &at) < 0 ? 0 : at;
}

static int compare_bars(const void *a, const void *b)
{
	const struct bar *x = a, *y = b;
	int r = strcmp(x->host, y->host);

	return r			  ? r
	       : x->started != y->started ? (x->started < y->started ? -1 : 1)
					  : strcmp(words_of(x->row, "id"), words_of(y->row, "id"));
}

/* The first lane of its host that is free by then. All that are there belong to hosts before, or to this. */
static size_t find_lane(struct picture *p, const struct bar *b)
{
	for (size_t i = 0; i < p->n_lanes; i++)
		if (strcmp(p->lanes[i].host, b->host) == 0 && p->lanes[i].busy_until <= b->started)
			return i;
	if (p->n_lanes == LANES_MAX)
		return LANES_MAX - 1;
	p->lanes[p->n_lanes].host = b->host;
	return p->n_lanes++;
}

static void place_bar(struct picture *p, struct bar *b, const json_t *row, int64_t now)
{
	*b = (struct bar){.row = row,
			  .host = words_of(row, "host"),
			  .submitted = instant_of(row, "submitted"),
			  .started = instant_of(row, "started"),
			  .ended = instant_of(row, "ended")};
	b->ended = b->ended ? b->ended : now;
	if (!b->started) /* it waits still */
		b->started = b->ended;
	if (b->submitted == 0 || b->submitted > b->started)
		b->submitted = b->started;
	p->from = p->from && p->from < b->submitted ? p->from : b->submitted;
	p->to = p->to > b->ended ? p->to : b->ended;
}

/* -1: memory is out. */
static int picture_make(struct picture *p, const json_t *timeline)
{
	const json_t *rows = json_object_get(timeline, "analyses"), *row;
	size_t i;

	p->bars = calloc(json_array_size(rows) + 1, sizeof *p->bars);
	if (!p->bars)
		return -1;
	json_array_foreach (rows, i, row)
		place_bar(p, &p->bars[p->n++], row, instant_of(timeline, "until"));
	qsort(p->bars, p->n, sizeof *p->bars, compare_bars);
	for (i = 0; i < p->n; i++) {
		struct bar *b = &p->bars[i];

		b->lane = find_lane(p, b);
		p->lanes[b->lane].busy_until = b->ended;
	}
	if (p->to <= p->from)
		p->to = p->from + 1;
	return 0;
}

static double across(const struct picture *p, int64_t at)
{
	return LEFT + (WIDTH - LEFT) * ((double)(at - p->from) / (double)(p->to - p->from));
}

/* ---- how it looks ---- */

static const char *bar_class(const json_t *row)
{
	const char *verdict = words_of(row, "verdict");

	return strcmp(verdict, "succeeded") == 0 ? "ran-good" : *verdict ? "ran-bad" : "ran-open";
}

static void draw_link(struct html *h, const json_t *row, const char *more)
{
	const json_t *attempt = json_object_get(row, "attempt");
	char number[16];

	snprintf(number, sizeof number, "%d", (int)json_integer_value(attempt));
	html_raw(h, "<a");
	html_href(h, "/a/", words_of(row, "id"), json_is_integer(attempt) ? "attempt" : NULL, number);
	html_raw(h, more);
	html_raw(h, ">");
}

static void draw_bar(struct html *h, const struct picture *p, const struct bar *b)
{
	double y = HEAD + (double)b->lane * LANE, x = across(p, b->started), width = across(p, b->ended) - x;
	const char *verdict = words_of(b->row, "verdict");

	/* The table has the same links, for hands on the keyboard. */
	draw_link(h, b->row, " tabindex=\"-1\"");
	html_raw(h, "<title>");
	html_printf(h, "%s %s", words_of(b->row, "id"), *verdict ? verdict : words_of(b->row, "state"));
	html_raw(h, "</title>");
	if (b->submitted < b->started)
		plot_rect(h, "waited",
			  (double[]){across(p, b->submitted), y + LANE / 2 - 2, x - across(p, b->submitted),
				     2});
	if (*b->host || b->started < b->ended)
		plot_rect(h, bar_class(b->row), (double[]){x, y + 1, width < 1.5 ? 1.5 : width, LANE - 3});
	html_raw(h, "</a>");
}

static void draw_time(struct html *h, const struct picture *p, int eighths)
{
	int64_t at = p->from + (p->to - p->from) / 8 * eighths;
	char text[CLOCK_TEXT_SIZE];

	clock_format(at, text);
	text[10] = ' ';
	text[19] = 0;
	plot_label(h, across(p, at), 12,
		   eighths == 0	  ? "start"
		   : eighths == 8 ? "end"
				  : "middle",
		   eighths == 0 || p->to - p->from > 86400 * (int64_t)NSEC_PER_SEC ? text + 5 : text + 11);
}

static void draw_hosts(struct html *h, const struct picture *p)
{
	for (size_t i = 0; i < p->n_lanes; i++) {
		const char *host = p->lanes[i].host;
		double y = HEAD + (double)i * LANE;

		if (i > 0 && strcmp(p->lanes[i - 1].host, host) == 0)
			continue;
		html_raw(h, "<line class=\"grid\" x1=\"0\" x2=\"1000\" y1=\"");
		html_printf(h, "%.0f", y);
		html_raw(h, "\" y2=\"");
		html_printf(h, "%.0f", y);
		html_raw(h, "\"/>");
		plot_label(h, 0, y + LANE - 2, "start", *host ? SHOWN(20, host) : "waiting");
	}
}

static void draw_picture(struct html *h, const struct picture *p)
{
	size_t height = HEAD + p->n_lanes * LANE + 4;

	html_raw(
		h,
		"<figure class=\"plot lanes\" tabindex=\"0\"><figcaption>Filled: it ran; outlined: it did not succeed; a thin line: it waited. Each is a link."
		"</figcaption><svg aria-hidden=\"true\" viewBox=\"0 0 1000 ");
	html_printf(h, "%zu", height);
	html_raw(h, "\">");
	draw_hosts(h, p);
	for (int eighths = 0; eighths <= 8; eighths += 2)
		draw_time(h, p, eighths);
	for (size_t i = 0; i < p->n; i++)
		draw_bar(h, p, &p->bars[i]);
	html_raw(h, "</svg></figure>\n");
}

static void draw_stretch(struct html *h, int64_t ns)
{
	char text[PRINT_ROOM];

	html_raw(h, "<td class=\"n\">");
	html_text(h, ns > 0 ? print_duration(ns / (int64_t)NSEC_PER_MSEC, text) : "–");
	html_raw(h, "</td>");
}

static void draw_row(struct html *h, const struct bar *b)
{
	const char *who = words_of(b->row, "submitter");

	html_raw(h, "<tr><td>");
	draw_link(h, b->row, "");
	html_text(h, words_of(b->row, "id"));
	html_raw(h, "</a></td><td>");
	words_verdict(h, words_of(b->row, "state"), words_of(b->row, "verdict"));
	html_raw(h, "</td>");
	html_element(h, "td", NULL, *b->host ? b->host : "–");
	html_element(h, "td", NULL, *who ? who : words_of(b->row, "owner"));
	draw_stretch(h, b->started - b->submitted);
	html_raw(h, "<td>");
	words_instant(h, json_object_get(b->row, "started"));
	html_raw(h, "</td>");
	draw_stretch(h, b->ended - b->started);
	html_raw(h, "</tr>\n");
}

static void draw_table(struct html *h, const struct picture *p)
{
	html_table(h, "Timeline", NULL, "Id|Verdict|Host|Who|#Waited|Started (UTC)|#Ran");
	for (size_t i = 0; i < p->n; i++)
		draw_row(h, &p->bars[i]);
	html_raw(h, "</tbody></table></div>\n");
}

static int draw(const json_t *timeline, const struct ask *a, struct answer *ret, struct error *err)
{
	_cleanup_free_ struct picture *p = calloc(1, sizeof *p);
	struct html h = {0};

	if (!p || picture_make(p, timeline) < 0)
		return error_memory(err);
	frame_begin(&h, "Timeline", "/timeline", false);
	html_raw(&h, "<h1>Timeline</h1>\n");
	pages_span_form(&h, a, "/timeline", TIMELINE_SINCE);
	if (p->n) {
		draw_picture(&h, p);
		draw_table(&h, p);
	} else {
		html_raw(&h, "<p>Nothing ran then.</p>\n");
	}
	if (json_is_true(json_object_get(timeline, "more")))
		html_raw(&h, "<p>There are older ones: ask for less with since and until.</p>\n");
	free(p->bars);
	return frame_answer(&h, ret, err);
}

int page_timeline(struct hood *h, const struct ask *a, bool wants_json, struct answer *ret, struct error *err)
{
	return pages_of_span(h, a, TIMELINE_SINCE, view_timeline, wants_json ? NULL : draw, ret, err);
}
