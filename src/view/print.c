#include "print.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include "text.h"

const char *print_style(bool colour, enum style style)
{
	static const char *const sequences[] = {
		[STYLE_RESET] = "\x1b[0m", [STYLE_BOLD] = "\x1b[1m",   [STYLE_DIM] = "\x1b[2m",
		[STYLE_RED] = "\x1b[31m",  [STYLE_GREEN] = "\x1b[32m", [STYLE_YELLOW] = "\x1b[33m",
	};

	return colour ? sequences[style] : "";
}

const char *print_mark(const struct look *look, bool ok)
{
	if (!look->colour)
		return look->utf8 ? (ok ? "✓" : "✗") : (ok ? "ok" : "NO");
	return look->utf8 ? (ok ? "\x1b[32m✓\x1b[0m" : "\x1b[31m✗\x1b[0m")
			  : (ok ? "\x1b[32mok\x1b[0m" : "\x1b[31mNO\x1b[0m");
}

char *print_escape(const char *text)
{
	char *escaped = text ? text_escape(text, strlen(text)) : NULL;

	return escaped ? escaped : strdup(text ? "?" : "-");
}

const char *print_size(int64_t bytes, char out[PRINT_ROOM])
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double value = (double)bytes;
	size_t unit = 0;

	if (bytes < 0)
		return "-";
	while (value >= 1023.5 && unit + 1 < ARRAY_SIZE(units)) {
		value /= 1024;
		unit++;
	}
	snprintf(out, PRINT_ROOM, "%.*f %s", unit > 0 && value < 9.95 ? 1 : 0, value, units[unit]);
	return out;
}

const char *print_duration(int64_t ms, char out[PRINT_ROOM])
{
	int64_t s = ms / 1000;

	if (ms < 0)
		return "-";
	if (ms < 1000)
		snprintf(out, PRINT_ROOM, "%d ms", (int)ms);
	else if (s < 60)
		snprintf(out, PRINT_ROOM, "%d.%d s", (int)s, (int)(ms % 1000 / 100));
	else if (s < 3600)
		snprintf(out, PRINT_ROOM, "%d min %02d s", (int)(s / 60), (int)(s % 60));
	else if (s < 86400)
		snprintf(out, PRINT_ROOM, "%d h %02d min", (int)(s / 3600), (int)(s % 3600 / 60));
	else
		snprintf(out, PRINT_ROOM, "%lld d %02d h", (long long)(s / 86400), (int)(s % 86400 / 3600));
	return out;
}

const char *print_instant(int64_t utc_ns, char out[PRINT_ROOM])
{
	time_t seconds = (time_t)(utc_ns / (int64_t)NSEC_PER_SEC);
	struct tm tm;

	if (utc_ns == 0 || !gmtime_r(&seconds, &tm))
		return "-";
	strftime(out, PRINT_ROOM, "%Y-%m-%d %H:%M:%SZ", &tm);
	return out;
}

const char *print_count(uint64_t n, const char *noun, char out[PRINT_ROOM])
{
	if (n == 0)
		snprintf(out, PRINT_ROOM, "no %ss", noun);
	else
		snprintf(out, PRINT_ROOM, "%llu %s%s", (unsigned long long)n, noun, n == 1 ? "" : "s");
	return out;
}

void print_add(char *out, size_t room, const char *format, ...)
{
	size_t n = strlen(out);
	va_list args;

	va_start(args, format);
	vsnprintf(out + n, room - n, format, args);
	va_end(args);
}

/* Characters as a terminal counts them, nearly: colour sequences and continuation bytes take no room. */
static size_t width_of(const char *text)
{
	size_t n = 0;

	for (const char *p = text; *p; p++) {
		if (*p == '\x1b') {
			p += strcspn(p, "m");
			if (!*p)
				break;
		} else if (((unsigned char)*p & 0xc0) != 0x80) {
			n++;
		}
	}
	return n;
}

void table_add(struct table *t, ...)
{
	va_list ap;

	va_start(ap, t);
	for (size_t i = 0; i < t->n_columns; i++) {
		const char *cell = va_arg(ap, const char *);

		if (strv_push(&t->cells, &t->n_cells, cell ? cell : "-", NULL) < 0)
			t->failed = true;
	}
	va_end(ap);
}

static size_t column_width(const struct table *t, size_t column)
{
	size_t widest = 0;

	for (size_t i = column; i < t->n_cells; i += t->n_columns) {
		size_t width = width_of(t->cells[i]);

		widest = width > widest ? width : widest;
	}
	return widest;
}

static void pad(FILE *to, size_t n)
{
	while (n-- > 0)
		fputc(' ', to);
}

static void print_row(const struct table *t, size_t first, const size_t *widths, FILE *to)
{
	pad(to, (size_t)t->indent);
	for (size_t i = 0; i < t->n_columns; i++) {
		const char *cell = t->cells[first + i];
		size_t room = widths[i] - width_of(cell);
		bool is_last = i + 1 == t->n_columns;

		if (t->right & 1U << i)
			pad(to, room);
		fputs(cell, to);
		if (!is_last && !(t->right & 1U << i))
			pad(to, room);
		fputs(is_last ? "\n" : "  ", to);
	}
}

int table_print(struct table *t, FILE *to, struct error *err)
{
	if (!t->widths)
		t->widths = calloc(t->n_columns, sizeof *t->widths);
	if (!t->widths || t->failed)
		return error_memory(err);
	for (size_t i = 0; i < t->n_columns; i++) {
		size_t width = column_width(t, i);

		t->widths[i] = width > t->widths[i] ? width : t->widths[i];
	}
	for (size_t i = 0; i < t->n_cells; i += t->n_columns)
		print_row(t, i, t->widths, to);
	return 0;
}

void table_empty(struct table *t)
{
	strv_free(t->cells);
	t->cells = NULL;
	t->n_cells = 0;
}

void table_done(struct table *t)
{
	strv_free(t->cells);
	free(t->widths);
	*t = (struct table){0};
}

/* The highest known value of one slice, -1 if there is none: a peak must not vanish by being thinned. */
static int64_t slice_peak(const int64_t *values, size_t n, size_t columns, size_t column)
{
	size_t from = column * n / columns, to = (column + 1) * n / columns;
	int64_t peak = -1;

	if (to == from)
		to = from + 1;
	for (size_t i = from; i < to && i < n; i++)
		peak = values[i] > peak ? values[i] : peak;
	return peak;
}

char *print_bars(const int64_t *values, size_t n, size_t columns, int64_t highest, bool utf8)
{
	static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char *const ascii[] = {" ", ".", ".", ":", "-", "=", "+", "*", "#"};
	_cleanup_buffer_ struct buffer out = {0};

	for (size_t i = 0; n > 0 && i < columns; i++) {
		int64_t peak = slice_peak(values, n, columns, i);
		size_t level = 0;

		if (peak >= 0 && highest > 0)
			level = 1 + (size_t)((double)peak * 7 / (double)highest + 0.5);
		if (level > 8)
			level = 8;
		buffer_puts(&out, utf8 ? blocks[level] : ascii[level]);
	}
	return buffer_take(&out);
}
