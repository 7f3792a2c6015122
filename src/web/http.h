/*
 * HTTP, by libmicrohttpd in our own loop. Each request is an exchange: its headers are judged here, then it is suspended while an asker makes the
 * answer, and sent. Bounds: connections, bytes of a request, seconds without a byte, and seconds in all.
 */
#ifndef WEB_HTTP_H
#define WEB_HTTP_H

#include "asker.h"
#include "guard.h"
#include "listen.h"
#include "loop.h"

struct pictures;

/* Who makes the answers. */
struct http_staff {
	struct askers *askers;
	struct askers *painter;	   /* one thread, so that those who only read do not wait for pictures */
	struct pictures *pictures; /* the painter's */
};

struct http;
/* The listening socket becomes its own. options: for who listens to the ledger (news.h). */
int http_open(struct loop *loop, const struct guard *guard, const struct http_staff *staff,
	      const struct hood_options *options, struct listening *at, struct http **ret, struct error *err);
/* Nothing is asked any more: before the askers are closed. NULL is fine. */
void http_quiet(struct http *h);
/* After they are. What was answered is sent as far as it goes. Returns NULL. */
struct http *http_close(struct http *h);

#endif
