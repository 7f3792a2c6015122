/*
 * Limits: one table of what can be limited, one struct of how much. Options, request files, configuration,
 * --dry-run and the receipt are all made from limit_table, so that a limit has one name, one unit, one default.
 */
#ifndef MODEL_LIMIT_H
#define MODEL_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "error.h"

enum limit {
	LIMIT_WALL,	  /* ns */
	LIMIT_GRACE,	  /* ns between SIGTERM and the end */
	LIMIT_CPU_TIME,	  /* ns */
	LIMIT_CPUS,	  /* thousandths of a cpu */
	LIMIT_MEMORY,	  /* bytes, swap included */
	LIMIT_PIDS,	  /* processes and threads */
	LIMIT_DISK,	  /* bytes in the workspace and the private /tmp */
	LIMIT_FILES,	  /* files there */
	LIMIT_INPUT_MAX,  /* bytes of directories that are copied in */
	LIMIT_OUTPUT_MAX, /* bytes collected in all */
	LIMIT_LOG_MAX,	  /* bytes kept of each of stdout and stderr */
	LIMIT_FILE_SIZE,  /* bytes of one file: RLIMIT_FSIZE */
	LIMIT_OPEN_FILES, /* RLIMIT_NOFILE */
	LIMIT_COUNT
};

#define LIMIT_NONE UINT64_MAX

enum limit_unit { UNIT_TIME, UNIT_SIZE, UNIT_COUNT, UNIT_CPUS };

/* Where a value came from: only an ASKED one is refused when it cannot be held. */
enum limit_origin { LIMIT_UNSET, LIMIT_BUILT_IN, LIMIT_SITE, LIMIT_ASKED };

struct limit_info {
	const char *name; /* request key */
	const char *option;
	enum limit_unit unit;
	uint64_t built_in; /* LIMIT_NONE: no limit */
	uint64_t least;	   /* smaller values make no sense and are usage errors */
	bool always;	   /* "none" makes no sense either */
	const char *help;  /* for --dry-run, the manual, FORMATS and the schemas (scripts/texts) */
};

extern const struct limit_info limit_table[LIMIT_COUNT];
int limit_by_name(const char *name); /* or -1 */

struct limits {
	uint64_t value[LIMIT_COUNT]; /* LIMIT_NONE or the limit; meaningless while UNSET */
	enum limit_origin origin[LIMIT_COUNT];
};

/* Text → value by the limit's unit. "512M", "2G", "1.5K"; "90s", "10m", "2h", "250ms", bare seconds; "0.5"; "none".
 * ERROR_USAGE names the limit, the text and an example. Sizes are powers of 1024. */
int limit_parse(enum limit which, const char *text, uint64_t *ret, struct error *err);

/* "TIME", "SIZE", "N": what an option takes. */
const char *limit_unit_word(enum limit_unit unit);

enum { LIMIT_TEXT_SIZE = 32 };
/* "2G", "90s", "0.5": short human text, parseable by limit_parse again where it is exact; else "1.9 GiB". */
const char *limit_format(enum limit which, uint64_t value, char out[LIMIT_TEXT_SIZE]);
/* Always exact, always parseable: what is stored. */
const char *limit_format_exact(enum limit which, uint64_t value, char out[LIMIT_TEXT_SIZE]);
const char *limit_origin_name(enum limit_origin origin); /* "unset", "built_in", "site", "asked" */

/* -EINVAL for what is none, -ERANGE for more than INT64_MAX, which JSON and SQL could not hold. */
int size_parse(const char *text, uint64_t *ret);     /* "512", "4K", "2G", "2GiB"; powers of 1024 */
int duration_parse(const char *text, uint64_t *ret); /* to ns: "90", "90s", "1.5h", "250ms", "7d" */

/* from's set values replace to's unset ones, keeping their origin. */
void limits_inherit(struct limits *to, const struct limits *from);
/* Fills what is unset with the built-in defaults. */
void limits_built_in(struct limits *l);
/* Refuses (ERROR_REFUSED, one sentence: what was asked, what the site allows) an asked-for value above maximum;
 * lowers a default that is above it. Call it after limits_built_in: what is unset stays unset. */
int limits_cap(struct limits *l, const struct limits *maximum, struct error *err);

#endif
