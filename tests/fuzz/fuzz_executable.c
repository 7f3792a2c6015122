/* The first bytes of a file that is to be executed: whatever they are, one kind, and words that end. */
#include "fuzz.h"

#include <string.h>

#include "executable.h"
#include "macros.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *bytes = fuzz_text(data, size);
	struct executable x;

	executable_judge(bytes, size, &x);
	PROMISE(x.kind <= EXECUTABLE_OTHER);
	for (size_t i = 0; i < ARRAY_SIZE(x.word); i++)
		PROMISE(memchr(x.word[i], 0, sizeof x.word[i]));
	if (x.kind == EXECUTABLE_SCRIPT)
		PROMISE(!strpbrk(x.word[0], " \t\n") && !strpbrk(x.word[1], " \t\n"));
	PROMISE(x.kind != EXECUTABLE_EMPTY || size == 0);
	return 0;
}
