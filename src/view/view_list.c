#include "view.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "member.h"
#include "text.h"

/* What is no verdict: of the state directory, and of the queue. */
static const char *const live_states[] = {"running", "pending", "held", "dead", "waiting", "queued"};

struct view_listing {
	const struct view_filter *filter;
	view_row_fn fn;
	void *arg;
	json_t *live; /* ids that have a row from the state directory or the queue: {"a42": true} */
	json_t *held; /* held or kept ones, shown only if the ledger does not know them: id, since when */
};

static void listing_done(struct view_listing *l)
{
	json_decref(l->live);
	json_decref(l->held);
}

static bool is_live_state(const char *state)
{
	for (size_t i = 0; i < ARRAY_SIZE(live_states); i++)
		if (strcmp(live_states[i], state) == 0)
			return true;
	return false;
}

static int check_state(const char *state, struct error *err)
{
	enum verdict v;

	if (!state || is_live_state(state) || strcmp(state, "finished") == 0 || verdict_parse(state, &v) == 0)
		return 0;
	return error_set(
		err, ERROR_USAGE,
		"there is no state '%s': it is waiting, queued, running, pending, cancelled, held, dead, finished, or a verdict",
		SHOWN(64, state));
}

static bool wants(const struct view_listing *l, const char *state, const char *id)
{
	const struct view_filter *f = l->filter;

	return (!f->state || strcmp(f->state, state) == 0) &&
	       (!f->prefix || strncmp(id, f->prefix, strlen(f->prefix)) == 0);
}

/* verdict NULL: none yet */
static int give(struct view_listing *l, const struct attempt *a, const char *state, const char *verdict)
{
	return l->fn(l->arg, &(struct view_row){a, state, verdict});
}

/* What an attempt says of one that the ledger has not. It owns nothing. */
static struct attempt live_attempt(const char *id, int number, int64_t created)
{
	struct attempt a;

	attempt_init(&a);
	snprintf(a.id, sizeof a.id, "%s", id);
	a.number = number;
	a.created = created;
	return a;
}

/* ---- the three sources ---- */

static int on_live(void *arg, const struct live *live)
{
	struct attempt a = live_attempt(live->id, live->attempt, live->created);
	const char *state = live_state(live);
	struct view_listing *l = arg;

	if (live->held)
		return json_object_set_new(l->held, live->id, json_integer(live->created));
	if (json_object_set_new(l->live, live->id, json_true()) < 0)
		return -1;
	if (live->alive)
		a.usage.wall_ms = (clock_utc() - live->created) / (int64_t)NSEC_PER_MSEC;
	return wants(l, state, a.id) ? give(l, &a, state, NULL) : 0;
}

/* What the queue has replaces the row of an earlier attempt. */
static int on_queued(void *arg, const struct queued *q, struct error *err)
{
	struct attempt a = live_attempt(q->id, q->attempt, q->submitted);
	const char *state = job_state_name(q->state);
	struct view_listing *l = arg;
	int r = 0;

	if (json_object_get(l->live, q->id))
		return 0;
	if (json_object_set_new(l->live, q->id, json_true()) < 0)
		return error_memory(err);
	a.owner = (char *)q->owner;
	if (wants(l, state, q->id))
		r = give(l, &a, state, q->state == JOB_CANCELLED ? state : NULL);
	return r < 0 ? error_memory(err) : 0;
}

static int on_ledger_row(void *arg, const struct attempt *a, struct error *err)
{
	struct view_listing *l = arg;
	const char *state = l->filter->state;

	if (!state)
		json_object_del(l->held, a->id);
	if (json_object_get(l->live, a->id) || (state && is_live_state(state)))
		return 0;
	return give(l, a, "finished", verdict_name(a->verdict)) < 0 ? error_memory(err) : 0;
}

static int list_queue(struct view_listing *l, struct ledger *ledger, struct error *err)
{
	static const enum job_state shown[] = {JOB_RUNNING, JOB_QUEUED, JOB_WAITING, JOB_CANCELLED};
	const struct view_filter *f = l->filter;
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(shown); i++)
		r = ledger_queue_list(ledger, (int)shown[i], f->prefix, f->limit, on_queued, l, err);
	return r;
}

/* The last ones: held, and neither running nor in the ledger. */
static int list_held(struct view_listing *l, struct error *err)
{
	json_t *created;
	const char *id;

	json_object_foreach (l->held, id, created) {
		struct attempt a = live_attempt(id, 0, json_integer_value(created));

		if (wants(l, "held", id) && give(l, &a, "held", NULL) < 0)
			return error_memory(err);
	}
	return 0;
}

static int list(struct view_listing *l, struct hood *h, struct error *err)
{
	const struct view_filter *f = l->filter;
	bool is_verdict = f->state && !is_live_state(f->state) && strcmp(f->state, "finished") != 0;
	struct ledger_filter filter = {
		.state = is_verdict ? f->state : NULL, .prefix = f->prefix, .limit = f->limit};
	struct ledger *ledger;
	int r = hood_live_each(h, on_live, l, err);

	if (r < 0)
		return err->kind == ERROR_NONE ? error_memory(err) : r;
	if (hood_ledger(h, LEDGER_CREATE, &ledger, err) < 0 || list_queue(l, ledger, err) < 0)
		return -EINVAL;
	r = ledger_list(ledger, &filter, on_ledger_row, l, err);
	return r < 0 || is_verdict ? r : list_held(l, err);
}

int view_list_each(struct hood *h, const struct view_filter *f, view_row_fn fn, void *arg, struct error *err)
{
	_cleanup_(listing_done) struct view_listing l = {
		.filter = f, .fn = fn, .arg = arg, .live = json_object(), .held = json_object()};
	int r = l.live && l.held ? check_state(f->state, err) : error_memory(err);

	return r < 0 ? r : list(&l, h, err);
}

/* ---- JSON ---- */

static json_t *row_json(const struct view_row *row)
{
	const struct attempt *a = row->attempt;
	const struct json_entry entries[] = {
		{"id", json_string(a->id)},
		{"state", json_string(row->state)},
		{"verdict", json_text(row->verdict)},
		{"attempt", a->number > 0 ? json_integer(a->number) : json_null()},
		{"owner", json_shown(a->owner)},
		{"created", json_instant(a->created)},
		{"started", json_instant(a->started)},
		{"usage", usage_to_json(&a->usage)},
	};

	return json_from_entries(entries, ARRAY_SIZE(entries));
}

static int append(void *arg, const struct view_row *row)
{
	return json_array_append_new(arg, row_json(row));
}

int view_list(struct hood *h, const struct view_filter *f, json_t **ret, struct error *err)
{
	json_auto_t *rows = json_array();
	int r = rows ? view_list_each(h, f, append, rows, err) : error_memory(err);

	if (r == 0)
		*ret = json_incref(rows);
	return r;
}

/* ---- for people ---- */

struct list_table {
	const struct look *look;
	struct table *table;
};

static int add_cells(void *arg, const struct view_row *row)
{
	char number[16], since[PRINT_ROOM], wall[PRINT_ROOM], cpu[PRINT_ROOM], memory[PRINT_ROOM], shown[64];
	struct list_table *l = arg;
	const struct attempt *a = row->attempt;
	_cleanup_free_ char *owner = a->owner ? print_escape(a->owner) : NULL;

	snprintf(number, sizeof number, "%d", a->number);
	snprintf(shown, sizeof shown, "%s%s%s", print_style(l->look->colour, view_verdict_style(a->verdict)),
		 row->verdict ? row->verdict : row->state, print_style(l->look->colour, STYLE_RESET));
	table_add(l->table, a->id, a->number > 0 ? number : "-", shown,
		  print_instant(a->started ? a->started : a->created, since),
		  print_duration(a->usage.wall_ms, wall), print_duration(a->usage.cpu_ms, cpu),
		  print_size(a->usage.memory_peak_bytes, memory), owner ? owner : "-");
	return 0;
}

int view_list_table(FILE *to, const struct look *look, struct hood *h, const struct view_filter *f,
		    struct error *err)
{
	_cleanup_table_ struct table t = {.n_columns = 8, .right = 0x72};
	struct list_table l = {look, &t};
	int r;

	table_add(&t, "ID", "ATTEMPT", "VERDICT", "STARTED", "WALL", "CPU", "MEMORY", "OWNER");
	r = view_list_each(h, f, add_cells, &l, err);
	return r < 0 ? r : table_print(&t, to, err);
}
