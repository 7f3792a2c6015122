/*
 * Whom it tried to reach. Its network has nothing but a loopback of its own, so everything else is out of reach, and what is on
 * the loopback is there only if a process of the analysis listens.
 */
#include "file.h"
#include "notices.h"
#include "peek.h"
#include "text.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { TABLE_MAX = 1024 * 1024 };

const char *socket_family_name(int family, char out[32])
{
	static const struct {
		int number;
		const char *name;
	} names[] = {{AF_UNIX, "AF_UNIX"},	 {AF_INET, "AF_INET"},		 {AF_INET6, "AF_INET6"},
		     {AF_NETLINK, "AF_NETLINK"}, {AF_PACKET, "AF_PACKET"},	 {AF_ALG, "AF_ALG"},
		     {AF_VSOCK, "AF_VSOCK"},	 {AF_BLUETOOTH, "AF_BLUETOOTH"}, {AF_CAN, "AF_CAN"}};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i].number == family)
			return names[i].name;
	snprintf(out, 32, "address family %d", family);
	return out;
}

/* A table of its network namespace, as text. */
static bool load_table(const struct notice *n, const char *name, struct buffer *b)
{
	struct error ignored = ERROR_INIT;
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/net/%s", (int)n->pid, name);
	return file_load(AT_FDCWD, path, TABLE_MAX, b, &ignored) == 0 && buffer_append(b, "", 1) == 0;
}

/* Has a process of its own opened this port? Lines are "N: ADDRESS:PORT …", the port in hex; of TCP those that listen. */
static bool port_is_open(const struct notice *n, const char *name, unsigned port, bool tcp)
{
	_cleanup_buffer_ struct buffer table = {0};
	char *rest, *line;

	if (!load_table(n, name, &table))
		return true; /* nothing is known */
	for (rest = table.data; (line = strsep(&rest, "\n"));) {
		unsigned local, state;

		if (sscanf(line, " %*u: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x", &local, &state) == 2 &&
		    local == port && (!tcp || state == 0x0a))
			return true;
	}
	return false;
}

static const char *port_hint(unsigned port)
{
	switch (port) {
	case 53:
		return "analyses have no network, and so no names of other hosts";
	case 5432:
	case 3306:
		return "analyses have no network, and no database: --query brings data in, a post-process takes rows out";
	case 80:
	case 443:
		return "analyses have no network: fetch it before, and give it with --input or --data";
	}
	return "analyses have no network";
}

static void to_a_host(struct notices *x, const struct notice *n, int family, const void *address,
		      unsigned port, bool loopback)
{
	char host[INET6_ADDRSTRLEN] = "?", target[INET6_ADDRSTRLEN + 16];

	inet_ntop(family, address, host, sizeof host);
	snprintf(target, sizeof target, family == AF_INET ? "%s:%u" : "[%s]:%u", host, port);
	if (!loopback) {
		notices_add(x, "network", "connect", NULL, target, ENETUNREACH, "%s", port_hint(port));
		return;
	}
	if (port_is_open(n, "tcp", port, true) || port_is_open(n, "tcp6", port, true) ||
	    port_is_open(n, "udp", port, false) || port_is_open(n, "udp6", port, false))
		return;
	notices_add(x, "network", "connect", NULL, target, ECONNREFUSED, "%s%s", port_hint(port),
		    port == 53 || port == 5432 ? "" : "; its loopback is its own, and nobody listens there");
}

/* "@name" in the last column, which begins where the seventh ends. */
static bool abstract_is_open(const struct notice *n, const char *name)
{
	_cleanup_buffer_ struct buffer table = {0};
	char *rest, *line;

	if (!load_table(n, "unix", &table))
		return true;
	for (rest = table.data; (line = strsep(&rest, "\n"));) {
		const char *at = strchr(line, '@');

		if (at && strcmp(at + 1, name) == 0)
			return true;
	}
	return false;
}

static void to_a_socket(struct notices *x, const struct notice *n, const struct sockaddr_un *to, size_t size)
{
	static const char hint[] = "services of the host cannot be reached";
	char name[sizeof to->sun_path + 1] = "", path[PATH_MAX * 2], target[sizeof name + 1];
	size_t room = size - offsetof(struct sockaddr_un, sun_path);
	ssize_t base = 0;
	mode_t mode;
	int r;

	if (room > sizeof to->sun_path)
		room = sizeof to->sun_path;
	if (room == 0)
		return;
	if (to->sun_path[0] == 0) {
		memcpy(name, to->sun_path + 1, room - 1);
		if (abstract_is_open(n, name))
			return;
		snprintf(target, sizeof target, "@%s", name);
		notices_add(x, "network", "connect", NULL, target, ECONNREFUSED, hint);
		return;
	}
	memcpy(name, to->sun_path, room);
	if (name[0] != '/' && (base = peek_directory(n->pid, AT_FDCWD, path, PATH_MAX)) < 0)
		return;
	if (name[0] != '/')
		path[base++] = '/';
	memcpy(path + base, name, strlen(name) + 1);
	r = notices_look(x, n, path, &mode);
	if (r == -ENOENT || r == -ENOTDIR) {
		if (x->looks_outside)
			outside_note(&x->outside, OUTSIDE_SOCKET, "connect", path, NULL, -r);
	} else if (r == 0 && S_ISSOCK(mode) && !path_is_below(path, x->plan->workspace) &&
		   !path_is_below(path, "/tmp") && !path_is_below(path, "/dev/shm")) {
		notices_add(x, "network", "connect", path, path, ECONNREFUSED, hint);
	}
}

bool notices_connect(struct notices *x, const struct notice *n)
{
	union {
		sa_family_t family;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
		struct sockaddr_un un;
	} to = {0};
	size_t size = n->args[2] < sizeof to ? (size_t)n->args[2] : sizeof to;
	ssize_t got;

	if (strcmp(n->call, "connect") != 0)
		return false;
	got = peek_bytes(n->pid, n->args[1], &to, size);
	if (got < (ssize_t)sizeof to.family || !notice_is_valid(n))
		return true;
	if (to.family == AF_INET && (size_t)got >= sizeof to.in)
		to_a_host(x, n, AF_INET, &to.in.sin_addr, ntohs(to.in.sin_port),
			  (ntohl(to.in.sin_addr.s_addr) >> 24) == 127 || to.in.sin_addr.s_addr == 0);
	else if (to.family == AF_INET6 && (size_t)got >= sizeof to.in6 &&
		 IN6_IS_ADDR_V4MAPPED(&to.in6.sin6_addr))
		to_a_host(x, n, AF_INET, &to.in6.sin6_addr.s6_addr[12], ntohs(to.in6.sin6_port),
			  to.in6.sin6_addr.s6_addr[12] == 127 || to.in6.sin6_addr.s6_addr32[3] == 0);
	else if (to.family == AF_INET6 && (size_t)got >= sizeof to.in6)
		to_a_host(x, n, AF_INET6, &to.in6.sin6_addr, ntohs(to.in6.sin6_port),
			  IN6_IS_ADDR_LOOPBACK(&to.in6.sin6_addr) ||
				  IN6_IS_ADDR_UNSPECIFIED(&to.in6.sin6_addr));
	else if (to.family == AF_UNIX)
		to_a_socket(x, n, &to.un, (size_t)got);
	return true;
}
