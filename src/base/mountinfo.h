/*
 * What is mounted where, as this process sees it: /proc/self/mountinfo, read once, outer mounts before those inside them.
 * A list of a moment: what is mounted or unmounted later is not in it.
 */
#ifndef BASE_MOUNTINFO_H
#define BASE_MOUNTINFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "macros.h"

struct mount_point {
	char *path;
	char *type; /* of its file system */
	uint64_t id;
};

struct mountinfo {
	struct mount_point *points; /* by path, then by id */
	size_t count;
};

int mountinfo_load(struct mountinfo *ret, struct error *err);
/* From a text of that form; it is cut to pieces. */
int mountinfo_parse(char *text, struct mountinfo *ret, struct error *err);
void mountinfo_done(struct mountinfo *m);
#define _cleanup_mountinfo_ _cleanup_(mountinfo_done)

/* One line of it, cut to pieces; false: it is none. */
struct mountinfo_line {
	uint64_t id;
	char *root, *point;		      /* as they are, unescaped */
	char *options, *type, *super_options; /* the last one "" where there is none */
};
bool mountinfo_parse_line(char *line, struct mountinfo_line *ret);

/* The next mount point strictly below path that is not hidden by another mount, from *at on (0 at first); NULL at the end.
 * One that we may not look at counts. */
const struct mount_point *mountinfo_below(const struct mountinfo *m, const char *path, size_t *at);
/* Whether something is mounted right there. */
bool mountinfo_is_point(const struct mountinfo *m, const char *path);
/* The type of the file system that holds path; "" if there is none. */
const char *mountinfo_type(const struct mountinfo *m, const char *path);

#endif
