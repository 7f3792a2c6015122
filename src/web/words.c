#include "pages.h"

#include <string.h>

#include "print.h"

const char *words_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

/* Its name is its colour's, too: only those that we know. */
void words_verdict(struct html *h, const char *state, const char *verdict)
{
	const char *word = verdict && *verdict ? verdict : state;
	enum verdict v;
	const char *class = !verdict || !*verdict			     ? "open"
			    : verdict_parse(verdict, &v) < 0		     ? "bad"
			    : v == VERDICT_SUCCEEDED			     ? "good"
			    : v == VERDICT_CANCELLED || v == VERDICT_REFUSED ? "left"
									     : "bad";

	html_raw(h, "<span");
	html_attr(h, "class", class);
	html_raw(h, ">");
	html_text(h, word);
	html_raw(h, "</span>");
}

/* "2026-11-15T02:34:56.789Z": a page shows it to the second. */
void words_instant(struct html *h, const json_t *instant)
{
	const char *text = json_string_value(instant);

	if (!text) {
		html_raw(h, "–");
		return;
	}
	html_raw(h, "<time");
	html_attr(h, "datetime", text);
	html_raw(h, ">");
	html_bytes(h, text, strnlen(text, 10));
	if (strlen(text) > 19) {
		html_raw(h, " ");
		html_bytes(h, text + 11, 8);
	}
	html_raw(h, "</time>");
}

void words_duration(struct html *h, const json_t *ms)
{
	char text[PRINT_ROOM];

	html_text(h, print_duration(json_is_integer(ms) ? json_integer_value(ms) : -1, text));
}

void words_size(struct html *h, const json_t *bytes)
{
	char text[PRINT_ROOM];

	html_text(h, print_size(json_is_integer(bytes) ? json_integer_value(bytes) : -1, text));
}

void words_command(struct html *h, const json_t *command)
{
	const json_t *word;
	size_t i;

	json_array_foreach (command, i, word) {
		html_raw(h, i ? " " : "");
		html_text(h, json_string_value(word));
	}
}
