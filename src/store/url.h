/*
 * Where the ledger is: "sqlite:PATH", a bare path, or "postgresql://…". Our own parameters (objects=DIR or
 * objects=postgresql, objects_max=SIZE, group=NAME, blob_max=SIZE, busy=TIME, statement=TIME, filesystem=any) stand in the query part of the first
 * and the last, and are taken out before the database sees the rest.
 */
#ifndef STORE_URL_H
#define STORE_URL_H

#include <stdbool.h>
#include <stdint.h>

#include "error.h"

enum {
	BLOB_MAX_DEFAULT = 64 * 1024,
	BLOB_MAX_MOST = 16 * 1024 * 1024,
	BUSY_DEFAULT_MS = 20000,
	STATEMENT_DEFAULT_MS = 3600 * 1000,
	OBJECTS_MAX_DEFAULT = 1024 * 1024 * 1024,
};
#define OBJECTS_MAX_MOST (1024ULL * OBJECTS_MAX_DEFAULT)

struct ledger_url {
	bool is_postgres;
	char *location; /* a path, or a URL for libpq: with the password, never to be shown */
	char *objects;	/* the directory of the object store; NULL: the database itself is it (chunks.h) */
	bool objects_inside;
	uint64_t objects_max; /* how large a content it takes */
	bool objects_named;   /* a directory, by the URL itself */
	bool objects_unsaid;  /* inside, and nobody said so */
	char *group;	      /* whose the object store is (group.h); NULL: its owner's */
	uint64_t blob_max;
	uint64_t busy_ms;      /* how long to wait for others' locks */
	bool any_filesystem;   /* SQLite: the user has said that no other machine opens it */
	uint64_t statement_ms; /* how long one statement may take; PostgreSQL only */
};

int ledger_url_parse(const char *url, struct ledger_url *ret, struct error *err);
void ledger_url_done(struct ledger_url *u);
/* Names the first parameter of a PostgreSQL URL that is neither ours nor libpq's: ERROR_USAGE; 0: there is none. shown: the
 * URL for people. */
typedef bool (*parameter_known_fn)(const void *arg, const char *name);
int ledger_url_refuse_stranger(const char *url, const char *shown, parameter_known_fn is_known,
			       const void *arg, struct error *err);
#define _cleanup_ledger_url_ _cleanup_(ledger_url_done)

#endif
