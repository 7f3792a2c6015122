/*
 * What a worker asks for each analysis, again and again, the server understands and plans once. A plan is made for tables as they
 * are then, and a queue of none may be one of a hundred thousand a moment later: so none is kept for long.
 *
 * In a session that is only lent (a pooler's) nothing is left behind, and nothing is kept.
 */
#include "postgres.h"

#include <stdio.h>

#include "clock.h"

/* What is asked less often than this is not worth it. */
enum { USES_BEFORE = 3, USES_MOST = 200 };
static const uint64_t plan_max_ns = 2 * NSEC_PER_SEC;

static bool is_often_asked(enum sql which)
{
	switch (which) {
	case SQL_QUEUE_ROW:
	case SQL_ANALYSIS_LOCK:
	case SQL_TOKEN:
	case SQL_NUMBER_TAKEN:
	case SQL_NOW:
	case SQL_QUEUE_SETTLE:
	case SQL_AFTER_LOCK:
	case SQL_AFTER_MET:
	case SQL_CLAIM_BEGIN:
	case SQL_CLAIM_ANY:
	case SQL_CLAIM_OWNERS:
	case SQL_CLAIM_SUBMITTERS:
	case SQL_CLAIM_GROUPS:
	case SQL_CLAIM_HEAD:
	case SQL_CLAIM_LOCK:
	case SQL_CLAIM_TAKE:
	case SQL_CLAIM_SERVED:
	case SQL_CLAIMED:
		return true;
	default:
		return false;
	}
}

static int make(struct postgres *p, const char *name, const char *text, struct error *err)
{
	struct pq *q = &p->q;

	if (q->lost || !q->PQsendPrepare(q->conn, name, text, 0, NULL))
		return pq_lost(q, err);
	return pq_results(q, NULL, NULL, pq_error, err);
}

static int forget(struct postgres *p, const char *name, struct error *err)
{
	char text[PLAN_NAME_SIZE + 16];

	snprintf(text, sizeof text, "DEALLOCATE %s", name);
	return pq_exec(&p->q, text, err);
}

int postgres_plan(struct postgres *p, enum sql which, const char *text, char ret[static PLAN_NAME_SIZE],
		  struct error *err)
{
	struct kept_plan *k = &p->plans[which];
	uint64_t now = clock_now();

	if (p->q.is_pooled || !is_often_asked(which) || (!k->made && ++k->uses < USES_BEFORE))
		return 0;
	snprintf(ret, PLAN_NAME_SIZE, "fumehood_%d", (int)which);
	if (k->made && (now - k->made >= plan_max_ns || k->uses >= USES_MOST)) {
		if (forget(p, ret, err) < 0)
			return -1;
		k->made = 0;
	}
	if (!k->made) {
		if (make(p, ret, text, err) < 0)
			return -1;
		*k = (struct kept_plan){.made = now};
	}
	k->uses++;
	return 1;
}
