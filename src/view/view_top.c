/*
 * What runs now, and the queue: `top`. What this host runs by our state directory is read where its supervisor writes it; what others
 * run comes out of the ledger, as old as their workers' last heartbeat.
 */
#include "view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "array.h"
#include "clock.h"
#include "member.h"
#include "text.h"

/* Whoever sees as many does not count them. */
enum { COUNT_MOST = 100000 };

void top_view_done(struct top_view *v)
{
	for (size_t i = 0; i < v->n_rows; i++)
		json_decref(v->rows[i].engine);
	free(v->rows);
	*v = (struct top_view){0};
}

static int add_live(void *arg, const struct live *live)
{
	struct top_view *v = arg;
	struct top_row *row;

	if (!live->alive || live->held)
		return 0;
	row = ARRAY_ADD(v->rows, v->n_rows);
	if (!row)
		return -1;
	*row = (struct top_row){.attempt = live->attempt,
				.step = live->step,
				.created = live->created,
				.is_here = true,
				.is_queued = live->queued,
				.has_pulse = live->has_pulse,
				.pulse = live->pulse};
	snprintf(row->id, sizeof row->id, "%s", live->id);
	snprintf(row->host, sizeof row->host, "%s", v->host);
	return 0;
}

static bool is_here(const struct top_view *v, const char *id)
{
	for (size_t i = 0; i < v->n_here; i++)
		if (strcmp(v->rows[i].id, id) == 0)
			return true;
	return false;
}

/* A worker's name begins with its host's. */
static int add_queued(void *arg, const struct queued *q, struct error *err)
{
	json_auto_t *live = q->live ? json_loads(q->live, JSON_REJECT_DUPLICATES, NULL) : NULL;
	const char *worker = q->worker ? q->worker : "?";
	struct top_view *v = arg;
	struct top_row *row;

	if (is_here(v, q->id))
		return 0;
	row = ARRAY_ADD(v->rows, v->n_rows);
	if (!row)
		return error_memory(err);
	*row = (struct top_row){.attempt = q->attempt, .is_queued = true, .engine = view_engine_of(q)};
	snprintf(row->id, sizeof row->id, "%s", q->id);
	snprintf(row->host, sizeof row->host, "%.*s", (int)strcspn(worker, " "), worker);
	row->has_pulse = live && pulse_from_json(&row->pulse, live) == 0;
	return 0;
}

/* Who uses most comes first, then who is oldest. */
static int compare(const void *a, const void *b)
{
	const struct top_row *x = a, *y = b;
	int64_t p = x->has_pulse ? x->pulse.cpu_permille : -1, q = y->has_pulse ? y->pulse.cpu_permille : -1;

	return p != q ? (p > q ? -1 : 1) : strcmp(x->id, y->id);
}

int top_view_load(struct top_view *v, struct hood *h, struct error *err)
{
	struct workers_view workers;
	struct ledger *ledger;
	struct utsname host;
	int r;

	*v = (struct top_view){.at = clock_utc()};
	uname(&host);
	snprintf(v->host, sizeof v->host, "%s", host.nodename);
	r = hood_live_each(h, add_live, v, err);
	if (r < 0)
		return err->kind == ERROR_NONE ? error_memory(err) : r;
	v->n_here = v->n_rows;
	if ((r = hood_ledger(h, LEDGER_CREATE, &ledger, err)) < 0 ||
	    (r = ledger_queue_list(ledger, JOB_RUNNING, NULL, 0, add_queued, v, err)) < 0 ||
	    (r = ledger_queue_open_counts(ledger, COUNT_MOST, v->counts, err)) < 0 ||
	    (r = ledger_recent(ledger, &v->recent, err)) < 0 ||
	    (r = workers_view_load(&workers, ledger, err)) < 0)
		return r;
	v->workers_alive = workers.alive;
	if (v->n_rows)
		qsort(v->rows, v->n_rows, sizeof *v->rows, compare);
	return 0;
}

/* How long it has been going on: by the supervisor's clock, or, until that says, since it was asked for. */
static int64_t age_ms(const struct top_view *v, const struct top_row *row)
{
	if (row->created)
		return (v->at - row->created) / (int64_t)NSEC_PER_MSEC;
	return row->has_pulse ? row->pulse.elapsed_ms : -1;
}

/* ---- JSON ---- */

static json_t *row_json(const struct top_view *v, const struct top_row *row)
{
	int64_t age = age_ms(v, row);
	json_auto_t *pulse = row->has_pulse ? pulse_to_json(&row->pulse) : json_null();
	const struct json_entry entries[] = {
		{"id", json_string(row->id)},
		{"attempt", row->attempt > 0 ? json_integer(row->attempt) : json_null()},
		{"step", row->step ? json_integer((json_int_t)row->step) : json_null()},
		{"host", json_shown(row->host)},
		{"here", json_boolean(row->is_here)},
		{"queued", json_boolean(row->is_queued)},
		{"age_ms", age < 0 ? json_null() : json_integer(age)},
		{"live", json_incref(pulse)},
		{"engine", row->engine ? json_incref(row->engine) : json_null()},
	};

	return json_from_entries(entries, ARRAY_SIZE(entries));
}

static json_t *counts_json(const struct top_view *v)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "waiting", (json_int_t)v->counts[JOB_WAITING],
			 "queued", (json_int_t)v->counts[JOB_QUEUED], "running",
			 (json_int_t)v->counts[JOB_RUNNING], "cancelled",
			 (json_int_t)v->counts[JOB_CANCELLED], "restored",
			 (json_int_t)v->counts[JOB_RESTORED], "counted_up_to", (json_int_t)COUNT_MOST);
}

static json_t *recent_json(const struct recent *r)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:b}", "window_s", (json_int_t)(r->window_ns / NSEC_PER_SEC),
			 "ended", (json_int_t)r->ended, "failed", (json_int_t)r->failed, "last_minute",
			 (json_int_t)r->in_minute, "more", r->is_cut);
}

json_t *top_view_json(const struct top_view *v)
{
	json_auto_t *rows = json_array();

	for (size_t i = 0; i < v->n_rows; i++)
		json_push(&rows, row_json(v, &v->rows[i]));
	return json_from_entries(
		(const struct json_entry[]){
			{"at", json_instant(v->at)},
			{"host", json_shown(v->host)},
			{"analyses", json_incref(rows)},
			{"queue", counts_json(v)},
			{"recent", recent_json(&v->recent)},
			{"workers_alive", json_integer(v->workers_alive)},
		},
		6);
}

int view_top(struct hood *h, json_t **ret, struct error *err)
{
	_cleanup_(top_view_done) struct top_view v;
	int r = top_view_load(&v, h, err);

	if (r == 0 && !(*ret = top_view_json(&v)))
		r = error_memory(err);
	return r;
}

/* ---- for people ---- */

static const char *print_percent(int64_t permille, char out[PRINT_ROOM])
{
	if (permille < 0)
		snprintf(out, PRINT_ROOM, "-");
	else
		snprintf(out, PRINT_ROOM, permille < 1000 ? "%lld.%lld" : "%lld", (long long)(permille / 10),
			 (long long)(permille % 10));
	return out;
}

static const char *print_many(uint64_t n, char out[PRINT_ROOM])
{
	snprintf(out, PRINT_ROOM, "%llu%s", (unsigned long long)n, n >= COUNT_MOST ? "+" : "");
	return out;
}

static void put_head(FILE *to, const struct top_view *v)
{
	char waiting[PRINT_ROOM], queued[PRINT_ROOM], running[PRINT_ROOM], at[PRINT_ROOM];

	fprintf(to, "%s  %zu running, %u %s alive\n", print_instant(v->at, at), v->n_rows, v->workers_alive,
		v->workers_alive == 1 ? "worker" : "workers");
	fprintf(to,
		"queue: %s queued, %s waiting, %s running; last hour: %llu%s ended, %llu failed, %llu/min\n\n",
		print_many(v->counts[JOB_QUEUED], queued), print_many(v->counts[JOB_WAITING], waiting),
		print_many(v->counts[JOB_RUNNING], running), (unsigned long long)v->recent.ended,
		v->recent.is_cut ? "+" : "", (unsigned long long)v->recent.failed,
		(unsigned long long)v->recent.in_minute);
}

/* "slurm job 123_4 on node1: PENDING, Priority" */
static char *where(const json_t *engine)
{
	_cleanup_free_ char *text = view_engine(engine);
	char name[32], *all = NULL;

	view_engine_name(engine, name);
	return text && asprintf(&all, "%s%s%s", name, *text ? " " : "", text) >= 0 ? all : NULL;
}

static void add_cells(struct table *t, const struct top_view *v, const struct top_row *row)
{
	static const struct pulse none = {
		.stage = "-", .cpu_permille = -1, .memory_bytes = -1, .pids = -1, .wall_limit_ms = -1};
	const struct pulse *p = row->has_pulse ? &row->pulse : &none;
	_cleanup_free_ char *host = row->engine ? where(row->engine) : print_escape(row->host);
	char id[ID_ROOM + 32], cpu[PRINT_ROOM], memory[PRINT_ROOM], pids[PRINT_ROOM] = "-", age[PRINT_ROOM],
								    limit[PRINT_ROOM];

	if (row->step)
		snprintf(id, sizeof id, "%s step %zu", row->id, row->step);
	else
		snprintf(id, sizeof id, "%s", row->id);
	if (p->pids >= 0)
		snprintf(pids, sizeof pids, "%lld", (long long)p->pids);
	table_add(t, id, p->stage, print_percent(p->cpu_permille, cpu), print_size(p->memory_bytes, memory),
		  pids, print_duration(age_ms(v, row), age), print_duration(p->wall_limit_ms, limit), host);
}

int top_view_table(FILE *to, const struct look *look UNUSED, const struct top_view *v, struct error *err)
{
	_cleanup_table_ struct table t = {.n_columns = 8, .right = 0x7c};

	put_head(to, v);
	table_add(&t, "ID", "STAGE", "CPU%", "MEMORY", "PROCS", "AGE", "LIMIT", "HOST");
	for (size_t i = 0; i < v->n_rows; i++)
		add_cells(&t, v, &v->rows[i]);
	return table_print(&t, to, err);
}
