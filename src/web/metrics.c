#include "metrics.h"

#include <inttypes.h>

#include "queue.h"

enum { COUNT_MOST = 100000 };

static void put(struct buffer *b, const char *name, const char *type, const char *help, uint64_t value)
{
	buffer_printf(b, "# HELP %s %s\n# TYPE %s %s\n%s %" PRIu64 "\n", name, help, name, type, name, value);
}

static void put_queue(struct buffer *b, const uint64_t counts[JOB_STATES])
{
	static const enum job_state shown[] = {JOB_WAITING, JOB_QUEUED, JOB_RUNNING, JOB_CANCELLED,
					       JOB_RESTORED};

	buffer_puts(b, "# HELP fumehood_queue Analyses in the queue, by state, up to 100000 of each.\n"
		       "# TYPE fumehood_queue gauge\n");
	for (size_t i = 0; i < ARRAY_SIZE(shown); i++)
		buffer_printf(b, "fumehood_queue{state=\"%s\"} %" PRIu64 "\n", job_state_name(shown[i]),
			      counts[shown[i]]);
}

int metrics_answer(struct hood *h, const struct web_counts *own, struct answer *ret, struct error *err)
{
	uint64_t counts[JOB_STATES];
	struct buffer *b = &ret->body;
	struct recent recent;
	struct ledger *l;

	if (hood_ledger(h, LEDGER_READ_ONLY, &l, err) < 0 ||
	    ledger_queue_open_counts(l, COUNT_MOST, counts, err) < 0 || ledger_recent(l, &recent, err) < 0)
		return -1;
	ret->type = "text/plain; version=0.0.4; charset=utf-8";
	put_queue(b, counts);
	put(b, "fumehood_ended_in_last_hour", "gauge",
	    "Attempts that were made in the last hour and have ended, up to 2000.", recent.ended);
	put(b, "fumehood_failed_in_last_hour", "gauge", "Those of them that have not succeeded.",
	    recent.failed);
	put(b, "fumehood_web_requests_total", "counter", "Requests for pages.", own->requests);
	put(b, "fumehood_web_refused_total", "counter",
	    "Requests that were refused: host, token, method or address.", own->refused);
	put(b, "fumehood_web_viewers", "gauge", "Who looks at something live.", own->news.viewers);
	put(b, "fumehood_web_viewers_dropped_total", "counter",
	    "Viewers that were let go because they did not read.", own->news.dropped);
	put(b, "fumehood_web_ledger_looks_total", "counter", "Looks at the ledger for all viewers.",
	    own->news.looks);
	put(b, "fumehood_web_log_reads_total", "counter",
	    "Pieces of logs that were read, each once for all its viewers.", own->news.log_reads);
	return buffer_check(b, err);
}
