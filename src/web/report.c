#include "report.h"

#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "digest.h"
#include "fetch.h"
#include "one.h"
#include "pages.h"
#include "picture.h"
#include "text.h"

/* What is kept free for the names of those that come later, and the end. */
enum { RESERVE = 256 * 1024, PICTURE_BYTES_MAX = 256 * 1024, PICTURES_MAX = 60 };

struct report_id {
	char text[ID_ROOM];
};

struct report {
	struct hood *hood;
	struct report_id *ids;
	size_t n_ids;
	struct pictures *pictures; /* NULL: none can be made here */
	size_t n_pictures;
	struct html page;
};

static void report_done(struct report *r)
{
	free(r->ids);
	pictures_close(r->pictures);
	html_done(&r->page);
}

/* ---- which ---- */

struct choice {
	struct report *report;
	const char *word;
	size_t from; /* the first that this word has added */
	bool is_full;
};

static bool is_there(const struct report *r, const char *id)
{
	for (size_t i = 0; i < r->n_ids; i++)
		if (strcmp(r->ids[i].text, id) == 0)
			return true;
	return false;
}

static int add_id(void *arg, const struct view_row *row)
{
	struct choice *c = arg;
	struct report_id *added;

	if (is_there(c->report, row->attempt->id))
		return 0;
	if (c->report->n_ids == REPORT_ANALYSES_MAX) {
		c->is_full = true;
		return 0;
	}
	added = ARRAY_ADD(c->report->ids, c->report->n_ids);
	if (!added)
		return -1;
	memcpy(added->text, row->attempt->id, sizeof added->text);
	return 0;
}

/* An id is meant alone, though others begin with it. */
static int choose(struct report *r, const char *word, struct error *err)
{
	struct choice c = {.report = r, .word = word, .from = r->n_ids};
	struct view_filter f = {.limit = REPORT_ANALYSES_MAX + 1};
	struct error ignored = ERROR_INIT;
	json_auto_t *one = NULL;

	if (id_check(word, NULL) == 0 && view_show(r->hood, word, 0, &one, &ignored) == 0 &&
	    json_object_get(one, "usage")) {
		struct attempt a = {0};
		struct view_row row = {.attempt = &a};

		snprintf(a.id, sizeof a.id, "%s", word);
		return add_id(&c, &row) < 0 ? error_memory(err) : 0;
	}
	if (view_filter_set(&f, "id", word, err) < 0 || view_list_each(r->hood, &f, add_id, &c, err) < 0)
		return -1;
	if (c.is_full)
		return error_set(err, ERROR_REFUSED, "a report has %d analyses at most: give less than '%s'",
				 REPORT_ANALYSES_MAX, SHOWN(64, word));
	if (r->n_ids == c.from)
		return error_set(err, ERROR_NOT_FOUND, "there is no analysis '%s', and none that begins so",
				 SHOWN(64, word));
	return 0;
}

/* ---- pictures ---- */

struct album {
	struct report *report;
	struct ledger *ledger;
	struct attempt attempt;
};

static const struct output *find_output(const struct album *a, const json_t *output)
{
	const char *bytes = json_string_value(json_object_get(output, "path_b64"));
	size_t size;
	_cleanup_free_ char *path = bytes ? base64_decode(bytes, &size) : strdup(words_of(output, "path"));

	return path ? fetch_find(&a->attempt.manifest, path) : NULL;
}

/* What cannot be made a picture is a line as any other. */
static void draw_picture(struct html *h, const struct one *o, const json_t *output)
{
	struct album *a = o->picture_arg;
	const struct output *found = find_output(a, output);
	_cleanup_buffer_ struct buffer png = {0};
	_cleanup_free_ char *text = NULL;
	struct error ignored = ERROR_INIT;

	if (!a->report->pictures || !found || !picture_is_likely(found) ||
	    a->report->n_pictures == PICTURES_MAX ||
	    picture_of_output(a->report->pictures, a->ledger, found, PICTURE_SMALL, &png, &ignored) < 0 ||
	    png.size > PICTURE_BYTES_MAX)
		return;
	text = base64_encode(png.data, png.size);
	if (!text)
		return;
	a->report->n_pictures++;
	html_raw(h, "<img class=\"thumbnail\" src=\"data:image/png;base64,");
	html_text(h, text);
	html_raw(h, "\" alt=\"Thumbnail of ");
	html_name(h, words_of(output, "path"));
	html_raw(h, "\"> ");
}

/* ---- one ---- */

static void draw_name(struct html *h, const struct one *o)
{
	html_raw(h, "<article>\n<h1>");
	html_text(h, words_of(o->analysis, "id"));
	html_raw(h, " ");
	words_verdict(h, words_of(o->analysis, "state"), words_of(o->analysis, "verdict"));
	html_raw(h, "</h1>\n");
}

static void draw_whole(struct html *h, const struct one *o)
{
	draw_name(h, o);
	one_draw_facts(h, o);
	one_draw_logs(h, o);
	one_draw_rest(h, o);
	html_raw(h, "</article>\n");
}

/* Takes what was drawn, if it fits. */
static bool take_part(struct report *r, struct html *part)
{
	bool fits = r->page.out.size + part->out.size + RESERVE <= REPORT_BYTES_MAX;

	if (buffer_check(&part->out, NULL) < 0)
		buffer_fail(&r->page.out);
	else if (fits)
		buffer_append(&r->page.out, part->out.data, part->out.size);
	html_done(part);
	*part = (struct html){0};
	return fits;
}

static void draw_one(struct report *r, struct one *o)
{
	struct html part = {0};

	draw_whole(&part, o);
	if (take_part(r, &part))
		return;
	o->draw_picture = NULL;
	o->logs = (json_decref(o->logs), NULL);
	draw_whole(&part, o);
	if (take_part(r, &part))
		return;
	draw_name(&r->page, o);
	html_raw(&r->page, "<p>There was no room for more of it.</p></article>\n");
}

static int add_one(struct report *r, const char *id, struct error *err)
{
	_cleanup_(one_done) struct one o = {.is_report = true, .draw_picture = draw_picture};
	struct album album = {.report = r};
	struct error ignored = ERROR_INIT;

	attempt_init(&album.attempt);
	o.picture_arg = &album;
	if (one_load(r->hood, id, 0, &o, err) < 0)
		return -1;
	if (view_load(r->hood, id, (int)json_integer_value(json_object_get(o.analysis, "attempt")),
		      &album.ledger, &album.attempt, &ignored) < 0)
		o.draw_picture = NULL;
	draw_one(r, &o);
	attempt_done(&album.attempt);
	return 0;
}

/* ---- around them ---- */

static void draw_head(struct html *h)
{
	uint8_t digest[DIGEST_SIZE];
	_cleanup_free_ char *hash = NULL;

	digest_bytes(asset_style, asset_style_size, digest);
	hash = base64_encode(digest, sizeof digest);
	html_raw(
		h,
		"<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; style-src 'sha256-");
	html_text(h, hash);
	html_raw(
		h,
		"'\">\n<title>Report · Fumehood</title>\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		"<meta name=\"color-scheme\" content=\"light dark\">\n<style>");
	buffer_append(&h->out, asset_style, asset_style_size);
	html_raw(h, "</style>\n</head>\n<body>\n<main>\n");
}

static int load_all(struct report *r, char *const *words, struct error *err)
{
	struct error ignored = ERROR_INIT;

	for (; *words; words++)
		if (choose(r, *words, err) < 0)
			return -1;
	if (pictures_open(&r->pictures, &ignored) < 0)
		r->pictures = NULL;
	draw_head(&r->page);
	for (size_t i = 0; i < r->n_ids; i++)
		if (add_one(r, r->ids[i].text, err) < 0)
			return -1;
	html_raw(&r->page, "</main>\n<footer>Fumehood " FUMEHOOD_VERSION "</footer>\n</body>\n</html>\n");
	return buffer_check(&r->page.out, err);
}

int report_make(struct hood *h, char *const *words, struct buffer *ret, size_t *ret_count, struct error *err)
{
	_cleanup_(report_done) struct report r = {.hood = h};

	if (load_all(&r, words, err) < 0)
		return -1;
	*ret_count = r.n_ids;
	*ret = r.page.out;
	r.page.out = (struct buffer){0};
	return 0;
}
