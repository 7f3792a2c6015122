/* What is lent, for lending.c and joint.c. */
#ifndef STORE_LENDING_PRIVATE_H
#define STORE_LENDING_PRIVATE_H

#include <pthread.h>

#include "lending.h"
#include "store.h"

/* joint.c: who waits to commit with others. */
struct member;
struct joint {
	struct member *waiting; /* the first comes first */
	int n_waiting;
	bool has_leader;
	uint64_t n_together;	  /* who has shared a transaction so far */
	unsigned brief_ms;	  /* for so long others' locks are waited for while others wait */
	pthread_mutex_t patience; /* of who waits for longer */
};

struct lending {
	char *text; /* the URL as it was given */
	struct ledger_url url;
	pthread_mutex_t lock;
	pthread_cond_t given_back;
	int most, n_open;
	/* The last that was given back is the first to be lent again: in quiet times the others are left alone. */
	struct idle {
		struct backend *backend;
		unsigned losses; /* as many there had been */
	} idle[LENDING_MOST];
	int n_idle;
	unsigned losses;      /* of connections: a server that restarts takes all of them */
	pthread_mutex_t turn; /* of who writes, where there is one writer at a time */
	struct joint joint;
	bool is_own; /* as who claims has found it */
};

/* b does what it does on leader's connection, within the transaction that is open there, until it parts. */
void lent_join(struct backend *b, struct backend *leader);
void lent_part(struct backend *b);

#endif
