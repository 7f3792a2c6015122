/* A record on disk: refused, or taken, and then it survives JSON and back and can be shown. */
#include "fuzz.h"

#include "attempt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_attempt_ struct attempt a, back;
	json_auto_t *json = json_loadb((const char *)data, size, 0, NULL), *stored = NULL, *again = NULL,
		    *shown = NULL;
	struct error err = ERROR_INIT;

	attempt_init(&a);
	attempt_init(&back);
	if (!json)
		return 0;
	if (attempt_from_json(&a, json, &err) < 0) {
		PROMISE(err.message[0]);
		return 0;
	}
	stored = attempt_to_json(&a);
	PROMISE(stored);
	PROMISE(attempt_from_json(&back, stored, NULL) == 0);
	again = attempt_to_json(&back);
	PROMISE(json_equal(stored, again));
	shown = attempt_to_public_json(&a, true);
	PROMISE(shown);
	return 0;
}
