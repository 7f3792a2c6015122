#include "one.h"

#include "pages.h"

/* What there is beside the attempt: one that has not ended has no logs in the ledger, and came from nowhere yet. */
static json_t *lineage_of(struct hood *h, const json_t *one)
{
	_cleanup_(lineage_view_done) struct lineage_view v = {0};
	struct error ignored = ERROR_INIT;
	int attempt = (int)json_integer_value(json_object_get(one, "attempt"));

	if (!json_is_true(json_object_get(one, "committed")) ||
	    lineage_view_load(&v, h, words_of(one, "id"), attempt, &lineage_page, &ignored) < 0)
		return NULL;
	return lineage_view_json(&v);
}

int one_load(struct hood *h, const char *id, int attempt, struct one *ret, struct error *err)
{
	struct error ignored = ERROR_INIT;
	json_t *analysis = NULL, *logs = NULL;
	int r = id_check(id, err);

	if (r == 0)
		r = view_show(h, id, attempt, &analysis, err);
	if (r < 0)
		return r;
	(void)view_logs(h, id, attempt, &logs, &ignored);
	ret->analysis = analysis;
	ret->logs = logs;
	ret->lineage = lineage_of(h, analysis);
	return 0;
}

void one_done(struct one *o)
{
	json_decref(o->analysis);
	json_decref(o->logs);
	json_decref(o->lineage);
}
