/* A request file: refused with a place, or taken, and then it survives JSON and back. */
#include "fuzz.h"

#include <string.h>

#include "request.h"

static void check_round_trip(const struct request *r)
{
	_cleanup_request_ struct request back = {0};
	json_auto_t *json = request_to_json(r), *again = NULL;

	PROMISE(json);
	PROMISE(request_from_json(&back, json, NULL) == 0);
	again = request_to_json(&back);
	PROMISE(json_equal(json, again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_request_ struct request r = {0};
	_cleanup_free_ char *text = fuzz_text(data, size);
	struct error err = ERROR_INIT;

	if (request_parse(&r, text, size, "fuzz", &err) < 0) {
		PROMISE(err.kind == ERROR_USAGE && strncmp(err.message, "fuzz:", 5) == 0);
		return 0;
	}
	PROMISE(err.kind == ERROR_NONE);
	if (request_check(&r, &err) == 0)
		check_round_trip(&r);
	else
		PROMISE(err.kind == ERROR_USAGE && err.message[0]);
	return 0;
}
