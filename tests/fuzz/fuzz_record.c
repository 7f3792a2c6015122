/* A record of the state directory: refused in one sentence, or taken, harmless, and the same after JSON and back. */
#include "fuzz.h"

#include <string.h>

#include "macros.h"
#include "workspace.h"

static bool is_harmless_path(const char *path)
{
	return path[0] == '/' && path[1] && !strstr(path, "//") && !strstr(path, "/../") &&
	       !strstr(path, "/./");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_auto_t *stored = NULL, *again = NULL;
	_cleanup_(record_done) struct record r, back;
	_cleanup_free_ char *text = NULL;
	struct error err = ERROR_INIT;

	record_init(&r);
	record_init(&back);
	if (record_parse(&r, (const char *)data, size, &err) < 0) {
		PROMISE(err.kind != ERROR_NONE && err.message[0]);
		for (const unsigned char *p = (const unsigned char *)err.message; *p; p++)
			PROMISE(*p >= ' ' && *p != 0x7f);
		return 0;
	}
	PROMISE(id_check(r.id, NULL) == 0);
	PROMISE(strlen(r.token) == TOKEN_SIZE - 1);
	PROMISE(r.init.pid >= 0 && r.process.pid >= 0);
	PROMISE(is_harmless_path(r.path) && is_harmless_path(r.scratch));
	for (char *const *p = r.cgroups; p && *p; p++)
		PROMISE(is_harmless_path(*p));
	stored = record_to_json(&r);
	PROMISE(stored);
	text = json_dumps(stored, 0);
	PROMISE(text);
	PROMISE(record_parse(&back, text, strlen(text), NULL) == 0);
	again = record_to_json(&back);
	PROMISE(json_equal(stored, again));
	return 0;
}
