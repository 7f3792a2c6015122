#include "bar.h"

#include <stdio.h>
#include <string.h>

#include "clock.h"

/* Below so many columns the bar itself is left out, so that there is room for the numbers. */
enum { NARROW = 76, BAR_WIDTH = 12 };

static void add_bar(const struct bar_state *s, char *out, size_t room)
{
	int full = (int)((double)s->done / (double)s->total * BAR_WIDTH);

	print_add(out, room, " [");
	for (int i = 0; i < BAR_WIDTH; i++)
		print_add(out, room, "%c", i < full ? '#' : '-');
	print_add(out, room, "]");
}

static void add_pace(const struct bar_state *s, char *out, size_t room)
{
	double per_ms = s->elapsed_ms > 0 ? (double)s->done / (double)s->elapsed_ms : 0;
	char text[PRINT_ROOM];
	int64_t left_s;

	if (per_ms <= 0)
		return;
	if (!s->is_parts)
		print_add(out, room, ", %s/s", print_size((int64_t)(per_ms * 1000), text));
	if (s->done == s->total)
		return;
	/* In whole seconds, rounded up: what is left is a guess. */
	left_s = (int64_t)((double)(s->total - s->done) / per_ms / 1000) + 1;
	if (left_s < 60)
		print_add(out, room, ", %lld s left", (long long)left_s);
	else
		print_add(out, room, ", %s left", print_duration(left_s * 1000, text));
}

static void format_share(const struct bar_state *s, bool is_wide, char *out, size_t room)
{
	char some[PRINT_ROOM], all[PRINT_ROOM];

	if (is_wide)
		add_bar(s, out, room);
	/* Rounded down: 100% is when all of it is done. */
	print_add(out, room, " %d%%", (int)((double)s->done / (double)s->total * 100));
	if (!s->is_parts)
		print_add(out, room, ", %s of %s", print_size((int64_t)s->done, some),
			  print_size((int64_t)s->total, all));
	add_pace(s, out, room);
}

const char *bar_format(const struct bar_state *s, int columns, char *out, size_t room)
{
	char some[PRINT_ROOM];

	snprintf(out, room, "%s", s->what);
	if (s->total == 0)
		print_add(out, room, ", %s", print_duration(s->elapsed_ms, some));
	else
		format_share(s, columns >= NARROW, out, room);
	/* A line that wraps could not be erased. */
	if (columns < (int)room)
		out[columns > 0 ? columns - 1 : 0] = 0;
	return out;
}

static void draw(void *arg, const struct work *w)
{
	struct bar *b = arg;
	char line[BAR_ROOM];

	bar_format(&(struct bar_state){.what = w->what,
				       .done = w->done,
				       .total = w->total,
				       .is_parts = w->is_parts,
				       .elapsed_ms = (int64_t)((w->told - w->began) / NSEC_PER_MSEC)},
		   terminal_width(&b->cli->err), line, sizeof line);
	fprintf(stderr, TERMINAL_ERASE_LINE "%s", line);
	fflush(stderr);
	b->is_drawn = true;
}

struct work *bar_open(struct bar *b, const struct cli *cli)
{
	*b = (struct bar){.cli = cli, .work = {.tell = draw, .arg = b}};
	return cli->err.is_tty && !cli->quiet && !cli->json ? &b->work : NULL;
}

void bar_clear(struct bar *b)
{
	if (!b->is_drawn)
		return;
	fputs(TERMINAL_ERASE_LINE, stderr);
	fflush(stderr);
	b->is_drawn = false;
}
