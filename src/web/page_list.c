/*
 * The first page: what `ls` has, a page at a time. What has not ended comes first, on the first page; what has is read from where the page before
 * ended, by its time and id, so that any page is as near as the first.
 */
#include "pages.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

enum { ROWS = 50, ROWS_MAX = 500 };

struct sheet {
	struct view_filter filter;
	json_t *rows;
	int64_t last_at; /* of the last that the ledger gave */
	char last_id[ID_ROOM];
	int n_ended;
};

/* ---- what is wanted ---- */

/* "NANOSECONDS-ID" */
static int read_cursor(struct sheet *s, const char *text, struct error *err)
{
	char *end = NULL;
	int64_t at = strtoll(text, &end, 10);

	if (at <= 0 || *end != '-' || id_check(end + 1, err) < 0)
		return error_set(err, ERROR_USAGE, "'%s' is no place in the list", SHOWN(64, text));
	s->filter.until = at;
	s->filter.before_id = end + 1;
	return 0;
}

static int read_filter(struct sheet *s, const struct ask *a, struct error *err)
{
	int r = 0;

	s->filter.limit = ROWS;
	for (size_t i = 0; r == 0 && i < a->n_params; i++) {
		const struct ask_param *p = &a->params[i];

		if (*p->value && strcmp(p->name, "before") != 0)
			r = view_filter_set(&s->filter, p->name, p->value, err);
	}
	if (r == 0 && (s->filter.limit < 1 || s->filter.limit > ROWS_MAX))
		r = error_set(err, ERROR_USAGE, "limit is from 1 to %d", ROWS_MAX);
	if (r == 0 && ask_param(a, "before"))
		r = read_cursor(s, ask_param(a, "before"), err);
	return r;
}

static int add_row(void *arg, const struct view_row *row)
{
	struct sheet *s = arg;

	if (strcmp(row->state, "finished") == 0) {
		s->n_ended++;
		s->last_at = row->attempt->created;
		memcpy(s->last_id, row->attempt->id, sizeof s->last_id);
	}
	return json_array_append_new(s->rows, view_row_json(row));
}

/* The address of the next page: this one, from where it ends. NULL: it was the last. */
static char *next_page(const struct sheet *s, const struct ask *a)
{
	_cleanup_buffer_ struct buffer b = {0};
	char cursor[32];

	if (s->n_ended < s->filter.limit || s->filter.sort)
		return NULL;
	buffer_puts(&b, "/?");
	for (size_t i = 0; i < a->n_params; i++) {
		if (!*a->params[i].value || strcmp(a->params[i].name, "before") == 0)
			continue;
		url_escape(&b, a->params[i].name);
		buffer_puts(&b, "=");
		url_escape(&b, a->params[i].value);
		buffer_puts(&b, "&");
	}
	snprintf(cursor, sizeof cursor, "before=%" PRId64 "-", s->last_at);
	buffer_puts(&b, cursor);
	url_escape(&b, s->last_id);
	return buffer_take(&b);
}

/* ---- how it looks ---- */

static void draw_field(struct html *h, const struct ask *a, const char *name, const char *title,
		       const char *hint)
{
	html_raw(h, "<label>");
	html_text(h, title);
	html_raw(h, " <input");
	html_attr(h, "name", name);
	html_attr(h, "value", ask_param(a, name));
	html_attr(h, "placeholder", hint);
	html_raw(h, "></label>\n");
}

static void draw_filters(struct html *h, const struct ask *a)
{
	html_raw(h, "<form class=\"filters\" method=\"get\" action=\"/\" role=\"search\">\n");
	draw_field(h, a, "id", "Id", "begins with, or *");
	draw_field(h, a, "verdict", "Verdict", "failed,timed_out");
	draw_field(h, a, "state", "State", "queued");
	draw_field(h, a, "submitter", "Submitter", "");
	draw_field(h, a, "since", "Since", "2h, 2026-11-15");
	draw_field(h, a, "until", "Until", "");
	html_raw(h, "<button>Show</button> <a href=\"/\">All</a>\n</form>\n");
}

static int64_t most_of(const json_t *rows, const char *key)
{
	const json_t *row;
	int64_t most = 1;
	size_t i;

	json_array_foreach (rows, i, row) {
		int64_t value = json_integer_value(json_object_get(json_object_get(row, "usage"), key));

		most = value > most ? value : most;
	}
	return most;
}

/* A number and, beside what others on this page used, a bar of it. */
static void draw_usage(struct html *h, const json_t *row, const char *key, int64_t most,
		       void (*words)(struct html *h, const json_t *value))
{
	const json_t *value = json_object_get(json_object_get(row, "usage"), key);
	int64_t n = json_integer_value(value);

	html_raw(h, "<td class=\"n\">");
	words(h, value);
	if (n > 0) {
		html_raw(
			h,
			"<svg class=\"bar\" viewBox=\"0 0 100 4\" preserveAspectRatio=\"none\" aria-hidden=\"true\"><rect height=\"4\"");
		html_raw(h, " width=\"");
		html_printf(h, "%d", (int)(n * 100 / most));
		html_raw(h, "\"/></svg>");
	}
	html_raw(h, "</td>");
}

static void draw_row(struct html *h, const json_t *row, const int64_t most[3])
{
	const char *id = words_of(row, "id"), *owner = words_of(row, "owner");
	const json_t *started = json_object_get(row, "started");

	html_raw(h, "<tr><td><a");
	html_href(h, "/a/", id, NULL, NULL);
	html_raw(h, ">");
	html_text(h, id);
	html_raw(h, "</a></td><td>");
	words_verdict(h, words_of(row, "state"), words_of(row, "verdict"));
	html_raw(h, "</td><td>");
	words_instant(h, json_is_string(started) ? started : json_object_get(row, "created"));
	html_raw(h, "</td>");
	draw_usage(h, row, "wall_ms", most[0], words_duration);
	draw_usage(h, row, "cpu_ms", most[1], words_duration);
	draw_usage(h, row, "memory_peak_bytes", most[2], words_size);
	html_element(h, "td", NULL, *owner ? owner : "–");
	html_raw(h, "<td class=\"command\"><code>");
	words_command(h, json_object_get(row, "command"));
	html_raw(h, "</code></td></tr>\n");
}

static int draw(const struct sheet *s, const struct ask *a, struct answer *ret, struct error *err)
{
	const int64_t most[3] = {most_of(s->rows, "wall_ms"), most_of(s->rows, "cpu_ms"),
				 most_of(s->rows, "memory_peak_bytes")};
	struct html h = {0};
	const json_t *row;
	size_t i;

	frame_begin(&h, "Analyses", "/", !s->filter.before_id);
	html_raw(&h, "<h1>Analyses</h1>\n");
	draw_filters(&h, a);
	html_table(&h, "Analyses", "rows", "Id|Verdict|Started (UTC)|#Wall|#CPU|#Memory|Owner|Command");
	json_array_foreach (s->rows, i, row)
		draw_row(&h, row, most);
	html_raw(&h, "</tbody></table></div>\n");
	if (json_array_size(s->rows) == 0)
		html_raw(&h, "<p>There is none that is like that.</p>\n");
	if (ret->next) {
		html_raw(&h, "<p><a rel=\"next\"");
		html_attr(&h, "href", ret->next);
		html_raw(&h, ">Older</a></p>\n");
	}
	return frame_answer(&h, ret, err);
}

int page_list(struct hood *h, const struct ask *a, bool wants_json, struct answer *ret, struct error *err)
{
	struct sheet s = {.rows = json_array()};
	int r = s.rows ? read_filter(&s, a, err) : error_memory(err);

	if (r == 0)
		r = view_list_each(h, &s.filter, add_row, &s, err);
	if (r == 0) {
		ret->next = next_page(&s, a);
		r = wants_json ? answer_json(ret, json_incref(s.rows), err) : draw(&s, a, ret, err);
	}
	json_decref(s.rows);
	return r;
}
