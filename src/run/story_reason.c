/*
 * Why it ended, in one line with the evidence.
 */
#include "reason.h"
#include "story.h"

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

static int reason_missing(const struct story *s, struct buffer *b)
{
	const struct manifest *m = &s->attempt->manifest;
	int r = buffer_puts(b, "no output matches ");

	if (r == 0)
		r = list_some(b, m->missing, 5);
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
