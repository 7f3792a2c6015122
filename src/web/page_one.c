/*
 * One analysis: what `show` has.
 */
#include "pages.h"

#include <stdlib.h>
#include <string.h>

#include "plot.h"
#include "text.h"

/* Each is decoded by a process of its own. */
enum { THUMBNAILS_MAX = 100 };

/* ---- facts ---- */

static void fact_begin(struct html *h, const char *name)
{
	html_element(h, "dt", NULL, name);
	html_raw(h, "<dd>");
}

static void fact(struct html *h, const char *name, const char *text)
{
	if (!text || !*text)
		return;
	fact_begin(h, name);
	html_text(h, text);
	html_raw(h, "</dd>\n");
}

static void fact_instant(struct html *h, const json_t *one, const char *name, const char *key)
{
	if (!json_is_string(json_object_get(one, key)))
		return;
	fact_begin(h, name);
	words_instant(h, json_object_get(one, key));
	html_raw(h, "</dd>\n");
}

static void fact_usage(struct html *h, const json_t *usage, const char *name, const char *key,
		       void (*words)(struct html *h, const json_t *value))
{
	const json_t *value = json_object_get(usage, key);

	if (!json_is_integer(value))
		return;
	fact_begin(h, name);
	words(h, value);
	html_raw(h, "</dd>\n");
}

static void words_number(struct html *h, const json_t *value)
{
	html_printf(h, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
}

static void draw_facts(struct html *h, const json_t *one)
{
	const json_t *usage = json_object_get(one, "usage"), *request = json_object_get(one, "request");

	html_raw(h, "<dl class=\"facts\">\n");
	fact(h, "Reason", words_of(one, "reason"));
	fact_begin(h, "Command");
	html_raw(h, "<code>");
	words_command(h, json_object_get(request, "command"));
	html_raw(h, "</code></dd>\n");
	fact(h, "Owner", words_of(one, "owner"));
	fact(h, "Host", words_of(one, "host"));
	fact_instant(h, one, "Created", "created");
	fact_instant(h, one, "Started", "started");
	fact_instant(h, one, "Ended", "ended");
	fact_usage(h, usage, "Wall", "wall_ms", words_duration);
	fact_usage(h, usage, "CPU", "cpu_ms", words_duration);
	fact_usage(h, usage, "Memory, at most", "memory_peak_bytes", words_size);
	fact_usage(h, usage, "Processes, at most", "pids_peak", words_number);
	html_raw(h, "</dl>\n");
}

/* ---- over time ---- */

static void draw_timeline(struct html *h, const json_t *one)
{
	const json_t *samples = json_object_get(json_object_get(one, "timeline"), "samples");

	struct plot_usage usage = {.samples = samples};

	if (json_array_size(samples) < 2)
		return;
	html_raw(h, "<section aria-labelledby=\"time\"><h2 id=\"time\">Over time</h2>\n");
	plot_usage(h, &usage, 1);
	html_raw(h, "</section>\n");
}

/* ---- lists ---- */

static void draw_thumbnail(struct html *h, const json_t *one, const json_t *o, const char *path)
{
	_cleanup_buffer_ struct buffer address = {0};

	output_address(&address, words_of(one, "id"),
		       (int)json_integer_value(json_object_get(one, "attempt")), "image", path);
	buffer_puts(&address, "&width=320&sha256=");
	url_escape(&address, words_of(o, "sha256"));
	html_raw(h, "<img class=\"thumbnail\" loading=\"lazy\"");
	html_attr(h, "src", address.data);
	html_raw(h, " alt=\"Thumbnail of ");
	html_text(h, words_of(o, "path"));
	html_raw(h, "\">");
}

/* What can be read as text, and what can be made a picture, can be looked at; everything can be saved. A path that is no text has its bytes
 * beside it. */
static void draw_path(struct html *h, const json_t *one, const json_t *o, size_t *n_pictures)
{
	const char *type = words_of(o, "media_type"), *path = words_of(o, "path");
	size_t size;
	_cleanup_free_ char *bytes = base64_decode(words_of(o, "path_b64"), &size);
	bool is_text = strncmp(type, "text/", 5) == 0 || strcmp(type, "application/json") == 0;
	bool is_picture = strcmp(type, "image/png") == 0 || strcmp(type, "image/jpeg") == 0;
	_cleanup_buffer_ struct buffer address = {0};
	const char *name = bytes && *bytes ? bytes : path;

	output_address(&address, words_of(one, "id"),
		       (int)json_integer_value(json_object_get(one, "attempt")),
		       is_text || is_picture ? "preview" : "output", name);
	html_raw(h, "<td><a");
	html_attr(h, "href", address.data);
	html_raw(h, ">");
	if (is_picture && (*n_pictures)++ < THUMBNAILS_MAX)
		draw_thumbnail(h, one, o, name);
	html_text(h, path);
	html_raw(h, "</a></td>");
}

static void draw_outputs(struct html *h, const json_t *one)
{
	const json_t *outputs = json_object_get(one, "outputs"), *o;
	size_t i, n_pictures = 0;

	if (json_array_size(outputs) == 0)
		return;
	html_raw(
		h,
		"<section aria-labelledby=\"outputs\"><h2 id=\"outputs\">Outputs</h2>\n<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Table of outputs\"><table><thead><tr><th scope=\"col\">Path</th>"
		"<th scope=\"col\" class=\"n\">Size</th><th scope=\"col\">Type</th><th scope=\"col\">SHA-256</th></tr></thead><tbody>\n");
	json_array_foreach (outputs, i, o) {
		html_raw(h, "<tr>");
		draw_path(h, one, o, &n_pictures);
		html_raw(h, "<td class=\"n\">");
		words_size(h, json_object_get(o, "size"));
		html_raw(h, "</td>");
		html_element(h, "td", NULL, words_of(o, "media_type"));
		html_raw(h, "<td><code>");
		html_bytes(h, words_of(o, "sha256"), strnlen(words_of(o, "sha256"), 12));
		html_raw(h, "</code></td></tr>\n");
	}
	html_raw(h, "</tbody></table></div></section>\n");
}

static void draw_log(struct html *h, const json_t *logs, const char *name, const char *title)
{
	const json_t *log = json_object_get(logs, name);
	const char *head = words_of(log, "head"), *tail = words_of(log, "tail");
	json_int_t omitted = json_integer_value(json_object_get(log, "omitted_bytes"));

	if (!*head && !*tail)
		return;
	html_element(h, "h3", NULL, title);
	html_raw(h, "<pre class=\"log\" tabindex=\"0\">");
	html_text(h, head);
	html_raw(h, "</pre>\n");
	if (omitted > 0) {
		html_raw(h, "<p>");
		html_printf(h, "%" JSON_INTEGER_FORMAT " bytes were not kept.", omitted);
		html_raw(h, "</p>\n");
	}
	if (*tail) {
		html_raw(h, "<pre class=\"log\" tabindex=\"0\">");
		html_text(h, tail);
		html_raw(h, "</pre>\n");
	}
}

static void draw_logs(struct html *h, const json_t *logs)
{
	if (!logs)
		return;
	html_raw(h, "<section aria-labelledby=\"log\"><h2 id=\"log\">What it wrote</h2>\n");
	draw_log(h, logs, "stdout", "Standard output");
	draw_log(h, logs, "stderr", "Standard error");
	draw_log(h, logs, "post_process", "Post-process");
	html_raw(h, "</section>\n");
}

static void draw_layers(struct html *h, const json_t *one)
{
	const json_t *layers = json_object_get(json_object_get(one, "receipt"), "layers"), *layer;
	size_t i;

	if (json_array_size(layers) == 0)
		return;
	html_raw(h, "<details><summary><h2>Receipt</h2></summary>\n<table><tbody>\n");
	json_array_foreach (layers, i, layer) {
		html_raw(h, "<tr>");
		html_element(h, "th", NULL, words_of(layer, "name"));
		html_element(h, "td", json_is_true(json_object_get(layer, "held")) ? "good" : "bad",
			     json_is_true(json_object_get(layer, "held")) ? "held" : "not held");
		html_element(h, "td", NULL, words_of(layer, "detail"));
		html_raw(h, "</tr>\n");
	}
	html_raw(h, "</tbody></table></details>\n");
}

static void draw_attempts(struct html *h, const json_t *one)
{
	const json_t *attempts = json_object_get(one, "attempts"), *a;
	size_t i;

	if (json_array_size(attempts) < 2)
		return;
	html_raw(h, "<section aria-labelledby=\"attempts\"><h2 id=\"attempts\">Attempts</h2>\n<ol>\n");
	json_array_foreach (attempts, i, a) {
		char number[16];

		snprintf(number, sizeof number, "%d", (int)json_integer_value(json_object_get(a, "attempt")));
		html_raw(h, "<li><a");
		html_href(h, "/a/", words_of(one, "id"), "attempt", number);
		html_raw(h, ">");
		words_verdict(h, "", words_of(a, "verdict"));
		html_raw(h, "</a> ");
		words_instant(h, json_object_get(a, "created"));
		html_raw(h, "</li>\n");
	}
	html_raw(h, "</ol></section>\n");
}

/* What it has written so far comes by itself; without a script the page says how to see it. */
static void draw_live_log(struct html *h, const char *id)
{
	html_raw(
		h,
		"<section aria-labelledby=\"log\"><h2 id=\"log\">What it writes</h2>\n<pre class=\"log\" id=\"live\" tabindex=\"0\" aria-live=\"off\"");
	html_attr(h, "data-log", id);
	html_raw(h, "></pre>\n<noscript><p>It runs: <code>fumehood logs --follow ");
	html_text(h, id);
	html_raw(h, "</code> shows it as it comes.</p></noscript></section>\n");
}

static int draw(const json_t *one, const json_t *logs, bool runs_here, struct answer *ret, struct error *err)
{
	const char *id = words_of(one, "id");
	struct html h = {0};
	int r;

	frame_begin(&h, id, NULL, strcmp(words_of(one, "state"), "finished") != 0);
	html_raw(&h, "<h1>");
	html_text(&h, id);
	html_raw(&h, " ");
	words_verdict(&h, words_of(one, "state"), words_of(one, "verdict"));
	html_raw(&h, "</h1>\n");
	draw_facts(&h, one);
	draw_timeline(&h, one);
	draw_outputs(&h, one);
	if (runs_here)
		draw_live_log(&h, id);
	else
		draw_logs(&h, logs);
	draw_attempts(&h, one);
	draw_layers(&h, one);
	frame_end(&h);
	r = frame_answer(&h, ret, err);
	html_done(&h);
	return r;
}

static bool runs_here(struct hood *h, const char *id)
{
	struct error ignored = ERROR_INIT;
	struct live live = {0};
	bool runs;

	if (hood_live(h, id, &live, &ignored) < 0)
		return false;
	runs = live.alive && !live.held;
	live_done(&live);
	return runs;
}

int page_one(struct hood *h, const struct ask *a, bool wants_json, struct answer *ret, struct error *err)
{
	json_t *one = NULL, *logs = NULL;
	struct error ignored = ERROR_INIT;
	int attempt = 0, r = id_check(a->parts[1], err);

	if (r == 0)
		r = pages_attempt(a, &attempt, err);
	if (r == 0)
		r = view_show(h, a->parts[1], attempt, &one, err);
	if (r < 0)
		return r;
	if (wants_json)
		return answer_json(ret, one, err);
	/* One that has not ended has none in the ledger. */
	(void)view_logs(h, a->parts[1], attempt, &logs, &ignored);
	r = draw(one, logs, !attempt && runs_here(h, a->parts[1]), ret, err);
	json_decref(one);
	json_decref(logs);
	return r;
}
