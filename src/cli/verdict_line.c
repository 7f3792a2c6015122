/*
 * The end of a run in words: one line with the verdict, the evidence, and what to type next.
 */
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "print.h"

static int add_name(struct buffer *b, const struct attempt *a, const struct terminal *t)
{
	bool is_known = a->verdict != VERDICT_NONE;
	int r = buffer_printf(b, "fumehood: %s", a->id);

	if (r == 0 && a->number > 1)
		r = buffer_printf(b, " (attempt %d)", a->number);
	return r < 0 ? r
		     : buffer_printf(b, " %s%s%s", terminal_style(t, cli_verdict_style(a->verdict)),
				     is_known ? verdict_name(a->verdict) : "has ended, and is",
				     terminal_style(t, STYLE_RESET));
}

/* " in 1.2 s (cpu 0.9 s, memory 45 MiB)", as far as it is known. */
static int add_usage(struct buffer *b, const struct attempt *a)
{
	const struct usage *u = &a->usage;
	char wall[PRINT_ROOM], cpu[PRINT_ROOM], memory[PRINT_ROOM];
	int r = 0;

	if (u->wall_ms >= 0)
		r = buffer_printf(b, " %s %s", a->verdict == VERDICT_SUCCEEDED ? "in" : "after",
				  print_duration(u->wall_ms, wall));
	if (r < 0 || (u->cpu_ms < 0 && u->memory_peak_bytes < 0))
		return r;
	return buffer_printf(b, " (%s%s%s%s%s)", u->cpu_ms >= 0 ? "cpu " : "",
			     u->cpu_ms >= 0 ? print_duration(u->cpu_ms, cpu) : "",
			     u->cpu_ms >= 0 && u->memory_peak_bytes >= 0 ? ", " : "",
			     u->memory_peak_bytes >= 0 ? "memory " : "",
			     u->memory_peak_bytes >= 0 ? print_size(u->memory_peak_bytes, memory) : "");
}

static int add_reason(struct buffer *b, const struct attempt *a)
{
	_cleanup_free_ char *reason = a->reason ? text_safe(a->reason) : NULL;

	if (reason && *reason)
		return buffer_printf(b, ": %s", reason);
	if (a->verdict != VERDICT_FAILED)
		return 0;
	return a->signal ? buffer_printf(b, ": signal %d (%s)", a->signal, strsignal(a->signal))
			 : buffer_printf(b, ": exit status %d", a->exit_code);
}

static int add_success(struct buffer *b, const struct attempt *a)
{
	char outputs[PRINT_ROOM], rows[PRINT_ROOM];
	size_t count = a->manifest.n_outputs, refused = a->manifest.n_rejected + a->manifest.n_rejected_more;
	int r = buffer_printf(b, ", %s%s%s%s committed", print_count(count, "output", outputs),
			      a->rows > 0 ? " and " : "",
			      a->rows > 0 ? print_count((size_t)a->rows, "row", rows) : "",
			      count || a->rows > 0 ? "" : ",");

	if (r == 0 && refused > 0)
		r = buffer_printf(b, ", %zu refused", refused);
	return r < 0 ? r : buffer_printf(b, ": fumehood %s %s", count + refused ? "outputs" : "show", a->id);
}

static int add_kept(struct buffer *b, const struct attempt *a)
{
	_cleanup_free_ char *path = a->kept && a->workspace ? cli_escape(a->workspace) : NULL;

	return path ? buffer_printf(b, "; its workspace is kept: %s", path) : 0;
}

/* After the commit something of ours may still have failed; before it, that is the whole news. */
static int add_error(struct buffer *b, const struct attempt *a)
{
	_cleanup_free_ char *message =
		text_safe(a->error_message ? a->error_message : "the ledger did not answer");

	if (!message)
		return -1;
	if (a->committed)
		return a->error_message ? buffer_printf(b, "fumehood: %s\n", message) : 0;
	if (!a->pending)
		return buffer_printf(b, ", but is not committed: %s", message);
	return buffer_printf(b, "%s pending: %s; make room or mend that, then: fumehood gc",
			     a->verdict == VERDICT_NONE ? "" : ", but is", message);
}

static int add_verdict(struct buffer *b, const struct attempt *a, const struct terminal *t)
{
	bool ok = a->verdict == VERDICT_SUCCEEDED;
	int r = add_name(b, a, t);

	if (r == 0)
		r = add_usage(b, a);
	if (r == 0 && !ok)
		r = add_reason(b, a);
	if (r == 0)
		r = !a->committed ? add_error(b, a)
		    : ok	  ? add_success(b, a)
				  : buffer_printf(b, "; fumehood logs %s%s", a->id,
					  a->verdict == VERDICT_POST_PROCESS_FAILED && a->post_log.head_size
							  ? " --post-process"
							  : "");
	if (r == 0)
		r = add_kept(b, a);
	return r < 0 ? r : buffer_puts(b, "\n");
}

static int add_warnings(struct buffer *b, const struct attempt *a, const struct terminal *t)
{
	for (size_t i = 0; a->receipt.warnings && a->receipt.warnings[i]; i++) {
		_cleanup_free_ char *text = text_safe(a->receipt.warnings[i]);

		if (!text || buffer_printf(b, "fumehood: %swarning%s: %s\n", terminal_style(t, STYLE_YELLOW),
					   terminal_style(t, STYLE_RESET), text) < 0)
			return -1;
	}
	return 0;
}

char *verdict_line(const struct attempt *a, const struct terminal *t, bool quiet)
{
	_cleanup_buffer_ struct buffer b = {0};
	bool is_news = a->verdict != VERDICT_SUCCEEDED || !a->committed;

	if (!quiet && add_warnings(&b, a, t) < 0)
		return NULL;
	if ((!quiet || is_news) && add_verdict(&b, a, t) < 0)
		return NULL;
	if (a->committed && add_error(&b, a) < 0)
		return NULL;
	return buffer_take(&b);
}
