#include "history.h"

#include "store.h"

static enum verdict verdict_of(const struct value *v)
{
	enum verdict verdict;

	return verdict_parse(value_words(v), &verdict) < 0 ? VERDICT_NONE : verdict;
}

/* ---- attempts ---- */

struct taking {
	history_fn row;
	history_day_fn day;
	history_command_fn command;
	history_failure_fn failure;
	void *arg;
};

static int take_row(void *arg, const struct value *row, struct error *err)
{
	const struct taking *t = arg;
	struct history_row r = {
		.attempt = (int)value_to_integer(&row[1], 0),
		.verdict = verdict_of(&row[2]),
		.created = value_to_integer(&row[3], 0),
		.started = value_to_integer(&row[4], 0),
		.ended = value_to_integer(&row[5], 0),
		.host = value_words_or_null(&row[6]),
		.owner = value_words_or_null(&row[7]),
		.submitter = value_words_or_null(&row[8]),
		.submitted = value_to_integer(&row[9], 0),
	};

	value_to_fixed(&row[0], r.id, sizeof r.id);
	return t->row(t->arg, &r, err);
}

int ledger_history(struct ledger *l, const struct history_span *span, int limit, history_fn fn, void *arg,
		   struct error *err)
{
	struct taking t = {.row = fn, .arg = arg};

	return ledger_run(
		l, SQL_SPANS,
		LEDGER_VALUES(value_time(span->since), value_time(span->until), value_integer(limit)),
		take_row, &t, err);
}

/* ---- how often ---- */

static int take_day(void *arg, const struct value *row, struct error *err)
{
	const struct taking *t = arg;
	struct history_day d = {value_to_integer(&row[0], 0), verdict_of(&row[1]),
				value_to_integer(&row[2], 0)};

	return t->day(t->arg, &d, err);
}

/* All that there are, so that an index of them can be used. */
static unsigned every_verdict(void)
{
	return (1U << VERDICT_COUNT) - 1;
}

int ledger_history_days(struct ledger *l, const struct history_span *span, history_day_fn fn, void *arg,
			struct error *err)
{
	_cleanup_free_ char *verdicts = verdicts_text(every_verdict());
	struct taking t = {.day = fn, .arg = arg};

	if (!verdicts)
		return error_memory(err);
	return ledger_run(
		l, SQL_DAYS,
		LEDGER_VALUES(value_text(verdicts), value_time(span->since), value_time(span->until)),
		take_day, &t, err);
}

static int take_command(void *arg, const struct value *row, struct error *err)
{
	const struct taking *t = arg;
	struct history_command c = {
		.command = value_words_or_null(&row[0]),
		.count = value_to_integer(&row[1], 0),
		.failed = value_to_integer(&row[2], 0),
		.wall_mean_ms = value_to_integer(&row[3], -1),
		.wall_most_ms = value_to_integer(&row[4], -1),
		.memory_mean_bytes = value_to_integer(&row[5], -1),
		.memory_most_bytes = value_to_integer(&row[6], -1),
	};

	return t->command(t->arg, &c, err);
}

int ledger_history_commands(struct ledger *l, const struct history_span *span, int newest,
			    history_command_fn fn, void *arg, struct error *err)
{
	struct taking t = {.command = fn, .arg = arg};

	return ledger_run(
		l, SQL_COMMANDS,
		LEDGER_VALUES(value_time(span->since), value_time(span->until), value_integer(newest)),
		take_command, &t, err);
}

static int take_failure(void *arg, const struct value *row, struct error *err)
{
	const struct taking *t = arg;
	struct history_failure f = {
		.command = value_words_or_null(&row[0]),
		.verdict = verdict_of(&row[1]),
		.reason = value_words_or_null(&row[2]),
		.count = value_to_integer(&row[3], 0),
		.last = value_to_integer(&row[4], 0),
	};

	return t->failure(t->arg, &f, err);
}

int ledger_history_failures(struct ledger *l, const struct history_span *span, int newest,
			    history_failure_fn fn, void *arg, struct error *err)
{
	_cleanup_free_ char *verdicts = verdicts_text(every_verdict() & ~(1U << VERDICT_SUCCEEDED));
	struct taking t = {.failure = fn, .arg = arg};

	if (!verdicts)
		return error_memory(err);
	return ledger_run(l, SQL_FAILURES,
			  LEDGER_VALUES(value_text(verdicts), value_time(span->since),
					value_time(span->until), value_integer(newest)),
			  take_failure, &t, err);
}
