#include "one.h"

#include <stdlib.h>
#include <string.h>

#include "pages.h"

enum { ROWS_MAX = 500 };

static size_t shown_of(const json_t *list)
{
	return json_array_size(list) < ROWS_MAX ? json_array_size(list) : ROWS_MAX;
}

/* ---- steps ---- */

static void draw_step(struct html *h, const json_t *step)
{
	const json_t *usage = json_object_get(step, "usage");

	html_raw(h, "<tr><td>");
	words_verdict(h, "", words_of(step, "verdict"));
	html_raw(h, "</td><td class=\"n\">");
	words_duration(h, json_object_get(usage, "wall_ms"));
	html_raw(h, "</td><td class=\"n\">");
	words_size(h, json_object_get(usage, "memory_peak_bytes"));
	html_raw(h, "</td><td><code>");
	words_command(h, json_object_get(step, "command"));
	html_raw(h, "</code></td>");
	html_element(h, "td", NULL, words_of(step, "reason"));
	html_raw(h, "</tr>\n");
}

void one_draw_steps(struct html *h, const struct one *o)
{
	const json_t *steps = json_object_get(o->analysis, "steps");

	if (json_array_size(steps) == 0)
		steps = json_object_get(o->analysis, "held_steps");
	if (json_array_size(steps) == 0)
		return;
	one_section(h, o, "steps", "Steps");
	one_table(h, o, "Steps", "Verdict|#Wall|#Memory|Command|Reason");
	for (size_t i = 0; i < shown_of(steps); i++)
		draw_step(h, json_array_get(steps, i));
	html_raw(h, "</tbody></table></div>\n");
	one_more(h, json_array_size(steps), shown_of(steps));
	html_raw(h, "</section>\n");
}

/* ---- what was denied ---- */

void one_draw_denials(struct html *h, const struct one *o)
{
	const json_t *denials = json_object_get(o->analysis, "denials"), *d;
	json_int_t more = json_integer_value(json_object_get(o->analysis, "denials_more"));
	size_t i;

	if (json_array_size(denials) == 0)
		return;
	one_section(h, o, "denials", "What was denied");
	html_raw(h, "<ul>\n");
	json_array_foreach (denials, i, d) {
		json_int_t count = json_integer_value(json_object_get(d, "count"));

		html_raw(h, "<li><code>");
		html_text(h, words_of(d, "operation"));
		html_raw(h, " ");
		html_text(h, words_of(d, "target"));
		html_raw(h, "</code> (");
		html_text(h, words_of(d, "errno"));
		if (count > 1)
			html_printf(h, ", %" JSON_INTEGER_FORMAT " times", count);
		html_raw(h, ")");
		html_raw(h, *words_of(d, "hint") ? ": " : "");
		html_text(h, words_of(d, "hint"));
		html_raw(h, "</li>\n");
	}
	html_raw(h, "</ul>\n");
	one_more(h, (size_t)(more > 0 ? more : 0), 0);
	html_raw(h, "</section>\n");
}

/* ---- files ---- */

static void draw_input(struct html *h, const struct one *o, const json_t *input)
{
	const char *from = words_of(input, "from_analysis"), *sha256 = words_of(input, "sha256");

	html_raw(h, "<tr>");
	html_raw(h, "<td>");
	html_name(h, words_of(input, "path"));
	html_raw(h, "</td>");
	html_raw(h, "<td class=\"n\">");
	words_size(h, json_object_get(input, "size"));
	html_raw(h, "</td><td>");
	if (*from)
		one_link(h, o, from, json_object_get(input, "from_attempt"));
	else
		html_text(h, words_of(input, "source"));
	html_raw(h, "</td><td><code>");
	html_bytes(h, sha256, strnlen(sha256, o->is_report ? 64 : 12));
	html_raw(h, "</code></td></tr>\n");
}

void one_draw_inputs(struct html *h, const struct one *o)
{
	const json_t *inputs = json_object_get(o->analysis, "inputs");

	if (json_array_size(inputs) == 0)
		return;
	one_section(h, o, "inputs", "Inputs");
	one_table(h, o, "Inputs", "Path|#Size|From|SHA-256");
	for (size_t i = 0; i < shown_of(inputs); i++)
		draw_input(h, o, json_array_get(inputs, i));
	html_raw(h, "</tbody></table></div>\n");
	one_more(h, json_array_size(inputs), shown_of(inputs));
	html_raw(h, "</section>\n");
}

void one_draw_refused(struct html *h, const struct one *o)
{
	const json_t *refused = json_object_get(o->analysis, "rejected_outputs"),
		     *missing = json_object_get(o->analysis, "missing_outputs");
	json_int_t more = json_integer_value(json_object_get(o->analysis, "rejected_outputs_more"));

	if (json_array_size(refused) == 0 && json_array_size(missing) == 0)
		return;
	one_section(h, o, "refused", "Outputs that are not there");
	html_raw(h, "<ul>\n");
	for (size_t i = 0; i < shown_of(missing); i++) {
		html_raw(h, "<li><code>");
		html_text(h, json_string_value(json_array_get(missing, i)));
		html_raw(h, "</code>: nothing is like that</li>\n");
	}
	for (size_t i = 0; i < shown_of(refused); i++) {
		html_raw(h, "<li><code>");
		html_name(h, words_of(json_array_get(refused, i), "path"));
		html_raw(h, "</code>: ");
		html_text(h, words_of(json_array_get(refused, i), "reason"));
		html_raw(h, "</li>\n");
	}
	html_raw(h, "</ul>\n");
	one_more(h, json_array_size(refused) + (size_t)(more > 0 ? more : 0), shown_of(refused));
	html_raw(h, "</section>\n");
}

/* ---- the plan ---- */

static void draw_json(struct html *h, const json_t *json, const char *title)
{
	_cleanup_free_ char *text = json_is_object(json) ? json_dumps(json, JSON_INDENT(2)) : NULL;

	if (!text)
		return;
	html_raw(h, "<details><summary><h2>");
	html_text(h, title);
	html_raw(h, "</h2></summary>\n<pre class=\"log\" tabindex=\"0\">");
	html_text(h, text);
	html_raw(h, "</pre></details>\n");
}

void one_draw_plan(struct html *h, const struct one *o)
{
	draw_json(h, json_object_get(o->analysis, "request"), "Request");
	draw_json(h, json_object_get(o->analysis, "plan"), "Plan");
}
