/*
 * Who ran when, and where, and how long it waited: attempts as stretches of time, for one who looks for gaps and crowds.
 */
#include "view.h"

#include <string.h>

#include "clock.h"
#include "history.h"
#include "member.h"

enum { ROWS_MAX = 300, OPEN_MAX = 100 };

struct timeline_list {
	json_t *rows;
	size_t n;
};

static int add_ended(void *arg, const struct history_row *row, struct error *err)
{
	struct timeline_list *list = arg;
	const struct json_entry entries[] = {
		{"id", json_string(row->id)},
		{"attempt", json_integer(row->attempt)},
		{"state", json_string("finished")},
		{"verdict", json_string(verdict_name(row->verdict))},
		{"host", json_shown(row->host)},
		{"owner", json_shown(row->owner)},
		{"submitter", json_shown(row->submitter)},
		{"submitted", json_instant(row->submitted)},
		{"started", json_instant(row->started ? row->started : row->created)},
		{"ended", json_instant(row->ended)},
	};

	list->n++;
	json_push(&list->rows, json_from_entries(entries, ARRAY_SIZE(entries)));
	return list->rows ? 0 : error_memory(err);
}

/* When what runs began: by the last word of its worker. */
static int64_t began(const struct queued *q)
{
	json_auto_t *live = q->live ? json_loads(q->live, JSON_REJECT_DUPLICATES, NULL) : NULL;
	struct pulse pulse;

	return live && pulse_from_json(&pulse, live) == 0 && pulse.elapsed_ms >= 0
		       ? clock_utc() - pulse.elapsed_ms * (int64_t)NSEC_PER_MSEC
		       : 0;
}

/* A worker is called by its host, and more. */
static json_t *host_of(const struct queued *q)
{
	char host[256];

	if (!q->worker || q->state != JOB_RUNNING)
		return json_null();
	snprintf(host, sizeof host, "%.*s", (int)strcspn(q->worker, " "), q->worker);
	return json_shown(host);
}

static int add_open(void *arg, const struct queued *q, struct error *err)
{
	json_t **rows = arg;
	const struct json_entry entries[] = {
		{"id", json_string(q->id)},
		{"attempt", q->state == JOB_RUNNING ? json_integer(q->attempt) : json_null()},
		{"state", json_string(job_state_name(q->state))},
		{"verdict", json_null()},
		{"host", host_of(q)},
		{"owner", json_shown(q->owner)},
		{"submitter", json_shown(q->submitter)},
		{"submitted", json_instant(q->submitted)},
		{"started", json_instant(q->state == JOB_RUNNING ? began(q) : 0)},
		{"ended", json_null()},
	};
	json_t *row = json_from_entries(entries, ARRAY_SIZE(entries));

	if (q->state == JOB_CANCELLED || q->state == JOB_RESTORED)
		json_decref(row);
	else
		json_push(rows, row);
	return *rows ? 0 : error_memory(err);
}

/* `run` is in no queue: the state directory of this host knows it. */
static int add_here(struct hood *h, json_t **rows, struct error *err)
{
	struct top_view top;
	int r = top_view_load(&top, h, err);

	for (size_t i = 0; r == 0 && i < top.n_rows; i++) {
		const struct top_row *t = &top.rows[i];
		const struct json_entry entries[] = {
			{"id", json_string(t->id)},
			{"attempt", json_integer(t->attempt)},
			{"state", json_string("running")},
			{"verdict", json_null()},
			{"host", json_shown(t->host)},
			{"owner", json_null()},
			{"submitter", json_null()},
			{"submitted", json_null()},
			{"started", json_instant(t->created)},
			{"ended", json_null()},
		};
		json_t *row = json_from_entries(entries, ARRAY_SIZE(entries));

		if (t->is_here && !t->is_queued)
			json_push(rows, row);
		else
			json_decref(row);
	}
	top_view_done(&top);
	return r < 0 ? r : *rows ? 0 : error_memory(err);
}

/* What is going on lies in a span that has not ended. */
static int load(struct hood *h, const struct view_filter *f, json_t **rows, bool *ret_more, struct error *err)
{
	struct history_span span = {f->since, f->until ? f->until : clock_utc()};
	struct timeline_list ended = {.rows = *rows};
	struct ledger *l;

	if (hood_ledger(h, LEDGER_CREATE, &l, err) < 0 ||
	    (!f->until && (ledger_queue_list_open(l, NULL, OPEN_MAX, add_open, &ended.rows, err) < 0 ||
			   add_here(h, &ended.rows, err) < 0)) ||
	    ledger_history(l, &span, ROWS_MAX + 1, add_ended, &ended, err) < 0) {
		*rows = ended.rows;
		return -1;
	}
	*ret_more = ended.n > ROWS_MAX;
	*rows = ended.rows;
	return 0;
}

int view_timeline(struct hood *h, const struct view_filter *f, json_t **ret, struct error *err)
{
	json_t *rows = json_array();
	bool has_more = false;
	int r = rows ? load(h, f, &rows, &has_more, err) : error_memory(err);

	if (r == 0) {
		const struct json_entry entries[] = {
			{"since", json_instant(f->since)},
			{"until", json_instant(f->until ? f->until : clock_utc())},
			{"analyses", json_incref(rows)},
			{"more", json_boolean(has_more)},
		};

		*ret = json_from_entries(entries, ARRAY_SIZE(entries));
		r = *ret ? 0 : error_memory(err);
	}
	json_decref(rows);
	return r;
}
