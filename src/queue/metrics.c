/*
 * What a worker counts, as Prometheus reads it from a text file. Replaced whole, so that a reader never sees half.
 */
#include <fcntl.h>
#include <string.h>

#include "buffer.h"
#include "clock.h"
#include "file.h"
#include "worker_private.h"

static void head(struct buffer *b, const char *name, const char *type, const char *help)
{
	buffer_printf(b, "# HELP fumehood_%s %s\n# TYPE fumehood_%s %s\n", name, help, name, type);
}

static void one(struct buffer *b, const char *name, const char *type, const char *help, uint64_t value)
{
	head(b, name, type, help);
	buffer_printf(b, "fumehood_%s %llu\n", name, (unsigned long long)value);
}

static void ended(struct buffer *b, const struct worker *w)
{
	head(b, "ended_total", "counter", "Analyses that came to a verdict here.");
	for (int v = VERDICT_SUCCEEDED; v < VERDICT_COUNT; v++)
		buffer_printf(b, "fumehood_ended_total{verdict=\"%s\"} %llu\n", verdict_name((enum verdict)v),
			      (unsigned long long)w->counters.ended[v]);
}

static void claims(struct buffer *b, const struct worker_counters *c)
{
	head(b, "claim_seconds", "summary", "How long the ledger took to answer claims.");
	buffer_printf(b, "fumehood_claim_seconds_sum %.6f\nfumehood_claim_seconds_count %llu\n",
		      (double)c->claims_ns / (double)NSEC_PER_SEC, (unsigned long long)c->claims);
}

/* Of the whole queue, as it was when it was last counted; left out while the ledger does not answer. */
static void queue(struct buffer *b, const struct worker *w)
{
	uint64_t counts[JOB_STATES];
	int64_t at;

	if (!w->tally || !tally_read(w->tally, counts, &at))
		return;
	head(b, "queue", "gauge", "Analyses in the queue, by state.");
	for (int s = 0; s < JOB_STATES; s++)
		buffer_printf(b, "fumehood_queue{state=\"%s\"} %llu\n", job_state_name((enum job_state)s),
			      (unsigned long long)counts[s]);
	one(b, "queue_counted_seconds", "gauge", "When the queue was counted, in seconds since 1970.",
	    (uint64_t)at / NSEC_PER_SEC);
}

static void format(struct buffer *b, struct worker *w)
{
	const struct worker_counters *c = &w->counters;
	const struct {
		const char *name, *type, *help;
		uint64_t value;
	} rows[] = {
		{"running", "gauge", "Analyses that run here now.", (uint64_t)worker_running(w)},
		{"slots", "gauge", "Analyses that may run here at once.", (uint64_t)w->engine->slots},
		{"memory_bytes", "gauge", "Memory that analyses may use here together.", w->memory_total},
		{"memory_claimed_bytes", "gauge", "Memory that the running ones may use.",
		 worker_memory_used(w)},
		{"claimed_total", "counter", "Analyses that were claimed.", c->claimed},
		{"handed_back_total", "counter", "Analyses that were handed back unfinished.",
		 c->handed_back},
		{"leases_lost_total", "counter", "Analyses that became somebody else's.", c->lost},
		{"leases_expired_total", "counter", "Leases of others that this worker found to be over.",
		 c->expired},
		{"ledger_up", "gauge", "1 if the ledger can be reached.", !w->is_away},
		{"ledger_lost_total", "counter", "How often the ledger went out of reach.", c->away},
		{"written_seconds", "gauge", "When this was written, in seconds since 1970.",
		 (uint64_t)clock_utc() / NSEC_PER_SEC},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		one(b, rows[i].name, rows[i].type, rows[i].help, rows[i].value);
	claims(b, c);
	ended(b, w);
	queue(b, w);
}

int metrics_write(struct worker *w, struct error *err)
{
	_cleanup_buffer_ struct buffer b = {0};

	format(&b, w);
	if (buffer_check(&b, err) < 0)
		return -1;
	return file_replace(AT_FDCWD, w->options->metrics, b.data, b.size, 0644, false, err);
}
