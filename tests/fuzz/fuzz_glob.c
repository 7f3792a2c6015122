/* A pattern, a line feed, a path: matching ends, and keeps what the manual says of directories and of "**". */
#include "fuzz.h"

#include <stdio.h>
#include <string.h>

#include "collect.h"
#include "macros.h"

/* A path as collect makes them: names joined by single slashes. */
static bool is_plain_path(const char *path)
{
	size_t n;

	for (;; path += n + 1) {
		n = strcspn(path, "/");
		if (n == 0 || (n == 1 && path[0] == '.'))
			return false;
		if (path[n] == 0)
			return true;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *pattern = fuzz_text(data, size), *below = NULL, *anywhere = NULL;
	char *path = strchr(pattern, '\n');
	bool match;

	/* The time is the product of the lengths: long inputs tell nothing more. */
	if (!path || size > 2000)
		return 0;
	*path++ = 0;
	match = output_glob_match(pattern, path);
	if (!is_plain_path(path))
		return 0;
	if (is_plain_path(pattern) && !strpbrk(pattern, "*?[")) {
		size_t n = strlen(pattern);

		PROMISE(match == (strncmp(pattern, path, n) == 0 && (path[n] == 0 || path[n] == '/')));
	}
	if (!match)
		return 0;
	PROMISE(asprintf(&below, "%s/x", path) > 0 && output_glob_match(pattern, below));
	PROMISE(asprintf(&anywhere, "**/%s", pattern) > 0 && output_glob_match(anywhere, path));
	return 0;
}
