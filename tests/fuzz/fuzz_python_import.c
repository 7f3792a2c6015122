/* A Python program, or what somebody calls one: every module is made of names, and the search ends. */
#include "fuzz.h"

#include <string.h>

#include "macros.h"
#include "python_import.h"

static int check(void *arg, const char *module, unsigned level)
{
	PROMISE(++*(unsigned *)arg <= PYTHON_IMPORTS_MAX);
	PROMISE(*module && strlen(module) < PYTHON_NAME_ROOM && level <= 1000);
	PROMISE(!strpbrk(module, "/ \n\\") && !strstr(module, "..") && *module != '.');
	PROMISE(module[strlen(module) - 1] != '.');
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *text = fuzz_text(data, size);
	unsigned count = 0;

	PROMISE(python_imports(text, size, check, &count) == 0);
	return 0;
}
