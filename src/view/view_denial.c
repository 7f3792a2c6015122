/*
 * What was denied, in words: "connect 127.0.0.1:5432 (ECONNREFUSED, 3 times): analyses have no network".
 */
#include "print.h"
#include "view.h"

enum { DENIALS_SHOWN = 10 };

char *view_denial(const struct denial *d)
{
	_cleanup_free_ char *target = d->target ? print_escape(d->target) : NULL;
	_cleanup_free_ char *hint = d->hint ? text_safe(d->hint) : NULL;
	_cleanup_buffer_ struct buffer b = {0};

	buffer_printf(&b, "%s%s%s", SHOWN(80, d->operation ? d->operation : "?"), target ? " " : "",
		      target ? target : "");
	if (d->error)
		buffer_printf(&b, " (%s", SHOWN(80, d->error));
	if (d->error && d->count > 1)
		buffer_printf(&b, ", %lld times", (long long)d->count);
	buffer_puts(&b, d->error ? ")" : "");
	if (hint)
		buffer_printf(&b, ": %s", hint);
	return buffer_take(&b);
}

bool view_was_explained(const struct attempt *a)
{
	return json_is_true(json_object_get(a->plan, "explain"));
}

void view_denials(struct buffer *b, const struct attempt *a, bool colour)
{
	const struct denials *d = &a->denials;
	int64_t more = d->n > DENIALS_SHOWN ? (int64_t)(d->n - DENIALS_SHOWN) : 0;

	for (size_t i = 0; i < d->n && i < DENIALS_SHOWN; i++) {
		_cleanup_free_ char *text = view_denial(&d->list[i]);

		buffer_printf(b, "fumehood: %sdenied%s: %s\n", print_style(colour, STYLE_YELLOW),
			      print_style(colour, STYLE_RESET), text ? text : "?");
	}
	if (more || d->more > 0)
		buffer_printf(b, "fumehood: denied: %lld more: fumehood show %s\n",
			      (long long)(more + (d->more > 0 ? d->more : 0)), a->id);
}
