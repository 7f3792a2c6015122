#include "meter.h"
#include "bar.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"

static const uint64_t plain_every_ns = 10 * NSEC_PER_SEC;

/* "12 queued, 4 running, 37 done, 2 failed, 3.1/s, 4 s left" */
static void format(const struct wait_counts *c, double per_second, char *out, size_t room)
{
	size_t left = c->total - c->succeeded - c->failed;
	char time[PRINT_ROOM];

	*out = 0;
	if (c->waiting)
		print_add(out, room, "%zu waiting, ", c->waiting);
	print_add(out, room, "%zu queued, %zu running, %zu done, %zu failed", c->queued, c->running,
		  c->succeeded, c->failed);
	if (per_second <= 0)
		return;
	print_add(out, room, per_second < 10 ? ", %.1f/s" : ", %.0f/s", per_second);
	if (left > 0)
		print_add(out, room, ", %s left",
			  print_duration((int64_t)((double)left / per_second * 1000), time));
}

static double rate(const struct meter *m, const struct wait_counts *c, uint64_t now)
{
	size_t ended = c->succeeded + c->failed - m->ended_before;
	double seconds = (double)(now - m->began) / (double)NSEC_PER_SEC;

	return ended > 0 && seconds > 0.2 ? (double)ended / seconds : 0;
}

static void draw(struct meter *m, const char *line)
{
	int width = terminal_width(&m->cli->err);

	fprintf(stderr, TERMINAL_ERASE_LINE "%.*s", width > 1 ? width - 1 : 79, line);
	fflush(stderr);
	m->is_drawn = true;
}

void meter_show(struct meter *m, const struct wait_counts *c)
{
	uint64_t now = clock_now();
	char line[160];

	if (m->cli->quiet || m->cli->json)
		return;
	if (!m->began) {
		m->began = m->said = now;
		m->ended_before = c->succeeded + c->failed;
	}
	format(c, rate(m, c, now), line, sizeof line);
	if (m->cli->err.is_tty) {
		draw(m, line);
	} else if (now - m->said >= plain_every_ns && strcmp(line, m->last) != 0) {
		fprintf(stderr, "fumehood: %s\n", line);
		m->said = now;
	}
	memcpy(m->last, line, sizeof line);
}

void meter_bytes(struct meter *m, const char *what, uint64_t done, uint64_t total)
{
	char line[BAR_ROOM];

	if (m->cli->quiet || m->cli->json || !m->cli->err.is_tty)
		return;
	draw(m, bar_format(&(struct bar_state){.what = what, .done = done, .total = total},
			   terminal_width(&m->cli->err), line, sizeof line));
}

void meter_say(struct meter *m, const char *format, ...)
{
	va_list args;

	if (m->cli->quiet || m->cli->json)
		return;
	if (m->is_drawn)
		fputs(TERMINAL_ERASE_LINE, stderr);
	m->is_drawn = false;
	va_start(args, format);
	fputs("fumehood: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
}

void meter_end(struct meter *m)
{
	if (m->is_drawn)
		fputs(TERMINAL_ERASE_LINE, stderr);
	m->is_drawn = false;
}
