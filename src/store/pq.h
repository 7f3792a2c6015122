/*
 * libpq, loaded when a PostgreSQL ledger is used and never before: fumehood runs where it is not installed. Its header
 * gives the types; every call goes through this table.
 *
 * Above it, a connection that never waits for ever. A statement may take as long as it was told; whether anybody is still
 * there is another question. A peer whose machine or network is gone the kernel notices (keepalives and
 * TCP_USER_TIMEOUT); a server that was stopped keeps its sockets, so after a while of silence it is asked on another
 * connection.
 */
#ifndef STORE_PQ_H
#define STORE_PQ_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>

#include "error.h"

#define PQ_FUNCTIONS(X)         \
	X(PQconninfo)           \
	X(PQconninfoParse)      \
	X(PQbackendPID)         \
	X(PQconninfoFree)       \
	X(PQconnectdbParams)    \
	X(PQpingParams)         \
	X(PQhostaddr)           \
	X(PQfinish)             \
	X(PQstatus)             \
	X(PQhost)               \
	X(PQport)               \
	X(PQdb)                 \
	X(PQuser)               \
	X(PQtransactionStatus)  \
	X(PQserverVersion)      \
	X(PQerrorMessage)       \
	X(PQsocket)             \
	X(PQsetnonblocking)     \
	X(PQsetNoticeProcessor) \
	X(PQsendQuery)          \
	X(PQsendQueryParams)    \
	X(PQsendPrepare)        \
	X(PQsendQueryPrepared)  \
	X(PQgetCopyData)        \
	X(PQsetSingleRowMode)   \
	X(PQflush)              \
	X(PQconsumeInput)       \
	X(PQisBusy)             \
	X(PQgetResult)          \
	X(PQputCopyData)        \
	X(PQputCopyEnd)         \
	X(PQresultStatus)       \
	X(PQresultErrorField)   \
	X(PQntuples)            \
	X(PQnfields)            \
	X(PQftype)              \
	X(PQgetvalue)           \
	X(PQgetlength)          \
	X(PQgetisnull)          \
	X(PQclear)              \
	X(PQnotifies)           \
	X(PQfreemem)

struct pq {
	void *library;
	PGconn *conn;
	const char *name; /* of the ledger, for messages; the backend's */
	int silence_ms;	  /* how long nothing is heard before it is asked whether the server is there */
	int connect_s;	  /* how long connecting may take; 0: 10 s */
	int statement_ms; /* how long a statement may take: after that it is lost in any case */
	bool is_asking;	  /* private: after another connection, and nobody asks after this one */
	bool lost;	  /* nothing but pq_connect helps any more */
	bool is_pooled; /* a session is lent for one transaction, and others have had it: nothing may stay in it */
#define PQ_MEMBER(function) __typeof__(function) *function;
	PQ_FUNCTIONS(PQ_MEMBER)
#undef PQ_MEMBER
};

int pq_load(struct pq *q, struct error *err);
void pq_done(struct pq *q);

/* Connects, or connects again, and finds out whether the session is ours. No message has a password in it. */
int pq_connect(struct pq *q, const char *url, struct error *err);
/* The same with these options of libpq, instead of a URL; both lists end in NULL. */
int pq_connect_with(struct pq *q, const char *const *names, const char *const *values, struct error *err);
/* Silence is noticed after this, if it is not sooner anyhow; connecting has as long, and 2 s at least. */
void pq_hurry(struct pq *q, int silence_ms);
/* How the server is to find out that we are gone, in the words of SET: as we do that it is. Its own default is two hours,
 * in which it keeps the session. "; SET …", to be appended; NULL: out of memory. */
char *pq_peer_settings(struct pq *q);
/* What libpq said last, in one line. */
const char *pq_said(struct pq *q, char *out, size_t room);

/* Sends what is still to be sent, and waits for the next result; *ret is NULL at the end. ERROR_AGAIN: lost. */
int pq_flush(struct pq *q, struct error *err);
int pq_result(struct pq *q, PGresult **ret, struct error *err);
/* Reads and forgets what is left of the last query. */
void pq_drain(struct pq *q);

/* What a failed result says, as one sentence. ERROR_AGAIN where the transaction can be tried again. */
int pq_error(struct pq *q, const PGresult *result, struct error *err);
int pq_lost(struct pq *q, struct error *err);

/* All results of what was sent. A good one goes to take (NULL: nobody wants it), any other to fail, which makes an error of
 * it. After that the rest is read and forgotten, so that the connection is ready for the next query. */
typedef int (*pq_take_fn)(void *arg, struct pq *q, const PGresult *result, struct error *err);
typedef int (*pq_fail_fn)(struct pq *q, const PGresult *result, struct error *err);
int pq_results(struct pq *q, pq_take_fn take, void *arg, pq_fail_fn fail, struct error *err);
/* The same of a whole query or script, which it sends. */
int pq_query(struct pq *q, const char *text, pq_take_fn take, void *arg, pq_fail_fn fail, struct error *err);

/* Waits for more from the server, and reads it. */
int pq_wait(struct pq *q, struct error *err);
/* One whose rows nobody wants; or only the number in the last one (NULL: nor that). */
int pq_exec(struct pq *q, const char *text, struct error *err);
int pq_exec_number(struct pq *q, const char *text, int *ret, struct error *err);

/* What its SQLSTATE means to us. */
enum pq_state {
	PQ_OTHER,
	PQ_TAKEN, /* a key, by another one */
	PQ_DENIED,
	PQ_INCOMPLETE, /* a schema, a table or a column is not there */
	PQ_DIVIDED_BY_ZERO,
	PQ_SPOKEN, /* by a function of ours, to the user */
	PQ_SERVER, /* from here on not what was asked is at fault: the server is, or another transaction */
	PQ_BUSY,
	PQ_LOCKED,
	PQ_TOO_LONG,
	PQ_READ_ONLY,
	PQ_FULL,
	PQ_CUT_OFF,
	PQ_ENDING, /* the server, or our session */
};
enum pq_state pq_state(struct pq *q, const PGresult *result);

#endif
