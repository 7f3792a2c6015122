/*
 * Why it ended, in one line with the evidence.
 */
#include "collect.h"
#include "reason.h"
#include "story.h"

#include <string.h>

static void list_some(struct buffer *b, char *const *list, size_t most)
{
	for (size_t i = 0; list && list[i]; i++) {
		if (i == most) {
			buffer_puts(b, ", …");
			return;
		}
		buffer_printf(b, "%s'%s'", i ? ", " : "", SHOWN(128, list[i]));
	}
}

/* Why what was declared was there, and is no output; NULL: it was not there. */
static const struct rejected_output *rejected_as(const struct manifest *m, const char *pattern)
{
	for (size_t i = 0; i < m->n_rejected; i++)
		if (output_glob_match(pattern, m->rejected[i].path))
			return &m->rejected[i];
	return NULL;
}

/* What was rejected, and then what nothing matched at all. */
static void reason_missing(const struct story *s, struct buffer *b)
{
	const struct manifest *m = &s->attempt->manifest;
	size_t said = 0, rest = 0;

	for (char **pattern = m->missing; pattern && *pattern; pattern++) {
		const struct rejected_output *o = rejected_as(m, *pattern);

		if (o && said++ < 5)
			buffer_printf(b, "%s'%s' was rejected: %s", said > 1 ? "; " : "", SHOWN(128, o->path),
				      o->reason);
	}
	for (char **pattern = m->missing; pattern && *pattern; pattern++) {
		if (rejected_as(m, *pattern))
			continue;
		if (rest++ == 5) {
			buffer_puts(b, ", …");
			break;
		}
		buffer_printf(b, "%s'%s'",
			      rest > 1 ? ", "
			      : said   ? "; no output matches "
				       : "no output matches ",
			      SHOWN(128, *pattern));
	}
	if (rest == 0)
		return;
	buffer_puts(b, m->present && m->present[0] ? "; there was " : "; there was no file at all");
	list_some(b, m->present, 8);
}

/* One line of evidence for people. */
void story_reason(const struct story *s, struct buffer *b)
{
	struct end end = {
		.plan = s->plan,
		.evidence = &s->evidence,
		.usage = &s->attempt->usage,
		.disk = &s->disk,
		.workspace = s->workspace.fd,
		.looks_outside = !s->hooks->job,
	};

	switch (s->attempt->verdict) {
	case VERDICT_OUTPUT_MISSING:
		reason_missing(s, b);
		break;
	case VERDICT_POST_PROCESS_FAILED:
		buffer_printf(b, "post-process: %s", s->post.reason);
		break;
	case VERDICT_LOST:
		buffer_puts(b, s->attempt->reason ? s->attempt->reason : "");
		break;
	default:
		end_reason(&end, b);
	}
}
