#include "peer.h"

#include <inttypes.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "macros.h"

enum { NAME_ROOM = 48 };

static void file_closep(FILE **f)
{
	if (*f)
		fclose(*f);
}

/* As /proc/net/tcp and tcp6 write an address: its words of four bytes as numbers of this machine, and the port. mapped: one of IPv4 as the latter does. */
static void name_of(const struct sockaddr_storage *a, bool mapped, char out[NAME_ROOM])
{
	const struct sockaddr_in *v4 = (const void *)a;
	const struct sockaddr_in6 *v6 = (const void *)a;
	uint32_t words[4] = {0, 0, htonl(0xffff), 0};

	if (a->ss_family == AF_INET6)
		memcpy(words, &v6->sin6_addr, sizeof words);
	else
		words[3] = v4->sin_addr.s_addr;
	if (a->ss_family == AF_INET && !mapped)
		snprintf(out, NAME_ROOM, "%08" PRIX32 ":%04X", words[3], ntohs(v4->sin_port));
	else
		snprintf(out, NAME_ROOM, "%08" PRIX32 "%08" PRIX32 "%08" PRIX32 "%08" PRIX32 ":%04X",
			 words[0], words[1], words[2], words[3], ntohs(v6->sin6_port));
}

static int64_t look_in(const char *path, const char *own, const char *other)
{
	_cleanup_(file_closep) FILE *f = fopen(path, "re");
	char line[512], from[NAME_ROOM], to[NAME_ROOM];
	unsigned uid;

	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, " %*[0-9]: %47s %47s %*s %*s %*s %*s %u", from, to, &uid) == 3 &&
		    strcmp(from, own) == 0 && strcmp(to, other) == 0)
			return uid;
	return -1;
}

int64_t peer_uid(int fd)
{
	struct sockaddr_storage theirs = {0}, ours = {0};
	socklen_t n = sizeof theirs, m = sizeof ours;
	char from[NAME_ROOM], to[NAME_ROOM];
	int64_t uid = -1;

	if (getpeername(fd, (struct sockaddr *)&theirs, &n) < 0 ||
	    getsockname(fd, (struct sockaddr *)&ours, &m) < 0 ||
	    (theirs.ss_family != AF_INET && theirs.ss_family != AF_INET6))
		return -1;
	name_of(&theirs, false, from);
	name_of(&ours, false, to);
	if (theirs.ss_family == AF_INET)
		uid = look_in("/proc/net/tcp", from, to);
	if (uid >= 0)
		return uid;
	/* A socket of IPv6 may have an address of IPv4. */
	name_of(&theirs, true, from);
	name_of(&ours, true, to);
	return look_in("/proc/net/tcp6", from, to);
}
