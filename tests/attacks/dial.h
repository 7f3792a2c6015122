/*
 * Reaching a service from the attacker: addresses of every kind, one greeting, whatever comes back is shown.
 */
#ifndef ATTACK_DIAL_H
#define ATTACK_DIAL_H

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

union address {
	struct sockaddr any;
	struct sockaddr_un un;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/* "/path", "relative/path", or "@name" for an abstract one. Returns the address's length. */
socklen_t address_unix(union address *ret, const char *name);
/* "127.0.0.1" or "::1"; 0 if it is neither. */
socklen_t address_inet(union address *ret, const char *host, int port);

/* Sends a greeting over a connected socket and shows the answer, waiting a short while for it. 0 or -errno. */
int dial_greet(int fd);
/* socket(), connect(), dial_greet(). */
int dial(int type, int protocol, const union address *to, socklen_t size);
/* The same by sendto() alone, for datagrams without a connection; the answer is not waited for. */
int dial_send(int fd, const union address *to, socklen_t size);

#endif
