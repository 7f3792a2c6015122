/*
 * The queue's doorbell in PostgreSQL: NOTIFY within the transaction, LISTEN on the connection that waits.
 */
#include "postgres.h"

#include <poll.h>

/* However many rang in one transaction, it is heard once. */
int postgres_ring(struct backend *b, struct error *err)
{
	struct postgres *p = postgres_of(b);
	int r = p->in_transaction && p->has_rung ? 0 : pq_exec(&p->q, sql_postgres_notify, err);

	p->has_rung = r == 0 && p->in_transaction;
	return r;
}

int postgres_bell(struct backend *b, struct error *err)
{
	struct postgres *p = postgres_of(b);

	if (b->is_pooled)
		return error_set(
			err, ERROR_REFUSED,
			"the ledger %s cannot ring, since it is reached through a pooler that lends a session "
			"for one transaction",
			b->name);
	if (!p->listening && !p->q.lost && pq_exec(&p->q, sql_postgres_listen, err) < 0 && !p->q.lost)
		return -1;
	p->listening = true; /* from now on connecting does it */
	if (p->q.lost && postgres_reconnect(p, err) < 0)
		return -1;
	return p->q.PQsocket(p->q.conn);
}

void postgres_bell_end(struct backend *b)
{
	struct postgres *p = postgres_of(b);
	PGnotify *rung;

	if (p->listening && !p->q.lost)
		(void)pq_exec(&p->q, sql_postgres_unlisten, NULL);
	p->listening = false;
	while (!p->q.lost && (rung = p->q.PQnotifies(p->q.conn)))
		p->q.PQfreemem(rung);
}

/* Some may have come with the answer to another query: they are here, though the descriptor is quiet. */
int postgres_bell_read(struct backend *b, struct error *err)
{
	struct pq *q = &postgres_of(b)->q;
	struct pollfd fd = {.fd = q->PQsocket(q->conn), .events = POLLIN};
	PGnotify *rung;
	int any = 0;

	/* A server that goes says so first: only what comes after it tells that it is gone. */
	do
		if (q->lost || !q->PQconsumeInput(q->conn))
			return pq_lost(q, err);
	while (poll(&fd, 1, 0) > 0);
	while ((rung = q->PQnotifies(q->conn))) {
		q->PQfreemem(rung);
		any = 1;
	}
	return any;
}
