/*
 * `fumehood web`: the ledger as pages, for people who would rather look. Everything that it shows was written by strangers, and nothing that
 * anybody asks changes anything: the ledger is opened without any right to write.
 *
 *     socket ──► http.c: one thread, libmicrohttpd ──► guard.h: who may look ──► asker.h: threads with the ledger ──► pages.h ──► html.h
 */
#ifndef WEB_WEB_H
#define WEB_WEB_H

#include "hood.h"

struct web_options {
	struct hood_options hood;
	const char *listen;	 /* as listen_open() */
	const char *secret_file; /* of a server in front of us; or NULL */
	char *const *hosts;	 /* more names that the Host header may have; or NULL */
	int signal_fd;		 /* a byte: stop */
	/* It can be asked now: the address to open, with the token, as one line. */
	int (*ready)(void *arg, const char *address, struct error *err);
	void *arg;
};

int web_serve(const struct web_options *o, struct error *err);

#endif
