#include "csv.h"

/* Up to the quote that closes it; two are one that is meant. */
static const char *take_quoted(const char *at, const char *end, struct buffer *field)
{
	for (; at < end; at++) {
		if (*at == '"' && (at + 1 == end || at[1] != '"'))
			return at + 1;
		at += *at == '"';
		buffer_append(field, at, 1);
	}
	return at;
}

bool csv_field(const char **at, const char *end, struct buffer *field)
{
	const char *from = *at, *to;

	if (from < end && *from == '"')
		from = take_quoted(from + 1, end, field);
	for (to = from; to < end && *to != ',' && *to != '\n'; to++)
		;
	buffer_append(field, from, (size_t)(to - from));
	if (to > from && to[-1] == '\r' && (to == end || *to == '\n'))
		field->data[--field->size] = 0;
	*at = to < end ? to + 1 : to;
	return to == end || *to == '\n';
}
