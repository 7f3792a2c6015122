/*
 * What runs now, what waits, and who is there to run it: what `top` and `workers` have.
 */
#include "pages.h"

#include <stdio.h>
#include <string.h>

static void draw_counts(struct html *h, const json_t *top)
{
	static const char *const states[] = {"running", "queued", "waiting", "restored", "cancelled"};
	const json_t *queue = json_object_get(top, "queue");

	html_raw(h, "<dl class=\"facts\">\n");
	for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
		html_raw(h, "<dt><a");
		html_href(h, "/", NULL, "state", states[i]);
		html_raw(h, ">");
		html_text(h, states[i]);
		html_raw(h, "</a></dt><dd>");
		html_printf(h, "%" JSON_INTEGER_FORMAT,
			    json_integer_value(json_object_get(queue, states[i])));
		html_raw(h, "</dd>\n");
	}
	html_raw(h, "</dl>\n");
}

static void draw_running(struct html *h, const json_t *top)
{
	const json_t *rows = json_object_get(top, "analyses"), *row;
	size_t i;

	html_raw(h, "<h2>Running</h2>\n");
	html_table(h, "Running", "rows", "Id|Host|#Age|#Memory");
	json_array_foreach (rows, i, row) {
		html_raw(h, "<tr><td><a");
		html_href(h, "/a/", words_of(row, "id"), NULL, NULL);
		html_raw(h, ">");
		html_text(h, words_of(row, "id"));
		html_raw(h, "</a></td>");
		html_element(h, "td", NULL, words_of(row, "host"));
		html_raw(h, "<td class=\"n\">");
		words_duration(h, json_object_get(row, "age_ms"));
		html_raw(h, "</td><td class=\"n\">");
		words_size(h, json_object_get(json_object_get(row, "live"), "memory_bytes"));
		html_raw(h, "</td></tr>\n");
	}
	html_raw(h, "</tbody></table></div>\n");
}

static void draw_workers(struct html *h, const json_t *workers)
{
	const json_t *w;
	size_t i;

	html_raw(h, "<h2>Workers</h2>\n");
	if (json_array_size(workers) == 0) {
		html_raw(h, "<p>No worker is known. <code>fumehood worker</code> starts one.</p>\n");
		return;
	}
	html_raw(h, "<ul>\n");
	json_array_foreach (workers, i, w) {
		html_raw(h, "<li>");
		html_text(h, words_of(w, "host"));
		html_raw(h, " ");
		words_verdict(h, words_of(w, "state"), NULL);
		html_raw(h, "</li>\n");
	}
	html_raw(h, "</ul>\n");
}

int page_queue(struct hood *h, const struct ask *a UNUSED, bool wants_json, struct answer *ret,
	       struct error *err)
{
	json_t *top = NULL, *workers = NULL;
	struct html html = {0};
	int r = view_top(h, &top, err);

	if (r < 0)
		return r;
	if (wants_json)
		return answer_json(ret, top, err);
	r = view_workers(h, &workers, err);
	if (r == 0) {
		frame_begin(&html, "Queue", "/queue", true);
		html_raw(&html, "<h1>Queue</h1>\n");
		draw_counts(&html, top);
		draw_running(&html, top);
		draw_workers(&html, workers);
		r = frame_answer(&html, ret, err);
	}
	json_decref(top);
	json_decref(workers);
	return r;
}

int page_workers(struct hood *h, const struct ask *a, bool wants_json, struct answer *ret, struct error *err)
{
	json_t *workers = NULL;

	if (!wants_json)
		return page_queue(h, a, false, ret, err);
	return view_workers(h, &workers, err) < 0 ? -1 : answer_json(ret, workers, err);
}
