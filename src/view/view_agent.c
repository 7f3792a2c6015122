/*
 * How an attempt ended, for a prompt: at most ten lines, each "key: value", in an order that does not change. What the analysis
 * wrote itself comes last, each line with its key and escaped, so that none of its words stands where ours do.
 *
 *   verdict   one word
 *   evidence  what it rests on, with what would help
 *   error     what failed on our side
 *   denied    what it was not allowed, or did not find, with the option that would change that
 *   hint      what was told before the start, and what to try
 *   stderr    the last lines of it; stdout, if it wrote nothing there
 */
#include <string.h>

#include "print.h"
#include "view.h"

enum {
	LINES_MAX = 10,
	LINE_ROOM = 400,
	DENIALS_SHOWN = 3,
	HINTS_SHOWN = 2,
	LOG_LINES = 5,
	LOG_ROOM = 200,
	LOG_ENOUGH = 16384
};

struct page {
	struct buffer text;
	int lines;
};

/* One line, whatever is in the text. */
static void put(struct page *p, const char *key, const char *text)
{
	_cleanup_free_ char *safe = text_safe(text);
	size_t n = safe ? strlen(safe) : 0, cut = n;

	if (!safe)
		buffer_fail(&p->text);
	/* Not within a character. */
	if (n > LINE_ROOM)
		for (cut = LINE_ROOM; cut > 0 && ((unsigned char)safe[cut] & 0xc0) == 0x80; cut--)
			;
	buffer_printf(&p->text, "%s: %.*s%s\n", key, (int)cut, safe ? safe : "", cut < n ? "…" : "");
	p->lines++;
}

static void put_evidence(struct page *p, const struct attempt *a)
{
	_cleanup_buffer_ struct buffer b = {0};
	char text[PRINT_ROOM];

	if (a->verdict == VERDICT_SUCCEEDED)
		buffer_printf(&b, "exit status 0, %s%s", print_count(a->manifest.n_outputs, "output", text),
			      a->committed ? ", committed" : "");
	else if (a->reason)
		buffer_puts(&b, a->reason);
	if (b.size)
		put(p, "evidence", b.data);
	if (a->error_message)
		put(p, "error", a->error_message);
}

static void put_denials(struct page *p, const struct denials *d)
{
	int64_t more =
		(d->more > 0 ? d->more : 0) + (d->n > DENIALS_SHOWN ? (int64_t)(d->n - DENIALS_SHOWN) : 0);

	for (size_t i = 0; i < d->n && i < DENIALS_SHOWN; i++) {
		_cleanup_free_ char *text = view_denial(&d->list[i]);
		_cleanup_buffer_ struct buffer b = {0};

		buffer_puts(&b, text ? text : "?");
		if (i + 1 == DENIALS_SHOWN && more > 0)
			buffer_printf(&b, "; and %lld more", (long long)more);
		put(p, "denied", b.data ? b.data : "?");
	}
}

/* What this host cannot hold is no reason. */
static void put_hints(struct page *p, const struct attempt *a)
{
	int shown = 0;

	for (char **text = a->receipt.warnings; text && *text && shown < HINTS_SHOWN; text++)
		if (strncmp(*text, "not limited", 11) != 0) {
			put(p, "hint", *text);
			shown++;
		}
	if (shown < HINTS_SHOWN && view_would_explaining_help(a))
		put(p, "hint",
		    "run it with --explain to hear which files and connections it asked for in vain");
}

/* The last lines that are not empty, in their order; false: there is none. */
static bool put_log(struct page *p, const char *key, const char *data, size_t size)
{
	const char *line[LOG_LINES];
	size_t length[LOG_LINES];
	int n = 0, most = LINES_MAX - p->lines < LOG_LINES ? LINES_MAX - p->lines : LOG_LINES;
	const char *end;

	if (size == 0)
		return false;
	end = data + size;
	while (end > data && n < most) {
		const char *from = end, *last = end;

		while (from > data && from[-1] != '\n')
			from--;
		while (last > from && last[-1] == '\r')
			last--;
		if (last > from) {
			line[n] = from;
			length[n++] = (size_t)(last - from);
		}
		end = from - (from > data);
	}
	for (int i = n; i-- > 0;) {
		char shown[LOG_ROOM];

		buffer_printf(&p->text, "%s: %s\n", key,
			      text_escape_into(shown, sizeof shown, line[i], length[i]));
		p->lines++;
	}
	return n > 0;
}

/* Of a log that was not loaded there are only the sizes. */
static bool put_captured(struct page *p, const char *key, const struct captured *c)
{
	_cleanup_buffer_ struct buffer whole = {0};

	if (c->tail_size == 0 || !c->tail)
		return c->head && put_log(p, key, c->head, c->head_size);
	if (c->omitted || c->tail_size > LOG_ENOUGH)
		return put_log(p, key, c->tail, c->tail_size);
	if (c->head)
		buffer_append(&whole, c->head, c->head_size);
	buffer_append(&whole, c->tail, c->tail_size);
	return put_log(p, key, whole.data, whole.size);
}

char *view_agent(const struct attempt *a)
{
	struct page p = {0};

	put(&p, "verdict", a->verdict == VERDICT_NONE ? "pending" : verdict_name(a->verdict));
	put_evidence(&p, a);
	put_denials(&p, &a->denials);
	put_hints(&p, a);
	if (!put_captured(&p, "stderr", &a->logs[STREAM_STDERR]))
		put_captured(&p, "stdout", &a->logs[STREAM_STDOUT]);
	return buffer_take(&p.text);
}

/* Of an attempt of steps, what the last of them wrote. */
static int load_log(struct ledger *l, struct attempt *a, int stream, struct error *err)
{
	int r = a->n_steps ? ledger_load_step_log(l, a, a->n_steps, stream, &a->logs[stream], err)
			   : ledger_load_log(l, a, stream, &a->logs[stream], err);

	if (r == 0)
		captured_keep_lines(&a->logs[stream], 2 * LOG_LINES);
	return r;
}

int view_explain(struct hood *h, const char *id, int attempt, char **ret, struct error *err)
{
	_cleanup_attempt_ struct attempt a;
	struct ledger *ledger;
	int r;

	attempt_init(&a);
	if ((r = view_load(h, id, attempt, &ledger, &a, err)) < 0 ||
	    (r = load_log(ledger, &a, STREAM_STDERR, err)) < 0 ||
	    (r = load_log(ledger, &a, STREAM_STDOUT, err)) < 0)
		return r;
	*ret = view_agent(&a);
	return *ret ? 0 : error_memory(err);
}
