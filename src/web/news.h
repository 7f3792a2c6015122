/*
 * News: what who looks at a live page is sent as it happens (server-sent events). A *topic* is what is looked at: the ledger, or the log of one
 * analysis. However many look at a topic, it is looked at once, by the *ear*, a thread with a ledger of its own; what it heard is given to all.
 * A viewer who does not read is let go, and waited for by nobody: his browser comes back, and is told again what was said last.
 */
#ifndef WEB_NEWS_H
#define WEB_NEWS_H

#include <microhttpd.h>

#include "hood.h"
#include "loop.h"

struct news;
/* on_sent is called, in the loop, when libmicrohttpd has something to send. */
int news_open(struct loop *loop, const struct hood_options *options, void (*on_sent)(void *arg), void *arg,
	      struct news **ret, struct error *err);
/* What this connection is sent from now on: of the ledger (id NULL), or of one analysis. NULL: too many look already, or memory is out. */
struct MHD_Response *news_view(struct news *n, struct MHD_Connection *connection, const char *id);
/* Every viewer's stream ends with the next run of libmicrohttpd; nothing stays suspended. */
void news_quiet(struct news *n);
/* After libmicrohttpd is gone. Returns NULL. */
struct news *news_close(struct news *n);

/* For /metrics: viewers now, looks at the ledger and at logs so far. */
struct news_counts {
	uint64_t viewers, looks, log_reads, dropped;
};
struct news_counts news_count(struct news *n);

#endif
