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

/* What would make an output of it. */
static const char *remedy_of(const char *reason)
{
	static const char *const known[][2] = {
		{REJECT_SYMLINK, ", and a link is no output: write the file itself"},
		{REJECT_HARD_LINK, ": copy it instead"},
		{REJECT_BYTES, "; --output-max raises it"},
		{REJECT_FILES, "; --files raises it"},
		{REJECT_UNREADABLE, ": give its directories a mode that lets its owner in"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (strcmp(known[i][0], reason) == 0)
			return known[i][1];
	return "";
}

/* What was rejected, and then what nothing matched at all. */
static void reason_missing(const struct story *s, struct buffer *b)
{
	const struct manifest *m = &s->attempt->manifest;
	size_t said = 0, rest = 0;

	for (char **pattern = m->missing; pattern && *pattern; pattern++) {
		const struct rejected_output *o = rejected_as(m, *pattern);

		if (o && said++ < 5)
			buffer_printf(b, "%s'%s' was rejected: %s%s", said > 1 ? "; " : "",
				      SHOWN(128, o->path), o->reason, remedy_of(o->reason));
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
	if (!m->present || !m->present[0]) {
		buffer_puts(
			b, "; there was no file at all: outputs are what it leaves in its working directory");
		return;
	}
	buffer_puts(b, "; there was ");
	list_some(b, m->present, 8);
	buffer_puts(b, ": let it write what --output names, or correct that");
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
		.maximum = &s->hood->config.maximum,
	};

	if (s->evidence.by_manager) {
		buffer_puts(b, s->attempt->reason ? s->attempt->reason : "");
		return;
	}
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
