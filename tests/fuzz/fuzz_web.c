/* The first byte chooses: an address, the words of a request's headers, text for a page, or a table. */
#include "fuzz.h"

#include <string.h>

#include "ask.h"
#include "csv.h"
#include "guard.h"
#include "html.h"

static void address(const char *text)
{
	struct error err = ERROR_INIT;
	struct ask a;

	if (ask_parse(&a, text, &err) < 0)
		return;
	PROMISE(a.n_parts <= ASK_PARTS_MAX && !a.parts[a.n_parts] && a.n_params <= ASK_PARAMS_MAX);
	for (size_t i = 0; i < a.n_params; i++)
		PROMISE(strlen(a.params[i].name) + strlen(a.params[i].value) < ASK_TEXT_MAX);
}

/* Nobody guesses a session of 64 digits. */
static void headers(const char *text)
{
	struct guard g = {.cookie = "fumehood-80"};
	char session[GUARD_SESSION + 1];
	int64_t uid;
	char *hosts[] = {(char *)"127.0.0.1:80", NULL};

	memset(g.token, 't', GUARD_TOKEN);
	g.hosts = hosts;
	if (guard_knows_cookie(&g, text, &uid)) {
		guard_session(&g, uid, session);
		PROMISE(strstr(text, session));
	}
	PROMISE(!guard_knows_bearer(&g, text) || strstr(text, g.token));
	PROMISE(!guard_knows_host(&g, text) || strlen(text) == strlen(hosts[0]));
	(void)guard_is_own_page(&g, text, NULL);
}

static void page(const uint8_t *data, size_t size)
{
	struct html h = {0};

	html_bytes(&h, (const char *)data, size);
	for (size_t i = 0; i < h.out.size; i++)
		PROMISE(!strchr("<>\"'\r\x1b", h.out.data[i]) && h.out.data[i]);
	html_done(&h);
}

static void table(const uint8_t *data, size_t size)
{
	const char *at = (const char *)data, *end = at + size, *before;

	do {
		struct buffer field = {0};

		before = at;
		csv_field(&at, end, &field);
		PROMISE(at <= end && (at > before || at == end) && field.size <= size);
		buffer_free(&field);
	} while (at < end);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *text = size ? fuzz_text(data + 1, size - 1) : fuzz_text(data, 0);

	switch (size ? data[0] % 4 : 0) {
	case 0:
		address(text);
		break;
	case 1:
		headers(text);
		break;
	case 2:
		page(data + 1, size - 1);
		break;
	default:
		table(data + 1, size - 1);
	}
	return 0;
}
