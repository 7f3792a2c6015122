/*
 * An attempt as a readable page: how it ended, what it used, what was in force, what came out.
 */
#include <stdio.h>
#include <string.h>

#include "print.h"
#include "view.h"

enum { BARS_MAX = 60, EVENT_STAGE_WIDTH = 12 };

static void heading(FILE *to, const struct look *look, const char *text)
{
	fprintf(to, "\n%s%s%s\n", print_style(look->colour, STYLE_BOLD), text,
		print_style(look->colour, STYLE_RESET));
}

void view_engine_line(FILE *to, const json_t *engine)
{
	_cleanup_free_ char *text = view_engine(engine);
	char name[32];

	fprintf(to, "%-12s%s\n", view_engine_name(engine, name), text ? text : "?");
}

static void put_verdict(FILE *to, const struct look *look, const struct attempt *a)
{
	_cleanup_free_ char *reason = a->reason ? text_safe(a->reason) : NULL;
	char since[PRINT_ROOM];

	fprintf(to, "%s%s%s attempt %d  %s%s%s%s%s\n", print_style(look->colour, STYLE_BOLD), a->id,
		print_style(look->colour, STYLE_RESET), a->number,
		print_style(look->colour, view_verdict_style(a->verdict)), verdict_name(a->verdict),
		print_style(look->colour, STYLE_RESET), reason ? ": " : "", reason ? reason : "");
	fprintf(to, "%-12s%s\n", "started", print_instant(a->started ? a->started : a->created, since));
	if (a->exit_code >= 0)
		fprintf(to, "%-12s%d\n", "exit status", a->exit_code);
	if (a->signal)
		fprintf(to, "%-12s%d (%s)\n", "signal", a->signal, strsignal(a->signal));
	if (a->engine)
		view_engine_line(to, a->engine);
	if (a->kept && a->workspace) {
		_cleanup_free_ char *path = print_escape(a->workspace);

		fprintf(to, "%-12s%s\n", "kept", path);
	}
	if (a->error_message) {
		_cleanup_free_ char *message = text_safe(a->error_message);

		fprintf(to, "%-12s%s\n", "error", message);
	}
}

static char *command_text(const json_t *request)
{
	_cleanup_buffer_ struct buffer b = {0};
	json_t *word;
	size_t i;

	json_array_foreach (json_object_get(request, "command"), i, word) {
		_cleanup_free_ char *text = print_escape(json_string_value(word));

		buffer_printf(&b, "%s%s", i ? " " : "", text ? text : "?");
	}
	return buffer_take(&b);
}

static void put_command(FILE *to, const struct attempt *a)
{
	json_t *word;
	size_t i;

	fprintf(to, "%-12s", "command");
	json_array_foreach (json_object_get(a->request, "command"), i, word) {
		_cleanup_free_ char *text = print_escape(json_string_value(word));

		fprintf(to, "%s%s", i ? " " : "", text);
	}
	fprintf(to, "\n");
}

/* As the plan has them; "*" marks what was asked for rather than a default. */
static void put_limits(FILE *to, const struct attempt *a)
{
	json_t *limits = json_object_get(a->plan, "limits"), *row;
	const char *name, *separator = "";

	if (!limits)
		return;
	fprintf(to, "%-12s", "limits");
	json_object_foreach (limits, name, row) {
		const char *text = json_string_value(json_object_get(row, "limit"));
		const char *origin = json_string_value(json_object_get(row, "origin"));
		bool is_asked = origin && strcmp(origin, limit_origin_name(LIMIT_ASKED)) == 0;

		if (!text || strcmp(text, "none") == 0)
			continue;
		fprintf(to, "%s%s %s%s", separator, name, text, is_asked ? "*" : "");
		separator = ", ";
	}
	fprintf(to, "\n");
}

static int put_usage(FILE *to, const struct look *look, const struct attempt *a, struct error *err)
{
	_cleanup_table_ struct table t = {.n_columns = 2, .indent = 2};
	const struct usage *u = &a->usage;
	char text[PRINT_ROOM];
	const struct {
		const char *name;
		int64_t value;
		const char *(*format)(int64_t, char[PRINT_ROOM]);
	} rows[] = {
		{"wall", u->wall_ms, print_duration},
		{"cpu", u->cpu_ms, print_duration},
		{"memory, highest", u->memory_peak_bytes, print_size},
		{"swap, highest", u->swap_peak_bytes, print_size},
		{"disk", u->disk_bytes, print_size},
		{"read", u->read_bytes, print_size},
		{"written", u->written_bytes, print_size},
		{"throttled", u->throttled_ms, print_duration},
	};

	heading(to, look, "usage");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].value >= 0)
			table_add(&t, rows[i].name, rows[i].format(rows[i].value, text));
	if (u->pids_peak >= 0) {
		snprintf(text, sizeof text, "%lld", (long long)u->pids_peak);
		table_add(&t, "processes", text);
	}
	return table_print(&t, to, err);
}

/* Cpus in use between two samples, in thousandths. */
static int64_t cpus_at(const struct timeline *t, int i)
{
	int64_t cpu = t->samples[i].cpu_ms - (i ? t->samples[i - 1].cpu_ms : 0);
	int64_t wall = t->samples[i].at_ms - (i ? t->samples[i - 1].at_ms : 0);

	return t->samples[i].cpu_ms < 0 || cpu < 0 || wall <= 0 ? -1 : cpu * 1000 / wall;
}

static int64_t memory_at(const struct timeline *t, int i)
{
	return t->samples[i].memory_bytes;
}

static int64_t pids_at(const struct timeline *t, int i)
{
	return t->samples[i].pids;
}

static const char *print_cpus(int64_t millicpus, char out[PRINT_ROOM])
{
	snprintf(out, PRINT_ROOM, "%.1f cpus", (double)millicpus / 1000);
	return out;
}

static const char *print_processes(int64_t n, char out[PRINT_ROOM])
{
	snprintf(out, PRINT_ROOM, "%lld", (long long)n);
	return out;
}

/* One row of bars for each quantity, the same time from left to right; what nobody counted has no row. */
static void put_timeline(FILE *to, const struct look *look, const struct timeline *t)
{
	static const struct {
		const char *name;
		int64_t (*at)(const struct timeline *t, int i);
		const char *(*format)(int64_t, char[PRINT_ROOM]);
	} rows[] = {{"cpu", cpus_at, print_cpus},
		    {"memory", memory_at, print_size},
		    {"processes", pids_at, print_processes}};
	size_t n = (size_t)t->count, columns = n < BARS_MAX ? n : BARS_MAX;
	char text[PRINT_ROOM], wall[PRINT_ROOM];
	int64_t values[SAMPLES_MAX];

	for (size_t row = 0; row < ARRAY_SIZE(rows); row++) {
		_cleanup_free_ char *bars = NULL;
		int64_t most = -1;

		for (size_t i = 0; i < n; i++) {
			values[i] = rows[row].at(t, (int)i);
			most = values[i] > most ? values[i] : most;
		}
		if (most < 0)
			continue;
		bars = print_bars(values, n, columns, most, look->utf8);
		if (bars)
			fprintf(to, "  %-10s|%s| up to %s\n", rows[row].name, bars,
				rows[row].format(most, text));
	}
	fprintf(to, "  %-10s over %s\n", "", print_duration(t->samples[n - 1].at_ms, wall));
}

static int put_receipt(FILE *to, const struct look *look, const struct attempt *a, struct error *err)
{
	_cleanup_table_ struct table t = {.n_columns = 3, .indent = 2};

	heading(to, look, "what was in force");
	for (size_t i = 0; i < a->receipt.count; i++) {
		const struct layer *layer = &a->receipt.layers[i];
		_cleanup_free_ char *name = print_escape(layer->name);
		_cleanup_free_ char *detail = text_safe(layer->detail ? layer->detail : "");

		table_add(&t, print_mark(look, layer->held), name, detail);
	}
	if (table_print(&t, to, err) < 0)
		return -1;
	for (size_t i = 0; a->receipt.warnings && a->receipt.warnings[i]; i++) {
		_cleanup_free_ char *text = text_safe(a->receipt.warnings[i]);

		fprintf(to, "  %swarning%s: %s\n", print_style(look->colour, STYLE_YELLOW),
			print_style(look->colour, STYLE_RESET), text);
	}
	return 0;
}

static void put_denials(FILE *to, const struct look *look, const struct attempt *a)
{
	if (a->denials.n == 0)
		return;
	heading(to, look, "denied");
	for (size_t i = 0; i < a->denials.n; i++) {
		_cleanup_free_ char *text = view_denial(&a->denials.list[i]);

		fprintf(to, "  %s\n", text ? text : "?");
	}
	if (a->denials.more > 0)
		fprintf(to, "  and %lld more\n", (long long)a->denials.more);
}

static int put_files(FILE *to, const struct look *look, const struct attempt *a, struct error *err)
{
	_cleanup_table_ struct table t = {.n_columns = 3, .indent = 2, .right = 1};
	const struct manifest *m = &a->manifest;
	char text[PRINT_ROOM];

	heading(to, look, "files");
	for (size_t i = 0; i < a->inputs.count; i++) {
		const struct input *in = &a->inputs.list[i];
		_cleanup_free_ char *path = print_escape(in->path), *line = NULL;

		if (in->from_analysis && asprintf(&line, "%s (of %s, attempt %d)", path,
						  SHOWN(ID_ROOM, in->from_analysis), in->from_attempt) < 0)
			return error_memory(err);
		table_add(&t, print_size((int64_t)in->size, text), "in", line ? line : path);
	}
	for (size_t i = 0; i < m->n_outputs; i++) {
		_cleanup_free_ char *path = print_escape(m->outputs[i].path);

		table_add(&t, print_size((int64_t)m->outputs[i].size, text), "out", path);
	}
	for (size_t i = 0; i < m->n_rejected; i++) {
		_cleanup_free_ char *path = print_escape(m->rejected[i].path), *line = NULL;

		if (asprintf(&line, "%s (%s)", path, m->rejected[i].reason) < 0)
			return error_memory(err);
		table_add(&t, "-", "refused", line);
	}
	for (size_t i = 0; m->missing && m->missing[i]; i++) {
		_cleanup_free_ char *pattern = print_escape(m->missing[i]);

		table_add(&t, "-", "missing", pattern);
	}
	if (table_print(&t, to, err) < 0)
		return -1;
	if (m->n_rejected_more > 0)
		fprintf(to, "  and %llu more that were refused\n", (unsigned long long)m->n_rejected_more);
	return 0;
}

static void put_events(FILE *to, const struct look *look, const struct attempt *a)
{
	char at[PRINT_ROOM];

	if (a->n_events == 0)
		return;
	heading(to, look, "events");
	for (size_t i = 0; i < a->n_events; i++) {
		_cleanup_free_ char *stage = print_escape(a->events[i].stage);
		_cleanup_free_ char *text = text_safe(a->events[i].text ? a->events[i].text : "");

		fprintf(to, "  %s  %-*s %s\n", print_instant(a->events[i].at, at), EVENT_STAGE_WIDTH, stage,
			text);
	}
}

int view_steps(FILE *to, const struct look *look, const struct attempt *a, struct error *err)
{
	_cleanup_table_ struct table t = {.n_columns = 6, .indent = 2};

	if (a->n_steps == 0)
		return 0;
	heading(to, look, "steps");
	for (size_t i = 0; i < a->n_steps; i++) {
		const struct step *s = &a->steps[i];
		_cleanup_free_ char *command = command_text(s->request);
		_cleanup_free_ char *reason = s->reason ? text_safe(s->reason) : NULL;
		char name[PRINT_ROOM], wall[PRINT_ROOM], memory[PRINT_ROOM];

		snprintf(name, sizeof name, "step %zu", i + 1);
		table_add(&t, name, verdict_name(s->verdict), print_duration(s->usage.wall_ms, wall),
			  print_size(s->usage.memory_peak_bytes, memory), command, reason ? reason : "");
	}
	return table_print(&t, to, err);
}

static void put_attempts(FILE *to, const struct look *look, const json_t *attempts)
{
	json_t *row;
	size_t i;

	if (json_array_size(attempts) < 2)
		return;
	heading(to, look, "attempts");
	json_array_foreach (attempts, i, row) {
		const char *verdict = json_string_value(json_object_get(row, "verdict"));

		fprintf(to, "  %d  %s\n", (int)json_integer_value(json_object_get(row, "attempt")),
			verdict ? verdict : "-");
	}
}

int view_attempt(FILE *to, const struct look *look, const struct attempt *a, const json_t *attempts,
		 struct error *err)
{
	char pruned[PRINT_ROOM];

	put_verdict(to, look, a);
	put_command(to, a);
	put_limits(to, a);
	if (view_steps(to, look, a, err) < 0 || put_usage(to, look, a, err) < 0)
		return -1;
	if (a->timeline && a->timeline->count > 1)
		put_timeline(to, look, a->timeline);
	if (put_receipt(to, look, a, err) < 0)
		return -1;
	put_denials(to, look, a);
	if (put_files(to, look, a, err) < 0)
		return -1;
	put_events(to, look, a);
	if (a->pruned)
		fprintf(to, "\nIts logs, events and the like were removed at %s; its outputs were kept.\n",
			print_instant(a->pruned, pruned));
	put_attempts(to, look, attempts);
	return 0;
}
