#include "show.h"

#include <string.h>

enum { BARS_MAX = 60, EVENT_STAGE_WIDTH = 12 };

static void heading(const struct cli *cli, const char *text)
{
	printf("\n%s%s%s\n", terminal_style(&cli->out, STYLE_BOLD), text,
	       terminal_style(&cli->out, STYLE_RESET));
}

static void print_verdict(const struct cli *cli, const struct attempt *a)
{
	_cleanup_free_ char *reason = a->reason ? text_safe(a->reason) : NULL;
	char since[PRINT_ROOM];

	printf("%s%s%s attempt %d  %s%s%s%s%s\n", terminal_style(&cli->out, STYLE_BOLD), a->id,
	       terminal_style(&cli->out, STYLE_RESET), a->number,
	       terminal_style(&cli->out, view_verdict_style(a->verdict)), verdict_name(a->verdict),
	       terminal_style(&cli->out, STYLE_RESET), reason ? ": " : "", reason ? reason : "");
	printf("%-12s%s\n", "started", print_instant(a->started ? a->started : a->created, since));
	if (a->exit_code >= 0)
		printf("%-12s%d\n", "exit status", a->exit_code);
	if (a->signal)
		printf("%-12s%d (%s)\n", "signal", a->signal, strsignal(a->signal));
	if (a->kept && a->workspace) {
		_cleanup_free_ char *path = cli_escape(a->workspace);

		printf("%-12s%s\n", "kept", path);
	}
	if (a->error_message) {
		_cleanup_free_ char *message = text_safe(a->error_message);

		printf("%-12s%s\n", "error", message);
	}
}

static void print_command(const struct attempt *a)
{
	json_t *word;
	size_t i;

	printf("%-12s", "command");
	json_array_foreach (json_object_get(a->request, "command"), i, word) {
		_cleanup_free_ char *text = cli_escape(json_string_value(word));

		printf("%s%s", i ? " " : "", text);
	}
	printf("\n");
}

/* As the plan has them; "*" marks what was asked for rather than a default. */
static void print_limits(const struct attempt *a)
{
	json_t *limits = json_object_get(a->plan, "limits"), *row;
	const char *name, *separator = "";

	if (!limits)
		return;
	printf("%-12s", "limits");
	json_object_foreach (limits, name, row) {
		const char *text = json_string_value(json_object_get(row, "limit"));
		const char *origin = json_string_value(json_object_get(row, "origin"));
		bool is_asked = origin && strcmp(origin, limit_origin_name(LIMIT_ASKED)) == 0;

		if (!text || strcmp(text, "none") == 0)
			continue;
		printf("%s%s %s%s", separator, name, text, is_asked ? "*" : "");
		separator = ", ";
	}
	printf("\n");
}

static int print_usage(const struct cli *cli, const struct attempt *a, struct error *err)
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

	heading(cli, "usage");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].value >= 0)
			table_add(&t, rows[i].name, rows[i].format(rows[i].value, text));
	if (u->pids_peak >= 0) {
		snprintf(text, sizeof text, "%lld", (long long)u->pids_peak);
		table_add(&t, "processes", text);
	}
	return table_print(&t, stdout, err);
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
static void print_timeline(const struct cli *cli, const struct timeline *t)
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
		bars = print_bars(values, n, columns, most, cli->out.utf8);
		if (bars)
			printf("  %-10s|%s| up to %s\n", rows[row].name, bars, rows[row].format(most, text));
	}
	printf("  %-10s over %s\n", "", print_duration(t->samples[n - 1].at_ms, wall));
}

static int print_receipt(const struct cli *cli, const struct attempt *a, struct error *err)
{
	_cleanup_table_ struct table t = {.n_columns = 3, .indent = 2};

	heading(cli, "what was in force");
	for (size_t i = 0; i < a->receipt.count; i++) {
		const struct layer *layer = &a->receipt.layers[i];
		_cleanup_free_ char *name = cli_escape(layer->name);
		_cleanup_free_ char *detail = text_safe(layer->detail ? layer->detail : "");

		table_add(&t, cli_mark(&cli->out, layer->held), name, detail);
	}
	if (table_print(&t, stdout, err) < 0)
		return -1;
	for (size_t i = 0; a->receipt.warnings && a->receipt.warnings[i]; i++) {
		_cleanup_free_ char *text = text_safe(a->receipt.warnings[i]);

		printf("  %swarning%s: %s\n", terminal_style(&cli->out, STYLE_YELLOW),
		       terminal_style(&cli->out, STYLE_RESET), text);
	}
	return 0;
}

static int print_files(const struct cli *cli, const struct attempt *a, struct error *err)
{
	_cleanup_table_ struct table t = {.n_columns = 3, .indent = 2, .right = 1};
	const struct manifest *m = &a->manifest;
	char text[PRINT_ROOM];

	heading(cli, "files");
	for (size_t i = 0; i < a->inputs.count; i++) {
		_cleanup_free_ char *path = cli_escape(a->inputs.list[i].path);

		table_add(&t, print_size((int64_t)a->inputs.list[i].size, text), "in", path);
	}
	for (size_t i = 0; i < m->n_outputs; i++) {
		_cleanup_free_ char *path = cli_escape(m->outputs[i].path);

		table_add(&t, print_size((int64_t)m->outputs[i].size, text), "out", path);
	}
	for (size_t i = 0; i < m->n_rejected; i++) {
		_cleanup_free_ char *path = cli_escape(m->rejected[i].path), *line = NULL;

		if (asprintf(&line, "%s (%s)", path, m->rejected[i].reason) < 0)
			return error_memory(err);
		table_add(&t, "-", "refused", line);
	}
	for (size_t i = 0; m->missing && m->missing[i]; i++) {
		_cleanup_free_ char *pattern = cli_escape(m->missing[i]);

		table_add(&t, "-", "missing", pattern);
	}
	if (table_print(&t, stdout, err) < 0)
		return -1;
	if (m->n_rejected_more > 0)
		printf("  and %llu more that were refused\n", (unsigned long long)m->n_rejected_more);
	return 0;
}

static void print_events(const struct cli *cli, const struct attempt *a)
{
	char at[PRINT_ROOM];

	if (a->n_events == 0)
		return;
	heading(cli, "events");
	for (size_t i = 0; i < a->n_events; i++) {
		_cleanup_free_ char *stage = cli_escape(a->events[i].stage);
		_cleanup_free_ char *text = text_safe(a->events[i].text ? a->events[i].text : "");

		printf("  %s  %-*s %s\n", print_instant(a->events[i].at, at), EVENT_STAGE_WIDTH, stage, text);
	}
}

static void print_attempts(const struct cli *cli, const json_t *attempts)
{
	json_t *row;
	size_t i;

	if (json_array_size(attempts) < 2)
		return;
	heading(cli, "attempts");
	json_array_foreach (attempts, i, row) {
		const char *verdict = json_string_value(json_object_get(row, "verdict"));

		printf("  %d  %s\n", (int)json_integer_value(json_object_get(row, "attempt")),
		       verdict ? verdict : "-");
	}
}

int show_attempt(const struct cli *cli, const struct attempt *a, const json_t *attempts, struct error *err)
{
	print_verdict(cli, a);
	print_command(a);
	print_limits(a);
	if (print_usage(cli, a, err) < 0)
		return -1;
	if (a->timeline && a->timeline->count > 1)
		print_timeline(cli, a->timeline);
	if (print_receipt(cli, a, err) < 0 || print_files(cli, a, err) < 0)
		return -1;
	print_events(cli, a);
	print_attempts(cli, attempts);
	return 0;
}
