/*
 * One analysis, drawn: what `show` has, for its page and for a report.
 */
#include "one.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pages.h"
#include "plot.h"
#include "text.h"

enum { THUMBNAILS_MAX = 100, ROWS_MAX = 500, LOG_REPORTED = 32 * 1024 };

void one_section(struct html *h, const struct one *o, const char *name, const char *title)
{
	html_raw(h, "<section");
	html_attr(h, "aria-labelledby", o->is_report ? NULL : name);
	html_raw(h, "><h2");
	html_attr(h, "id", o->is_report ? NULL : name);
	html_raw(h, ">");
	html_text(h, title);
	html_raw(h, "</h2>\n");
}

void one_table(struct html *h, const struct one *o, const char *title, const char *columns)
{
	char label[ID_ROOM + 32];

	snprintf(label, sizeof label, "%s of %.*s", title, ID_ROOM, words_of(o->analysis, "id"));
	html_table(h, label, NULL, columns);
}

void one_link(struct html *h, const struct one *o, const char *id, const json_t *attempt)
{
	char number[16];

	if (!o->is_report) {
		snprintf(number, sizeof number, "%d", (int)json_integer_value(attempt));
		html_raw(h, "<a");
		html_href(h, "/a/", id, json_is_integer(attempt) ? "attempt" : NULL, number);
		html_raw(h, ">");
	}
	html_text(h, id);
	html_raw(h, o->is_report ? "" : "</a>");
}

void one_more(struct html *h, size_t n, size_t shown)
{
	if (n <= shown)
		return;
	html_raw(h, "<p>");
	html_printf(h, "And %zu more.", n - shown);
	html_raw(h, "</p>\n");
}

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

static void draw_timeline(struct html *h, const struct one *o)
{
	struct plot_usage usage = {
		.samples = json_object_get(json_object_get(o->analysis, "timeline"), "samples")};

	if (json_array_size(usage.samples) < 2)
		return;
	one_section(h, o, "time", "Over time");
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
	html_name(h, words_of(o, "path"));
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
	html_name(h, path);
	html_raw(h, "</a></td>");
}

static void draw_unlinked(struct html *h, const struct one *one, const json_t *o)
{
	html_raw(h, "<td>");
	if (one->draw_picture)
		one->draw_picture(h, one, o);
	html_name(h, words_of(o, "path"));
	html_raw(h, "</td>");
}

/* In a report nothing is linked that is not in it: the whole digest says which content is meant. */
static void draw_output(struct html *h, const struct one *one, const json_t *o, size_t *n_pictures)
{
	const char *sha256 = words_of(o, "sha256");

	html_raw(h, "<tr>");
	if (one->is_report)
		draw_unlinked(h, one, o);
	else
		draw_path(h, one->analysis, o, n_pictures);
	html_raw(h, "<td class=\"n\">");
	words_size(h, json_object_get(o, "size"));
	html_raw(h, "</td>");
	html_element(h, "td", NULL, words_of(o, "media_type"));
	html_raw(h, "<td><code>");
	html_bytes(h, sha256, strnlen(sha256, one->is_report ? 64 : 12));
	html_raw(h, "</code></td></tr>\n");
}

static void draw_outputs(struct html *h, const struct one *o)
{
	const json_t *outputs = json_object_get(o->analysis, "outputs");
	size_t n = json_array_size(outputs), shown = n < ROWS_MAX ? n : ROWS_MAX, n_pictures = 0;

	if (n == 0)
		return;
	one_section(h, o, "outputs", "Outputs");
	one_table(h, o, "Outputs", "Path|#Size|Type|SHA-256");
	for (size_t i = 0; i < shown; i++)
		draw_output(h, o, json_array_get(outputs, i), &n_pictures);
	html_raw(h, "</tbody></table></div>\n");
	one_more(h, n, shown);
	html_raw(h, "</section>\n");
}

/* Its bytes as they were written, where they are no text; a NUL in a text is one of them. Newly allocated, NULL: memory is out. */
static char *log_bytes(const json_t *log, const char *name, const char *name_b64, size_t *ret_size)
{
	const char *bytes = json_string_value(json_object_get(log, name_b64));
	const json_t *text = json_object_get(log, name);
	char *copy;

	if (bytes)
		return base64_decode(bytes, ret_size);
	*ret_size = json_string_length(text);
	copy = malloc(*ret_size + 1);
	if (copy && *ret_size)
		memcpy(copy, json_string_value(text), *ret_size);
	return copy;
}

static void draw_lines(struct html *h, const char *bytes, size_t size)
{
	html_raw(h, "<pre class=\"log\" tabindex=\"0\">");
	html_bytes(h, bytes, size);
	html_raw(h, "</pre>\n");
}

/* Of a report the beginning and the end, of a page all that was kept. */
static void draw_log(struct html *h, const struct one *o, const char *name, const char *title)
{
	const json_t *log = json_object_get(o->logs, name);
	json_int_t omitted = json_integer_value(json_object_get(log, "omitted"));
	size_t of_head = 0, of_tail = 0, most = o->is_report ? LOG_REPORTED : SIZE_MAX, head_shown,
	       tail_shown;
	_cleanup_free_ char *head = log_bytes(log, "head", "head_b64", &of_head);
	_cleanup_free_ char *tail = log_bytes(log, "tail", "tail_b64", &of_tail);

	if (!head || !tail) {
		buffer_fail(&h->out);
		return;
	}
	if (of_head + of_tail == 0)
		return;
	head_shown = of_head < most ? of_head : most;
	tail_shown = of_tail < most ? of_tail : most;
	omitted += (json_int_t)(of_head - head_shown + of_tail - tail_shown);
	html_element(h, "h3", NULL, title);
	draw_lines(h, head, head_shown);
	if (omitted > 0) {
		html_raw(h, "<p>");
		html_printf(h, "%" JSON_INTEGER_FORMAT " bytes %s.", omitted,
			    o->is_report ? "are not shown" : "were not kept");
		html_raw(h, "</p>\n");
	}
	if (tail_shown)
		draw_lines(h, tail + of_tail - tail_shown, tail_shown);
}

static bool has_words(json_t *logs)
{
	const char *name;
	json_t *log;

	json_object_foreach (logs, name, log)
		if (json_string_length(json_object_get(log, "head")) ||
		    json_string_length(json_object_get(log, "tail")))
			return true;
	return false;
}

void one_draw_logs(struct html *h, const struct one *o)
{
	if (!has_words(o->logs))
		return;
	one_section(h, o, "log", "What it wrote");
	draw_log(h, o, "stdout", "Standard output");
	draw_log(h, o, "stderr", "Standard error");
	draw_log(h, o, "post_process", "Post-process");
	html_raw(h, "</section>\n");
}

static void draw_warnings(struct html *h, const json_t *warnings)
{
	const json_t *text;
	size_t i;

	json_array_foreach (warnings, i, text)
		html_element(h, "p", NULL, json_string_value(text));
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
	html_raw(h, "</tbody></table>\n");
	draw_warnings(h, json_object_get(json_object_get(one, "receipt"), "warnings"));
	html_raw(h, "</details>\n");
}

/* This attempt and another, or what the reader will name. */
static void draw_compare(struct html *h, const json_t *one, int other, const char *words)
{
	int number = (int)json_integer_value(json_object_get(one, "attempt"));
	_cleanup_buffer_ struct buffer address = {0};

	buffer_puts(&address, "/compare?a=");
	url_escape(&address, words_of(one, "id"));
	buffer_printf(&address, "&attempt_a=%d", other ? other : number);
	if (other) {
		buffer_puts(&address, "&b=");
		url_escape(&address, words_of(one, "id"));
		buffer_printf(&address, "&attempt_b=%d", number);
	}
	html_raw(h, "<a");
	html_attr(h, "href", address.data);
	html_raw(h, ">");
	html_text(h, words);
	html_raw(h, "</a>");
}

static void draw_attempt(struct html *h, const struct one *o, const json_t *a)
{
	int number = (int)json_integer_value(json_object_get(a, "attempt"));
	char text[16];

	snprintf(text, sizeof text, "%d", number);
	html_raw(h, "<li>");
	if (!o->is_report) {
		html_raw(h, "<a");
		html_href(h, "/a/", words_of(o->analysis, "id"), "attempt", text);
		html_raw(h, ">");
	}
	html_raw(h, "Attempt ");
	html_text(h, text);
	html_raw(h, o->is_report ? ": " : "</a>: ");
	words_verdict(h, "", words_of(a, "verdict"));
	html_raw(h, " ");
	words_instant(h, json_object_get(a, "created"));
	if (!o->is_report && number != json_integer_value(json_object_get(o->analysis, "attempt"))) {
		html_raw(h, " ");
		draw_compare(h, o->analysis, number, "compare with this one");
	}
	html_raw(h, "</li>\n");
}

static void draw_attempts(struct html *h, const struct one *o)
{
	const json_t *attempts = json_object_get(o->analysis, "attempts"), *a;
	size_t i;

	if (json_array_size(attempts) > 1) {
		one_section(h, o, "attempts", "Attempts");
		html_raw(h, "<ul class=\"plain\">\n");
		json_array_foreach (attempts, i, a)
			draw_attempt(h, o, a);
		html_raw(h, "</ul></section>\n");
	}
	if (o->is_report || json_array_size(attempts) == 0)
		return;
	html_raw(h, "<p>");
	draw_compare(h, o->analysis, 0, "Compare with another analysis");
	html_raw(h, "</p>\n");
}

void one_draw_facts(struct html *h, const struct one *o)
{
	draw_facts(h, o->analysis);
	one_draw_steps(h, o);
	one_draw_denials(h, o);
	draw_timeline(h, o);
	draw_outputs(h, o);
	one_draw_refused(h, o);
}

void one_draw_rest(struct html *h, const struct one *o)
{
	one_draw_inputs(h, o);
	one_draw_lineage(h, o);
	draw_attempts(h, o);
	draw_layers(h, o->analysis);
	one_draw_plan(h, o);
}
