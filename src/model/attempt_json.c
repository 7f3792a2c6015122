#include "attempt.h"

#include <errno.h>
#include <string.h>

#include "array.h"
#include "member.h"
#include "text.h"

/* What is stored: times are integers, so that nothing is lost. */
static const struct member attempt_members[] = {
	MEMBER(struct attempt, id, MEMBER_CHARS),
	MEMBER_AS("attempt", struct attempt, number, MEMBER_INT),
	MEMBER(struct attempt, token, MEMBER_CHARS),
	MEMBER(struct attempt, exit_code, MEMBER_INT),
	MEMBER(struct attempt, signal, MEMBER_INT),
	MEMBER(struct attempt, status, MEMBER_INT),
	MEMBER_AS("created_ns", struct attempt, created, MEMBER_TIME),
	MEMBER_AS("started_ns", struct attempt, started, MEMBER_TIME),
	MEMBER_AS("ended_ns", struct attempt, ended, MEMBER_TIME),
	MEMBER(struct attempt, workspace, MEMBER_TEXT),
	MEMBER(struct attempt, kept, MEMBER_BOOL),
	MEMBER(struct attempt, queued, MEMBER_BOOL),
	MEMBER(struct attempt, step, MEMBER_INT),
	MEMBER(struct attempt, host, MEMBER_TEXT),
	MEMBER(struct attempt, reason, MEMBER_TEXT),
	MEMBER(struct attempt, request, MEMBER_JSON),
	MEMBER(struct attempt, plan, MEMBER_JSON),
	MEMBER(struct attempt, result, MEMBER_JSON),
	MEMBER(struct attempt, engine, MEMBER_JSON),
	MEMBER(struct attempt, rows, MEMBER_COUNT),
	MEMBER(struct attempt, error_stage, MEMBER_TEXT),
	MEMBER(struct attempt, error_code, MEMBER_TEXT),
	MEMBER(struct attempt, error_message, MEMBER_TEXT),
	MEMBER(struct attempt, committed, MEMBER_BOOL),
};

static const struct member event_members[] = {
	MEMBER_AS("at_ns", struct event, at, MEMBER_TIME),
	MEMBER(struct event, stage, MEMBER_TEXT),
	MEMBER(struct event, text, MEMBER_TEXT),
};

static const struct member log_members[] = {
	MEMBER(struct captured, head_size, MEMBER_SIZE),
	MEMBER(struct captured, tail_size, MEMBER_SIZE),
	MEMBER(struct captured, omitted, MEMBER_SIZE),
};
_Static_assert(sizeof(size_t) == sizeof(uint64_t), "head_size and tail_size are written as MEMBER_SIZE");

static const struct member query_members[] = {
	MEMBER(struct query, name, MEMBER_TEXT),
	MEMBER(struct query, sql, MEMBER_TEXT),
	MEMBER(struct query, sha256, MEMBER_DIGEST),
	MEMBER(struct query, size, MEMBER_SIZE),
	MEMBER(struct query, rows, MEMBER_SIZE),
	MEMBER_AS("started_ns", struct query, started, MEMBER_TIME),
	MEMBER(struct query, duration_ms, MEMBER_COUNT),
};

static const struct member step_members[] = {
	MEMBER(struct step, exit_code, MEMBER_INT),
	MEMBER(struct step, signal, MEMBER_INT),
	MEMBER(struct step, status, MEMBER_INT),
	MEMBER_AS("started_ns", struct step, started, MEMBER_TIME),
	MEMBER_AS("ended_ns", struct step, ended, MEMBER_TIME),
	MEMBER(struct step, reason, MEMBER_TEXT),
	MEMBER(struct step, request, MEMBER_JSON),
	MEMBER(struct step, plan, MEMBER_JSON),
};

/* A character that is cut in two is none: how much less to take. */
static size_t cut_before(const char *data, size_t size)
{
	size_t n = size;

	while (n > 0 && size - n < 3 && ((unsigned char)data[n] & 0xc0) == 0x80)
		n--;
	return n;
}

static size_t cut_after(const char *data, size_t size)
{
	size_t n = 0;

	while (n < 3 && n < size && ((unsigned char)data[n] & 0xc0) == 0x80)
		n++;
	return n;
}

json_t *captured_to_json(const struct captured *c, size_t max)
{
	size_t head = c->head_size <= max ? c->head_size : cut_before(c->head, max);
	size_t of_tail = c->tail_size <= max ? c->tail_size : max;
	size_t rest = c->omitted ? 0 : c->head_size - head, cut;
	size_t of_head = rest <= max - of_tail ? rest : max - of_tail;
	_cleanup_buffer_ struct buffer tail = {0};
	json_auto_t *json = json_object();

	if ((of_head && buffer_append(&tail, c->head + c->head_size - of_head, of_head) < 0) ||
	    (of_tail && buffer_append(&tail, c->tail + c->tail_size - of_tail, of_tail) < 0))
		return NULL;
	cut = of_head + of_tail < c->tail_size + rest ? cut_after(tail.data, tail.size) : 0;
	if (json_set_bytes(json, "head", c->head, head) ||
	    json_set_bytes(json, "tail", tail.data ? tail.data + cut : NULL, tail.size - cut) ||
	    json_object_set_new(json, "omitted_bytes",
				json_integer((json_int_t)(c->omitted + c->head_size + c->tail_size - head -
							  (tail.size - cut)))))
		return NULL;
	return json_incref(json);
}

static json_t *list_to_json(const struct member *members, size_t n_members, const void *list, size_t count,
			    size_t size)
{
	json_t *array = json_array();

	for (size_t i = 0; i < count; i++)
		json_push(&array, members_to_json(members, n_members, (const char *)list + i * size));
	return array;
}

static json_t *logs_to_json(const struct captured *logs)
{
	return list_to_json(log_members, ARRAY_SIZE(log_members), logs, STREAM_COUNT, sizeof logs[0]);
}

static json_t *stored_step_to_json(const struct step *s)
{
	json_auto_t *o = json_object();
	const struct json_entry parts[] = {
		{"verdict", json_string(verdict_name(s->verdict))},
		{"usage", usage_to_json(&s->usage)},
		{"receipt", receipt_to_json(&s->receipt)},
		{"logs", logs_to_json(s->logs)},
	};

	if (json_set_entries(o, parts, ARRAY_SIZE(parts)) < 0 ||
	    members_write(o, step_members, ARRAY_SIZE(step_members), s) < 0)
		return NULL;
	return json_incref(o);
}

static json_t *stored_steps_to_json(const struct attempt *a)
{
	return JSON_LIST(a->steps, a->n_steps, stored_step_to_json);
}

static json_t *stored_events_to_json(const struct attempt *a)
{
	return list_to_json(event_members, ARRAY_SIZE(event_members), a->events, a->n_events,
			    sizeof *a->events);
}

static json_t *queries_to_json(const struct attempt *a)
{
	return list_to_json(query_members, ARRAY_SIZE(query_members), a->queries, a->n_queries,
			    sizeof *a->queries);
}

static json_t *stored_to_json(const struct attempt *a, bool lists)
{
	json_auto_t *o = json_object();
	const struct json_entry parts[] = {
		{"verdict", json_string(verdict_name(a->verdict))},
		{"usage", usage_to_json(&a->usage)},
		{"timeline", a->timeline ? timeline_to_json(a->timeline) : json_null()},
		{"receipt", receipt_to_json(&a->receipt)},
		{"denials", denials_to_json(&a->denials)},
		{"manifest", lists ? manifest_to_json(&a->manifest) : manifest_head_to_json(&a->manifest)},
		{"inputs", lists ? inputs_to_json(&a->inputs) : json_array()},
		{"queries", queries_to_json(a)},
		{"logs", logs_to_json(a->logs)},
		{"steps", stored_steps_to_json(a)},
		{"events", stored_events_to_json(a)},
	};

	if (json_set_entries(o, parts, ARRAY_SIZE(parts)) < 0 || a->failed ||
	    members_write(o, attempt_members, ARRAY_SIZE(attempt_members), a) < 0)
		return NULL;
	return json_incref(o);
}

json_t *attempt_to_json(const struct attempt *a)
{
	return stored_to_json(a, true);
}

json_t *attempt_head_to_json(const struct attempt *a)
{
	return stored_to_json(a, false);
}

static int read_events(struct attempt *a, const json_t *json, struct error *err)
{
	for (size_t i = 0; i < json_array_size(json); i++) {
		struct event *e = ARRAY_ADD(a->events, a->n_events);

		if (!e)
			return error_memory(err);
		if (members_read(e, event_members, ARRAY_SIZE(event_members), json_array_get(json, i),
				 "event", err) < 0)
			return -1;
		if (!e->stage || !e->text)
			return error_set(err, ERROR_SYSTEM,
					 "cannot read a stored event: it has no stage or no text");
	}
	return 0;
}

static int read_queries(struct attempt *a, const json_t *json, struct error *err)
{
	for (size_t i = 0; i < json_array_size(json); i++) {
		struct query *q = ARRAY_ADD(a->queries, a->n_queries);

		if (!q)
			return error_memory(err);
		if (members_read(q, query_members, ARRAY_SIZE(query_members), json_array_get(json, i),
				 "query", err) < 0)
			return -1;
		if (!q->name || !q->sql)
			return error_set(err, ERROR_SYSTEM,
					 "cannot read a stored query: it has no name or no text");
	}
	return 0;
}

static int read_logs(struct captured *logs, const json_t *json, struct error *err)
{
	for (size_t i = 0; i < STREAM_COUNT && i < json_array_size(json); i++)
		if (members_read(&logs[i], log_members, ARRAY_SIZE(log_members), json_array_get(json, i),
				 "log", err) < 0)
			return -1;
	return 0;
}

static int read_verdict(enum verdict *ret, const json_t *json, const char *what, struct error *err)
{
	const char *verdict = json_string_value(json_object_get(json, "verdict"));

	if (verdict && verdict_parse(verdict, ret) == 0)
		return 0;
	return error_set(err, ERROR_SYSTEM, "cannot read a stored %s: its 'verdict' makes no sense", what);
}

static int read_step(struct step *s, const json_t *json, struct error *err)
{
	const json_t *usage = json_object_get(json, "usage"), *receipt = json_object_get(json, "receipt");

	if (members_read(s, step_members, ARRAY_SIZE(step_members), json, "step", err) < 0 ||
	    read_verdict(&s->verdict, json, "step", err) < 0 ||
	    (usage && usage_from_json(&s->usage, usage, err) < 0) ||
	    (receipt && receipt_from_json(&s->receipt, receipt, err) < 0))
		return -1;
	return read_logs(s->logs, json_object_get(json, "logs"), err);
}

static int read_steps(struct attempt *a, const json_t *json, struct error *err)
{
	for (size_t i = 0; i < json_array_size(json); i++) {
		struct step *s = ARRAY_ADD(a->steps, a->n_steps);

		if (!s)
			return error_memory(err);
		s->exit_code = -1;
		s->usage = (struct usage)USAGE_UNKNOWN;
		if (read_step(s, json_array_get(json, i), err) < 0)
			return -1;
	}
	return 0;
}

static int read_timeline(struct attempt *a, const json_t *json, struct error *err)
{
	if (!json || json_is_null(json))
		return 0;
	a->timeline = calloc(1, sizeof *a->timeline);
	return a->timeline ? timeline_from_json(a->timeline, json, err) : error_memory(err);
}

static int read_identity(struct attempt *a, const json_t *json, struct error *err)
{
	if (members_read(a, attempt_members, ARRAY_SIZE(attempt_members), json, "attempt", err) < 0 ||
	    id_check(a->id, err) < 0)
		return -1;
	return read_verdict(&a->verdict, json, "attempt", err);
}

/* Parts that are not there are as attempt_init left them. */
static int read_parts(struct attempt *a, const json_t *json, struct error *err)
{
	const json_t *usage = json_object_get(json, "usage"), *receipt = json_object_get(json, "receipt");
	const json_t *manifest = json_object_get(json, "manifest"),
		     *denials = json_object_get(json, "denials");

	if ((usage && usage_from_json(&a->usage, usage, err) < 0) ||
	    read_timeline(a, json_object_get(json, "timeline"), err) < 0 ||
	    (receipt && receipt_from_json(&a->receipt, receipt, err) < 0) ||
	    (denials && denials_from_json(&a->denials, denials, err) < 0) ||
	    (manifest && manifest_from_json(&a->manifest, manifest, err) < 0) ||
	    inputs_from_json(&a->inputs, json_object_get(json, "inputs"), err) < 0 ||
	    read_queries(a, json_object_get(json, "queries"), err) < 0 ||
	    read_logs(a->logs, json_object_get(json, "logs"), err) < 0 ||
	    read_steps(a, json_object_get(json, "steps"), err) < 0)
		return -1;
	return read_events(a, json_object_get(json, "events"), err);
}

int attempt_from_json(struct attempt *a, const json_t *json, struct error *err)
{
	_cleanup_attempt_ struct attempt read;

	attempt_init(&read);
	if (read_identity(&read, json, err) < 0 || read_parts(&read, json, err) < 0)
		return -1;
	attempt_done(a);
	*a = read;
	attempt_init(&read);
	return 0;
}

static json_t *error_to_json(const struct attempt *a)
{
	const char *stage = a->error_stage && *a->error_stage ? a->error_stage : NULL;
	const struct json_entry entries[] = {
		{"stage", json_shown(stage)},
		{"code", json_shown(a->error_code)},
		{"message", json_shown(a->error_message)},
	};

	return json_from_entries(entries, ARRAY_SIZE(entries));
}

static json_t *event_to_json(const struct event *e)
{
	const struct json_entry entries[] = {
		{"at", json_instant(e->at)},
		{"stage", json_shown(e->stage)},
		{"text", json_shown(e->text)},
	};

	return json_from_entries(entries, ARRAY_SIZE(entries));
}

static json_t *events_to_json(const struct attempt *a)
{
	return JSON_LIST(a->events, a->n_events, event_to_json);
}

static json_t *json_or_null(json_t *json)
{
	return json ? json_incref(json) : json_null();
}

static json_t *command_to_json(const json_t *request)
{
	return json_or_null(json_object_get(request, "command"));
}

static json_t *step_to_json(const struct step *s)
{
	const struct json_entry entries[] = {
		{"command", command_to_json(s->request)},
		{"verdict", json_string(verdict_name(s->verdict))},
		{"exit_code", s->exit_code < 0 ? json_null() : json_integer(s->exit_code)},
		{"signal", s->signal == 0 ? json_null() : json_integer(s->signal)},
		{"status", json_integer(s->status)},
		{"reason", json_shown(s->reason)},
		{"started", json_instant(s->started)},
		{"ended", json_instant(s->ended)},
		{"usage", usage_to_json(&s->usage)},
	};

	return json_from_entries(entries, ARRAY_SIZE(entries));
}

json_t *attempt_steps_to_json(const struct attempt *a)
{
	return JSON_LIST(a->steps, a->n_steps, step_to_json);
}

static int set_result(json_t *o, const struct attempt *a, bool lists)
{
	const struct json_entry entries[] = {
		{"id", a->id[0] ? json_string(a->id) : json_null()},
		{"attempt", json_integer(a->number)},
		{"verdict", json_string(verdict_name(a->verdict))},
		{"exit_code", a->exit_code < 0 ? json_null() : json_integer(a->exit_code)},
		{"signal", a->signal == 0 ? json_null() : json_integer(a->signal)},
		{"reason", json_shown(a->reason)},
		{"committed", json_boolean(a->committed)},
		{"pending", json_boolean(a->pending)},
		{"workspace", json_shown(a->workspace)},
		{"kept", json_boolean(a->kept)},
		{"outputs", lists ? manifest_outputs_to_json(&a->manifest) : json_array()},
		{"rejected_outputs", manifest_rejected_to_json(&a->manifest)},
		{"rejected_outputs_more", json_integer((json_int_t)a->manifest.n_rejected_more)},
		{"missing_outputs", json_text_list(a->manifest.missing)},
		{"rows", a->rows < 0 ? json_null() : json_integer(a->rows)},
		{"usage", usage_to_json(&a->usage)},
		{"step", a->step ? json_integer(a->step) : json_null()},
		{"steps", attempt_steps_to_json(a)},
		{"receipt", receipt_to_json(&a->receipt)},
		{"denials", denials_to_public_json(&a->denials)},
		{"denials_more", a->denials.more < 0 ? json_null() : json_integer(a->denials.more)},
		{"engine", json_or_null(a->engine)},
		{"error", a->error_message ? error_to_json(a) : json_null()},
	};

	return json_set_entries(o, entries, ARRAY_SIZE(entries));
}

static json_t *query_to_json(const struct query *q)
{
	char sha256[DIGEST_TEXT_SIZE];

	hex_encode(q->sha256, DIGEST_SIZE, sha256);
	return json_pack("{s:s, s:o, s:s, s:I, s:I, s:o, s:I}", "name", q->name, "sql", json_shown(q->sql),
			 "sha256", sha256, "size", (json_int_t)q->size, "rows", (json_int_t)q->rows,
			 "started", json_instant(q->started), "duration_ms", (json_int_t)q->duration_ms);
}

static json_t *shown_queries_to_json(const struct attempt *a)
{
	return JSON_LIST(a->queries, a->n_queries, query_to_json);
}

static int set_details(json_t *o, const struct attempt *a, bool lists)
{
	const struct json_entry entries[] = {
		{"status", json_integer(a->status)},
		{"host", json_shown(a->host)},
		{"created", json_instant(a->created)},
		{"started", json_instant(a->started)},
		{"ended", json_instant(a->ended)},
		{"request", json_or_null(a->request)},
		{"plan", json_or_null(a->plan)},
		{"result", json_or_null(a->result)},
		{"inputs", lists ? inputs_to_json(&a->inputs) : json_array()},
		{"queries", shown_queries_to_json(a)},
		{"timeline", a->timeline ? timeline_to_json(a->timeline) : json_null()},
		{"events", events_to_json(a)},
		{"pruned", json_instant(a->pruned)},
	};

	return json_set_entries(o, entries, ARRAY_SIZE(entries));
}

static json_t *public_to_json(const struct attempt *a, bool full, bool lists)
{
	json_auto_t *o = json_object();

	if (a->failed || set_result(o, a, lists) < 0 || (full && set_details(o, a, lists) < 0))
		return NULL;
	return json_incref(o);
}

json_t *attempt_to_public_json(const struct attempt *a, bool full)
{
	return public_to_json(a, full, true);
}

json_t *attempt_head_to_public_json(const struct attempt *a, bool full)
{
	return public_to_json(a, full, false);
}
