/*
 * /metrics: numbers for Prometheus, of the ledger and of the page itself.
 */
#ifndef WEB_METRICS_H
#define WEB_METRICS_H

#include "answer.h"
#include "hood.h"
#include "news.h"

struct web_counts {
	uint64_t requests, refused;
	struct news_counts news;
};

int metrics_answer(struct hood *h, const struct web_counts *own, struct answer *ret, struct error *err);

#endif
