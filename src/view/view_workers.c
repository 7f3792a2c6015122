/*
 * Who is there to run what is queued: `workers`, and the one line for those who wait for somebody.
 */
#include "view.h"

#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "member.h"
#include "text.h"

static json_t *worker_json(const struct worker_seen *w)
{
	const struct json_entry entries[] = {
		{"id", json_shown(w->name)},
		{"host", json_shown(w->host)},
		{"pid", json_integer(w->pid)},
		{"engine", json_shown(w->engine)},
		{"seats", json_integer(w->seats)},
		{"running", json_integer(w->running)},
		{"state", json_shown(w->state)},
		{"alive", json_boolean(w->is_alive)},
		{"seen", json_instant(w->seen)},
		{"silent_ms", json_integer(w->silent_ns / (int64_t)NSEC_PER_MSEC)},
		{"lease_ms", json_integer((json_int_t)(w->lease_ns / NSEC_PER_MSEC))},
		{"started", json_instant(w->started)},
		{"version", json_shown(w->version)},
		{"owner", json_shown(w->owner)},
	};

	return json_from_entries(entries, ARRAY_SIZE(entries));
}

static int append(void *arg, const struct worker_seen *w, struct error *err)
{
	return json_array_append_new(arg, worker_json(w)) < 0 ? error_memory(err) : 0;
}

int view_workers(struct hood *h, json_t **ret, struct error *err)
{
	json_auto_t *rows = json_array();
	struct ledger *ledger;
	int r = rows ? hood_ledger(h, LEDGER_CREATE, &ledger, err) : error_memory(err);

	if (r == 0)
		r = ledger_workers(ledger, append, rows, err);
	if (r == 0)
		*ret = json_incref(rows);
	return r;
}

/* ---- for people ---- */

struct workers_table {
	const struct look *look;
	struct table table;
};

static int add_cells(void *arg, const struct worker_seen *w, struct error *err UNUSED)
{
	struct workers_table *t = arg;
	_cleanup_free_ char *host = print_escape(w->host), *engine = print_escape(w->engine),
			    *state = print_escape(w->is_alive ? w->state : "silent"),
			    *version = print_escape(w->version), *owner = print_escape(w->owner);
	char pid[16], seats[16], running[16], silent[PRINT_ROOM], seen[PRINT_ROOM + 8], started[PRINT_ROOM];

	snprintf(pid, sizeof pid, "%d", w->pid);
	snprintf(seats, sizeof seats, "%d", w->seats);
	/* What a dead one ran is known from leases, and is not running. */
	snprintf(running, sizeof running, "%d", w->running);
	snprintf(seen, sizeof seen, "%s ago", print_duration(w->silent_ns / (int64_t)NSEC_PER_MSEC, silent));
	table_add(&t->table, host, pid, engine, seats, w->is_alive ? running : NULL, state, seen,
		  print_instant(w->started, started), version, owner);
	return 0;
}

int view_workers_table(FILE *to, const struct look *look, struct hood *h, struct error *err)
{
	struct workers_table t = {.look = look, .table = {.n_columns = 10, .right = 0x5a}};
	struct ledger *ledger;
	int r = hood_ledger(h, LEDGER_CREATE, &ledger, err);

	table_add(&t.table, "HOST", "PID", "ENGINE", "SEATS", "RUNNING", "STATE", "SEEN", "STARTED",
		  "VERSION", "OWNER");
	if (r == 0)
		r = ledger_workers(ledger, add_cells, &t, err);
	if (r == 0)
		r = table_print(&t.table, to, err);
	table_done(&t.table);
	return r;
}

/* ---- is there anybody? ---- */

static int count(void *arg, const struct worker_seen *w, struct error *err UNUSED)
{
	struct workers_view *v = arg;

	if (!v->known++) {
		v->silent_ns = w->silent_ns;
		snprintf(v->host, sizeof v->host, "%s", w->host);
	}
	v->alive += w->is_alive;
	v->takes += w->is_alive && strcmp(w->state, worker_state_name(WORKER_WORKING)) == 0;
	return 0;
}

int workers_view_load(struct workers_view *v, struct ledger *l, struct error *err)
{
	*v = (struct workers_view){0};
	return ledger_workers(l, count, v, err);
}

char *workers_view_warning(const struct workers_view *v, const struct hood *h)
{
	_cleanup_free_ char *url = ledger_url_redacted(hood_ledger_url(h)), *shown = NULL, *host = NULL;
	_cleanup_buffer_ struct buffer b = {0};
	char silent[PRINT_ROOM];

	if (v->takes)
		return strdup("");
	shown = url ? text_safe(url) : NULL;
	host = text_safe(v->host);
	buffer_printf(&b,
		      "no worker %s for the ledger '%s': what is queued waits until one is started with "
		      "'fumehood worker'",
		      v->alive ? "takes anything more" : "is alive", shown ? shown : "?");
	if (v->alive)
		buffer_printf(&b, "; %u that %s alive %s about to end", v->alive,
			      v->alive == 1 ? "is" : "are", v->alive == 1 ? "is" : "are");
	else if (v->known)
		buffer_printf(&b, "; the last one was seen %s ago on %s",
			      print_duration(v->silent_ns / (int64_t)NSEC_PER_MSEC, silent),
			      host ? host : "?");
	return buffer_take(&b);
}
