/* The first byte chooses a limit, the rest is its value: what is taken is sane and reads back from its exact text. */
#include "fuzz.h"

#include <string.h>

#include "limit.h"
#include "macros.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum limit which = (enum limit)(size ? data[0] % LIMIT_COUNT : 0);
	_cleanup_free_ char *text = size ? fuzz_text(data + 1, size - 1) : fuzz_text(data, 0);
	const struct limit_info *info = &limit_table[which];
	char exact[LIMIT_TEXT_SIZE], human[LIMIT_TEXT_SIZE];
	struct error err = ERROR_INIT;
	uint64_t value = 0, back = 0;

	if (limit_parse(which, text, &value, &err) < 0) {
		PROMISE(err.kind == ERROR_USAGE && strstr(err.message, info->name));
		return 0;
	}
	PROMISE(value == LIMIT_NONE ? !info->always : value >= info->least && value <= INT64_MAX);
	limit_format_exact(which, value, exact);
	PROMISE(limit_parse(which, exact, &back, NULL) == 0 && back == value);
	PROMISE(strlen(limit_format(which, value, human)) < LIMIT_TEXT_SIZE);
	return 0;
}
