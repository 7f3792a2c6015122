/*
 * The pages: each loads what view.h knows, and is that as JSON, or drawn out of the very same JSON. So a page shows nothing that a program
 * could not get at the same address.
 */
#ifndef WEB_PAGES_H
#define WEB_PAGES_H

#include "answer.h"
#include "ask.h"
#include "html.h"
#include "view.h"

struct page {
	const char *name; /* the first part of its address; "" is the first page */
	const char *
		within; /* "": the second part is an id, and that is all; else what follows that; NULL: nothing follows the first */
	int (*answer)(struct hood *h, const struct ask *a, bool wants_json, struct answer *ret,
		      struct error *err);
};
/* Ends with a name of NULL. */
extern const struct page pages[];

/* ERROR_NOT_FOUND: there is no such page. */
int pages_answer(struct hood *h, const struct ask *a, bool wants_json, struct answer *ret, struct error *err);
/* Of those that need no ledger, and no right to look: how it looks, and what one may do. 1: it is none of them. */
int pages_asset(const struct ask *a, struct answer *ret, struct error *err);
/* How all of it looks. */
extern const char asset_style[];
extern const size_t asset_style_size;
/* Where the token is asked for. */
int pages_login(bool was_wrong, struct answer *ret, struct error *err);

/* ---- frame.c: what every page has around it ---- */

/* live: its rows change while one looks. */
void frame_begin(struct html *h, const char *title, const char *here, bool live);
/* The page as an answer, with its end; what was written is gone, also if it fails. */
int frame_answer(struct html *h, struct answer *ret, struct error *err);
/* The same of one that has no frame. */
int answer_html(struct html *h, struct answer *ret, struct error *err);

/* ---- words.c: values as people read them ---- */

void words_verdict(struct html *h, const char *state, const char *verdict);
void words_instant(struct html *h, const json_t *instant);
void words_duration(struct html *h, const json_t *ms);
void words_size(struct html *h, const json_t *bytes);
/* Its words with blanks between them. */
void words_command(struct html *h, const json_t *command);
const char *words_of(const json_t *object, const char *key); /* "" if it has none */

/* ---- page_*.c ---- */

/* ?NAME=N, from 1 on; what it was, if it is not there. */
int pages_number(const struct ask *a, const char *name, int *ret, struct error *err);
/* ?attempt=N; 0: the latest. */
int pages_attempt(const struct ask *a, int *ret, struct error *err);
/* ?path=PATH of the analysis that the address names. */
int output_find(struct hood *h, const struct ask *a, struct attempt *attempt, struct ledger **ret_ledger,
		const struct output **ret, struct error *err);
/* /a/ID/WHAT?path=PATH, what is "output", "preview" or "image"; attempt 0: the latest. More may be added with "&". */
void output_address(struct buffer *b, const char *id, int attempt, const char *what, const char *path);
/* What was seen from ?since= to ?until=, drawn; draw NULL: as JSON. */
typedef int (*span_view_fn)(struct hood *h, const struct view_filter *f, json_t **ret, struct error *err);
typedef int (*span_draw_fn)(const json_t *seen, const struct ask *a, struct answer *ret, struct error *err);
int pages_of_span(struct hood *h, const struct ask *a, const char *since, span_view_fn view,
		  span_draw_fn draw, struct answer *ret, struct error *err);
void pages_span_form(struct html *h, const struct ask *a, const char *path, const char *since);
#define TIMELINE_SINCE "24h"
#define NUMBERS_SINCE  "30d"

int page_output(struct hood *h, const struct ask *a, bool wants_json, struct answer *ret, struct error *err);
int page_preview(struct hood *h, const struct ask *a, bool wants_json, struct answer *ret, struct error *err);

/* Not one of the pages: a picture may take seconds, and those who only read do not wait for it. */
struct pictures;
bool pages_is_image(const struct ask *a);
int page_image(struct hood *h, struct pictures *pictures, const struct ask *a, struct answer *ret,
	       struct error *err);

int page_compare(struct hood *h, const struct ask *a, bool wants_json, struct answer *ret, struct error *err);
int page_timeline(struct hood *h, const struct ask *a, bool wants_json, struct answer *ret,
		  struct error *err);
int page_numbers(struct hood *h, const struct ask *a, bool wants_json, struct answer *ret, struct error *err);
int page_list(struct hood *h, const struct ask *a, bool wants_json, struct answer *ret, struct error *err);
int page_one(struct hood *h, const struct ask *a, bool wants_json, struct answer *ret, struct error *err);
int page_queue(struct hood *h, const struct ask *a, bool wants_json, struct answer *ret, struct error *err);
int page_workers(struct hood *h, const struct ask *a, bool wants_json, struct answer *ret, struct error *err);

#endif
