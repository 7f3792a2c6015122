/* What passes as an id is a harmless file name; what does not is named without control characters. */
#include "fuzz.h"

#include <string.h>

#include "id.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	_cleanup_free_ char *id = fuzz_text(data, size);
	struct error err = ERROR_INIT;

	if (id_check(id, &err) == 0) {
		PROMISE(strlen(id) >= 1 && strlen(id) <= ID_MAX);
		PROMISE(strspn(id, good) == strlen(id) && id[0] != '.' && id[0] != '-');
		return 0;
	}
	PROMISE(err.kind == ERROR_USAGE);
	for (const unsigned char *p = (const unsigned char *)err.message; *p; p++)
		PROMISE(*p >= ' ' && *p != 0x7f);
	return 0;
}
