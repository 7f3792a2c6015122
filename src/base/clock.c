#include "clock.h"
#include "macros.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static uint64_t read_clock(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

uint64_t clock_now(void)
{
	return read_clock(CLOCK_BOOTTIME);
}

int64_t clock_utc(void)
{
	return (int64_t)read_clock(CLOCK_REALTIME);
}

void clock_format(int64_t utc_ns, char out[CLOCK_TEXT_SIZE])
{
	time_t seconds = (time_t)(utc_ns / (int64_t)NSEC_PER_SEC);
	int64_t rest = utc_ns % (int64_t)NSEC_PER_SEC;
	struct tm tm;
	size_t n;

	if (rest < 0) {
		rest += (int64_t)NSEC_PER_SEC;
		seconds--;
	}
	gmtime_r(&seconds, &tm);
	n = strftime(out, CLOCK_TEXT_SIZE, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(out + n, CLOCK_TEXT_SIZE - n, ".%06dZ", (int)(rest / 1000));
}

/* ".123456" in ns, up to nine digits; 0: there is none. *end goes behind it. */
static int64_t parse_fraction(const char **end)
{
	int64_t ns = 0, digit = 100000000;
	const char *at = *end;

	if (*at != '.' || at[1] < '0' || at[1] > '9')
		return 0;
	for (at++; *at >= '0' && *at <= '9' && digit > 0; at++, digit /= 10)
		ns += (*at - '0') * digit;
	*end = at;
	return ns;
}

int clock_parse(const char *text, int64_t *ret_utc_ns)
{
	static const char *const forms[] = {"%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M",
					    "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S"};

	for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
		struct tm tm = {0}, again;
		const char *end = strptime(text, forms[i], &tm);
		int64_t fraction = 0;
		time_t seconds;

		if (end && forms[i][strlen(forms[i]) - 1] == 'S')
			fraction = parse_fraction(&end);
		if (!end || strcmp(*end == 'Z' ? end + 1 : end, "") != 0)
			continue;
		again = tm;
		seconds = timegm(&again);
		/* The 31st of November is none, and the last of these years is 2261. */
		if (again.tm_mday != tm.tm_mday || seconds <= 0 || seconds >= INT64_MAX / 1000000000)
			return -EINVAL;
		*ret_utc_ns = (int64_t)seconds * 1000000000 + fraction;
		return 0;
	}
	return -EINVAL;
}
