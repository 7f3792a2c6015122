/*
 * A wall clock that is wrong, for LD_PRELOAD: CLOCK_BACK_S seconds behind (ahead, if negative) from the moment that the
 * file CLOCK_BACK_FILE exists; without that name, from the start. Clocks that nobody can set stay as they are.
 */
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *ret)
{
	const char *seconds = getenv("CLOCK_BACK_S"), *file = getenv("CLOCK_BACK_FILE");
	int r = (int)syscall(SYS_clock_gettime, clock, ret);

	if (r == 0 && clock == CLOCK_REALTIME && seconds && (!file || access(file, F_OK) == 0))
		ret->tv_sec -= atol(seconds);
	return r;
}
