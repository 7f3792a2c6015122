#include "dial.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>

#include "act.h"

socklen_t address_unix(union address *ret, const char *name)
{
	memset(ret, 0, sizeof(*ret));
	ret->un.sun_family = AF_UNIX;
	size_t size = strnlen(name, sizeof(ret->un.sun_path) - 1);
	memcpy(ret->un.sun_path, name, size);
	if (name[0] != '@')
		return sizeof(ret->un);
	ret->un.sun_path[0] = '\0';
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size);
}

socklen_t address_inet(union address *ret, const char *host, int port)
{
	memset(ret, 0, sizeof(*ret));
	if (inet_pton(AF_INET, host, &ret->in.sin_addr) == 1) {
		ret->in.sin_family = AF_INET;
		ret->in.sin_port = htons((uint16_t)port);
		return sizeof(ret->in);
	}
	if (inet_pton(AF_INET6, host, &ret->in6.sin6_addr) == 1) {
		ret->in6.sin6_family = AF_INET6;
		ret->in6.sin6_port = htons((uint16_t)port);
		return sizeof(ret->in6);
	}
	return 0;
}

int dial_greet(int fd)
{
	struct timeval patience = {.tv_usec = 150000};
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	/* One that answers before it was greeted, and hangs up, was reached all the same. */
	if (send(fd, "hello\n", 6, MSG_NOSIGNAL) != 6 && errno != EPIPE)
		return -errno;
	char answer[256];
	ssize_t n = recv(fd, answer, sizeof(answer), 0);
	if (n > 0)
		show(answer, (size_t)n);
	return n < 0 && errno != EAGAIN ? -errno : 0;
}

int dial(int type, int protocol, const union address *to, socklen_t size)
{
	struct timeval patience = {.tv_sec = 1};
	_cleanup_close_ int fd = socket(to->any.sa_family, type | SOCK_CLOEXEC, protocol);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (connect(fd, &to->any, size))
		return -errno;
	return dial_greet(fd);
}

int dial_send(int fd, const union address *to, socklen_t size)
{
	return sendto(fd, "hello\n", 6, MSG_NOSIGNAL, &to->any, size) == 6 ? 0 : -errno;
}
