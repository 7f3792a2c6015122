/*
 * What may be said of a path of the caller's which the analysis does not see (hints.c, notices_path.c).
 */
#ifndef RUN_HINTS_H
#define RUN_HINTS_H

#include <stdbool.h>
#include <sys/stat.h>

/* A file or directory that the caller could read: of what he could not, nothing is said. */
bool path_is_readable(const char *path, struct stat *st);
/* The machine's, not the caller's: nobody shows it. */
bool path_is_machine(const char *path);

#endif
