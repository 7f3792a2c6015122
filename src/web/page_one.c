/*
 * One analysis: what `show` has.
 */
#include "pages.h"

#include <stdlib.h>
#include <string.h>

#include "one.h"
#include "text.h"

/* Each is decoded by a process of its own. */

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

static int draw(const struct one *o, bool runs_here, struct answer *ret, struct error *err)
{
	const char *id = words_of(o->analysis, "id");
	struct html h = {0};

	frame_begin(&h, id, NULL, strcmp(words_of(o->analysis, "state"), "finished") != 0);
	html_raw(&h, "<h1>");
	html_text(&h, id);
	html_raw(&h, " ");
	words_verdict(&h, words_of(o->analysis, "state"), words_of(o->analysis, "verdict"));
	html_raw(&h, "</h1>\n");
	one_draw_facts(&h, o);
	if (runs_here)
		draw_live_log(&h, id);
	else
		one_draw_logs(&h, o);
	one_draw_rest(&h, o);
	return frame_answer(&h, ret, err);
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

static int show_json(struct hood *h, const char *id, int attempt, struct answer *ret, struct error *err)
{
	json_t *one = NULL;

	if (id_check(id, err) < 0 || view_show(h, id, attempt, &one, err) < 0)
		return -1;
	return answer_json(ret, one, err);
}

int page_one(struct hood *h, const struct ask *a, bool wants_json, struct answer *ret, struct error *err)
{
	_cleanup_(one_done) struct one one = {0};
	int attempt = 0;

	if (pages_attempt(a, &attempt, err) < 0)
		return -1;
	if (wants_json)
		return show_json(h, a->parts[1], attempt, ret, err);
	if (one_load(h, a->parts[1], attempt, &one, err) < 0)
		return -1;
	return draw(&one, !attempt && runs_here(h, a->parts[1]), ret, err);
}
