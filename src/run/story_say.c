/*
 * What a caller adds to a story that has its verdict and is not committed yet: a result, rows; and its look at what was
 * collected.
 */
#include "story.h"
#include "collect.h"

#include <errno.h>

int hood_story_result(struct story *s, json_t *result, struct error *err UNUSED)
{
	json_decref(s->attempt->result);
	s->attempt->result = json_incref(result);
	return 0;
}

int hood_story_open(struct story *s, const struct output *o, struct error *err)
{
	return collect_open(s->workspace.fd, o, err);
}

/* All of the lines at once: a mistake in one of them leaves none. */
int rows_gather(const struct hood *h, int run_fd, const char *lines, size_t size, struct spool **ret,
		struct error *err)
{
	_cleanup_spool_ struct spool *rows = NULL;
	const json_t *tables = json_object_get(h->config.post_process, "tables");
	const struct limits *l = &h->config.post_process_limits;
	uint64_t max = l->origin[LIMIT_OUTPUT_MAX] == LIMIT_UNSET ? limit_table[LIMIT_OUTPUT_MAX].built_in
								  : l->value[LIMIT_OUTPUT_MAX];
	int r;

	if (json_object_size(tables) == 0)
		return error_set(
			err, ERROR_REFUSED,
			"there are rows, but no table that they may go to: the configuration's post_process.tables names them");
	r = spool_make(run_fd, tables, max, &rows, err);
	if (r < 0)
		return r;
	spool_feed(rows, lines, size);
	if (!spool_finish(rows)) {
		*err = *spool_why(rows);
		return error_prefix(err, -EBADMSG, "the rows are refused");
	}
	*ret = TAKE_PTR(rows);
	return 0;
}

int hood_story_rows(struct story *s, const char *lines, size_t size, struct error *err)
{
	struct attempt *a = s->attempt;
	int r;

	if (a->verdict != VERDICT_SUCCEEDED)
		return error_set(err, ERROR_REFUSED, "'%s' has %s: only what succeeded has rows", a->id,
				 verdict_name(a->verdict));
	if (s->post_plan)
		return error_set(
			err, ERROR_REFUSED,
			"the post-process has made the rows of '%s' already: leave out one of the two",
			a->id);
	spool_free(s->post.rows);
	s->post.rows = NULL;
	a->rows = -1;
	r = rows_gather(s->hood, s->workspace.run_fd, lines, size, &s->post.rows, err);
	if (r < 0)
		return r;
	a->rows = (int64_t)spool_rows(s->post.rows);
	attempt_event(a, "rows", "%lld, given by the caller", (long long)a->rows);
	return attempt_check(a, err);
}
