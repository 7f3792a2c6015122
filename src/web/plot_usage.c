/*
 * What attempts used over time: one plot for each quantity, their curves over each other.
 */
#include <stdio.h>
#include <stdlib.h>

#include "plot.h"
#include "print.h"

static const char *duration_text(int64_t ms, char *out)
{
	return print_duration(ms, out);
}

static const char *size_text(int64_t bytes, char *out)
{
	return print_size(bytes, out);
}

static const char *percent_text(int64_t percent, char *out)
{
	snprintf(out, PRINT_ROOM, "%d %%", (int)percent);
	return out;
}

static const char *count_text(int64_t n, char *out)
{
	snprintf(out, PRINT_ROOM, "%d", (int)n);
	return out;
}

static double sample_of(const json_t *sample, const char *key)
{
	return (double)json_integer_value(json_object_get(sample, key));
}

/* How busy it was since the sample before, in per cent of one processor. */
static double busy(const json_t *before, const json_t *sample)
{
	double ms = sample_of(sample, "at_ms") - (before ? sample_of(before, "at_ms") : 0);
	double cpu = sample_of(sample, "cpu_ms") - (before ? sample_of(before, "cpu_ms") : 0);

	return ms > 0 && cpu > 0 ? 100 * cpu / ms : 0;
}

/* key NULL: how busy it was. NULL: memory is out. */
static struct plot_point *points_of(struct plot *p, const json_t *samples, const char *key)
{
	struct plot_point *points = calloc(json_array_size(samples) + 1, sizeof *points);
	const json_t *sample, *before = NULL;
	size_t i;

	for (i = 0; points && i < json_array_size(samples); i++) {
		sample = json_array_get(samples, i);
		points[i] = (struct plot_point){sample_of(sample, "at_ms"),
						key ? sample_of(sample, key) : busy(before, sample)};
		p->x_most = points[i].x > p->x_most ? points[i].x : p->x_most;
		p->y_most = points[i].y > p->y_most ? points[i].y : p->y_most;
		before = sample;
	}
	return points;
}

static void draw(struct html *h, struct plot *p, const struct plot_usage *usages, const char *key)
{
	bool has_all = true;

	for (size_t i = 0; i < p->n_series; i++) {
		p->series[i] = (struct plot_series){.name = usages[i].name,
						    .points = points_of(p, usages[i].samples, key),
						    .n = json_array_size(usages[i].samples)};
		has_all = has_all && p->series[i].points;
	}
	if (has_all)
		plot_curves(h, p);
	else
		buffer_fail(&h->out);
	for (size_t i = 0; i < p->n_series; i++)
		free(p->series[i].points);
}

void plot_usage(struct html *h, const struct plot_usage *usages, size_t n)
{
	static const struct {
		const char *title, *key;
		const char *(*words)(int64_t value, char *out);
	} rows[] = {{"CPU", NULL, percent_text},
		    {"Memory", "memory_bytes", size_text},
		    {"Processes", "pids", count_text}};
	bool has_any = false;

	for (size_t i = 0; i < n; i++)
		has_any = has_any || json_array_size(usages[i].samples) > 1;
	for (size_t i = 0; has_any && i < ARRAY_SIZE(rows); i++) {
		struct plot p = {.title = rows[i].title,
				 .n_series = n,
				 .y_most = 2, /* its middle is a whole number */
				 .x_words = duration_text,
				 .y_words = rows[i].words};

		draw(h, &p, usages, rows[i].key);
	}
}
