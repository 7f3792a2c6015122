/*
 * What was when, and how often: of all attempts that were made in some span of time, for those who look at many. Only reads. While a function is
 * called nothing is to be asked of the ledger.
 */
#ifndef STORE_HISTORY_H
#define STORE_HISTORY_H

#include "ledger.h"

/* Made at or after since, and before until: UTC ns. */
struct history_span {
	int64_t since, until;
};

struct history_row {
	char id[ID_ROOM];
	int attempt;
	enum verdict verdict;
	int64_t submitted, created, started,
		ended;			      /* UTC ns; 0: not known, or it did not wait in the queue */
	const char *host, *owner, *submitter; /* NULL: not known */
};
typedef int (*history_fn)(void *arg, const struct history_row *row, struct error *err);
/* The newest first. */
int ledger_history(struct ledger *l, const struct history_span *span, int limit, history_fn fn, void *arg,
		   struct error *err);

struct history_day {
	int64_t day; /* since 1970 */
	enum verdict verdict;
	int64_t count;
};
typedef int (*history_day_fn)(void *arg, const struct history_day *day, struct error *err);
/* In no order. */
int ledger_history_days(struct ledger *l, const struct history_span *span, history_day_fn fn, void *arg,
			struct error *err);

/* Commands are told by their first two words. What nobody measured is -1. */
struct history_command {
	const char *command; /* NULL: not known */
	int64_t count, failed;
	int64_t wall_mean_ms, wall_most_ms, memory_mean_bytes, memory_most_bytes;
};
typedef int (*history_command_fn)(void *arg, const struct history_command *c, struct error *err);
/* Of the newest so many attempts, since the row of each has to be read: the most frequent first. */
int ledger_history_commands(struct ledger *l, const struct history_span *span, int newest,
			    history_command_fn fn, void *arg, struct error *err);

struct history_failure {
	const char *command, *reason; /* NULL: not known */
	enum verdict verdict;
	int64_t count, last;
};
typedef int (*history_failure_fn)(void *arg, const struct history_failure *f, struct error *err);
/* Of the newest so many that did not succeed: the most frequent first. */
int ledger_history_failures(struct ledger *l, const struct history_span *span, int newest,
			    history_failure_fn fn, void *arg, struct error *err);

#endif
