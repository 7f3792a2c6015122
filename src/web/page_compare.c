/*
 * Two attempts beside each other: what view_compare() has, and the contents of outputs that differ.
 */
#include "pages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fetch.h"
#include "csv_differ.h"
#include "plot.h"
#include "text.h"

enum { CONTENTS_MAX = 12, CONTENT_BYTES_MAX = 256 * 1024, TEXT_SHOWN = 8 * 1024 };

/* ---- options ---- */

static void draw_value(struct html *h, const json_t *value)
{
	_cleanup_free_ char *text = NULL;

	html_raw(h, "<td>");
	if (json_is_string(value)) {
		html_text(h, json_string_value(value));
	} else if (value && !json_is_null(value)) {
		text = json_dumps(value, JSON_ENCODE_ANY);
		html_raw(h, "<code>");
		html_text(h, text);
		html_raw(h, "</code>");
	} else {
		html_raw(h, "–");
	}
	html_raw(h, "</td>");
}

static void draw_options(struct html *h, const json_t *rows, const char *title)
{
	const json_t *row;
	size_t i;

	html_element(h, "h2", NULL, title);
	if (json_array_size(rows) == 0) {
		html_raw(h, "<p>The same.</p>\n");
		return;
	}
	html_table(h, title, NULL, "Name|A|B");
	json_array_foreach (rows, i, row) {
		html_raw(h, "<tr><th scope=\"row\">");
		html_text(h, words_of(row, "name"));
		html_raw(h, "</th>");
		draw_value(h, json_object_get(row, "a"));
		draw_value(h, json_object_get(row, "b"));
		html_raw(h, "</tr>\n");
	}
	html_raw(h, "</tbody></table></div>\n");
}

/* ---- usage ---- */

static void words_count(struct html *h, const json_t *value)
{
	if (json_is_integer(value))
		html_printf(h, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else
		html_raw(h, "–");
}

static void draw_ratio(struct html *h, const json_t *a, const json_t *b)
{
	double x = (double)json_integer_value(a), y = (double)json_integer_value(b);

	html_raw(h, "<td class=\"n\">");
	if (x > 0 && json_is_integer(b))
		html_printf(h, "× %.2f", y / x);
	html_raw(h, "</td></tr>\n");
}

static void draw_usage(struct html *h, const json_t *both)
{
	static const struct {
		const char *title, *key;
		void (*words)(struct html *h, const json_t *value);
	} rows[] = {
		{"Wall", "wall_ms", words_duration},
		{"CPU", "cpu_ms", words_duration},
		{"Memory, at most", "memory_peak_bytes", words_size},
		{"Swap, at most", "swap_peak_bytes", words_size},
		{"Processes, at most", "pids_peak", words_count},
		{"Throttled", "throttled_ms", words_duration},
		{"Read", "read_bytes", words_size},
		{"Written", "written_bytes", words_size},
		{"Disk", "disk_bytes", words_size},
	};
	const json_t *of_a = json_object_get(json_object_get(both, "a"), "usage"),
		     *of_b = json_object_get(json_object_get(both, "b"), "usage");

	html_raw(h, "<h2>Usage</h2>\n");
	html_table(h, "Usage", NULL, "What|#A|#B|#B of A");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const json_t *a = json_object_get(of_a, rows[i].key), *b = json_object_get(of_b, rows[i].key);

		if (!json_is_integer(a) && !json_is_integer(b))
			continue;
		html_raw(h, "<tr><th scope=\"row\">");
		html_text(h, rows[i].title);
		html_raw(h, "</th><td class=\"n\">");
		rows[i].words(h, a);
		html_raw(h, "</td><td class=\"n\">");
		rows[i].words(h, b);
		html_raw(h, "</td>");
		draw_ratio(h, a, b);
	}
	html_raw(h, "</tbody></table></div>\n");
}

static void draw_curves(struct html *h, const json_t *both)
{
	static const char *const sides[] = {"a", "b"};
	char names[2][ID_ROOM + 8];
	struct plot_usage usages[2];

	for (size_t i = 0; i < 2; i++) {
		const json_t *side = json_object_get(both, sides[i]);

		snprintf(names[i], sizeof names[i], "%s: %s", i ? "B" : "A", words_of(side, "id"));
		usages[i] = (struct plot_usage){
			names[i], json_object_get(json_object_get(side, "timeline"), "samples")};
	}
	plot_usage(h, usages, 2);
}

/* ---- files ---- */

static const struct {
	const char *state, *word;
} states[] = {{"same", "the same"}, {"differs", "differs"}, {"only_a", "only in A"}, {"only_b", "only in B"}};

static const char *state_word(const json_t *file)
{
	for (size_t i = 0; i < ARRAY_SIZE(states); i++)
		if (strcmp(states[i].state, words_of(file, "state")) == 0)
			return states[i].word;
	return "";
}

static bool is_state(const json_t *file, const char *state)
{
	return strcmp(words_of(file, "state"), state) == 0;
}

static void draw_side_of_file(struct html *h, const json_t *file)
{
	html_raw(h, "<td class=\"n\">");
	if (json_is_object(file))
		words_size(h, json_object_get(file, "size"));
	html_raw(h, "</td><td><code>");
	html_bytes(h, words_of(file, "sha256"), strnlen(words_of(file, "sha256"), 12));
	html_raw(h, "</code></td>");
}

static void draw_files(struct html *h, const json_t *files, const char *title)
{
	const json_t *file;
	size_t i;

	html_element(h, "h2", NULL, title);
	if (json_array_size(files) == 0) {
		html_raw(h, "<p>Neither has any.</p>\n");
		return;
	}
	html_table(h, title, NULL, "Path|State|#A|SHA-256|#B|SHA-256");
	json_array_foreach (files, i, file) {
		html_raw(h, "<tr>");
		html_raw(h, "<td>");
		html_name(h, words_of(file, "path"));
		html_raw(h, "</td>");
		html_element(h, "td", is_state(file, "same") ? NULL : "changed", state_word(file));
		draw_side_of_file(h, json_object_get(file, "a"));
		draw_side_of_file(h, json_object_get(file, "b"));
		html_raw(h, "</tr>\n");
	}
	html_raw(h, "</tbody></table></div>\n");
}

/* ---- contents ---- */

struct contents {
	struct html *h;
	struct ledger *ledger;
	struct attempt *sides[2];
};

static bool is_type(const json_t *file, const char *type)
{
	return strcmp(words_of(json_object_get(file, "a"), "media_type"), type) == 0 &&
	       strcmp(words_of(json_object_get(file, "b"), "media_type"), type) == 0;
}

static bool is_picture(const json_t *file)
{
	return is_type(file, "image/png") || is_type(file, "image/jpeg");
}

static bool is_text(const json_t *file)
{
	const char *a = words_of(json_object_get(file, "a"), "media_type"),
		   *b = words_of(json_object_get(file, "b"), "media_type");

	return (strncmp(a, "text/", 5) == 0 || strcmp(a, "application/json") == 0) &&
	       (strncmp(b, "text/", 5) == 0 || strcmp(b, "application/json") == 0);
}

/* The path as its bytes are; newly allocated, NULL: memory is out, or it is none. */
static char *path_of(const json_t *file)
{
	const char *bytes = json_string_value(json_object_get(file, "path_b64"));
	size_t size;

	return bytes ? base64_decode(bytes, &size) : strdup(words_of(file, "path"));
}

static void draw_picture(struct html *h, const struct attempt *a, const char *path, const char *side)
{
	_cleanup_buffer_ struct buffer address = {0}, alt = {0};

	buffer_puts(&address, "/a/");
	url_escape(&address, a->id);
	buffer_printf(&address, "/image?attempt=%d&path=", a->number);
	url_escape(&address, path);
	buffer_puts(&address, "&width=320");
	buffer_printf(&alt, "%s of %s", path, side);
	html_raw(h, "<img");
	html_attr(h, "src", address.data);
	html_attr(h, "alt", alt.data);
	html_raw(h, ">");
}

/* Beside each other; where the box is ticked, over each other, what is the same in both being black (style.css). */
static void draw_pictures(struct contents *c, const char *path, size_t number)
{
	char id[32];

	snprintf(id, sizeof id, "over-%zu", number);
	html_raw(c->h, "<input type=\"checkbox\" class=\"over\"");
	html_attr(c->h, "id", id);
	html_raw(c->h, "> <label");
	html_attr(c->h, "for", id);
	html_raw(c->h, ">Show the difference: what is the same is black</label>\n<div class=\"pair\"><div>");
	draw_picture(c->h, c->sides[0], path, "A");
	html_raw(c->h, "</div><div>");
	draw_picture(c->h, c->sides[1], path, "B");
	html_raw(c->h, "</div></div>\n");
}

/* Of both sides. */
struct texts {
	struct buffer of[2];
};

static void texts_done(struct texts *t)
{
	buffer_free(&t->of[0]);
	buffer_free(&t->of[1]);
}

static int read_both(struct contents *c, const char *path, struct texts *ret, struct error *err)
{
	for (int i = 0; i < 2; i++) {
		const struct output *o = fetch_find(&c->sides[i]->manifest, path);

		if (!o)
			return error_set(err, ERROR_NOT_FOUND, "it is gone");
		if (fetch_read(c->ledger, o, CONTENT_BYTES_MAX, &ret->of[i], err) < 0)
			return -1;
	}
	return 0;
}

static int draw_tables(struct contents *c, const char *path, const struct texts *both, struct error *err)
{
	_cleanup_(csv_sheet_done) struct csv_sheet a = {0}, b = {0};
	struct csv_differ found;

	if (csv_sheet_read(&a, both->of[0].data, both->of[0].size, err) < 0 ||
	    csv_sheet_read(&b, both->of[1].data, both->of[1].size, err) < 0)
		return -1;
	found = csv_differ_draw(c->h, path, &a, &b);
	html_raw(c->h, "<p>");
	html_printf(c->h, "%zu cells differ, %zu rows are only in A, %zu only in B.%s", found.cells,
		    found.rows_a, found.rows_b,
		    a.is_cut || b.is_cut ? " There is more of it in the files." : "");
	html_raw(c->h, "</p>\n");
	return 0;
}

static void draw_texts(struct contents *c, const struct texts *both)
{
	html_raw(c->h, "<div class=\"pair\">");
	for (int i = 0; i < 2; i++) {
		html_raw(c->h, "<div><pre class=\"log\" tabindex=\"0\">");
		html_bytes(c->h, both->of[i].data ? both->of[i].data : "",
			   both->of[i].size < TEXT_SHOWN ? both->of[i].size : TEXT_SHOWN);
		html_raw(c->h, both->of[i].size > TEXT_SHOWN ? "</pre><p>This is its beginning.</p></div>"
							     : "</pre></div>");
	}
	html_raw(c->h, "</div>\n");
}

/* What cannot be shown is said in its place: the rest of the page is as good as before. */
static void draw_content(struct contents *c, const json_t *file, size_t number)
{
	_cleanup_(texts_done) struct texts both = {0};
	_cleanup_free_ char *path = path_of(file);
	struct error err = ERROR_INIT;
	int r;

	if (!path) {
		buffer_fail(&c->h->out);
		return;
	}
	if (is_picture(file)) {
		draw_pictures(c, path, number);
		return;
	}
	r = read_both(c, path, &both, &err);
	if (r == 0 && is_type(file, "text/csv"))
		r = draw_tables(c, path, &both, &err);
	else if (r == 0)
		draw_texts(c, &both);
	if (r < 0)
		html_element(c->h, "p", "error", err.message);
}

static void draw_contents(struct contents *c, const json_t *files)
{
	const json_t *file;
	size_t i, n = 0, left = 0;

	json_array_foreach (files, i, file) {
		if (!is_state(file, "differs") || !(is_picture(file) || is_text(file)))
			continue;
		if (n == CONTENTS_MAX) {
			left++;
			continue;
		}
		html_raw(c->h, "<section>");
		html_raw(c->h, "<h3>");
		html_name(c->h, words_of(file, "path"));
		html_raw(c->h, "</h3>\n");
		draw_content(c, file, n++);
		html_raw(c->h, "</section>\n");
	}
	if (left) {
		html_raw(c->h, "<p>");
		html_printf(c->h, "%zu more differ.", left);
		html_raw(c->h, "</p>\n");
	}
}

/* One that runs has none in the ledger, and nothing that differs. */
static int draw_all_contents(struct html *h, struct hood *hood, const json_t *both, struct error *err)
{
	_cleanup_attempt_ struct attempt a, b;
	struct contents c = {.h = h, .sides = {&a, &b}};
	const json_t *files = json_object_get(both, "outputs"), *file;
	static const char *const names[] = {"a", "b"};
	bool has_any = false;
	size_t i;

	attempt_init(&a);
	attempt_init(&b);
	json_array_foreach (files, i, file)
		has_any = has_any || is_state(file, "differs");
	for (int side = 0; has_any && side < 2; side++) {
		const json_t *one = json_object_get(both, names[side]);

		if (view_load(hood, words_of(one, "id"),
			      (int)json_integer_value(json_object_get(one, "attempt")), &c.ledger,
			      c.sides[side], err) < 0)
			return -1;
	}
	if (has_any)
		draw_contents(&c, files);
	return 0;
}

/* ---- the page ---- */

static void draw_name(struct html *h, const json_t *side, const char *letter)
{
	char number[16];

	snprintf(number, sizeof number, "%d", (int)json_integer_value(json_object_get(side, "attempt")));
	html_raw(h, "<li><strong>");
	html_text(h, letter);
	html_raw(h, "</strong> <a");
	html_href(h, "/a/", words_of(side, "id"), "attempt", number);
	html_raw(h, ">");
	html_text(h, words_of(side, "id"));
	html_raw(h, "</a>, attempt ");
	html_text(h, number);
	html_raw(h, ": ");
	words_verdict(h, words_of(side, "state"), words_of(side, "verdict"));
	html_raw(h, " ");
	html_text(h, words_of(side, "reason"));
	html_raw(h, " ");
	words_instant(h, json_object_get(side, "started"));
	html_raw(h, "</li>\n");
}

static void draw_form(struct html *h, const char *a, const char *b)
{
	html_raw(
		h,
		"<form class=\"filters\" method=\"get\" action=\"/compare\">\n<label>A <input name=\"a\" required placeholder=\"an id\"");
	html_attr(h, "value", a);
	html_raw(h, "></label>\n<label>B <input name=\"b\" required placeholder=\"another\"");
	html_attr(h, "value", b);
	html_raw(h, "></label>\n<button>Compare</button>\n</form>\n");
}

static int draw(struct hood *hood, const json_t *both, const struct view_side *a, const struct view_side *b,
		struct answer *ret, struct error *err)
{
	struct html h = {0};
	int r = 0;

	frame_begin(&h, "Compare", "/compare", false);
	html_raw(&h, "<h1>Compare</h1>\n");
	draw_form(&h, a->id, b->id);
	if (both) {
		html_raw(&h, "<ul class=\"plain\">\n");
		draw_name(&h, json_object_get(both, "a"), "A");
		draw_name(&h, json_object_get(both, "b"), "B");
		html_raw(&h, "</ul>\n");
		draw_options(&h, json_object_get(both, "options"), "Options");
		draw_options(&h, json_object_get(both, "limits"), "Limits");
		draw_usage(&h, both);
		draw_curves(&h, both);
		draw_files(&h, json_object_get(both, "inputs"), "Inputs");
		draw_files(&h, json_object_get(both, "outputs"), "Outputs");
		r = draw_all_contents(&h, hood, both, err);
	}
	if (r == 0)
		return frame_answer(&h, ret, err);
	html_done(&h);
	return r;
}

int page_compare(struct hood *h, const struct ask *a, bool wants_json, struct answer *ret, struct error *err)
{
	struct view_side x = {.id = ask_param(a, "a")}, y = {.id = ask_param(a, "b")};
	json_t *both = NULL;
	int r;

	if (wants_json && (!x.id || !y.id))
		return error_set(err, ERROR_USAGE, "which two? The address ends with ?a=ID&b=ID");
	if (!x.id || !y.id)
		return draw(h, NULL, &x, &y, ret, err);
	if (id_check(x.id, err) < 0 || id_check(y.id, err) < 0 ||
	    pages_number(a, "attempt_a", &x.attempt, err) < 0 ||
	    pages_number(a, "attempt_b", &y.attempt, err) < 0 || view_compare(h, &x, &y, &both, err) < 0)
		return -1;
	if (wants_json)
		return answer_json(ret, both, err);
	r = draw(h, both, &x, &y, ret, err);
	json_decref(both);
	return r;
}
