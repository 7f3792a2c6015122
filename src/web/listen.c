#include "listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "file.h"
#include "text.h"

enum { FIRST_PASSED = 3, BACKLOG = 128 };

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_un path;
};

/* "127.0.0.1:80", "[::1]:80", "80". */
static int parse(const char *where, union address *ret, socklen_t *ret_size, struct error *err)
{
	const char *colon = strrchr(where, ':'), *port = colon ? colon + 1 : where;
	char host[64] = "127.0.0.1";
	int number;

	*ret = (union address){0};
	if (colon)
		snprintf(host, sizeof host, "%.*s", (int)(colon - where), where);
	if (int_parse(port, 0, 65535, &number) == 0) {
		size_t n = strlen(host);

		ret->v4.sin_port = htons((uint16_t)number);
		if (inet_pton(AF_INET, host, &ret->v4.sin_addr) == 1) {
			ret->v4.sin_family = AF_INET;
			*ret_size = sizeof ret->v4;
			return 0;
		}
		if (n > 2 && host[0] == '[' && host[n - 1] == ']') {
			host[n - 1] = 0;
			if (inet_pton(AF_INET6, host + 1, &ret->v6.sin6_addr) == 1) {
				ret->v6.sin6_family = AF_INET6;
				ret->v6.sin6_port = htons((uint16_t)number);
				*ret_size = sizeof ret->v6;
				return 0;
			}
		}
	}
	return error_set(
		err, ERROR_USAGE,
		"--listen wants ADDRESS:PORT, with an address of this host in numbers, PORT alone, or unix:PATH, not '%s'",
		SHOWN(128, where));
}

static int name_it(struct listening *l, struct error *err)
{
	char text[INET6_ADDRSTRLEN] = "?";
	union address a = {0};
	socklen_t size = sizeof a;

	if (getsockname(l->fd, &a.any, &size) < 0)
		return error_system(err, errno, "cannot tell where it listens");
	if (a.any.sa_family == AF_UNIX) {
		l->is_unix = true;
		snprintf(l->name, sizeof l->name, "unix:%.200s", a.path.sun_path);
	} else if (a.any.sa_family == AF_INET6) {
		inet_ntop(AF_INET6, &a.v6.sin6_addr, text, sizeof text);
		l->port = ntohs(a.v6.sin6_port);
		snprintf(l->name, sizeof l->name, "[%s]:%u", text, l->port);
	} else {
		inet_ntop(AF_INET, &a.v4.sin_addr, text, sizeof text);
		l->port = ntohs(a.v4.sin_port);
		snprintf(l->name, sizeof l->name, "%s:%u", text, l->port);
	}
	return 0;
}

static int open_address(const char *where, struct listening *l, struct error *err)
{
	static const int on = 1;
	union address a;
	socklen_t size = 0;

	if (parse(where, &a, &size, err) < 0)
		return -EINVAL;
	l->fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->fd < 0)
		return error_system(err, errno, "cannot make a socket");
	setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (bind(l->fd, &a.any, size) < 0 || listen(l->fd, BACKLOG) < 0)
		return error_system(err, errno, "cannot listen on %s", where);
	return 0;
}

/* One that nobody listens on any more is replaced. A file that is no socket refuses connections too, and is somebody's. */
static bool is_dead(const union address *a, socklen_t size)
{
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct stat st;

	return fd >= 0 && lstat(a->path.sun_path, &st) == 0 && S_ISSOCK(st.st_mode) &&
	       connect(fd, &a->any, size) < 0 && errno == ECONNREFUSED;
}

static int open_unix(const char *path, struct listening *l, struct error *err)
{
	union address a = {.path.sun_family = AF_UNIX};
	mode_t before;
	int r;

	if (!*path || strlen(path) >= sizeof a.path.sun_path)
		return error_set(err, ERROR_USAGE, "the path of a socket has 1 to %zu bytes, not '%s'",
				 sizeof a.path.sun_path - 1, SHOWN(128, path));
	strcpy(a.path.sun_path, path);
	l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->fd < 0)
		return error_system(err, errno, "cannot make a socket");
	if (is_dead(&a, sizeof a.path))
		unlink(path);
	before = umask(0177);
	r = bind(l->fd, &a.any, sizeof a.path) < 0 || listen(l->fd, BACKLOG) < 0 ? errno : 0;
	umask(before);
	if (r)
		return error_system(err, r, "cannot listen on '%s'", path);
	l->path = path;
	return 0;
}

/* sd_listen_fds(3): one socket, ours to accept on. */
static bool take_passed(struct listening *l)
{
	const char *pid = getenv("LISTEN_PID"), *n = getenv("LISTEN_FDS");

	if (!pid || !n || atoi(pid) != getpid() || atoi(n) < 1)
		return false;
	fcntl(FIRST_PASSED, F_SETFD, FD_CLOEXEC);
	fcntl(FIRST_PASSED, F_SETFL, O_NONBLOCK);
	l->fd = FIRST_PASSED;
	return true;
}

static int open_usual(struct listening *l, struct error *err)
{
	char where[32];

	if (take_passed(l))
		return 0;
	snprintf(where, sizeof where, "127.0.0.1:%d", WEB_PORT);
	if (open_address(where, l, err) == 0)
		return 0;
	l->fd = fd_close(l->fd);
	*err = (struct error)ERROR_INIT;
	return open_address("127.0.0.1:0", l, err);
}

int listen_open(const char *where, struct listening *ret, struct error *err)
{
	struct listening l = {.fd = -1};
	int r = !where				  ? open_usual(&l, err)
		: strncmp(where, "unix:", 5) == 0 ? open_unix(where + 5, &l, err)
						  : open_address(where, &l, err);

	if (r == 0)
		r = name_it(&l, err);
	if (r < 0) {
		listen_close(&l);
		return r;
	}
	*ret = l;
	return 0;
}

void listen_close(struct listening *l)
{
	if (l->path)
		unlink(l->path);
	l->fd = fd_close(l->fd);
}
