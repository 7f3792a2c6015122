#include "notify.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

void notify_send(const char *format, ...)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	_cleanup_close_ int fd = -1;
	char text[512];
	socklen_t size;
	va_list args;

	if (!path || (*path != '/' && *path != '@') || strlen(path) >= sizeof to.sun_path)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	memcpy(to.sun_path, path, strlen(path));
	size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
	if (*path == '@')
		to.sun_path[0] = 0; /* abstract */
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0)
		(void)!sendto(fd, text, strlen(text), MSG_NOSIGNAL, (const struct sockaddr *)&to, size);
}

uint64_t notify_watchdog(void)
{
	const char *us = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	char *end;
	unsigned long long n;

	if (!us || (pid && strtoll(pid, NULL, 10) != getpid()))
		return 0;
	errno = 0;
	n = strtoull(us, &end, 10);
	return errno || end == us || *end ? 0 : n * NSEC_PER_USEC / 2;
}
