/*
 * Time. Durations are nanoseconds of CLOCK_BOOTTIME, which does not stop when the machine is suspended and which
 * nobody can set; instants that are stored are UTC nanoseconds since 1970.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

uint64_t clock_now(void); /* CLOCK_BOOTTIME, ns */
int64_t clock_utc(void);  /* CLOCK_REALTIME, ns */

enum { CLOCK_TEXT_SIZE = 32 };
/* "2026-11-15T02:34:08.123456Z" */
void clock_format(int64_t utc_ns, char out[CLOCK_TEXT_SIZE]);
/* "2026-11-15", "2026-11-15T02:34", "2026-11-15 02:34:08Z", and what clock_format() writes: UTC in any case. 0, or -EINVAL. */
int clock_parse(const char *text, int64_t *ret_utc_ns);

#endif
