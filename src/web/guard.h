/*
 * Who may look, and from where. Pure: words of a request in, yes or no out.
 *
 * The Host header is asked first: a page of another site whose name suddenly means this host (DNS rebinding) names its own. Then comes who
 * it is: a cookie that was given for the token, the token itself as a bearer (which no other site can make a browser send), or, on a unix socket, the uid of the peer. What would change something, which is only the
 * form that gives the token, must come from a page of ours.
 */
#ifndef WEB_GUARD_H
#define WEB_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#include "error.h"

enum { GUARD_TOKEN = 32, GUARD_SESSION = 20 + 1 + 64, GUARD_COOKIE_ROOM = 32 };

struct guard {
	char **hosts; /* "127.0.0.1:8080"; NULL: any, on a unix socket */
	char token[GUARD_TOKEN + 1];
	char cookie[GUARD_COOKIE_ROOM]; /* its name: cookies do not know ports */
	char *secret;			/* of a server in front of us that knows its users; or NULL */
};

/* A token of its own; port 0: a unix socket. */
int guard_open(struct guard *g, unsigned port, struct error *err);
/* The first line of a file that only its owner can read. */
int guard_read_secret(struct guard *g, const char *path, struct error *err);
int guard_add_host(struct guard *g, const char *host, struct error *err);
void guard_done(struct guard *g);

/* What the cookie has of who logged in with that uid (-1: from another host): the uid, and what proves it. It does not tell the token; and a server on another port of this host,
 * which browsers give the cookie to as well, is another user's or has nothing to gain by it. */
void guard_session(const struct guard *g, int64_t uid, char out[GUARD_SESSION + 1]);

/* NULL: the header was not there. */
bool guard_knows_host(const struct guard *g, const char *host);
/* Whose it was is to be asked of the connection then. */
bool guard_knows_cookie(const struct guard *g, const char *cookies, int64_t *ret_uid);
bool guard_knows_token(const struct guard *g, const char *token);
bool guard_knows_bearer(const struct guard *g, const char *authorization);
bool guard_knows_secret(const struct guard *g, const char *secret);
bool guard_is_own_page(const struct guard *g, const char *origin, const char *fetch_site);

#endif
