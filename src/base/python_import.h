/*
 * Which modules a Python program names in its import statements, found line by line: no parser, and nothing is executed. A line
 * of a text in quotes that looks like one counts too; who asks looks whether there is such a file.
 */
#ifndef BASE_PYTHON_IMPORT_H
#define BASE_PYTHON_IMPORT_H

#include <stddef.h>

enum { PYTHON_NAME_ROOM = 256, PYTHON_IMPORTS_MAX = 1000 };

/* module: names joined by single dots, "fit.curve", each of them a Python name, so that none has a slash or is empty. level: the
 * dots before it, 0 being an absolute import. Of `from . import x` the module is "x", and so on for each x of that line. Not 0
 * ends the search. */
typedef int (*python_import_fn)(void *arg, const char *module, unsigned level);

/* At most PYTHON_IMPORTS_MAX of them, in their order. What fn returned, or 0. */
int python_imports(const char *text, size_t size, python_import_fn fn, void *arg);

#endif
