#include "id.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "process.h"
#include "text.h"

static bool is_id_character(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
	       c == '_' || c == '-';
}

int id_check(const char *id, struct error *err)
{
	size_t size = strlen(id);
	char shown[ID_ROOM + 64];

	if (size == 0)
		return error_set(err, ERROR_USAGE,
				 "the id is empty: use 1 to %d letters, digits, '.', '_' and '-'", ID_MAX);
	text_escape_into(shown, sizeof shown, id, size);
	if (size > ID_MAX)
		return error_set(err, ERROR_USAGE, "id '%s' has %zu characters: use at most %d", shown, size,
				 ID_MAX);
	if (id[0] == '.' || id[0] == '-')
		return error_set(err, ERROR_USAGE,
				 "id '%s' starts with '%c': begin with a letter, a digit or '_'", shown,
				 id[0]);
	for (size_t i = 0; i < size; i++)
		if (!is_id_character(id[i]))
			return error_set(err, ERROR_USAGE,
					 "id '%s' is not one: use only letters, digits, '.', '_' and '-'",
					 shown);
	return 0;
}

int id_make(char out[ID_ROOM], struct error *err)
{
	static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz"; /* no i, l, o, u: they are misread */
	time_t now = (time_t)(clock_utc() / (int64_t)NSEC_PER_SEC);
	uint8_t noise[6];
	struct tm tm;
	size_t n;
	int r = random_bytes(noise, sizeof noise);

	if (r < 0)
		return error_system(err, -r, "cannot make up an id");
	gmtime_r(&now, &tm);
	n = strftime(out, ID_ROOM, "%Y%m%d-%H%M%S-", &tm);
	for (size_t i = 0; i < sizeof noise; i++)
		out[n++] = digits[noise[i] & 31];
	out[n] = 0;
	return 0;
}

int token_make(char out[TOKEN_SIZE], struct error *err)
{
	uint8_t noise[(TOKEN_SIZE - 1) / 2];
	int r = random_bytes(noise, sizeof noise);

	if (r < 0)
		return error_system(err, -r, "cannot make a token");
	hex_encode(noise, sizeof noise, out);
	return 0;
}
