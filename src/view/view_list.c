#include "view.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "array.h"
#include "limit.h"
#include "member.h"
#include "output_glob.h"
#include "submission.h"
#include "text.h"

/* What is no verdict: of the state directory, and of the queue. */
static const char live_states[][9] = {"running", "pending", "held", "dead", "waiting", "queued", "restored"};

struct view_listing {
	const struct view_filter *filter;
	view_row_fn fn;
	void *arg;
	json_t *live; /* ids that have a row from the state directory or the queue: {"a42": true} */
	int queue_limit;
	char user[SUBMITTER_ROOM]; /* who we are, if it is asked for */
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
		"there is no state '%s': it is waiting, queued, running, pending, restored, cancelled, held, dead, finished, or a verdict",
		SHOWN(64, state));
}

/* ---- what is wanted ---- */

static int set_id(struct view_filter *f, const char *value, struct error *err)
{
	size_t n = strcspn(value, "*?[");

	f->prefix = value;
	if (!value[n])
		return 0;
	if (n >= sizeof f->beginning)
		return error_set(err, ERROR_USAGE, "the pattern '%s' is longer than any id",
				 SHOWN(64, value));
	memcpy(f->beginning, value, n);
	f->beginning[n] = 0;
	f->pattern = value;
	f->prefix = NULL;
	return 0;
}

static int set_verdicts(struct view_filter *f, const char *value, struct error *err)
{
	f->verdicts = 0;
	for (const char *at = value;; at++) {
		size_t n = strcspn(at, ",");
		_cleanup_free_ char *name = strndup(at, n);
		enum verdict v;

		if (!name)
			return error_memory(err);
		if (verdict_parse(name, &v) < 0 || v == VERDICT_NONE)
			return error_set(err, ERROR_USAGE,
					 "there is no verdict '%s': it is succeeded, failed, timed_out, "
					 "output_missing, post_process_failed, out_of_memory, out_of_disk, "
					 "out_of_processes, cancelled, lost or refused",
					 SHOWN(64, name));
		f->verdicts |= 1U << v;
		at += n;
		if (!*at)
			return 0;
	}
}

/* An instant, or how long ago. A number alone could be either. */
static int set_time(int64_t *ret, const char *name, const char *value, struct error *err)
{
	size_t n = strlen(value);
	uint64_t ago;

	if (clock_parse(value, ret) == 0)
		return 0;
	if (n > 0 && (value[n - 1] < '0' || value[n - 1] > '9') && duration_parse(value, &ago) == 0 &&
	    ago < (uint64_t)clock_utc()) {
		*ret = clock_utc() - (int64_t)ago;
		return 0;
	}
	return error_set(
		err, ERROR_USAGE,
		"%s '%s' is no time: write 2026-11-15, 2026-11-15T02:34 (UTC), or how long ago: 90m, 2h, 7d",
		name, SHOWN(64, value));
}

static int set_sort(struct view_filter *f, const char *value, struct error *err)
{
	static const char *const orders[] = {"time", "id", "wall", "cpu", "memory"};

	for (size_t i = 0; i < ARRAY_SIZE(orders); i++)
		if (strcmp(orders[i], value) == 0) {
			f->sort = i ? orders[i] : NULL;
			return 0;
		}
	return error_set(err, ERROR_USAGE, "there is no order '%s': it is time, id, wall, cpu or memory",
			 SHOWN(64, value));
}

int view_filter_set(struct view_filter *f, const char *name, const char *value, struct error *err)
{
	if (strcmp(name, "id") == 0)
		return set_id(f, value, err);
	if (strcmp(name, "state") == 0)
		return f->state = value, check_state(value, err);
	if (strcmp(name, "since") == 0)
		return set_time(&f->since, name, value, err);
	if (strcmp(name, "until") == 0)
		return set_time(&f->until, name, value, err);
	if (strcmp(name, "verdict") == 0)
		return set_verdicts(f, value, err);
	if (strcmp(name, "submitter") == 0)
		return f->submitter = value, 0;
	if (strcmp(name, "sort") == 0)
		return set_sort(f, value, err);
	if (strcmp(name, "limit") == 0 && int_parse(value, 0, INT_MAX, &f->limit) == 0)
		return 0;
	return error_set(
		err, ERROR_USAGE,
		"'%s=%s' is not a filter: there are id, state, since, until, verdict, submitter, sort and limit",
		SHOWN(64, name), SHOWN(64, value));
}

static const char *prefix_of(const struct view_filter *f)
{
	return f->pattern ? f->beginning : f->prefix;
}

static bool is_anybodys(const struct view_filter *f, const char *owner, const char *submitter)
{
	return !f->submitter || (owner && strcmp(owner, f->submitter) == 0) ||
	       (submitter && strcmp(submitter, f->submitter) == 0);
}

/* Of what the ledger has not. */
static bool wants(const struct view_listing *l, const char *state, enum verdict verdict, const char *id,
		  int64_t created)
{
	const struct view_filter *f = l->filter;
	const char *prefix = prefix_of(f);

	return (!f->state || strcmp(f->state, state) == 0) &&
	       (!prefix || strncmp(id, prefix, strlen(prefix)) == 0) &&
	       (!f->pattern || output_glob_match(f->pattern, id)) &&
	       (!f->verdicts || f->verdicts & 1U << verdict) && (!f->since || created >= f->since) &&
	       (!f->until || created < f->until);
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
	/* What lies in the state directory is the caller's own. */
	return wants(l, state, VERDICT_NONE, a.id, a.created) && is_anybodys(l->filter, l->user, NULL)
		       ? give(l, &a, state, NULL)
		       : 0;
}

/* What the queue has replaces the row of an earlier attempt. */
static int on_queued(void *arg, const struct queued *q, struct error *err)
{
	struct attempt a = live_attempt(q->id, q->attempt, q->submitted);
	const char *state = job_state_name(q->state);
	struct view_listing *l = arg;
	json_auto_t *engine = view_engine_of(q);
	int r = 0;

	if (json_object_get(l->live, q->id))
		return 0;
	if (json_object_set_new(l->live, q->id, json_true()) < 0)
		return error_memory(err);
	a.owner = (char *)q->owner;
	a.engine = engine;
	if (wants(l, state, q->state == JOB_CANCELLED ? VERDICT_CANCELLED : VERDICT_NONE, q->id,
		  q->submitted) &&
	    is_anybodys(l->filter, q->owner, q->submitter))
		r = give(l, &a, state, q->state == JOB_CANCELLED ? state : NULL);
	return r < 0 ? error_memory(err) : 0;
}

static int on_ledger_row(void *arg, const struct attempt *a, struct error *err)
{
	struct view_listing *l = arg;
	const char *state = l->filter->state;

	if (!state)
		json_object_del(l->held, a->id);
	if (json_object_get(l->live, a->id))
		return 0;
	return give(l, a, "finished", verdict_name(a->verdict)) < 0 ? error_memory(err) : 0;
}

/* The last ones: held, and neither running nor in the ledger. */
static int list_held(struct view_listing *l, struct error *err)
{
	json_t *created;
	const char *id;

	json_object_foreach (l->held, id, created) {
		struct attempt a = live_attempt(id, 0, json_integer_value(created));

		if (wants(l, "held", VERDICT_NONE, id, a.created) && is_anybodys(l->filter, l->user, NULL) &&
		    give(l, &a, "held", NULL) < 0)
			return error_memory(err);
	}
	return 0;
}

/* As the ledger is asked; false: nothing of it can be wanted. */
static bool ledger_filter_of(const struct view_filter *f, struct ledger_filter *ret)
{
	enum verdict v = VERDICT_NONE;

	*ret = (struct ledger_filter){.verdicts = f->verdicts,
				      .prefix = prefix_of(f),
				      .pattern = f->pattern,
				      .since = f->since,
				      .until = f->until,
				      .before_id = f->before_id,
				      .submitter = f->submitter,
				      .limit = f->sort ? 0 : f->limit};
	if (!f->state || strcmp(f->state, "finished") == 0)
		return true;
	if (is_live_state(f->state) || verdict_parse(f->state, &v) < 0)
		return false;
	ret->verdicts = f->verdicts ? f->verdicts & 1U << v : 1U << v;
	return ret->verdicts != 0;
}

static int list_open(struct view_listing *l, struct hood *h, struct ledger **ret, struct error *err)
{
	const struct view_filter *f = l->filter;
	int r = hood_live_each(h, on_live, l, err);

	if (r < 0)
		return err->kind == ERROR_NONE ? error_memory(err) : r;
	if (hood_ledger(h, LEDGER_CREATE, ret, err) < 0 ||
	    ledger_queue_list_open(*ret, prefix_of(f), l->queue_limit, on_queued, l, err) < 0)
		return -EINVAL;
	return 0;
}

static int list(struct view_listing *l, struct hood *h, struct error *err)
{
	const struct view_filter *f = l->filter;
	struct ledger_filter filter;
	struct ledger *ledger;
	int r = f->before_id ? hood_ledger(h, LEDGER_CREATE, &ledger, err) : list_open(l, h, &ledger, err);

	if (r == 0 && ledger_filter_of(f, &filter))
		r = ledger_list(ledger, &filter, on_ledger_row, l, err);
	return r < 0 ? r : list_held(l, err);
}

/* ---- another order ---- */

struct sorted_row {
	struct attempt attempt; /* what a row shows of it */
	const char *state, *verdict;
	int64_t key;
};

struct sorting {
	const struct view_filter *filter;
	struct sorted_row *rows;
	size_t n;
};

static void sorting_cut(struct sorting *s, size_t n)
{
	while (s->n > n)
		attempt_done(&s->rows[--s->n].attempt);
}

static void sorting_done(struct sorting *s)
{
	sorting_cut(s, 0);
	free(s->rows);
}

/* The largest first, unknown ones last, and then by id. */
static int row_compare(const void *a, const void *b)
{
	const struct sorted_row *x = a, *y = b;

	if (x->key != y->key)
		return x->key > y->key ? -1 : 1;
	return strcmp(x->attempt.id, y->attempt.id);
}

static int64_t sort_key(const char *sort, const struct usage *u)
{
	return strcmp(sort, "wall") == 0     ? u->wall_ms
	       : strcmp(sort, "cpu") == 0    ? u->cpu_ms
	       : strcmp(sort, "memory") == 0 ? u->memory_peak_bytes
					     : 0;
}

static int sort_row(void *arg, const struct view_row *row)
{
	struct sorting *s = arg;
	const struct attempt *from = row->attempt;
	struct sorted_row *to = ARRAY_ADD(s->rows, s->n);

	if (!to)
		return -1;
	*to = (struct sorted_row){
		.state = row->state, .verdict = row->verdict, .key = sort_key(s->filter->sort, &from->usage)};
	attempt_init(&to->attempt);
	memcpy(to->attempt.id, from->id, sizeof from->id);
	to->attempt.number = from->number;
	to->attempt.verdict = from->verdict;
	to->attempt.exit_code = from->exit_code;
	to->attempt.signal = from->signal;
	to->attempt.status = from->status;
	to->attempt.created = from->created;
	to->attempt.started = from->started;
	to->attempt.usage = from->usage;
	to->attempt.request = json_incref(from->request);
	to->attempt.engine = json_incref(from->engine);
	if (from->owner && !(to->attempt.owner = strdup(from->owner)))
		return -1;
	if (s->filter->limit > 0 && s->n / 2 >= (size_t)s->filter->limit) {
		qsort(s->rows, s->n, sizeof *s->rows, row_compare);
		sorting_cut(s, (size_t)s->filter->limit);
	}
	return 0;
}

static int list_sorted(const struct view_listing *l, struct hood *h, struct error *err)
{
	_cleanup_(sorting_done) struct sorting s = {.filter = l->filter};
	struct view_listing unsorted = *l;
	int r;

	unsorted.fn = sort_row;
	unsorted.arg = &s;
	r = list(&unsorted, h, err);
	if (r < 0)
		return r;
	if (s.n)
		qsort(s.rows, s.n, sizeof *s.rows, row_compare);
	if (l->filter->limit > 0)
		sorting_cut(&s, (size_t)l->filter->limit);
	for (size_t i = 0; i < s.n; i++)
		if (l->fn(l->arg,
			  &(struct view_row){&s.rows[i].attempt, s.rows[i].state, s.rows[i].verdict}) < 0)
			return error_memory(err);
	return 0;
}

int view_list_each(struct hood *h, const struct view_filter *f, view_row_fn fn, void *arg, struct error *err)
{
	_cleanup_(listing_done) struct view_listing l = {
		.filter = f, .fn = fn, .arg = arg, .live = json_object(), .held = json_object()};
	int r = l.live && l.held ? check_state(f->state, err) : error_memory(err);

	/* A row that is left out here is not one of the newest there. */
	l.queue_limit = f->pattern || f->since || f->until || f->submitter || f->sort ? 0 : f->limit;
	if (r == 0 && f->submitter)
		r = submitter_default(l.user, sizeof l.user, err);
	if (r < 0)
		return r;
	return f->sort ? list_sorted(&l, h, err) : list(&l, h, err);
}

/* ---- JSON ---- */

static const json_t *command_of(const struct attempt *a)
{
	const json_t *command = json_object_get(a->request, "command");

	return json_is_array(command) ? command : NULL;
}

char *view_command(const struct attempt *a)
{
	const json_t *command = command_of(a), *word;
	_cleanup_buffer_ struct buffer b = {0};
	size_t i;

	json_array_foreach (command, i, word) {
		const char *text = json_is_string(word) ? json_string_value(word) : "?";

		buffer_puts(&b, i ? " " : "");
		buffer_puts(&b, text);
	}
	return b.size && buffer_check(&b, NULL) == 0 ? text_escape(b.data, b.size) : NULL;
}

json_t *view_row_json(const struct view_row *row)
{
	const struct attempt *a = row->attempt;
	const json_t *command = command_of(a);
	const struct json_entry entries[] = {
		{"id", json_string(a->id)},
		{"state", json_string(row->state)},
		{"verdict", json_text(row->verdict)},
		{"attempt", a->number > 0 ? json_integer(a->number) : json_null()},
		{"owner", json_shown(a->owner)},
		{"command", command ? json_deep_copy(command) : json_null()},
		{"exit_code", a->exit_code < 0 ? json_null() : json_integer(a->exit_code)},
		{"signal", a->signal == 0 ? json_null() : json_integer(a->signal)},
		{"created", json_instant(a->created)},
		{"started", json_instant(a->started)},
		{"usage", usage_to_json(&a->usage)},
		{"engine", a->engine ? json_incref(a->engine) : json_null()},
	};

	return json_from_entries(entries, ARRAY_SIZE(entries));
}

static int append(void *arg, const struct view_row *row)
{
	return json_array_append_new(arg, view_row_json(row));
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

enum { ROWS_AT_ONCE = 500, COMMAND_WIDTH = 60, CELL_ROOM = 64 };

struct list_table {
	FILE *to;
	const struct look *look;
	struct table *table;
	size_t rows; /* since it was printed */
	bool by_pages;
};

static void print_exit(const struct attempt *a, char out[CELL_ROOM])
{
	if (a->signal)
		snprintf(out, CELL_ROOM, "signal %d", a->signal);
	else if (a->exit_code >= 0)
		snprintf(out, CELL_ROOM, "%d", a->exit_code);
	else
		snprintf(out, CELL_ROOM, "-");
}

/* Its beginning, no character of it cut. */
static void cut_command(char *command)
{
	size_t n = 0;

	if (!command || strlen(command) <= COMMAND_WIDTH)
		return;
	for (n = COMMAND_WIDTH - 3; ((unsigned char)command[n] & 0xc0) == 0x80; n--)
		;
	memcpy(command + n, "…", sizeof "…");
}

/* What one looks at for an hour keeps nothing of the ledger's open, and not a million rows in memory. */
static int print_rows(struct list_table *l)
{
	struct error ignored = ERROR_INIT;
	int r = table_print(l->table, l->to, &ignored);

	table_empty(l->table);
	l->rows = 0;
	return r < 0 || fflush(l->to) != 0 ? -1 : 0;
}

static int add_cells(void *arg, const struct view_row *row)
{
	char number[16], since[PRINT_ROOM], wall[PRINT_ROOM], cpu[PRINT_ROOM], memory[PRINT_ROOM],
		shown[CELL_ROOM], left[CELL_ROOM];
	struct list_table *l = arg;
	const struct attempt *a = row->attempt;
	_cleanup_free_ char *owner = a->owner ? print_escape(a->owner) : NULL, *command = view_command(a);

	snprintf(number, sizeof number, "%d", a->number);
	snprintf(shown, sizeof shown, "%s%s%s", print_style(l->look->colour, view_verdict_style(a->verdict)),
		 row->verdict ? row->verdict : row->state, print_style(l->look->colour, STYLE_RESET));
	print_exit(a, left);
	cut_command(command);
	table_add(l->table, a->id, a->number > 0 ? number : "-", shown, left,
		  print_instant(a->started ? a->started : a->created, since),
		  print_duration(a->usage.wall_ms, wall), print_duration(a->usage.cpu_ms, cpu),
		  print_size(a->usage.memory_peak_bytes, memory), owner ? owner : "-",
		  command ? command : "-");
	return l->by_pages && ++l->rows == ROWS_AT_ONCE ? print_rows(l) : 0;
}

int view_list_table(FILE *to, const struct look *look, struct hood *h, const struct view_filter *f,
		    bool by_pages, struct error *err)
{
	_cleanup_table_ struct table t = {.n_columns = 10, .right = 0xea};
	struct list_table l = {.to = to, .look = look, .table = &t, .by_pages = by_pages};
	int r;

	table_add(&t, "ID", "ATTEMPT", "VERDICT", "EXIT", "STARTED", "WALL", "CPU", "MEMORY", "OWNER",
		  "COMMAND");
	r = view_list_each(h, f, add_cells, &l, err);
	/* A reader who has seen enough is no error. */
	if (by_pages && ferror(to))
		return 0;
	return r < 0 ? r : table_print(&t, to, err);
}
