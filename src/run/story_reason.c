/*
 * Why it ended, in one line with the evidence.
 */
#include "collect.h"
#include "reason.h"
#include "story.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int list_some(struct buffer *b, char *const *list, size_t most)
{
	char shown[128];
	int r = 0;

	for (size_t i = 0; r == 0 && list && list[i]; i++) {
		if (i == most)
			return buffer_puts(b, ", …");
		r = buffer_printf(b, "%s'%s'", i ? ", " : "",
				  text_escape_into(shown, sizeof shown, list[i], strlen(list[i])));
	}
	return r;
}

/* Why what was declared was there, and is no output; NULL: it was not there. */
static const struct rejected_output *rejected_as(const struct manifest *m, const char *pattern)
{
	for (size_t i = 0; i < m->n_rejected; i++)
		if (output_glob_match(pattern, m->rejected[i].path))
			return &m->rejected[i];
	return NULL;
}

/* rest: the patterns that nothing matched at all. */
static int reason_rejected(const struct manifest *m, char **rest, struct buffer *b)
{
	char shown[128];
	size_t said = 0;
	int r = 0;

	for (char **pattern = m->missing; r == 0 && pattern && *pattern; pattern++) {
		const struct rejected_output *o = rejected_as(m, *pattern);

		if (!o)
			*rest++ = *pattern;
		else if (said++ < 5)
			r = buffer_printf(b, "%s'%s' was rejected: %s", said > 1 ? "; " : "",
					  text_escape_into(shown, sizeof shown, o->path, strlen(o->path)),
					  o->reason);
	}
	return r;
}

static int reason_missing(const struct story *s, struct buffer *b)
{
	const struct manifest *m = &s->attempt->manifest;
	_cleanup_free_ char **rest = calloc(strv_length(m->missing) + 1, sizeof *rest);
	size_t before = b->size;
	int r = rest ? reason_rejected(m, rest, b) : -ENOMEM;

	if (r < 0 || (!*rest && b->size > before))
		return r;
	r = buffer_printf(b, "%sno output matches ", b->size > before ? "; " : "");
	if (r == 0)
		r = list_some(b, rest, 5);
	if (r == 0)
		r = buffer_puts(b,
				m->present && m->present[0] ? "; there was " : "; there was no file at all");
	return r == 0 && m->present ? list_some(b, m->present, 8) : r;
}

/* One line of evidence for people. */
int story_reason(const struct story *s, struct buffer *b)
{
	struct end end = {
		.plan = s->plan,
		.evidence = &s->evidence,
		.usage = &s->attempt->usage,
		.disk = &s->disk,
	};

	switch (s->attempt->verdict) {
	case VERDICT_OUTPUT_MISSING:
		return reason_missing(s, b);
	case VERDICT_POST_PROCESS_FAILED:
		return buffer_printf(b, "post-process: %s", s->post.reason);
	case VERDICT_LOST:
		return buffer_puts(b, s->attempt->reason ? s->attempt->reason : "");
	default:
		return end_reason(&end, b);
	}
}
