/*
 * The end of a run in words: one line with the verdict, the evidence, and what to type next.
 */
#include <stdio.h>
#include <string.h>

#include "print.h"
#include "view.h"

enum style view_verdict_style(enum verdict v)
{
	return v == VERDICT_SUCCEEDED ? STYLE_GREEN : v == VERDICT_NONE ? STYLE_YELLOW : STYLE_RED;
}

static void add_name(struct buffer *b, const struct attempt *a, bool colour)
{
	bool is_known = a->verdict != VERDICT_NONE;

	buffer_printf(b, "fumehood: %s", a->id);
	if (a->number > 1)
		buffer_printf(b, " (attempt %d)", a->number);
	if (a->step)
		buffer_printf(b, " step %d", a->step);
	buffer_printf(b, " %s%s%s", print_style(colour, view_verdict_style(a->verdict)),
		      is_known ? verdict_name(a->verdict) : "has ended, and is",
		      print_style(colour, STYLE_RESET));
}

/* " in 1.2 s (cpu 0.9 s, memory 45 MiB)", as far as it is known. */
static void add_usage(struct buffer *b, const struct attempt *a)
{
	const struct usage *u = &a->usage;
	bool has_cpu = u->cpu_ms >= 0, has_memory = u->memory_peak_bytes >= 0;
	char text[PRINT_ROOM];

	if (u->wall_ms >= 0)
		buffer_printf(b, " %s %s", a->verdict == VERDICT_SUCCEEDED ? "in" : "after",
			      print_duration(u->wall_ms, text));
	if (has_cpu)
		buffer_printf(b, " (cpu %s%s", print_duration(u->cpu_ms, text), has_memory ? "" : ")");
	if (has_memory)
		buffer_printf(b, "%s%s)", has_cpu ? ", memory " : " (memory ",
			      print_size(u->memory_peak_bytes, text));
}

static void add_reason(struct buffer *b, const struct attempt *a)
{
	_cleanup_free_ char *reason = a->reason ? text_safe(a->reason) : NULL;

	if (reason && *reason)
		buffer_printf(b, ": %s", reason);
	else if (a->verdict == VERDICT_FAILED && a->signal)
		buffer_printf(b, ": signal %d (%s)", a->signal, strsignal(a->signal));
	else if (a->verdict == VERDICT_FAILED)
		buffer_printf(b, ": exit status %d", a->exit_code);
}

static void add_success(struct buffer *b, const struct attempt *a)
{
	size_t count = a->manifest.n_outputs, refused = a->manifest.n_rejected + a->manifest.n_rejected_more;
	char text[PRINT_ROOM];

	buffer_printf(b, ", %s", print_count(count, "output", text));
	if (a->rows > 0)
		buffer_printf(b, " and %s", print_count((size_t)a->rows, "row", text));
	buffer_puts(b, count || a->rows > 0 ? " committed" : ", committed");
	if (refused > 0)
		buffer_printf(b, ", %zu refused", refused);
	buffer_printf(b, ": fumehood %s %s", count + refused ? "outputs" : "show", a->id);
}

/* Nothing is in the ledger before the last of them. */
static void add_step(struct buffer *b, const struct attempt *a)
{
	char text[PRINT_ROOM];

	buffer_printf(b, ", %s so far; when all is done: fumehood commit %s",
		      print_count(a->manifest.n_outputs, "output", text), a->id);
}

/* After the commit something of ours may still have failed; before it, that is the whole news. */
static void add_error(struct buffer *b, const struct attempt *a)
{
	_cleanup_free_ char *safe =
		text_safe(a->error_message ? a->error_message : "the ledger did not answer");
	const char *message = safe ? safe : "?";

	if (!a->committed && !a->pending)
		buffer_printf(b, ", but is not committed: %s", message);
	else if (!a->committed)
		buffer_printf(b, "%s pending: %s; make room or mend that, then: fumehood gc",
			      a->verdict == VERDICT_NONE ? "" : ", but is", message);
	else if (a->error_message)
		buffer_printf(b, "fumehood: %s\n", message);
}

/* It ran, and failed by itself: then what it did not find may tell why. A limit, a signal or a denial tells enough. */
bool view_would_explaining_help(const struct attempt *a)
{
	if (!a->plan || view_was_explained(a) || a->denials.n > 0)
		return false;
	return (a->verdict == VERDICT_OUTPUT_MISSING && a->manifest.n_rejected == 0) ||
	       (a->verdict == VERDICT_FAILED && a->exit_code > 0);
}

static void add_verdict(struct buffer *b, const struct attempt *a, bool colour)
{
	_cleanup_free_ char *kept =
		a->kept && a->workspace ? text_escape(a->workspace, strlen(a->workspace)) : NULL;
	bool ok = a->verdict == VERDICT_SUCCEEDED;
	bool has_post_log = a->verdict == VERDICT_POST_PROCESS_FAILED && a->post_log.head_size;

	add_name(b, a, colour);
	add_usage(b, a);
	if (!ok)
		add_reason(b, a);
	if (a->step && !a->error_message)
		add_step(b, a);
	else if (!a->committed)
		add_error(b, a);
	else if (ok)
		add_success(b, a);
	else
		buffer_printf(b, "; fumehood logs %s%s%s", a->id, has_post_log ? " --post-process" : "",
			      view_would_explaining_help(a) ? ", or run it with --explain" : "");
	if (kept)
		buffer_printf(b, "; its workspace is kept: %s", kept);
	/* What it would refuse is not advised. */
	if (kept && !a->is_bound && !a->n_steps)
		buffer_printf(b, ", fumehood shell %s looks around there", a->id);
	buffer_puts(b, "\n");
}

static void add_warning(struct buffer *b, const char *warning, bool colour)
{
	_cleanup_free_ char *text = text_safe(warning);

	buffer_printf(b, "fumehood: %swarning%s: %s\n", print_style(colour, STYLE_YELLOW),
		      print_style(colour, STYLE_RESET), text ? text : "?");
}

static void add_warnings(struct buffer *b, const struct attempt *a, size_t told, bool colour)
{
	for (size_t i = 0; a->receipt.warnings && a->receipt.warnings[i]; i++)
		if (i >= told)
			add_warning(b, a->receipt.warnings[i], colour);
}

char *view_warning(const char *text, bool colour)
{
	_cleanup_buffer_ struct buffer b = {0};

	add_warning(&b, text, colour);
	return buffer_take(&b);
}

char *view_warnings(const struct attempt *a, bool colour)
{
	_cleanup_buffer_ struct buffer b = {0};

	buffer_puts(&b, "");
	add_warnings(&b, a, 0, colour);
	return buffer_take(&b);
}

char *view_line(const struct attempt *a, bool colour, bool quiet)
{
	return view_line_after(a, 0, colour, quiet);
}

char *view_line_after(const struct attempt *a, size_t told, bool colour, bool quiet)
{
	_cleanup_buffer_ struct buffer b = {0};
	bool is_news = a->verdict != VERDICT_SUCCEEDED || !(a->committed || a->step);

	/* Who wants to be told little wants to know what is not as he asked for all the more. */
	add_warnings(&b, a, told, colour);
	if (!quiet || is_news)
		add_verdict(&b, a, colour);
	if (is_news || (!quiet && view_was_explained(a)))
		view_denials(&b, a, colour);
	if (a->committed)
		add_error(&b, a);
	return buffer_take(&b);
}
