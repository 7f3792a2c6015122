#include "limit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "macros.h"
#include "text.h"

#define KIB		(1ULL << 10)
#define MIB		(1ULL << 20)
#define GIB		(1ULL << 30)
#define NSEC_PER_MINUTE (60 * NSEC_PER_SEC)
#define NSEC_PER_HOUR	(60 * NSEC_PER_MINUTE)

/* A wall, cpu or memory limit of nothing is a mistake, and a tmpfs of size 0 has no limit at all. */
const struct limit_info limit_table[LIMIT_COUNT] = {
	[LIMIT_WALL] = {"wall", "--wall", UNIT_TIME, NSEC_PER_HOUR, 1, false, "time from start to end"},
	[LIMIT_GRACE] = {"grace", "--grace", UNIT_TIME, NSEC_PER_SEC, 0, true,
			 "time between SIGTERM and the end"},
	[LIMIT_CPU_TIME] = {"cpu_time", "--cpu-time", UNIT_TIME, LIMIT_NONE, 1, false,
			    "CPU time of all processes together"},
	[LIMIT_CPUS] = {"cpus", "--cpus", UNIT_CPUS, LIMIT_NONE, 1, false, "CPUs used at a time"},
	[LIMIT_MEMORY] = {"memory", "--memory", UNIT_SIZE, 2 * GIB, MIB, false,
			  "memory of all processes together, swap included"},
	[LIMIT_PIDS] = {"pids", "--pids", UNIT_COUNT, 512, 1, false, "processes and threads at a time"},
	[LIMIT_DISK] = {"disk", "--disk", UNIT_SIZE, 10 * GIB, 4 * KIB, false,
			"bytes in the workspace and the private /tmp"},
	[LIMIT_FILES] = {"files", "--files", UNIT_COUNT, 1000000, 1, false,
			 "files in the workspace and the private /tmp"},
	[LIMIT_INPUT_MAX] = {"input_max", "--input-max", UNIT_SIZE, GIB, 0, false,
			     "bytes of the directories that are copied in"},
	[LIMIT_OUTPUT_MAX] = {"output_max", "--output-max", UNIT_SIZE, 10 * GIB, 0, false,
			      "bytes collected in all"},
	[LIMIT_LOG_MAX] = {"log_max", "--log-max", UNIT_SIZE, 16 * MIB, 0, true,
			   "bytes kept of each of stdout and stderr, 64M at the most"},
	[LIMIT_FILE_SIZE] = {"file_size", "--file-size", UNIT_SIZE, LIMIT_NONE, 1, false,
			     "bytes of one file"},
	[LIMIT_OPEN_FILES] = {"open_files", "--open-files", UNIT_COUNT, 1024, 4, false,
			      "open files of one process"},
};

int limit_by_name(const char *name)
{
	for (int i = 0; i < LIMIT_COUNT; i++)
		if (strcmp(limit_table[i].name, name) == 0)
			return i;
	return -1;
}

struct unit {
	const char *name;
	uint64_t factor;
};

/* From large to small: formatting takes the first that divides. */
static const struct unit size_units[] = {
	{"P", KIB << 40}, {"T", KIB << 30}, {"G", GIB}, {"M", MIB}, {"K", KIB}, {"", 1}, {NULL, 0},
};
static const struct unit time_units[] = {
	{"d", 24 * NSEC_PER_HOUR},
	{"h", NSEC_PER_HOUR},
	{"m", NSEC_PER_MINUTE},
	{"s", NSEC_PER_SEC},
	{"ms", NSEC_PER_MSEC},
	{"us", NSEC_PER_USEC},
	{"ns", 1},
	{NULL, 0},
};
static const struct unit count_units[] = {{"", 1}, {NULL, 0}};
static const struct unit cpu_units[] = {{"", 1000}, {NULL, 0}};

/* "12", "1.5": the digits before and after the point; *rest is what follows. No sign, no exponent, no blank. */
static int number_parse(const char *text, uint64_t *whole, uint64_t *part, uint64_t *scale, const char **rest)
{
	const char *p = text;

	*whole = *part = 0;
	*scale = 1;
	for (; *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(*whole, 10, whole) ||
		    __builtin_add_overflow(*whole, (uint64_t)(*p - '0'), whole))
			return -ERANGE;
	if (p == text)
		return -EINVAL;
	if (*p == '.') {
		const char *point = p++;

		for (; *p >= '0' && *p <= '9'; p++)
			if (*scale < NSEC_PER_SEC) { /* finer than any unit */
				*scale *= 10;
				*part = *part * 10 + (uint64_t)(*p - '0');
			}
		if (p == point + 1)
			return -EINVAL;
	}
	*rest = p;
	return 0;
}

static int scale_parse(const char *text, uint64_t factor_of(const char *unit), uint64_t *ret)
{
	uint64_t whole, part, scale, factor, value;
	const char *unit;
	int r = number_parse(text, &whole, &part, &scale, &unit);

	if (r == -EINVAL)
		return r;
	factor = r < 0 ? 1 : factor_of(unit);
	if (factor == 0)
		return -EINVAL;
	if (r < 0 || __builtin_mul_overflow(whole, factor, &value) || value > INT64_MAX)
		return -ERANGE;
	/* part < scale ≤ 10⁹ and factor ≤ 2⁵⁰: the product needs more than 64 bits. */
	value += (uint64_t)((unsigned __int128)part * factor / scale);
	if (value > INT64_MAX)
		return -ERANGE;
	*ret = value;
	return 0;
}

static uint64_t size_factor(const char *unit)
{
	for (const struct unit *u = size_units; u->name; u++) {
		size_t n = strlen(u->name);

		if (strncasecmp(unit, u->name, n) == 0 &&
		    (unit[n] == 0 || (n && strcmp(unit + n, "iB") == 0)))
			return u->factor;
	}
	return 0;
}

static uint64_t time_factor(const char *unit)
{
	if (*unit == 0)
		return NSEC_PER_SEC;
	for (const struct unit *u = time_units; u->name; u++)
		if (strcmp(unit, u->name) == 0)
			return u->factor;
	return 0;
}

static uint64_t cpu_factor(const char *unit)
{
	return *unit ? 0 : 1000;
}

int size_parse(const char *text, uint64_t *ret)
{
	return scale_parse(text, size_factor, ret);
}

int duration_parse(const char *text, uint64_t *ret)
{
	return scale_parse(text, time_factor, ret);
}

static int count_parse(const char *text, uint64_t *ret)
{
	uint64_t whole, part, scale;
	const char *rest;
	int r = number_parse(text, &whole, &part, &scale, &rest);

	if (r < 0)
		return r;
	if (scale != 1 || *rest)
		return -EINVAL;
	if (whole > INT64_MAX)
		return -ERANGE;
	*ret = whole;
	return 0;
}

static int unit_parse(enum limit_unit unit, const char *text, uint64_t *ret)
{
	switch (unit) {
	case UNIT_TIME:
		return duration_parse(text, ret);
	case UNIT_SIZE:
		return size_parse(text, ret);
	case UNIT_CPUS:
		return scale_parse(text, cpu_factor, ret);
	case UNIT_COUNT:
		return count_parse(text, ret);
	}
	return -EINVAL;
}

static const char *unit_example(enum limit_unit unit)
{
	static const char *const examples[] = {
		[UNIT_TIME] = "a time such as 90s, 10m or 2h",
		[UNIT_SIZE] = "a size such as 512M or 2G",
		[UNIT_COUNT] = "a whole number such as 100",
		[UNIT_CPUS] = "a number such as 2 or 0.5",
	};

	return examples[unit];
}

const char *limit_unit_word(enum limit_unit unit)
{
	static const char *const words[] = {
		[UNIT_TIME] = "TIME", [UNIT_SIZE] = "SIZE", [UNIT_COUNT] = "N", [UNIT_CPUS] = "N"};

	return words[unit];
}

int limit_parse(enum limit which, const char *text, uint64_t *ret, struct error *err)
{
	const struct limit_info *info = &limit_table[which];
	char shown[64], least[LIMIT_TEXT_SIZE];
	uint64_t value;
	int r;

	text_escape_into(shown, sizeof shown, text, strlen(text));
	if (strcmp(text, "none") == 0) {
		if (info->always)
			return error_set(err, ERROR_USAGE, "limit %s cannot be 'none': give %s", info->name,
					 unit_example(info->unit));
		*ret = LIMIT_NONE;
		return 0;
	}
	r = unit_parse(info->unit, text, &value);
	if (r == -ERANGE || (r == 0 && which == LIMIT_LOG_MAX && value > 64 * MIB))
		return error_set(err, ERROR_USAGE, "limit %s is too large: '%s'; use %s", info->name, shown,
				 which == LIMIT_LOG_MAX ? "64M at the most" : "'none' for no limit");
	if (r < 0)
		return error_set(err, ERROR_USAGE, "limit %s makes no sense: '%s' is not %s", info->name,
				 shown, unit_example(info->unit));
	if (value < info->least)
		return error_set(err, ERROR_USAGE, "limit %s is too small: '%s'; the least is %s", info->name,
				 shown, limit_format(which, info->least, least));
	*ret = value;
	return 0;
}

static const struct unit *units_of(enum limit_unit unit)
{
	static const struct unit *const all[] = {
		[UNIT_TIME] = time_units,
		[UNIT_SIZE] = size_units,
		[UNIT_COUNT] = count_units,
		[UNIT_CPUS] = cpu_units,
	};

	return all[unit];
}

static const char *cpus_format(uint64_t value, char out[LIMIT_TEXT_SIZE])
{
	int n = snprintf(out, LIMIT_TEXT_SIZE, "%llu.%03u", (unsigned long long)(value / 1000),
			 (unsigned)(value % 1000));

	while (out[n - 1] == '0')
		out[--n] = 0;
	if (out[n - 1] == '.')
		out[--n] = 0;
	return out;
}

const char *limit_format_exact(enum limit which, uint64_t value, char out[LIMIT_TEXT_SIZE])
{
	const struct unit *u = units_of(limit_table[which].unit);

	if (value == LIMIT_NONE || value == 0) {
		snprintf(out, LIMIT_TEXT_SIZE, "%s", value ? "none" : u == time_units ? "0s" : "0");
		return out;
	}
	if (limit_table[which].unit == UNIT_CPUS)
		return cpus_format(value, out);
	while (value % u->factor)
		u++;
	snprintf(out, LIMIT_TEXT_SIZE, "%llu%s", (unsigned long long)(value / u->factor), u->name);
	return out;
}

const char *limit_format(enum limit which, uint64_t value, char out[LIMIT_TEXT_SIZE])
{
	enum limit_unit unit = limit_table[which].unit;
	const struct unit *u = units_of(unit);

	limit_format_exact(which, value, out);
	if (value == LIMIT_NONE || unit == UNIT_COUNT || unit == UNIT_CPUS || strlen(out) <= 6)
		return out;
	while (u->factor > value)
		u++;
	snprintf(out, LIMIT_TEXT_SIZE, "%.1f%s%s%s", (double)value / (double)u->factor,
		 unit == UNIT_SIZE ? " " : "", u->name, unit == UNIT_SIZE ? "iB" : "");
	return out;
}

const char *limit_origin_name(enum limit_origin origin)
{
	static const char *const names[] = {
		[LIMIT_UNSET] = "unset",
		[LIMIT_BUILT_IN] = "built_in",
		[LIMIT_SITE] = "site",
		[LIMIT_ASKED] = "asked",
	};

	return names[origin];
}

void limits_inherit(struct limits *to, const struct limits *from)
{
	for (int i = 0; i < LIMIT_COUNT; i++) {
		if (to->origin[i] != LIMIT_UNSET)
			continue;
		to->value[i] = from->value[i];
		to->origin[i] = from->origin[i];
	}
}

void limits_built_in(struct limits *l)
{
	for (int i = 0; i < LIMIT_COUNT; i++) {
		if (l->origin[i] != LIMIT_UNSET)
			continue;
		l->value[i] = limit_table[i].built_in;
		l->origin[i] = LIMIT_BUILT_IN;
	}
}

int limits_cap(struct limits *l, const struct limits *maximum, struct error *err)
{
	for (int i = 0; i < LIMIT_COUNT; i++) {
		char asked[LIMIT_TEXT_SIZE], most[LIMIT_TEXT_SIZE];
		enum limit which = (enum limit)i;

		if (maximum->origin[i] == LIMIT_UNSET || l->origin[i] == LIMIT_UNSET ||
		    l->value[i] <= maximum->value[i])
			continue;
		if (l->origin[i] == LIMIT_ASKED)
			return error_set(err, ERROR_REFUSED,
					 "limit %s of %s was asked for, but this site allows at most %s",
					 limit_table[i].name, limit_format(which, l->value[i], asked),
					 limit_format(which, maximum->value[i], most));
		l->value[i] = maximum->value[i];
		l->origin[i] = LIMIT_SITE;
	}
	return 0;
}
