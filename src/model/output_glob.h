/*
 * Patterns of paths, as --output and `get` have them. Pure text: nothing is looked for.
 */
#ifndef MODEL_OUTPUT_GLOB_H
#define MODEL_OUTPUT_GLOB_H

#include <stdbool.h>

/* '*' and '?' and [a-z] stay within a component, "**" crosses; a pattern that names a directory (or ends in '/') matches all
 * below it. */
bool output_glob_match(const char *pattern, const char *path);

#endif
