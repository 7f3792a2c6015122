/*
 * What may be said of a path of the caller's which the analysis does not see (hints.c, hints_import.c, notices_path.c).
 */
#ifndef RUN_HINTS_H
#define RUN_HINTS_H

#include <stdbool.h>
#include <sys/stat.h>

#include "plan.h"

enum { HINTS_MAX = 4 };

/* A file or directory that the caller could read: of what he could not, nothing is said. */
bool path_is_readable(const char *path, struct stat *st);
/* The machine's, not the caller's: nobody shows it. */
bool path_is_machine(const char *path);
/* In the working directory: copied, or data and docs, or what lies in a workspace that was held. as: clean, relative. */
bool hints_in_workspace(const struct plan *p, const char *as);

/* hints_import.c: of the Python programs that are staged, or written out after -c, what they import and the caller has beside
 * them. The number of notes, at most `most`. */
size_t hints_add_imports(const struct request *r, struct plan *p, size_t most);

#endif
