#include "answer.h"

#include <microhttpd.h>
#include <stdlib.h>

#include "file.h"
#include "pages.h"

void answer_done(struct answer *a)
{
	buffer_free(&a->body);
	if (a->has_file)
		fd_close(a->fd);
	free(a->file_name);
	free(a->location);
	free(a->next);
	free(a->cookie);
	*a = (struct answer){0};
}

int answer_json(struct answer *a, json_t *json, struct error *err)
{
	_cleanup_free_ char *text = json ? json_dumps(json, JSON_INDENT(2)) : NULL;

	json_decref(json);
	if (!text)
		return error_memory(err);
	a->type = "application/json";
	buffer_puts(&a->body, text);
	buffer_puts(&a->body, "\n");
	return buffer_check(&a->body, err);
}

static int status_of(const struct error *why)
{
	switch (why->kind) {
	case ERROR_USAGE:
		return MHD_HTTP_BAD_REQUEST;
	case ERROR_NOT_FOUND:
		return MHD_HTTP_NOT_FOUND;
	case ERROR_REFUSED:
		return MHD_HTTP_FORBIDDEN;
	default:
		return MHD_HTTP_SERVICE_UNAVAILABLE;
	}
}

void answer_error(struct answer *a, bool wants_json, int status, const struct error *why)
{
	struct error ignored = ERROR_INIT;
	struct html h = {0};

	answer_done(a);
	a->status = status ? status : status_of(why);
	if (wants_json) {
		answer_json(a, json_pack("{s:{s:s}}", "error", "message", why->message), &ignored);
		return;
	}
	frame_begin(&h, "Not shown", NULL, false);
	html_raw(&h, "<h1>This cannot be shown</h1>\n");
	html_element(&h, "p", "error", why->message);
	html_raw(&h, "<p><a href=\"/\">All analyses</a></p>\n");
	frame_answer(&h, a, &ignored);
}
