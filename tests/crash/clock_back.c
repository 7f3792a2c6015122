/*
 * A wall clock that is wrong, for LD_PRELOAD: CLOCK_BACK_S seconds behind (ahead, if negative) from the moment that the
 * file CLOCK_BACK_FILE exists; without that name, from the start. Without CLOCK_BACK_S, what the file says at this moment,
 * so that a clock can jump again and again. Clocks that nobody can set stay as they are.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long behind(void)
{
	const char *seconds = getenv("CLOCK_BACK_S"), *file = getenv("CLOCK_BACK_FILE");
	char text[32] = "";
	int fd;

	if (seconds)
		return !file || access(file, F_OK) == 0 ? atol(seconds) : 0;
	fd = file ? open(file, O_RDONLY | O_CLOEXEC) : -1;
	if (fd >= 0 && read(fd, text, sizeof text - 1) < 0)
		text[0] = 0;
	if (fd >= 0)
		close(fd);
	return atol(text);
}

int clock_gettime(clockid_t clock, struct timespec *ret)
{
	int r = (int)syscall(SYS_clock_gettime, clock, ret);

	if (r == 0 && clock == CLOCK_REALTIME)
		ret->tv_sec -= behind();
	return r;
}

int gettimeofday(struct timeval *restrict ret, void *restrict zone)
{
	int r = (int)syscall(SYS_gettimeofday, ret, zone);

	if (r == 0)
		ret->tv_sec -= behind();
	return r;
}

time_t time(time_t *ret)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (ret)
		*ret = now.tv_sec;
	return now.tv_sec;
}
