/*
 * An attempt as a line of a trace, as workflow engines write it: Nextflow's columns and its way of writing values, so
 * that what reads those reads ours. What is not known is "-".
 */
#include <stdio.h>
#include <string.h>

#include "buffer.h"
#include "print.h"
#include "view.h"

static const char columns[] =
	"task_id\thash\tnative_id\tname\tstatus\texit\tsubmit\tduration\trealtime\t%cpu\t"
	"peak_rss\tpeak_vmem\trchar\twchar\n";

static const char *trace_status(const struct attempt *a)
{
	switch (a->verdict) {
	case VERDICT_NONE:
		return "RUNNING";
	case VERDICT_SUCCEEDED:
		return "COMPLETED";
	case VERDICT_CANCELLED:
	case VERDICT_LOST:
		return "ABORTED";
	default:
		return "FAILED";
	}
}

/* The command's own, as a shell has it. */
static const char *trace_exit(const struct attempt *a, char out[PRINT_ROOM])
{
	if (a->exit_code < 0 && !a->signal)
		return "-";
	snprintf(out, PRINT_ROOM, "%d", a->signal ? 128 + a->signal : a->exit_code);
	return out;
}

/* "2026-11-15 02:34:08.123", UTC */
static const char *trace_instant(int64_t utc_ns, char out[PRINT_ROOM])
{
	size_t n;

	if (utc_ns == 0)
		return "-";
	print_instant(utc_ns, out);
	n = strlen(out) - 1; /* without its Z */
	snprintf(out + n, PRINT_ROOM - n, ".%03d", (int)(utc_ns / (int64_t)NSEC_PER_MSEC % 1000));
	return out;
}

/* "350ms", "5s", "3.2s", "1h 2m 3s" */
static const char *trace_duration(int64_t ms, char out[PRINT_ROOM])
{
	static const struct {
		int64_t seconds;
		char name;
	} units[] = {{86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}};
	int64_t left = ms / 1000;
	size_t n = 0;

	if (ms < 0)
		return "-";
	if (ms < 1000)
		snprintf(out, PRINT_ROOM, "%dms", (int)ms);
	else if (ms < 60000)
		snprintf(out, PRINT_ROOM, ms / 100 % 10 ? "%d.%ds" : "%ds", (int)left, (int)(ms / 100 % 10));
	for (size_t i = 0; ms >= 60000 && i < ARRAY_SIZE(units); i++) {
		if (left >= units[i].seconds)
			n += (size_t)snprintf(out + n, PRINT_ROOM - n, "%s%lld%c", n ? " " : "",
					      (long long)(left / units[i].seconds), units[i].name);
		left %= units[i].seconds;
	}
	return out;
}

/* "29.8 MB": powers of 1024, whatever the name says */
static const char *trace_size(int64_t bytes, char out[PRINT_ROOM])
{
	static const char *const units[] = {"B", "KB", "MB", "GB", "TB", "PB"};
	double value = (double)bytes;
	size_t unit = 0;

	if (bytes < 0)
		return "-";
	while (value >= 1024 && unit + 1 < ARRAY_SIZE(units)) {
		value /= 1024;
		unit++;
	}
	snprintf(out, PRINT_ROOM, "%.*f %s", value - (double)(int64_t)value >= 0.05 ? 1 : 0, value,
		 units[unit]);
	return out;
}

static const char *trace_cpu(const struct usage *u, char out[PRINT_ROOM])
{
	if (u->cpu_ms < 0 || u->wall_ms <= 0)
		return "-";
	snprintf(out, PRINT_ROOM, "%.1f%%", (double)u->cpu_ms * 100 / (double)u->wall_ms);
	return out;
}

/* hash and native_id are the engine's own; peak_vmem, and what went through read() and write() whether from a disk or
 * not (rchar, wchar), no counter tells. */
char *view_trace(const struct attempt *a)
{
	_cleanup_buffer_ struct buffer b = {0};
	char code[PRINT_ROOM], submit[PRINT_ROOM], duration[PRINT_ROOM], real[PRINT_ROOM], cpu[PRINT_ROOM],
		memory[PRINT_ROOM];
	int64_t whole = a->ended && a->created ? (a->ended - a->created) / (int64_t)NSEC_PER_MSEC : -1;

	buffer_puts(&b, columns);
	buffer_printf(&b, "%d\t-\t-\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t-\t-\t-\n", a->number, a->id,
		      trace_status(a), trace_exit(a, code), trace_instant(a->created, submit),
		      trace_duration(whole, duration), trace_duration(a->usage.wall_ms, real),
		      trace_cpu(&a->usage, cpu), trace_size(a->usage.memory_peak_bytes, memory));
	return buffer_take(&b);
}
