/*
 * What is not an output although the analysis made it: caches and leftovers of the usual tools. It counts only where
 * no outputs were declared; a declared pattern takes what it names.
 */
#ifndef COLLECT_SKIP_H
#define COLLECT_SKIP_H

#include <stdbool.h>

/* path relative to the workspace; a directory that is skipped is not entered. */
bool skip_by_default(const char *path, bool is_directory);

#endif
