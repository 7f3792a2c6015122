/*
 * One analysis, drawn out of its JSON: for its page, and for a report, which stands alone and has links only into itself.
 */
#ifndef WEB_ONE_H
#define WEB_ONE_H

#include <jansson.h>

#include "html.h"
#include "view.h"

struct one {
	json_t *analysis; /* as `show --json` */
	json_t *logs;	  /* as `logs --json`; NULL: it has none yet */
	json_t *lineage;  /* as `show --lineage --json`; NULL: it is not known */
	bool is_report;
	/* Of a report: a picture of one of its outputs, or nothing; NULL: there are none. */
	void (*draw_picture)(struct html *h, const struct one *o, const json_t *output);
	void *picture_arg;
};

/* attempt 0: the latest. To be done with one_done(). */
int one_load(struct hood *h, const char *id, int attempt, struct one *ret, struct error *err);
void one_done(struct one *o);

/* All but its name, in this order. */
void one_draw_facts(struct html *h, const struct one *o);
void one_draw_logs(struct html *h, const struct one *o);
void one_draw_rest(struct html *h, const struct one *o);

/* ---- for the files of one ---- */

/* To be ended with </section>. */
void one_section(struct html *h, const struct one *o, const char *name, const char *title);
/* Up to its first row; columns: its <th>s. To be ended with </tbody></table></div>. */
void one_table(struct html *h, const struct one *o, const char *title, const char *columns);
/* Its id; a link, unless in a report. */
void one_link(struct html *h, const struct one *o, const char *id, const json_t *attempt);
/* That of n only so many were shown. */
void one_more(struct html *h, size_t n, size_t shown);

/* one_details.c: steps, what was denied, inputs, what was refused of its outputs, the plan. */
void one_draw_steps(struct html *h, const struct one *o);
void one_draw_denials(struct html *h, const struct one *o);
void one_draw_inputs(struct html *h, const struct one *o);
void one_draw_refused(struct html *h, const struct one *o);
void one_draw_plan(struct html *h, const struct one *o);
/* one_lineage.c: what came from what, as a graph and as a list. */
void one_draw_lineage(struct html *h, const struct one *o);

#endif
