/*
 * The ledger in numbers: bars for each day, and tables of what commands take and of what fails most.
 */
#include "pages.h"
#include "plot.h"

#include <stdio.h>
#include <string.h>

enum { WIDTH = 1000, HEIGHT = 180, LEFT = 56, TOP = 8, BOTTOM = 22 };

/* ---- days ---- */

enum { GOOD, LEFT_OUT, BAD, KINDS };
static const struct {
	const char *title, *class;
} kinds[KINDS] = {{"succeeded", "day-good"}, {"cancelled or refused", "day-left"}, {"failed", "day-bad"}};

static int kind_of(const char *verdict)
{
	if (strcmp(verdict, "succeeded") == 0)
		return GOOD;
	return strcmp(verdict, "cancelled") == 0 || strcmp(verdict, "refused") == 0 ? LEFT_OUT : BAD;
}

struct day {
	int64_t counts[KINDS], all;
};

static struct day day_of(const json_t *row)
{
	json_t *verdicts = json_object_get(row, "verdicts"), *count;
	struct day d = {0};
	const char *name;

	json_object_foreach (verdicts, name, count) {
		d.counts[kind_of(name)] += json_integer_value(count);
		d.all += json_integer_value(count);
	}
	return d;
}

static int64_t most_of_days(const json_t *days)
{
	const json_t *row;
	int64_t most = 2;
	size_t i;

	json_array_foreach (days, i, row) {
		struct day d = day_of(row);

		most = d.all > most ? d.all : most;
	}
	return most;
}

static void draw_column(struct html *h, const json_t *row, double x, double width, int64_t most)
{
	struct day d = day_of(row);
	double y = HEIGHT - BOTTOM;

	html_raw(h, "<g><title>");
	html_printf(h, "%s: %lld, %lld of them succeeded", words_of(row, "day"), (long long)d.all,
		    (long long)d.counts[GOOD]);
	html_raw(h, "</title>");
	for (int kind = 0; kind < KINDS; kind++) {
		double height = (HEIGHT - TOP - BOTTOM) * (double)d.counts[kind] / (double)most;

		y -= height;
		if (height > 0)
			plot_rect(h, kinds[kind].class,
				  (double[]){x + 1, y, width > 3 ? width - 2 : width, height});
	}
	html_raw(h, "</g>");
}

static void draw_scale(struct html *h, int64_t most)
{
	for (int i = 0; i <= 2; i++) {
		double y = HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * i / 2.0;
		char text[32];

		snprintf(text, sizeof text, "%lld", (long long)(most * i / 2));
		plot_rect(h, "grid", (double[]){LEFT, y, WIDTH - LEFT, 0.5});
		plot_label(h, LEFT - 6, y + 4, "end", text);
	}
}

static void draw_legend(struct html *h)
{
	html_raw(h, "<figcaption>Attempts a day: ");
	for (int kind = KINDS - 1; kind >= 0; kind--) {
		html_raw(h, "<span class=\"key\"><svg viewBox=\"0 0 28 8\" aria-hidden=\"true\">");
		plot_rect(h, kinds[kind].class, (double[]){1, 1, 26, 6});
		html_raw(h, "</svg> ");
		html_text(h, kinds[kind].title);
		html_raw(h, "</span>");
	}
	html_raw(h, "</figcaption>");
}

static void draw_days_picture(struct html *h, const json_t *days)
{
	size_t n = json_array_size(days), i, step = n / 8 + 1;
	double width = n ? (double)(WIDTH - LEFT) / (double)n : 0;
	int64_t most = most_of_days(days);
	const json_t *row;

	html_raw(h, "<figure class=\"plot lanes\" tabindex=\"0\">");
	draw_legend(h);
	html_raw(
		h,
		"<svg role=\"img\" viewBox=\"0 0 1000 180\" aria-label=\"Attempts a day; the table below says the same\">");
	draw_scale(h, most);
	json_array_foreach (days, i, row) {
		double x = LEFT + width * (double)i;

		draw_column(h, row, x, width, most);
		if (i % step == 0)
			plot_label(h, x, HEIGHT - 6, "start", words_of(row, "day") + 5);
	}
	html_raw(h, "</svg></figure>\n");
}

static void number_cell(struct html *h, int64_t n)
{
	html_raw(h, "<td class=\"n\">");
	html_printf(h, "%lld", (long long)n);
	html_raw(h, "</td>");
}

static void draw_verdicts(struct html *h, const json_t *row)
{
	json_t *verdicts = json_object_get(row, "verdicts"), *count;
	const char *name, *separator = "";

	html_raw(h, "<td>");
	json_object_foreach (verdicts, name, count) {
		if (kind_of(name) == GOOD)
			continue;
		html_raw(h, separator);
		html_printf(h, "%lld %s", (long long)json_integer_value(count), name);
		separator = ", ";
	}
	html_raw(h, "</td></tr>\n");
}

static void draw_days(struct html *h, const json_t *days)
{
	html_raw(h, "<h2>Verdicts</h2>\n");
	draw_days_picture(h, days);
	html_raw(
		h,
		"<details><summary>As a table</summary>\n<table><thead><tr><th scope=\"col\">Day (UTC)</th><th scope=\"col\" class=\"n\">Attempts</th>"
		"<th scope=\"col\" class=\"n\">Succeeded</th><th scope=\"col\">Others</th></tr></thead><tbody>\n");
	for (size_t i = json_array_size(days); i-- > 0;) {
		const json_t *row = json_array_get(days, i);
		struct day d = day_of(row);

		if (d.all == 0)
			continue;
		html_raw(h, "<tr>");
		html_element(h, "td", NULL, words_of(row, "day"));
		number_cell(h, d.all);
		number_cell(h, d.counts[GOOD]);
		draw_verdicts(h, row);
	}
	html_raw(h, "</tbody></table></details>\n");
}

/* ---- commands ---- */

static void draw_cell(struct html *h, const json_t *row, const char *key,
		      void (*words)(struct html *h, const json_t *value))
{
	html_raw(h, "<td class=\"n\">");
	words(h, json_object_get(row, key));
	html_raw(h, "</td>");
}

static void draw_command(struct html *h, const json_t *row)
{
	const char *command = words_of(row, "command");

	html_raw(h, "<td class=\"command\"><code>");
	html_text(h, *command ? command : "–");
	html_raw(h, "</code></td>");
}

static void draw_of(struct html *h, const json_t *numbers, const char *key, const char *what)
{
	html_raw(h, "<p>");
	html_printf(h, "Of the newest %d %s at most.", (int)json_integer_value(json_object_get(numbers, key)),
		    what);
	html_raw(h, "</p>\n");
}

static void draw_commands(struct html *h, const json_t *numbers)
{
	const json_t *rows = json_object_get(numbers, "commands"), *row;
	size_t i;

	html_raw(h, "<h2>Time and memory by command</h2>\n");
	draw_of(h, numbers, "commands_of_newest", "attempts");
	html_table(h, "Commands", NULL,
		   "Command|#Attempts|#Without success|#Wall, mean|#Most|#Memory, mean|#Most");
	json_array_foreach (rows, i, row) {
		html_raw(h, "<tr>");
		draw_command(h, row);
		number_cell(h, json_integer_value(json_object_get(row, "count")));
		number_cell(h, json_integer_value(json_object_get(row, "failed")));
		draw_cell(h, row, "wall_mean_ms", words_duration);
		draw_cell(h, row, "wall_most_ms", words_duration);
		draw_cell(h, row, "memory_mean_bytes", words_size);
		draw_cell(h, row, "memory_most_bytes", words_size);
		html_raw(h, "</tr>\n");
	}
	html_raw(h, "</tbody></table></div>\n");
}

static void draw_failures(struct html *h, const json_t *numbers)
{
	const json_t *rows = json_object_get(numbers, "failures"), *row;
	size_t i;

	html_raw(h, "<h2>What fails most</h2>\n");
	if (json_array_size(rows) == 0) {
		html_raw(h, "<p>Nothing failed.</p>\n");
		return;
	}
	draw_of(h, numbers, "failures_of_newest", "that did not succeed");
	html_table(h, "Failures", NULL, "#How often|Verdict|Reason|Command|Last (UTC)");
	json_array_foreach (rows, i, row) {
		html_raw(h, "<tr>");
		number_cell(h, json_integer_value(json_object_get(row, "count")));
		html_raw(h, "<td><a");
		html_href(h, "/", NULL, "verdict", words_of(row, "verdict"));
		html_raw(h, ">");
		words_verdict(h, "", words_of(row, "verdict"));
		html_raw(h, "</a></td>");
		html_element(h, "td", NULL, words_of(row, "reason"));
		draw_command(h, row);
		html_raw(h, "<td>");
		words_instant(h, json_object_get(row, "last"));
		html_raw(h, "</td></tr>\n");
	}
	html_raw(h, "</tbody></table></div>\n");
}

static int draw(const json_t *numbers, const struct ask *a, struct answer *ret, struct error *err)
{
	struct html h = {0};

	frame_begin(&h, "Numbers", "/numbers", false);
	html_raw(&h, "<h1>Numbers</h1>\n");
	pages_span_form(&h, a, "/numbers", NUMBERS_SINCE);
	draw_days(&h, json_object_get(numbers, "days"));
	draw_commands(&h, numbers);
	draw_failures(&h, numbers);
	return frame_answer(&h, ret, err);
}

int page_numbers(struct hood *h, const struct ask *a, bool wants_json, struct answer *ret, struct error *err)
{
	return pages_of_span(h, a, NUMBERS_SINCE, view_numbers, wants_json ? NULL : draw, ret, err);
}
