/*
 * Looking at the queue.
 */
#include "queue_private.h"

#include <string.h>

#include "clock.h"
#include "text.h"

struct listing {
	queued_fn fn;
	void *arg;
};

static int listing_row(void *arg, const struct value *row, struct error *err)
{
	const struct listing *listing = arg;
	struct queued q = {
		.status = (int)value_to_integer(&row[3], 0),
		.attempt = (int)value_to_integer(&row[4], 0),
		.priority = (int)value_to_integer(&row[5], 0),
		.cancelling = value_to_integer(&row[6], 0) != 0,
		.submitted = value_to_integer(&row[7], 0),
		.due = value_to_integer(&row[8], 0),
		.submitter = value_words_or_null(&row[9]),
		.worker = value_words_or_null(&row[10]),
		.reason = value_words_or_null(&row[11]),
		.owner = value_words_or_null(&row[12]),
		.live = value_words_or_null(&row[13]),
		.handle = value_words_or_null(&row[14]),
	};

	value_to_fixed(&row[0], q.id, sizeof q.id);
	if (row[1].kind != VALUE_TEXT || job_state_parse(row[1].data, &q.state) < 0)
		return 0;
	if (q.state == JOB_FINISHED && row[2].kind == VALUE_TEXT)
		(void)verdict_parse(row[2].data, &q.verdict);
	else if (q.state == JOB_CANCELLED)
		q.verdict = VERDICT_CANCELLED;
	return listing->fn(listing->arg, &q, err);
}

int ledger_queue_list(struct ledger *l, int state, const char *prefix, int limit, queued_fn fn, void *arg,
		      struct error *err)
{
	static const enum sql open[JOB_STATES] = {
		[JOB_WAITING] = SQL_QUEUE_LIST_WAITING,	  [JOB_QUEUED] = SQL_QUEUE_LIST_QUEUED,
		[JOB_RUNNING] = SQL_QUEUE_LIST_RUNNING,	  [JOB_CANCELLED] = SQL_QUEUE_LIST_CANCELLED,
		[JOB_RESTORED] = SQL_QUEUE_LIST_RESTORED,
	};
	struct listing listing = {fn, arg};
	struct value params[] = {
		value_text(state < 0 ? NULL : job_state_name((enum job_state)state)),
		value_text(prefix),
		value_integer(limit > 0 ? limit : INT64_MAX),
	};

	if (state < 0 || state == JOB_FINISHED)
		return ledger_run(l, SQL_QUEUE_LIST, params, ARRAY_SIZE(params), listing_row, &listing, err);
	return ledger_run(l, open[state], params + 1, ARRAY_SIZE(params) - 1, listing_row, &listing, err);
}

int ledger_queue_list_open(struct ledger *l, const char *prefix, int limit, queued_fn fn, void *arg,
			   struct error *err)
{
	struct listing listing = {fn, arg};

	return ledger_run(l, SQL_QUEUE_LIST_OPEN,
			  LEDGER_VALUES(value_text(prefix), value_integer(limit > 0 ? limit : INT64_MAX)),
			  listing_row, &listing, err);
}

static int look(struct ledger *l, enum sql which, row_fn row, char *const *ids, queued_fn fn, void *arg,
		struct error *err)
{
	struct listing listing = {fn, arg};
	_cleanup_ids_ struct ids good = {0};

	/* What is no id is not known either. */
	for (; ids && *ids; ids++)
		if (id_check(*ids, NULL) == 0 && ids_add(&good, *ids, err) < 0)
			return -1;
	return queue_run_ids(l, which, good.list, good.count, NULL, row, &listing, err);
}

int ledger_queue_look(struct ledger *l, char *const *ids, queued_fn fn, void *arg, struct error *err)
{
	return look(l, SQL_QUEUE_LOOK, listing_row, ids, fn, arg, err);
}

static int take_run_known(void *arg, const struct value *row, struct error *err UNUSED)
{
	struct run_known *known = arg;

	known->succeeded = value_to_integer(&row[0], 0) != 0;
	known->next_attempt = (int)value_to_integer(&row[1], 1);
	if (row[2].kind == VALUE_TEXT && job_state_parse(row[2].data, &known->state) < 0)
		known->state = JOB_STATES;
	value_to_fixed(&row[3], known->task, sizeof known->task);
	return 0;
}

int ledger_run_known(struct ledger *l, const char *id, struct run_known *ret, struct error *err)
{
	struct run_known known = {.next_attempt = 1, .state = JOB_STATES};
	struct array_range range = {0};

	array_range_of(id, &range);
	if (ledger_run(l, SQL_RUN_KNOWN,
		       LEDGER_VALUES(value_text(range.from), value_text(range.to), value_text(id)),
		       take_run_known, &known, err) < 0)
		return -1;
	*ret = known;
	return 0;
}

static int ended_row(void *arg, const struct value *row, struct error *err)
{
	const struct listing *listing = arg;
	struct queued q = {
		.state = JOB_FINISHED,
		.attempt = (int)value_to_integer(&row[1], 0),
		.status = (int)value_to_integer(&row[3], 0),
		.reason = value_words_or_null(&row[4]),
		.owner = value_words_or_null(&row[5]),
	};

	value_to_fixed(&row[0], q.id, sizeof q.id);
	if (row[2].kind == VALUE_TEXT)
		(void)verdict_parse(row[2].data, &q.verdict);
	return listing->fn(listing->arg, &q, err);
}

int ledger_ended_look(struct ledger *l, char *const *ids, queued_fn fn, void *arg, struct error *err)
{
	return look(l, SQL_ENDED_LOOK, ended_row, ids, fn, arg, err);
}

struct loading {
	struct job job;
	bool found;
};

static int loading_row(void *arg, const struct value *row, struct error *err)
{
	struct loading *loading = arg;

	loading->found = true;
	return queue_job_load(&loading->job, row, err);
}

static int loading_after(void *arg, const struct value *row, struct error *err)
{
	struct loading *loading = arg;
	char array[ID_ROOM];

	/* They come in their order, an array before its tasks: one of those is its witness, and not shown. */
	if (row[0].kind == VALUE_TEXT && array_of(row[0].data, array))
		for (char **a = loading->job.after; a && *a; a++)
			if (strcmp(*a, array) == 0)
				return 0;
	return row[0].kind == VALUE_TEXT ? strv_append(&loading->job.after, row[0].data, err) : 0;
}

static int load(struct ledger *l, const char *id, struct loading *ret, struct error *err)
{
	struct value key = value_text(id);

	if (ledger_run(l, SQL_QUEUE_JOB, &key, 1, loading_row, ret, err) < 0)
		return -1;
	if (!ret->found)
		return error_set(err, ERROR_NOT_FOUND, "'%s' is not in the queue of %s", id,
				 l->backend->name);
	return ledger_run(l, SQL_AFTER, &key, 1, loading_after, ret, err);
}

int ledger_queue_load(struct ledger *l, const char *id, struct job *ret, struct error *err)
{
	struct loading loading = {.found = false};

	if (load(l, id, &loading, err) < 0) {
		job_done(&loading.job);
		return -1;
	}
	*ret = loading.job;
	return 0;
}

static int count_row(void *arg, const struct value *row, struct error *err UNUSED)
{
	enum job_state state;

	if (row[0].kind == VALUE_TEXT && job_state_parse(row[0].data, &state) == 0)
		((uint64_t *)arg)[state] = (uint64_t)value_to_integer(&row[1], 0);
	return 0;
}

int ledger_queue_counts(struct ledger *l, uint64_t ret[JOB_STATES], struct error *err)
{
	memset(ret, 0, JOB_STATES * sizeof ret[0]);
	return ledger_run(l, SQL_QUEUE_COUNTS, NULL, 0, count_row, ret, err);
}

static int open_row(void *arg, const struct value *row, struct error *err UNUSED)
{
	static const enum job_state order[] = {JOB_WAITING, JOB_QUEUED, JOB_RUNNING, JOB_CANCELLED,
					       JOB_RESTORED};
	uint64_t *counts = arg;

	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		counts[order[i]] = (uint64_t)value_to_integer(&row[i], 0);
	return 0;
}

int ledger_queue_open_counts(struct ledger *l, uint64_t most, uint64_t ret[JOB_STATES], struct error *err)
{
	memset(ret, 0, JOB_STATES * sizeof ret[0]);
	return ledger_run(l, SQL_QUEUE_OPEN_COUNTS, LEDGER_VALUES(value_integer((int64_t)most)), open_row,
			  ret, err);
}

enum { RECENT_MAX = 2000 };

struct tallying {
	int64_t minute; /* when the last one began */
	struct recent *recent;
};

static int recent_row(void *arg, const struct value *row, struct error *err UNUSED)
{
	const struct tallying *t = arg;

	t->recent->ended++;
	t->recent->failed += strcmp(value_words(&row[0]), "succeeded") != 0;
	t->recent->in_minute += value_to_integer(&row[1], 0) >= t->minute;
	return 0;
}

int ledger_recent(struct ledger *l, struct recent *ret, struct error *err)
{
	struct tallying t = {.recent = ret};
	int64_t now = 0;

	*ret = (struct recent){.window_ns = 3600 * NSEC_PER_SEC};
	if (queue_now(l, &now, err) < 0)
		return -1;
	t.minute = now - 60 * (int64_t)NSEC_PER_SEC;
	if (ledger_run(l, SQL_RECENT,
		       LEDGER_VALUES(value_time(now - (int64_t)ret->window_ns), value_integer(RECENT_MAX)),
		       recent_row, &t, err) < 0)
		return -1;
	ret->is_cut = ret->ended == RECENT_MAX;
	return 0;
}

enum { COUNT_AT_ONCE = 10000 };

struct counting {
	uint64_t *counts;
	uint64_t seen;
	char last[ID_ROOM];
};

static int count_some_row(void *arg, const struct value *row, struct error *err)
{
	struct counting *c = arg;
	uint64_t all[JOB_STATES] = {0};
	char last[ID_ROOM];
	int r = count_row(all, row, err);

	for (int i = 0; i < JOB_STATES; i++)
		c->counts[i] += all[i];
	c->seen += (uint64_t)value_to_integer(&row[1], 0);
	value_to_fixed(&row[2], last, sizeof last);
	if (strcmp(last, c->last) > 0)
		memcpy(c->last, last, sizeof last);
	return r;
}

int ledger_queue_count_some(struct ledger *l, char after[ID_ROOM], uint64_t counts[JOB_STATES],
			    struct error *err)
{
	struct counting c = {.counts = counts};

	if (ledger_run(l, SQL_QUEUE_COUNTS_SOME,
		       LEDGER_VALUES(value_text(after), value_integer(COUNT_AT_ONCE)), count_some_row, &c,
		       err) < 0)
		return -1;
	memcpy(after, c.last, sizeof c.last);
	return c.seen == COUNT_AT_ONCE;
}
