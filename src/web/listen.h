/*
 * Where the page is: an address of this host, a unix socket, or one that systemd has made.
 */
#ifndef WEB_LISTEN_H
#define WEB_LISTEN_H

#include <stdbool.h>

#include "error.h"

enum { WEB_PORT = 8642 };

struct listening {
	int fd;
	bool is_unix;
	unsigned port;	  /* 0: a unix socket */
	char name[256];	  /* "127.0.0.1:8642", "unix:/run/…" */
	const char *path; /* of a unix socket that we have made, or NULL */
};

/* "ADDRESS:PORT" (port 0: any that is free), "PORT", "unix:PATH"; NULL: what systemd gave, else 127.0.0.1 and our port, or, if somebody has that
 * already, another. */
int listen_open(const char *where, struct listening *ret, struct error *err);
void listen_close(struct listening *l);

#endif
