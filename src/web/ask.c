#include "ask.h"

#include <stdio.h>
#include <string.h>

#include "text.h"

static int digit(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

/* In place. A NUL would hide what follows it. */
static int decode(char *text, bool is_form)
{
	char *to = text;

	for (const char *at = text; *at; at++) {
		if (*at == '%') {
			int high = digit(at[1]), low = high < 0 ? -1 : digit(at[2]);

			if (low < 0 || (high == 0 && low == 0))
				return -1;
			*to++ = (char)(high << 4 | low);
			at += 2;
		} else {
			*to++ = is_form && *at == '+' ? ' ' : *at;
		}
	}
	*to = 0;
	return 0;
}

static int bad(const char *uri, struct error *err)
{
	return error_set(err, ERROR_USAGE, "'%s' is no address of this page", SHOWN(128, uri));
}

static int take_parts(struct ask *a, char *path)
{
	char *rest = NULL;

	for (char *part = strtok_r(path, "/", &rest); part; part = strtok_r(NULL, "/", &rest)) {
		if (a->n_parts == ASK_PARTS_MAX || decode(part, false) < 0)
			return -1;
		a->parts[a->n_parts++] = part;
	}
	a->parts[a->n_parts] = NULL;
	return 0;
}

static int take_params(struct ask *a, char *query)
{
	char *rest = NULL;

	for (char *param = strtok_r(query, "&", &rest); param; param = strtok_r(NULL, "&", &rest)) {
		char *value = strchr(param, '=');

		if (a->n_params == ASK_PARAMS_MAX)
			return -1;
		if (value)
			*value++ = 0;
		if (decode(param, true) < 0 || (value && decode(value, true) < 0))
			return -1;
		a->params[a->n_params++] = (struct ask_param){param, value ? value : ""};
	}
	return 0;
}

int ask_parse(struct ask *a, const char *uri, struct error *err)
{
	char *query;

	*a = (struct ask){0};
	if (uri[0] != '/' || strlen(uri) >= sizeof a->text)
		return bad(uri, err);
	snprintf(a->text, sizeof a->text, "%s", uri);
	a->text[strcspn(a->text, "#")] = 0;
	query = strchr(a->text, '?');
	if (query)
		*query++ = 0;
	if (take_parts(a, a->text) < 0 || (query && take_params(a, query) < 0))
		return bad(uri, err);
	return 0;
}

const char *ask_param(const struct ask *a, const char *name)
{
	for (size_t i = 0; i < a->n_params; i++)
		if (strcmp(a->params[i].name, name) == 0)
			return *a->params[i].value ? a->params[i].value : NULL;
	return NULL;
}

/* A browser's list has text/html in it; curl's default has neither. */
bool ask_wants_json(const char *accept)
{
	return accept && strstr(accept, "application/json") && !strstr(accept, "text/html");
}
