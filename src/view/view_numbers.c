/*
 * The ledger in numbers: how many ended how on each day, what commands take, what fails most.
 */
#include "view.h"

#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "history.h"
#include "member.h"

/* Each has its row read, which takes some 10 µs: a page is not to wait for more. */
enum { COMMANDS_OF = 5000, FAILURES_OF = 2000 };

static const int64_t day_ns = 86400 * (int64_t)NSEC_PER_SEC;

/* {"2026-11-15": {"succeeded": 3, …}, …}: keys come in any order. */
static int add_day(void *arg, const struct history_day *day, struct error *err)
{
	json_t **days = arg, *verdicts;
	char text[CLOCK_TEXT_SIZE];

	clock_format(day->day * day_ns, text);
	text[strcspn(text, "T")] = 0;
	verdicts = json_object_get(*days, text);
	if (!verdicts) {
		json_put(days, text, json_object());
		verdicts = json_object_get(*days, text);
	}
	if (!verdicts ||
	    json_object_set_new(verdicts, verdict_name(day->verdict), json_integer(day->count)) < 0)
		return error_memory(err);
	return 0;
}

/* A day on which there was none is there too: a gap is to be seen. */
static json_t *days_list(const json_t *days, const struct history_span *span)
{
	json_t *list = json_array();

	for (int64_t day = span->since / day_ns; day <= (span->until - 1) / day_ns; day++) {
		char text[CLOCK_TEXT_SIZE];
		json_t *verdicts;

		clock_format(day * day_ns, text);
		text[strcspn(text, "T")] = 0;
		verdicts = json_object_get(days, text);
		json_push(&list, json_pack("{s:s, s:o}", "day", text, "verdicts",
					   verdicts ? json_incref(verdicts) : json_object()));
	}
	return list;
}

static json_t *known(int64_t n)
{
	return n < 0 ? json_null() : json_integer(n);
}

static int add_command(void *arg, const struct history_command *c, struct error *err)
{
	json_t **rows = arg;
	const struct json_entry entries[] = {
		{"command", json_shown(c->command)},
		{"count", json_integer(c->count)},
		{"failed", json_integer(c->failed)},
		{"wall_mean_ms", known(c->wall_mean_ms)},
		{"wall_most_ms", known(c->wall_most_ms)},
		{"memory_mean_bytes", known(c->memory_mean_bytes)},
		{"memory_most_bytes", known(c->memory_most_bytes)},
	};

	json_push(rows, json_from_entries(entries, ARRAY_SIZE(entries)));
	return *rows ? 0 : error_memory(err);
}

static int add_failure(void *arg, const struct history_failure *f, struct error *err)
{
	json_t **rows = arg;
	const struct json_entry entries[] = {
		{"command", json_shown(f->command)}, {"verdict", json_string(verdict_name(f->verdict))},
		{"reason", json_shown(f->reason)},   {"count", json_integer(f->count)},
		{"last", json_instant(f->last)},
	};

	json_push(rows, json_from_entries(entries, ARRAY_SIZE(entries)));
	return *rows ? 0 : error_memory(err);
}

struct numbers {
	json_t *days, *commands, *failures;
};

static void numbers_done(struct numbers *n)
{
	json_decref(n->days);
	json_decref(n->commands);
	json_decref(n->failures);
}

static json_t *numbers_json(const struct numbers *n, const struct history_span *span)
{
	const struct json_entry entries[] = {
		{"since", json_instant(span->since)},
		{"until", json_instant(span->until)},
		{"days", days_list(n->days, span)},
		{"commands", json_incref(n->commands)},
		{"commands_of_newest", json_integer(COMMANDS_OF)},
		{"failures", json_incref(n->failures)},
		{"failures_of_newest", json_integer(FAILURES_OF)},
	};

	return json_from_entries(entries, ARRAY_SIZE(entries));
}

int view_numbers(struct hood *h, const struct view_filter *f, json_t **ret, struct error *err)
{
	_cleanup_(numbers_done) struct numbers n = {
		.days = json_object(), .commands = json_array(), .failures = json_array()};
	struct history_span span = {f->since, f->until ? f->until : clock_utc()};
	struct ledger *l;

	if (!n.days || !n.commands || !n.failures)
		return error_memory(err);
	if (span.until - span.since > 400 * day_ns || span.until <= span.since)
		return error_set(err, ERROR_USAGE,
				 "numbers are of 400 days at most, and since lies before until");
	if (hood_ledger(h, LEDGER_CREATE, &l, err) < 0 ||
	    ledger_history_days(l, &span, add_day, &n.days, err) < 0 ||
	    ledger_history_commands(l, &span, COMMANDS_OF, add_command, &n.commands, err) < 0 ||
	    ledger_history_failures(l, &span, FAILURES_OF, add_failure, &n.failures, err) < 0)
		return -1;
	*ret = numbers_json(&n, &span);
	return *ret ? 0 : error_memory(err);
}
