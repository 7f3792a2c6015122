#include "pgwire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>

#include "macros.h"

static int send_all(int fd, const void *data, size_t size)
{
	return send(fd, data, size, MSG_NOSIGNAL) == (ssize_t)size ? 0 : -errno;
}

static int receive_all(int fd, void *data, size_t size)
{
	for (char *p = data; size;) {
		ssize_t n = recv(fd, p, size, 0);
		if (n <= 0)
			return n ? -errno : -ECONNRESET;
		p += n;
		size -= (size_t)n;
	}
	return 0;
}

static int send_startup(int fd)
{
	static const char words[] = "user\0owner\0database\0postgres\0";
	struct {
		uint32_t size, version;
		char words[sizeof(words)];
	} message = {.size = htonl(8 + sizeof(words)), .version = htonl(196608)};
	memcpy(message.words, words, sizeof(words));
	return send_all(fd, &message, 8 + sizeof(words));
}

static int send_query(int fd, const char *sql)
{
	char message[512];
	size_t length = strlen(sql) + 1;
	uint32_t size = htonl((uint32_t)(length + 4));
	if (length + 5 > sizeof(message))
		return -E2BIG;
	message[0] = 'Q';
	memcpy(message + 1, &size, 4);
	memcpy(message + 5, sql, length);
	return send_all(fd, message, length + 5);
}

/* A DataRow's first column: int16 count, int32 length, bytes. */
static void take_column(const unsigned char *body, size_t size, char *first, size_t room)
{
	uint32_t length;
	if (size < 6 || !first || first[0])
		return;
	memcpy(&length, body + 2, 4);
	length = ntohl(length);
	if (length < room && length <= size - 6) {
		memcpy(first, body + 6, length);
		first[length] = '\0';
	}
}

/* Reads messages up to ReadyForQuery. */
static int receive_until_ready(int fd, char *first, size_t room)
{
	for (int r = 0;;) {
		unsigned char head[5], body[2048];
		if (receive_all(fd, head, sizeof(head)))
			return -ECONNRESET;
		uint32_t size;
		memcpy(&size, head + 1, 4);
		size = ntohl(size) - 4;
		if (size > sizeof(body))
			return -EMSGSIZE;
		if (receive_all(fd, body, size))
			return -ECONNRESET;
		if (head[0] == 'E')
			return -EPROTO;
		if (head[0] == 'R' && size >= 4 && body[3] != 0)
			return -EACCES; /* it wants a password */
		if (head[0] == 'D')
			take_column(body, size, first, room);
		if (head[0] == 'Z')
			return r;
	}
}

int pgwire_execute(const union address *to, socklen_t size, const char *sql, char *first, size_t room)
{
	struct timeval patience = {.tv_sec = 3};
	_cleanup_close_ int fd = socket(to->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (first)
		first[0] = '\0';
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (connect(fd, &to->any, size))
		return -errno;
	int r = send_startup(fd);
	if (!r)
		r = receive_until_ready(fd, NULL, 0);
	if (!r)
		r = send_query(fd, sql);
	if (!r)
		r = receive_until_ready(fd, first, room);
	return r;
}
